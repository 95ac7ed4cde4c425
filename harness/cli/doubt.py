"""The verb ``doubt``: are a campaign's known findings the bugs that they are taken for? (``harness.doubting``)"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec

from harness.cli.environment import installed_line, need_environment
from harness.cli.options import jobs_option, json_option, known_option, no_warm_option
from harness.cli.results import write_json
from harness.corpus import corpus_folders, with_corrections
from harness.corrections import chosen
from harness.doubting import Stays, stays, taken_for
from harness.known import known_entries
from harness.pool import Pool
from harness.protocol import Task
from harness.reporting.material import case_file
from harness.reporting.words import counted
from harness.runs import read_run

ALL = ("all",)


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@jobs_option
@known_option
@no_warm_option
@json_option
def doubt(run: Path, jobs: int, known: tuple[Path, ...], worker: tuple[str, ...], json_file: str | None) -> None:
    """Run a campaign's known wrong values and streams again, with all corrections; what stays is another bug.

    RUN is the folder of a campaign. Example: armdiff doubt armdiff-out
    """
    need_environment()
    corpus = known_entries(corpus_folders(), known)
    corrected = with_corrections(corpus, chosen(ALL))
    campaign = read_run(run)
    cases, beyond = taken_for((item.result for item in campaign.done), corpus, corrected)
    found: list[Stays] = []
    problems: list[str] = []
    with Pool(jobs, command=worker) as pool:
        tasks = (Task(case=str(case_file(campaign, case)), probes="none", corrections=ALL) for case in cases)
        for number, (entry, result) in enumerate(zip(cases.values(), pool.run(tasks), strict=True), 1):
            found += stays(entry, result, corrected)
            problems += [f"{result.case}: {result.problem}"] if result.problem else []
            click.echo(f"armdiff: {number}/{len(cases)} cases, {counted(len(found), 'finding')} stay", err=True)
    write_json(
        json_file,
        {
            "cases": len(cases),
            "beyond": beyond,
            "stays": [{"entry": item.entry, **msgspec.to_builtins(item.finding)} for item in found],
            "problems": problems,
        },
    )
    if json_file != "-":
        click.echo("\n".join([installed_line(), *_lines(len(cases), beyond, found, problems)]))
    sys.exit(1 if found else 3 if problems else 0)


def _lines(cases: int, beyond: int, found: list[Stays], problems: list[str]) -> Iterator[str]:
    yield (
        f"{counted(cases, 'case')} with known wrong values or streams run with all corrections; "
        f"{counted(beyond, 'finding')} of entries without a correction not tried"
    )
    for item in found:
        finding = item.finding
        where = f"{' -> '.join(finding.chain)} on {finding.target}, {finding.recipe}"
        yield f"\n  {where}: taken for {item.entry}, and stays"
        yield f"    {finding.bucket}\n    {finding.message[:400]}"
        yield f"    armdiff reduce {finding.case} --correction all --bucket '{finding.bucket}'"
    yield from (f"problem: {text}" for text in problems)
    yield "other bugs behind known ones" if found else "all known findings that can be tried go with their corrections"
