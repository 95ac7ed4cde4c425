"""Hostile inputs: files that a person, a cut download or a bad disk may give (``tox run -e hostile``)."""
