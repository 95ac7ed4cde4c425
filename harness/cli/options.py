"""Options that several verbs have, and how the text of each is read.

A callback turns the text into a value or raises ``BadInput`` that names the option, so that
wrong usage is one line before anything starts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from harness.case.errors import BadInput
from harness.case.target import DEFAULT_TARGETS, parse_target
from harness.cli.results import need_writable
from harness.corrections import chosen
from harness.corrections.checkout import checked_out
from harness.corrections.source import edited_modules
from harness.workers.pool import default_jobs
from harness.workers.processes import worker_command


def read_targets(_: click.Context, __: click.Parameter, value: Sequence[str]) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(value)) or DEFAULT_TARGETS
    for name in names:
        parse_target(name, "--target")
    return names


def read_seconds(_: click.Context, parameter: click.Parameter | None, value: str | None) -> float | None:
    if value is None:
        return None
    unit = {"s": 1, "m": 60, "h": 3600}.get(value[-1:])
    number = value[:-1] if unit else value
    try:
        seconds = float(number) * (unit or 1)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < 1e7:
        raise BadInput(
            (parameter and parameter.opts[0]) or "--time",
            f"{value!r} is not a duration",
            "write for example 90s, 10m or 2h",
        )
    return seconds


def read_jobs(_: click.Context, __: click.Parameter, value: str) -> int:
    if value == "auto":
        return default_jobs()
    if not value.isdigit() or not 1 <= int(value) <= 256:
        raise BadInput("--jobs", f"{value!r} is not a number of workers", "write auto or 1 to 256")
    return int(value)


def read_shard(context: click.Context, parameter: click.Parameter, value: str) -> tuple[int, int]:
    index, _, count = value.partition("/")
    if not (index.isdigit() and count.isdigit() and 1 <= int(index) <= int(count)):
        raise BadInput("--shard", f"{value!r} is no shard", "write for example 2/8")
    return int(index), int(count)


target_option = click.option(
    "--target",
    "targets",
    multiple=True,
    callback=read_targets,
    metavar="TARGET",
    help=f"Compile target, repeatable. Default: {', '.join(DEFAULT_TARGETS)}.",
)


def read_json_file(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    """A file that can be written: a verb must not compute for hours and then say that it cannot."""
    need_writable(value)
    return value


json_option = click.option(
    "--json",
    "json_file",
    metavar="FILE",
    callback=read_json_file,
    help="Write results as JSON ('-': standard output).",
)
jobs_option = click.option("--jobs", default="auto", callback=read_jobs, show_default=True, help="Worker processes.")
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
    help="What else is known, repeatable: a corpus folder, JSON results, or a file with a bucket on each line.",
)
ignore_option = click.option(
    "--ignore", "ignored", multiple=True, metavar="BUCKET", help="A bucket that does not count, repeatable."
)


_Decorated = TypeVar("_Decorated", bound=Callable[..., Any])


def probes_option(default: str) -> Callable[[_Decorated], _Decorated]:
    return click.option(
        "--probes",
        type=click.Choice(["default", "all", "none"]),
        default=default,
        show_default=True,
        help="Extra compiles that some oracles need: on the cases whose turn it is, on every case, or none.",
    )


def read_engine(_: click.Context, __: click.Parameter, value: str | None) -> str:
    return value or "default"


engine_option = click.option(
    "--ethos-u-engine",
    "engine",
    type=click.Choice(["model", "fvp", "both"]),
    callback=read_engine,
    help="What executes an Ethos-U command stream: armdiff's functional model, Arm's FVP (which must be installed), "
    "or both, compared bit for bit. Default: the model, and the FVP where it is installed.",
)


def read_corrections(_: click.Context, __: click.Parameter, value: Sequence[str]) -> tuple[str, ...]:
    """The words for the workers: names (``all`` replaced by what it stands for) and files."""
    found = chosen(value)
    edited_modules(found)  # refuses what was not written for the installed code, before anything starts
    return tuple(item.word for item in found)


correction_option = click.option(
    "--correction",
    "corrections",
    multiple=True,
    callback=read_corrections,
    metavar="NAME",
    help="Lower with a corrected upstream pass, repeatable: a name, 'all', or a .py file that defines CORRECTION.",
)


def read_warm(_: click.Context, __: click.Parameter, value: bool) -> tuple[str, ...]:
    """The command that starts a worker."""
    return worker_command(("all",) if value else ())


no_warm_option = click.option(
    "--no-warm",
    "worker",
    is_flag=True,
    callback=read_warm,
    help="Leave out what makes lowering fast: the same results, later ('armdiff bench --tricks' lists the tricks).",
)


def read_source(_: click.Context, __: click.Parameter, value: Path | None) -> Path | None:
    return checked_out(value) if value else None


source_option = click.option(
    "--source",
    metavar="DIR",
    type=click.Path(path_type=Path),
    callback=read_source,
    help="Make the patches for this checkout of the ExecuTorch repository, and say which apply.",
)
verbose_option = click.option("-v", "--verbose", is_flag=True, help="List known findings as new ones are listed.")
strict_option = click.option(
    "--strict", is_flag=True, help="Count information (operators left on the CPU) as findings."
)
