"""Oracles: pure functions from an observation to mismatches, one file each.

A module here defines ``ORACLE``; ``harness.evidence.observation.oracles()`` finds it. An oracle never runs a
model: what it needs beyond the legs' outputs is a probe whose result is in the observation. It
says what it saw, what it expected, where, and in which unit; and it stays silent where it has no
ground to stand on.

To add one: a file here, a planted fault that it catches and the clean twin that it passes
(``tests/faults``).
"""
