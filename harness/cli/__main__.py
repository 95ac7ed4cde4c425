"""``python -m harness.cli`` is ``armdiff``."""

from harness.cli.command import main

main()
