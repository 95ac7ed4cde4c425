"""``python -m harness.corrections MODULE PLACE``: digest and source of an installed place, to write a correction."""

from __future__ import annotations

import sys

import click

from harness.case.errors import ArmdiffError
from harness.compat.sources import digest_of, file_of, source_of


@click.command()
@click.argument("module")
@click.argument("place")
def main(module: str, place: str) -> None:
    """Print where a place of an upstream module is, its digest and its source."""
    try:
        file = file_of(module)
    except ArmdiffError as error:
        click.echo(f"armdiff: {error}", err=True)
        sys.exit(error.exit_status)
    source = source_of(file.read_text(), place)
    if source is None:
        click.echo(f"armdiff: {file} defines no {place}; give a qualified name such as Class.method", err=True)
        sys.exit(2)
    click.echo(f"{file}\n{digest_of(source)}\n\n{source}", nl=False)


if __name__ == "__main__":
    main()
