"""Processes that run cases, the pool of them, what is said between them, and clusters."""
