"""Options of the verbs that walk the release lines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from harness.compat.releases import LINES
from harness.triage.release_environments import OLDEST_FIRST, Environments, read_environments

_Decorated = TypeVar("_Decorated", bound=Callable[..., Any])


def lines_options(command: _Decorated) -> _Decorated:
    """``--line``, ``--env`` and ``--make``."""
    for option in (
        click.option("--make", is_flag=True, help="Create missing environments with tox, one at a time; remove them."),
        click.option(
            "--env", "environments", multiple=True, metavar="LINE=PYTHON", help="A line's interpreter, repeatable."
        ),
        click.option(
            "--line",
            "lines",
            multiple=True,
            type=click.Choice(LINES),
            default=OLDEST_FIRST,
            help="Only this release line, repeatable. Default: all.",
        ),
    ):
        command = option(command)
    return command


def environments_of(words: tuple[str, ...], make: bool) -> Environments:
    return Environments(read_environments(words), make, lambda line: click.echo(f"armdiff: {line}", err=True))
