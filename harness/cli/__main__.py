"""``python -m harness.cli`` is ``armdiff``. A signal during the imports ends it without a traceback."""

import signal


def main() -> None:
    """The console command."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # until there is a handler
    from harness.case.interrupts import end_at_once

    end_at_once()
    from harness.cli.command import main as armdiff

    armdiff()


if __name__ == "__main__":
    main()
