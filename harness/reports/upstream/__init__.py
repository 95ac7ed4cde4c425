"""What goes to upstream's trackers: a folder a tracker, a file a root cause (``armdiff upstream``).

``causes`` groups the corpus by root cause and orders it by harm; ``page`` writes one cause as a maintainer reads it;
``sending`` tries each again and writes the folders.
"""
