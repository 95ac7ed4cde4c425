"""The engine of armdiff: cases, lowering, legs, probes, triage, campaigns and the command line.

Vocabulary (docs/architecture.md): a *case* is one module graph x calibration x recipe x target;
a *leg* is one way to execute it; a *probe* is an extra observation; an *oracle* turns an
observation into *mismatches*; a mismatch with its case is a *finding*; findings that share a
cause share a *bucket*.

Imports point one way: ``generators`` and ``oracles`` import from ``harness``; ``harness`` finds
oracles through ``harness.registry``, and imports either only inside the functions that need them;
nothing but the pytest plugin imports ``harness.cli``. Modules that need torch say so in their
docstring; everything else imports in milliseconds.
"""

__version__ = "0.1.0"
