"""Findings and their buckets, known bugs and how they are proved, the corpus and the release table."""
