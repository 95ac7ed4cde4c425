"""The verb ``certify``: certificates for corrections (``harness.campaign.certify``).

Writes ``OUT/<line>/<name>.json`` and ``.md``, with ``--patch`` ``<name>.patch``, and with ``--source DIR``
``<name>.source.patch`` for that checkout. Comparisons are kept in OUT, so that an interrupted run goes on where it was;
so is what a certificate there says already of the same correction and packages.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import click
import msgspec

from harness import __version__
from harness.campaign.certify.certifying import Certifier
from harness.campaign.certify.evidence import Certificate, stored_certificate
from harness.campaign.certify.page import markdown
from harness.campaign.certify.patching import patch_difference
from harness.campaign.certify.rows import Plan
from harness.campaign.holding import hold
from harness.case.errors import CannotRun
from harness.case.interrupts import command, deferred
from harness.case.wording import counted_as
from harness.cli.environment import installed_line, need_environment
from harness.cli.options import jobs_option, json_option, seed_option, source_option
from harness.cli.results import write_json
from harness.cli.stages import Stages
from harness.compat.releases import installed, release_line
from harness.corrections import Correction, chosen, find_correction
from harness.corrections.checkout import applied_to, commit_of, in_words
from harness.corrections.patch import diff_of, patched_package
from harness.triage.corpus import corpus_folders, entries
from harness.triage.program_entries import program_entries
from harness.workers.frames import named_by
from harness.workers.pool import Pool


@click.command()
@click.argument("names", nargs=-1)
@click.option(
    "--graphs",
    default=200,
    show_default=True,
    type=click.IntRange(5),
    help="Graphs to draw on TOSA-1.0+INT (a fifth of them run on each default Ethos-U target, too), and graphs that "
    "are to come to the edited lines.",
)
@click.option("--patch", is_flag=True, help="Write a unified diff for the ExecuTorch repository, and certify it, too.")
@source_option
@seed_option
@jobs_option
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("armdiff-out/certify"),
    show_default=True,
    help="Folder for certificates, patches and finished comparisons.",
)
@json_option
def certify(
    names: tuple[str, ...],
    graphs: int,
    patch: bool,
    source: Path | None,
    seed: int,
    jobs: int,
    out: Path,
    json_file: str | None,
) -> None:
    """Collect the evidence that corrections remove their bugs and move nothing that was right.

    NAMES are corrections or .py files that define one; default: every correction that the installed release needs.
    Exit status 1: one was refused.

    Example: armdiff certify fused-activation-keeps-clamp --graphs 5
    """
    wanted = _wanted(names)
    need_environment()
    folder = out / (release_line() or "unknown")
    made: list[Certificate] = []
    hold(out)
    stages = Stages(lambda task: Path(named_by(task)).stem)
    with deferred(_goes_on), Pool(jobs, told=stages.told) as pool, stages:
        corpus = entries(corpus_folders(required=True))
        programs = program_entries(reduced=True)
        plan = Plan(wanted, corpus, graphs, seed, out, programs, reach=graphs, earlier=_made(wanted, folder))
        certifier = Certifier(plan, pool, stages.say, lambda cases: stages.expect(cases, jobs))
        for correction, certificate in zip(wanted, certifier.certificates(), strict=True):
            if patch and certificate.verdict == "certified":
                certificate = _patched(correction, certificate, folder, plan, pool)
            made.append(certificate)
            _write(folder, certificate)
            on_source = _on_source(correction, source, folder) if source else ""
            if json_file != "-":
                click.echo(f"{certificate.verdict}: {certificate.name} ({certificate.why})")
                click.echo(f"    {folder / certificate.name}.md")
                if on_source:
                    click.echo(f"    {on_source}")
    write_json(
        json_file,
        {
            "armdiff": __version__,
            "releases": dict(installed()),
            "certificates": [msgspec.to_builtins(item) for item in made],
        },
    )
    refused = sum(item.verdict == "refused" for item in made)
    if json_file != "-":
        click.echo(f"{counted_as(len(made), 'certificate')} on {installed_line()}: {refused} refused")
    sys.exit(1 if refused else 0)


def _goes_on() -> str:
    return f"finished comparisons are kept; go on with: {command()}"


def _wanted(names: tuple[str, ...]) -> tuple[Correction, ...]:
    if names and names != ("all",):
        return tuple({item.name: item for item in map(find_correction, names)}.values())
    return chosen(("all",))


def _made(wanted: tuple[Correction, ...], folder: Path) -> dict[str, Certificate]:
    """Certificates that are in the folder already."""
    found = {item.name: stored_certificate(folder.parent, folder.name, item.name) for item in wanted}
    return {name: made for name, made in found.items() if made is not None}


def _write(folder: Path, certificate: Certificate) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{certificate.name}.json").write_bytes(msgspec.json.format(msgspec.json.encode(certificate)))
        (folder / f"{certificate.name}.md").write_text(markdown(certificate))
    except OSError as error:
        raise CannotRun(f"{folder}: cannot be written ({error.strerror}); give another --out") from None


def _on_source(correction: Correction, source: Path, folder: Path) -> str:
    """Write the patch for a checkout beside the certificate; what the checkout makes of it, in a sentence."""
    found = applied_to(source, correction)
    if found.diff:
        (folder / f"{correction.name}.source.patch").write_text(found.diff)
    return in_words(found, commit_of(source))


def _patched(correction: Correction, certificate: Certificate, folder: Path, plan: Plan, pool: Pool) -> Certificate:
    """Write the diff, apply it to a copy of the package, and compare what both give."""
    file = folder / f"{correction.name}.patch"
    folder.mkdir(parents=True, exist_ok=True)
    parts = chosen((correction.word,))
    file.write_text(diff_of(parts))
    with tempfile.TemporaryDirectory(prefix="armdiff-patch-") as scratch:
        site = patched_package(parts, file, Path(scratch))
        with Pool(1, first_on_path=site) as patched:
            difference = patch_difference(correction, plan, pool, patched)
    if difference:
        why = f"the exported patch does not give what the correction gives: {difference}"
        return msgspec.structs.replace(certificate, verdict="refused", why=why, patch=file.name)
    return msgspec.structs.replace(certificate, patch=file.name)
