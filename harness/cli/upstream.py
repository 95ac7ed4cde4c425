"""The verb ``upstream``: the corpus as issues for upstream's trackers (``harness.reports.upstream``).

Each root cause is tried again with the installed packages while its page is written; what does not show any more gets
none, and is named. Install the newest packages first (``tox run -e vela52``, ``newest``): a maintainer looks at those.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from harness import __version__
from harness.campaign.holding import hold
from harness.case.errors import BadInput
from harness.case.interrupts import command, deferred
from harness.case.wording import counted_as
from harness.cli.environment import installed_line, need_environment
from harness.cli.options import jobs_option, json_option, source_option
from harness.cli.results import write_json
from harness.compat.releases import installed
from harness.corrections import chosen
from harness.reports.upstream.causes import causes
from harness.reports.upstream.page import MOST_LINES, shows_on
from harness.reports.upstream.sending import Sent, send, write_indexes
from harness.triage.corpus import corpus_folders, default_certificates, entries
from harness.triage.program_entries import program_entries
from harness.workers.pool import Pool


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--certificates",
    type=click.Path(path_type=Path),
    help="Folder with certificates, LINE/CORRECTION.json. Default: certificates/ of the checkout's corpus.",
)
@source_option
@click.option(
    "--tests", is_flag=True, help="Write a test in upstream's style for each fix: it fails without, and passes with it."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("armdiff-out/upstream"),
    show_default=True,
    help="Folder for the pages.",
)
@jobs_option
@json_option
def upstream(
    paths: tuple[Path, ...],
    certificates: Path | None,
    source: Path | None,
    tests: bool,
    out: Path,
    jobs: int,
    json_file: str | None,
) -> None:
    """Write the corpus as issues for upstream's trackers, one page a root cause, the worst harm first.

    PATHS are corpus folders or entries (default: the checkout's corpus). Of each root cause the smallest module is
    tried again with the installed packages. A bug that does not show any more gets no page: exit status 1.

    Example: armdiff upstream corpus/found/neg-ignores-scale
    """
    having = [
        entry
        for entry in entries(paths or corpus_folders(required=True))
        if entry.expected and entry.expected.status == "reproduces"
    ]
    if not having:
        raise BadInput("PATHS", "hold no bug that is expected with the installed packages", "see armdiff table")
    need_environment()
    naming = (*entries(corpus_folders()), *program_entries())
    found = causes(having, chosen(("all",)), naming)
    hold(out)
    sent: list[Sent] = []
    with deferred(_goes_on), Pool(min(jobs, len(found))) as pool:
        for item in send(found, out, pool, certificates or default_certificates(), source, tests=tests):
            sent.append(item)
            if json_file != "-":
                click.echo(_told(item))
    shows = {item.cause.head.name: shows_on(item.cause.head.status, item.cause.head.status.package) for item in sent}
    indexes = write_indexes(sent, out, shows)
    left = [item for item in sent if item.file is None]
    write_json(
        json_file,
        {
            "armdiff": __version__,
            "releases": dict(installed()),
            "causes": [
                {
                    "entry": item.cause.head.name,
                    "others": [entry.name for entry in item.cause.others],
                    "tracker": item.cause.tracker.folder,
                    "file": str(item.file) if item.file else None,
                    "outcome": item.outcome,
                    "why": item.why,
                }
                for item in sent
            ],
        },
    )
    if json_file != "-":
        click.echo("\n".join(map(str, indexes)))
        gone = f"; {len(left)} not written" if left else ""
        click.echo(f"{counted_as(len(sent) - len(left), 'page')} with {installed_line()}{gone}")
    sys.exit(1 if left else 0)


def _goes_on() -> str:
    return f"pages that were written are kept; the same command begins again: {command()}"


def _told(item: Sent) -> str:
    name = item.cause.head.name
    if item.file is None:
        return f"{name}: not written: {item.why}"
    also = f", and {', '.join(entry.name for entry in item.cause.others)}" if item.cause.others else ""
    long = f"; {item.lines} lines before the script, more than {MOST_LINES}" if item.lines > MOST_LINES else ""
    return f"{item.file}: {item.outcome}{also}{long}"
