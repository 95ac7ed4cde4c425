"""The verb ``doctor``: which packages and legs can be used here, and what to do about the others.

Exit status 3 if something is missing without which nothing runs.
"""

from __future__ import annotations

import sys

import click

from harness import __version__
from harness.cli.options import json_option
from harness.cli.results import write_json


@click.command()
@json_option
def doctor(json_file: str | None) -> None:
    """Say what is installed, which legs can run here, and what to do for those that cannot.

    Example: armdiff doctor
    """
    from harness.pipeline.doctor import leg_checks, package_checks, required_missing

    checks = [*package_checks(), *leg_checks()]
    write_json(
        json_file,
        {
            "armdiff": __version__,
            "checks": [{"name": item.name, "ok": item.ok, "what": item.what, "remedy": item.remedy} for item in checks],
        },
    )
    if json_file != "-":
        for item in checks:
            click.echo(f"{'ok     ' if item.ok else 'MISSING'} {item.name}: {item.what}")
            for line in item.remedy.splitlines():
                click.echo(f"          {line}")
    sys.exit(3 if required_missing() else 0)
