"""The command ``armdiff``: verbs, options and exit status; everything else is elsewhere.

Exit status: 0 nothing new, 1 new findings, 2 wrong usage or bad input (one line that says what
and where), 3 the environment cannot run what was asked. Progress goes to standard error, results
to standard output; ``--json FILE`` writes machine-readable results (``-`` is standard output and
silences the text).
"""

from __future__ import annotations

import datetime
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click
import msgspec

from harness import __version__
from harness.campaign import Options, Progress, run_campaign
from harness.console import Reporter
from harness.corpus import default_corpus, entries, judged
from harness.errors import ArmdiffError, BadInput, CannotRun
from harness.pool import Pool, default_jobs
from harness.probes import ProbeMode
from harness.protocol import CaptureTask, CaseResult, Task
from harness.recipe import parse_recipe
from harness.summary import Tally, as_json, counted, listing
from harness.target import DEFAULT_TARGETS, parse_target
from harness.triage import DOMAINS


class _Command(click.Group):
    """Turns armdiff's own errors into one line and their exit status."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ArmdiffError as error:
            click.echo(f"armdiff: {error}", err=True)
            ctx.exit(error.exit_status)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            ctx.exit(0)


@click.group(cls=_Command, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="armdiff")
def main() -> None:
    """Differential fuzzer for ExecuTorch's Arm backend.

    Start with 'armdiff doctor', then 'armdiff fuzz --max-examples 20'.
    """


def _targets(_: click.Context, __: click.Parameter, value: Sequence[str]) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(value)) or DEFAULT_TARGETS
    for name in names:
        parse_target(name, "--target")
    return names


def _seconds(_: click.Context, __: click.Parameter, value: str | None) -> float | None:
    if value is None:
        return None
    unit = {"s": 1, "m": 60, "h": 3600}.get(value[-1:])
    number = value[:-1] if unit else value
    try:
        seconds = float(number) * (unit or 1)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < 1e7:
        raise BadInput("--time", f"{value!r} is not a duration", "write for example 90s, 10m or 2h")
    return seconds


def _jobs(_: click.Context, __: click.Parameter, value: str) -> int:
    if value == "auto":
        return default_jobs()
    if not value.isdigit() or not 1 <= int(value) <= 256:
        raise BadInput("--jobs", f"{value!r} is not a number of workers", "write auto or 1 to 256")
    return int(value)


def _shard(context: click.Context, parameter: click.Parameter, value: str) -> tuple[int, int]:
    index, _, count = value.partition("/")
    if not (index.isdigit() and count.isdigit() and 1 <= int(index) <= int(count)):
        raise BadInput("--shard", f"{value!r} is no shard", "write for example 2/8")
    return int(index), int(count)


target_option = click.option(
    "--target",
    "targets",
    multiple=True,
    callback=_targets,
    metavar="TARGET",
    help=f"Compile target, repeatable. Default: {', '.join(DEFAULT_TARGETS)}.",
)
json_option = click.option("--json", "json_file", metavar="FILE", help="Write results as JSON ('-': standard output).")
jobs_option = click.option("--jobs", default="auto", callback=_jobs, show_default=True, help="Worker processes.")
out_option = click.option(
    "--out", type=click.Path(path_type=Path), default=Path("armdiff-out"), show_default=True, help="Folder for cases."
)
seed_option = click.option(
    "--seed", default=0, show_default=True, type=click.IntRange(0, 2**62), help="Same seed, same graphs."
)
known_option = click.option(
    "--known",
    multiple=True,
    type=click.Path(path_type=Path),
    help="More corpus folders whose bugs are known, repeatable.",
)


_Decorated = TypeVar("_Decorated", bound=Callable[..., Any])


def _probes_option(default: str) -> Callable[[_Decorated], _Decorated]:
    return click.option(
        "--probes",
        type=click.Choice(["default", "all", "none"]),
        default=default,
        show_default=True,
        help="Extra compiles that some oracles need: on the cases whose turn it is, on every case, or none.",
    )


strict_option = click.option(
    "--strict", is_flag=True, help="Count information (operators left on the CPU) as findings."
)


@main.command()
@click.option("--max-examples", type=click.IntRange(1), help="Graphs to draw (a graph on each target is a case).")
@click.option(
    "--time", "seconds", callback=_seconds, metavar="DURATION", help="Stop drawing after this long, e.g. 10m."
)
@click.option("--shard", default="1/1", callback=_shard, show_default=True, help="This machine's part, e.g. 2/8.")
@seed_option
@target_option
@jobs_option
@known_option
@_probes_option("default")
@strict_option
@out_option
@json_option
def fuzz(
    max_examples: int | None,
    seconds: float | None,
    shard: tuple[int, int],
    seed: int,
    targets: tuple[str, ...],
    jobs: int,
    known: tuple[Path, ...],
    probes: ProbeMode,
    strict: bool,
    out: Path,
    json_file: str | None,
) -> None:
    """Generate graphs, run every leg and oracle on each, list what disagrees.

    Example: armdiff fuzz --max-examples 60 --target TOSA-1.0+INT --seed 7
    """
    _need_environment()
    if max_examples is None and seconds is None:
        max_examples = 100
    options = Options(targets, max_examples, seconds, seed, jobs, shard, out, probes=probes, strict=strict)
    reporter = Reporter(max_examples)
    started = time.monotonic()
    with reporter:
        tally = run_campaign(options, entries([*_corpus(), *known]), reporter.case)
    _finish(
        tally,
        json_file,
        f"{tally.graphs} graphs, {tally.cases} cases in {time.monotonic() - started:.0f} s "
        f"on {', '.join(targets)} (seed {seed})",
        seed=seed,
        targets=list(targets),
    )


@main.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--recipe", default="a8w8", show_default=True, help="Quantization recipe, e.g. a8w8,per-tensor,qmin=-127."
)
@click.option("--leg", "legs", multiple=True, help="Only this leg (and its reference), repeatable.")
@target_option
@jobs_option
@_probes_option("all")
@strict_option
@out_option
@json_option
def check(
    file: Path,
    recipe: str,
    legs: tuple[str, ...],
    targets: tuple[str, ...],
    jobs: int,
    probes: ProbeMode,
    strict: bool,
    out: Path,
    json_file: str | None,
) -> None:
    """Run every leg and oracle on a user's own model.

    FILE is Python and defines model (an nn.Module) and calibration (a list of input tuples); optionally
    inputs (tuples to evaluate) and configure (a function that receives the quantizer).

    Example: armdiff check my_model.py --target TOSA-1.0+INT --recipe a8w8,qmin=-127
    """
    from harness.registry import legs as known_legs

    for leg in legs:
        if leg not in known_legs():
            raise BadInput("--leg", f"unknown leg {leg!r}", f"use one of {', '.join(known_legs())}")
    if not file.is_file():
        raise BadInput(str(file), "is no file", "give a Python file that defines model and calibration")
    parse_recipe(recipe, "--recipe")
    _need_environment()
    tally, reporter = Tally(entries(_corpus()), strict=strict), Reporter(None)
    with Pool(min(jobs, len(targets))) as pool, reporter:
        tasks = []
        for name in targets:
            spelled = recipe if parse_target(name).quantized else "float"
            folder = out / "check" / f"{file.stem}-{name}"
            captured = pool.capture(CaptureTask(file=str(file), folder=str(folder), target=name, recipe=spelled))
            if captured.problem is not None:
                raise ArmdiffError(captured.problem)
            tasks.append(Task(case=captured.case, legs=legs, user_file=str(file), probes=probes))
        progress = Progress(tally)
        tally.graphs = 1
        for result in pool.run(tasks):
            tally.add(result)
            reporter.case(progress, result)
    for result in tally.invalid:
        tally.problems.append(f"{file}: the model {result.invalid}; make it run in eager first")
    if tally.problems:
        raise ArmdiffError(tally.problems[0])
    _finish(tally, json_file, f"{file}: {tally.cases} cases on {', '.join(targets)}", targets=list(targets))


@main.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@jobs_option
@_probes_option("default")
@strict_option
@json_option
def replay(paths: tuple[Path, ...], jobs: int, probes: ProbeMode, strict: bool, json_file: str | None) -> None:
    """Run corpus entries against their recorded status for the installed releases.

    PATHS default to the checkout's corpus. Unexpected passes and unexpected failures both count.

    Example: armdiff replay corpus/seeds
    """
    chosen = entries(paths or _corpus(required=True))
    _need_environment()
    tally, rows = Tally(chosen, strict=strict), []
    with Pool(min(jobs, len(chosen))) as pool:
        tasks = [Task(case=str(entry.folder / "case.json"), probes=probes) for entry in chosen]
        for entry, result in zip(chosen, pool.run(tasks), strict=True):
            tally.add(result)
            told = msgspec.structs.replace(result, findings=tuple(counted(result.findings, strict)))
            row = judged(entry, told, datetime.date.today())
            rows.append(row)
            if json_file != "-":
                click.echo(f"{'UNEXPECTED ' if row.counts else ''}{row.outcome}: {row.entry} ({row.title})")
                click.echo(f"    expected {row.expected}; {row.what}")
                for line in {item.detail.split("\n", 1)[0] for item in row.findings if item.detail.startswith(DOMAINS)}:
                    click.echo(f"    {line}")
    against = [row for row in rows if row.counts]
    tally.graphs = len(chosen)
    _write_json(json_file, as_json(tally, entries=[msgspec.to_builtins(row) for row in rows]))
    if json_file != "-":
        click.echo(f"{len(rows)} entries on {_line()}: {len(against)} against expectation")
    sys.exit(1 if against else 0)


@main.command()
@click.option("--max-examples", type=click.IntRange(1), default=300, show_default=True, help="Graphs to draw.")
@seed_option
@click.option("--target", default="TOSA-1.0+INT", show_default=True, help="Compile target.")
@jobs_option
@_probes_option("default")
@out_option
@json_option
def census(
    max_examples: int, seed: int, target: str, jobs: int, probes: ProbeMode, out: Path, json_file: str | None
) -> None:
    """Draw and run graphs, and print what was drawn, lowered and judged, and how sharply.

    Example: armdiff census --max-examples 300
    """
    from harness.census import Census

    parse_target(target, "--target")
    _need_environment()
    options = Options((target,), max_examples, None, seed, jobs, (1, 1), out, plant=True, probes=probes)
    drawn, reporter = Census(), Reporter(max_examples)

    def both(progress: Progress, result: CaseResult) -> None:
        drawn.add(result)
        reporter.case(progress, result)

    with reporter:
        tally = run_campaign(options, entries(_corpus()), both)
    if json_file != "-":
        for line in drawn.lines():
            click.echo(line)
    _finish(tally, json_file, f"{tally.graphs} graphs on {target} (seed {seed})", census=drawn.data())


@main.command()
@json_option
def doctor(json_file: str | None) -> None:
    """Say what is installed, which legs can run here, and what to do for those that cannot.

    Example: armdiff doctor
    """
    from harness.doctor import leg_checks, package_checks, required_missing

    checks = [*package_checks(), *leg_checks()]
    _write_json(
        json_file,
        {
            "armdiff": __version__,
            "checks": [{"name": item.name, "ok": item.ok, "what": item.what, "remedy": item.remedy} for item in checks],
        },
    )
    if json_file != "-":
        for item in checks:
            click.echo(f"{'ok     ' if item.ok else 'MISSING'} {item.name}: {item.what}")
            if item.remedy:
                click.echo(f"          {item.remedy}")
    sys.exit(3 if required_missing() else 0)


def _corpus(*, required: bool = False) -> list[Path]:
    folder = default_corpus()
    if folder is None and required:
        raise BadInput("PATHS", "are missing and armdiff does not run from a checkout", "give corpus folders")
    if folder is None or not any(folder.rglob("status.toml")):
        return []
    return [folder]


def _line() -> str:
    from harness.compat.releases import installed, release_line

    versions = ", ".join(f"{name} {version}" for name, version in installed().items())
    return f"release line {release_line() or 'unknown'} ({versions})"


def _need_environment() -> None:
    from harness.doctor import required_missing

    missing = required_missing()
    if missing:
        raise CannotRun("not installed: " + ", ".join(item.name for item in missing) + f"; {missing[0].remedy}")


def _write_json(file: str | None, data: dict[str, Any]) -> None:
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


def _finish(tally: Tally, json_file: str | None, title: str, **extra: Any) -> NoReturn:
    _write_json(json_file, as_json(tally, **extra))
    if json_file != "-":
        click.echo("\n".join([title, _line(), "", *listing(tally)]))
        click.echo("new findings" if tally.new else "nothing new")
    sys.exit(1 if tally.new else 0)


if __name__ == "__main__":
    main()
