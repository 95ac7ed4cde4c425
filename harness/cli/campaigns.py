"""What the verbs that run a campaign share: going on with a run, the notice of unknown packages, reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click
import msgspec

from harness.campaign.campaign import Options
from harness.campaign.run_folder import Run, previous_run, read_run
from harness.case.errors import ArmdiffError, BadInput
from harness.case.interrupts import command
from harness.compat.releases import DEFAULT, installed, no_line
from harness.reports.reporting import make_report, write
from harness.triage.corpus import Entry


def goes_on() -> str:
    """How to go on after a signal."""
    return f"go on with: {command(adding=('--resume',))}"


def tell_unknown(expect: str | None) -> None:
    """Say so if the installed packages form no line."""
    if unknown := no_line(installed()):
        judged = (
            f"judged as {expect} all the same (--expect)" if expect else f"--expect {DEFAULT} applies all of a line's"
        )
        click.echo(f"armdiff: {unknown}; {judged}", err=True)


def reported(out: Path, corpus: Sequence[Entry]) -> str:
    """Write the run's reports; what keeps them from being written must not keep the results from being told."""
    try:
        verdict = write(make_report(read_run(out), corpus, previous_run(out)), out)
    except ArmdiffError as error:
        return f"no report: {error}"
    return f"report {verdict.files[0]}"


_FREE = ("seconds", "max_examples")
"""What a resumed run may be given anew."""


def resumed(options: Options, earlier: Run, context: click.Context) -> Options:
    """The options of the run to go on with.

    :raises BadInput: another release is installed, or an option says otherwise.
    """
    if (then := earlier.info.releases) != (now := dict(installed())):
        [name, *_] = sorted(name for name in then.keys() | now.keys() if then.get(name) != now.get(name))
        raise BadInput(
            f"{earlier.folder}: releases",
            f"{name} was {then.get(name, 'not installed')} and is {now.get(name, 'not installed')}",
            "install what it was, or start a new run with another --out",
        )
    if earlier.info.asked.verb != options.asked.verb:
        raise BadInput(
            str(earlier.folder),
            f"is a run of 'armdiff {earlier.info.asked.verb}'",
            f"go on with 'armdiff {earlier.info.asked.verb} --resume', or give another --out",
        )
    asked = {**msgspec.structs.asdict(earlier.info.asked)}
    for name, parameter in _PARAMETERS.items():
        given = context.get_parameter_source(parameter) not in (None, click.core.ParameterSource.DEFAULT)
        if given and name not in _FREE and getattr(options.asked, name) != asked[name]:
            option = next(item.opts[0] for item in context.command.params if item.name == parameter)
            raise BadInput(option, "differs from the run to go on with", "leave it out, or start a new run")
        if given:
            asked[name] = getattr(options.asked, name)
    return replace(options, **asked)


_PARAMETERS = {
    "targets": "targets",
    "max_examples": "max_examples",
    "seconds": "seconds",
    "seed": "seed",
    "shard": "shard",
    "probes": "probes",
    "strict": "strict",
    "ethos_u_engine": "engine",
    "corrections": "corrections",
    "expect": "expect",
    "steer": "steer",
    "suite": "paths",
    "sources": "sources",
    "words": "words",
}
"""Field of ``Asked`` -> parameter of the verb."""
