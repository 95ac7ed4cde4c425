"""Campaigns: fuzz, sweep, certify, reduce; their budget, their steering and the runs that they leave."""
