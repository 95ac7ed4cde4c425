"""How a verb ends: JSON if it was asked for, the listing otherwise, and the exit status.

``--json -`` writes JSON to standard output and silences the text, so that a script reads nothing
else there. A file that cannot be written is one line and exit status 3.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from harness.campaign.summary import Tally, as_json
from harness.case.errors import CannotRun
from harness.cli.environment import installed_line
from harness.reports.listing import listing, verdict


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

    :param title: the first line of the listing.
    :param listed: what the listing and the exit status are about, if that is not all.
    :param verbose: known findings in full.
    :param otherwise: the exit status if these do not say another.
    :param extra: further entries of the JSON.
    """
    write_json(json_file, as_json(tally, **extra))
    tally = listed or tally
    if json_file != "-":
        click.echo("\n".join([title, installed_line(), "", *listing(tally, verbose=verbose)]))
        click.echo(verdict(tally))
    sys.exit(1 if tally.new else 3 if tally.stopped else otherwise)
