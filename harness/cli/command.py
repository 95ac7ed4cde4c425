"""The command ``armdiff``: exit status and the list of verbs, each in a module of its own.

Exit status: 0 nothing new, 1 new findings, 2 wrong usage or bad input (one line that says what
and where), 3 the environment cannot run what was asked. Progress goes to standard error, results
to standard output; ``--json FILE`` writes machine-readable results (``-`` is standard output and
silences the text). 130: a signal ended it (``harness.case.interrupts``).

What verbs share is in ``options`` (options and how they are read), ``environment`` (what is
installed) and ``results`` (how a verb ends). A verb's module imports
nothing that needs torch, and is imported when the verb is asked for.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

import click

from harness import __version__
from harness.case.errors import ArmdiffError
from harness.case.interrupts import STATUS, again

VERBS = (
    "bench",
    "bisect",
    "census",
    "certify",
    "check",
    "disasm",
    "doctor",
    "fuzz",
    "reduce",
    "replay",
    "report",
    "suite",
    "sweep",
    "table",
    "upstream",
    "vela",
)
"""Each is a module of this package and a command of that name in it."""


class _Command(click.Group):
    """Imports a verb when it is asked for, and turns armdiff's own errors into one line and their exit status."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*VERBS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        verb: click.Command = getattr(import_module(f"harness.cli.{cmd_name}"), cmd_name)
        return verb

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ArmdiffError as error:
            click.echo(f"armdiff: {error}", err=True)
            ctx.exit(error.exit_status)
        except KeyboardInterrupt:  # where ``harness.cli.__main__`` did not start this
            click.echo(f"armdiff: interrupted; {again()}", err=True)
            ctx.exit(STATUS)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            ctx.exit(0)


@click.group(cls=_Command, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="armdiff")
def main() -> None:
    """Differential fuzzer for ExecuTorch's Arm backend.

    Start with 'armdiff doctor', then 'armdiff fuzz --max-examples 20'.
    """
