"""How a verb ends: JSON if it was asked for, the listing otherwise, and the exit status.

``--json -`` writes JSON to standard output and silences the text, so that a script reads nothing
else there. A file that cannot be written is one line and exit status 3.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from harness.campaign.summary import Tally, as_json
from harness.case.errors import CannotRun
from harness.case.interrupts import STATUS
from harness.cli.environment import installed_line
from harness.reports.listing import listing, verdict


def need_writable(file: str | None) -> None:
    """Refuse a file of results that cannot be written, before anything is computed for it.

    :raises CannotRun: its folder does not exist or may not be written, or it is a folder.
    """
    if file is None or file == "-":
        return
    path = Path(file)
    if path.is_dir():
        problem = "is a folder"
    elif not path.parent.is_dir():
        problem = f"cannot be written ({path.parent} is no folder)"
    elif not os.access(path if path.exists() else path.parent, os.W_OK):
        problem = "cannot be written (Permission denied)"
    else:
        return
    raise CannotRun(f"--json {file}: {problem}; give another file")


def write_json(file: str | None, data: dict[str, Any]) -> None:
    """Write results to a file, to standard output (``-``), or nowhere (None).

    :raises CannotRun: the file cannot be written.
    """
    if file is None:
        return
    text = json.dumps(data, indent=2, allow_nan=False, default=str) + "\n"
    if file == "-":
        click.echo(text, nl=False)
        return
    try:
        Path(file).write_text(text)
    except OSError as error:
        raise CannotRun(f"--json {file}: cannot be written ({error.strerror}); give another file") from None


def finish(
    tally: Tally,
    json_file: str | None,
    title: str,
    *,
    listed: Tally | None = None,
    verbose: bool = False,
    otherwise: int = 0,
    **extra: Any,
) -> NoReturn:
    """End a verb that ran cases: JSON, the listing, and exit status 1 for new findings, 3 if it could not go on.

    After a signal the status is 130, and the last line says what goes on.

    :param title: the first line of the listing.
    :param listed: what the listing and the exit status are about, if that is not all.
    :param verbose: known findings in full.
    :param otherwise: the exit status if these do not say another.
    :param extra: further entries of the JSON.
    """
    data, interrupted = as_json(tally, interrupted=bool(tally.interrupted), **extra), tally.interrupted
    tally = listed or tally
    if json_file != "-":
        click.echo("\n".join([title, installed_line(), "", *listing(tally, verbose=verbose)]))
        click.echo(f"until then: {verdict(tally)}" if interrupted else verdict(tally))
    write_json(json_file, data)
    if interrupted:
        click.echo(interrupted, err=json_file == "-")
        sys.exit(STATUS)
    sys.exit(1 if tally.new else 3 if tally.stopped else otherwise)
