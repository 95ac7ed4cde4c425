"""A folder a bug, for whoever is to fix it: ``case.json``, ``repro.py``, ``REPORT.md``, ``status.toml``.

``write_bug`` writes one from a case and its finding; ``repro.py`` (``harness.reports.bugs.script``) shows the bug with
the packages of the report and nothing of armdiff, which is tried in a fresh process
(``harness.reports.bugs.verifying``) before ``REPORT.md`` (``harness.reports.bugs.page``) says so. ``python -m
harness.reports.bugs FOLDER…`` does it for entries of the corpus.

Nothing here imports torch: a script is text, and runs in a process of its own.
"""

from harness.reports.bugs.verifying import verify_repro
from harness.reports.bugs.writing import write_bug

__all__ = ["verify_repro", "write_bug"]
