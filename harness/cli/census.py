"""The verb ``census``: a campaign that also counts what was drawn, lowered and judged, and how sharply.

Errors are planted in results to measure how many the comparison sees (``Task.plant``).
"""

from __future__ import annotations

from pathlib import Path

import click

from harness.campaign.campaign import Options, Progress, graph_cases, run_campaign, write_case
from harness.campaign.holding import hold
from harness.campaign.run_folder import CASES
from harness.case.interrupts import deferred
from harness.case.target import parse_target
from harness.case.wording import counted_as
from harness.cli.console import Reporter
from harness.cli.environment import need_environment
from harness.cli.options import correction_option, jobs_option, json_option, out_option, probes_option, seed_option
from harness.cli.results import finish, write_json
from harness.corrections import chosen
from harness.pipeline.probes import ProbeMode
from harness.triage.corpus import bugs_of, corpus_folders, entries, with_corrections
from harness.triage.masking import Masking
from harness.workers.pool import Pool
from harness.workers.protocol import CaseResult, MaskTask


@click.command()
@click.option("--max-examples", type=click.IntRange(1), default=300, show_default=True, help="Graphs to draw.")
@seed_option
@click.option("--target", default="TOSA-1.0+INT", show_default=True, help="Compile target.")
@jobs_option
@probes_option("default")
@out_option
@correction_option
@click.option("--masking", is_flag=True, help="Instead: how often would an unknown bug be called known, by family?")
@json_option
def census(
    max_examples: int,
    seed: int,
    target: str,
    jobs: int,
    probes: ProbeMode,
    out: Path,
    corrections: tuple[str, ...],
    masking: bool,
    json_file: str | None,
) -> None:
    """Draw and run graphs, and print what was drawn, lowered and judged, and how sharply.

    Example: armdiff census --max-examples 300

    Example: armdiff census --masking --target ethos-u85-256
    """
    from harness.campaign.census import Census

    parse_target(target, "--target")
    need_environment()
    options = Options(
        (target,), max_examples, None, seed, jobs, (1, 1), out, plant=True, probes=probes, corrections=corrections
    )
    hold(out)
    if masking:
        _masking(options, json_file)
        return
    drawn, reporter = Census(), Reporter(max_examples)

    def both(progress: Progress, result: CaseResult) -> None:
        drawn.add(result)
        reporter.case(progress, result)

    with reporter:
        tally = run_campaign(options, with_corrections(entries(corpus_folders()), chosen(corrections)), both)
    if json_file != "-":
        for line in drawn.lines():
            click.echo(line)
    finish(tally, json_file, f"{counted_as(tally.graphs, 'graph')} on {target} (seed {seed})", census=drawn.data())


def _masking(options: Options, json_file: str | None) -> None:
    """Lower drawn graphs and imagine bugs in them."""
    corpus = entries(corpus_folders())
    known, made, reporter = bugs_of(corpus), Masking(), Reporter(options.max_examples)
    drawn = (case for _, cases in graph_cases(options) for case in cases)
    tasks = (MaskTask(case=str(write_case(case, options.out / CASES)), known=known) for case in drawn)
    with deferred(), Pool(options.jobs) as pool, reporter:
        for answer in pool.mask(tasks):
            if answer.problem is None:
                made.add(answer.counts)
            reporter.say(f"{counted_as(made.cases, 'case')} lowered")
    shares = {
        family: {"cases": cases, "known": known_share, "resembling": alike}
        for family, (cases, known_share, alike) in made.shares.items()
    }
    write_json(json_file, {"cases": made.cases, "families": shares})
    if json_file != "-":
        click.echo("\n".join(made.lines()))
