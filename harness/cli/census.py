"""The verb ``census``: a campaign that also counts what was drawn, lowered and judged, and how sharply.

Errors are planted in results to measure how many the comparison sees (``Task.plant``).
"""

from __future__ import annotations

from pathlib import Path

import click

from harness.campaign import Options, Progress, run_campaign
from harness.cli.environment import need_environment
from harness.cli.options import correction_option, jobs_option, json_option, out_option, probes_option, seed_option
from harness.cli.results import finish
from harness.console import Reporter
from harness.corpus import corpus_folders, entries, with_corrections
from harness.corrections import chosen
from harness.probes import ProbeMode
from harness.protocol import CaseResult
from harness.target import parse_target


@click.command()
@click.option("--max-examples", type=click.IntRange(1), default=300, show_default=True, help="Graphs to draw.")
@seed_option
@click.option("--target", default="TOSA-1.0+INT", show_default=True, help="Compile target.")
@jobs_option
@probes_option("default")
@out_option
@correction_option
@json_option
def census(
    max_examples: int,
    seed: int,
    target: str,
    jobs: int,
    probes: ProbeMode,
    out: Path,
    corrections: tuple[str, ...],
    json_file: str | None,
) -> None:
    """Draw and run graphs, and print what was drawn, lowered and judged, and how sharply.

    Example: armdiff census --max-examples 300
    """
    from harness.census import Census

    parse_target(target, "--target")
    need_environment()
    options = Options(
        (target,), max_examples, None, seed, jobs, (1, 1), out, plant=True, probes=probes, corrections=corrections
    )
    drawn, reporter = Census(), Reporter(max_examples)

    def both(progress: Progress, result: CaseResult) -> None:
        drawn.add(result)
        reporter.case(progress, result)

    with reporter:
        tally = run_campaign(options, with_corrections(entries(corpus_folders()), chosen(corrections)), both)
    if json_file != "-":
        for line in drawn.lines():
            click.echo(line)
    finish(tally, json_file, f"{tally.graphs} graphs on {target} (seed {seed})", census=drawn.data())
