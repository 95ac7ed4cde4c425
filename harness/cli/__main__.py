"""``python -m harness.cli`` is ``armdiff``."""

from harness.cli import main

main()
