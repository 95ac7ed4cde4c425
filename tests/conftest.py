"""What all tests share."""

import os

from harness.compat.tosa import without_debugger

os.environ["PATH"] = without_debugger(os.environ["PATH"])  # tests run the reference model on invalid graphs, too

pytest_plugins = ("pytester",)  # tests of the plugin run pytest in folders of their own


def pytest_xdist_auto_num_workers(config):
    """One more than there are processors: a test that waits for a process, a time limit or a signal leaves one idle."""
    return len(os.sched_getaffinity(0)) + 1
