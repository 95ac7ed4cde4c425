"""What all tests share."""

import os

from harness.compat.tosa import without_debugger

os.environ["PATH"] = without_debugger(os.environ["PATH"])  # tests run the reference model on invalid graphs, too

pytest_plugins = ("pytester",)  # tests of the plugin run pytest in folders of their own
