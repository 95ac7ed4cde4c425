"""The engine of armdiff, in rooms; each imports from itself and from the rooms above it in this list.

- ``case``: what a case is; ``compat``: upstream's packages, which nobody else imports;
- ``corrections``: corrected passes; ``artifacts``: readers of TOSA and Vela bytes, and of ``.pte`` files;
- ``ethosu``: the functional model of the NPU;
- ``evidence``: observations, what the artifacts mean, what rounding allows;
- ``pipeline``: one case through export, quantize, lower, legs and probes;
- ``locate``: who is to blame; ``triage``: findings, buckets, known bugs, the corpus;
- ``workers``: processes that run cases, and the pool of them; they find oracles by ``evidence.observation.oracles``;
- ``campaign``: fuzz, sweep, certify, reduce; ``reports``: what a run leaves for its readers; ``cli``: the command.

Vocabulary (docs/architecture.md): a *case* is one module graph x calibration x recipe x target; a *leg* is one way
to execute it; a *probe* is an extra observation; an *oracle* turns an observation into *mismatches*; a mismatch with
its case is a *finding*; findings that share a cause share a *bucket*.

``generators`` and ``oracles`` import from ``harness``, which finds their entries by ``harness.case.registry`` or
imports them inside the functions that need them. Modules that need torch say so in their docstring; everything else
imports in milliseconds. ``tests/unit/test_layers.py`` holds all this.
"""

__version__ = "0.1.0"
