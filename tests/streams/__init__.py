"""What the Ethos-U model does with streams that are damaged, hostile or large.

Three commands, run from the repository's root: ``python -m tests.streams.sensitivity`` flips single
bits, ``python -m tests.streams.robustness`` mutates whole payloads, ``python -m tests.streams.speed``
measures. They share ``subjects``, ten small payloads that are compiled on the spot.
"""
