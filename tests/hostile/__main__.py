"""Mutate files that armdiff reads, and have it read them: each is read, or refused in one line; nothing else is raised.

Cases with their tensors, corpus entries, the files of runs, checkpoints of a reduction, TOSA flatbuffers and what
``disasm`` lists are mutated as bytes and, where they are JSON, as trees. Everything runs in this process. Exit status 1
if anything but ``BadInput`` or ``CannotRun`` was raised.

``files/`` holds what the corpus entry ``neg-ignores-scale`` compiles to for ``ethos-u55-128`` on executorch 1.5.1: the
program, its delegate's payload, and what Vela's command line writes for its flatbuffer.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from click.testing import CliRunner

from harness.artifacts.tosa import decode_tosa
from harness.campaign.certify.evidence import stored_certificate
from harness.campaign.reduction.search import begin
from harness.campaign.run_folder import read_evidence
from harness.case.building import load_tensors
from harness.case.errors import ArmdiffError, BadInput
from harness.case.reading import decode_case, read_case
from harness.cli.command import main as armdiff
from harness.tosa.translating import from_flatbuffer
from harness.triage.corpus import read_entry
from tests.unit.reporting_runs import each_target, finding, make_run

FILES = Path(__file__).resolve().parent / "files"
CORPUS = Path(__file__).resolve().parents[2] / "corpus"
WORDS: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    2**31,
    2**63,
    10**30,
    1e308,
    -0.5,
    "",
    "x",
    "../../etc",
    "\0",
    [],
    {},
    [[]],
)
"""Values to put in the place of others."""


def mutated_bytes(data: bytes, rng: random.Random) -> bytes:
    """One damaged copy of a file."""
    copy, at = bytearray(data), rng.randrange(len(data))
    match rng.randrange(5):
        case 0:
            del copy[at:]
        case 1:
            for _ in range(rng.choice((1, 4, 32))):
                copy[rng.randrange(len(copy))] ^= 1 << rng.randrange(8)
        case 2:
            copy[at : at + 8] = bytes(rng.randrange(256) for _ in range(8))
        case 3:
            copy[at:at] = copy[at : at + rng.choice((1, 16, 256))]
        case 4:
            del copy[at : at + rng.choice((1, 8, 64))]
    return bytes(copy)


def mutated_tree(data: bytes, rng: random.Random) -> bytes:
    """A copy of a JSON file in which one value is another one, is gone, or is there twice."""
    tree = json.loads(data)
    at, key = tree, None
    while isinstance(at, (dict, list)) and at:
        parent, key = at, rng.choice(list(at) if isinstance(at, dict) else range(len(at)))
        at = parent[key]
        if rng.random() < 0.3:
            break
    if key is None:
        return b"{}"
    if rng.random() < 0.2:
        del parent[key]
    elif isinstance(parent, list) and rng.random() < 0.2:
        parent.append(at)
    else:
        parent[key] = rng.choice(WORDS)
    return json.dumps(tree).encode()


def run_verb(*words: str, statuses: Sequence[int]) -> None:
    """A verb in this process.

    :raises BadInput: with what it said, if it ended with 2.
    """
    result = CliRunner().invoke(armdiff, words)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    if result.exit_code not in statuses:
        raise AssertionError(f"status {result.exit_code}: {result.output[-300:]}")
    if result.exit_code == 2:
        raise BadInput("armdiff", result.output.strip(), "")


def read_report(folder: Path) -> None:
    """The verb ``report`` on a run's folder, which may end with any of its statuses."""
    with suppress(BadInput):
        run_verb("report", str(folder), statuses=(0, 1, 2))


def list_commands(file: Path) -> None:
    """The verb ``disasm`` on a file: a listing, or one line."""
    run_verb("disasm", str(file), statuses=(0, 2))


def subjects(folder: Path) -> list[tuple[str, Path, Callable[[], Any]]]:
    """(kind, the file that is mutated, what reads it), on copies in a folder."""
    found: list[tuple[str, Path, Callable[[], Any]]] = []
    for entry in sorted((CORPUS / "found").iterdir())[::8]:
        own = folder / "corpus" / entry.name
        own.mkdir(parents=True)
        for name in ("case.json", "status.toml"):
            (own / name).write_bytes((entry / name).read_bytes())
        found.append(("case", own / "case.json", lambda own=own: read_case(own)))
        found.append(("corpus entry", own / "status.toml", lambda own=own: read_entry(own)))
    certificate = folder / "certificates" / "default" / "neg-rescaled.json"
    certificate.parent.mkdir(parents=True)
    certificate.write_bytes((CORPUS / "certificates" / "default" / "neg-rescaled.json").read_bytes())
    found.append(
        ("certificate", certificate, lambda: stored_certificate(folder / "certificates", "default", "neg-rescaled"))
    )
    run = folder / "run"
    make_run(run, each_target("relu", findings=[finding(blamed="APass")]))
    for name in ("run.json", "results.jsonl"):
        found.append(("run", run / name, lambda: read_evidence(run)))
        found.append(("report", run / name, lambda: read_report(run)))
    for source in sorted(CORPUS.rglob("*.tosa"))[::12]:
        own = folder / f"{len(found)}.tosa"
        own.write_bytes(source.read_bytes())
        found.append(("TOSA", own, lambda own=own: decode_tosa(own.read_bytes())))
        found.append(("TOSA program", own, lambda own=own: from_flatbuffer(own.read_bytes())))
        found.append(("disasm", own, lambda own=own: list_commands(own)))
    for source in sorted(FILES.iterdir()):
        own = folder / source.name
        own.write_bytes(source.read_bytes())
        found += [(f"disasm {source.suffix}", own, lambda own=own: list_commands(own))] * 3
    for source in sorted((CORPUS / "seeds").glob("*/tensors.safetensors")):
        own = folder / source.parent.name / source.name
        own.parent.mkdir()
        own.write_bytes(source.read_bytes())
        told = decode_case((source.parent / "case.json").read_bytes())
        found.append(("tensors", own, lambda own=own, told=told: load_tensors(told, own.parent)))
    case = decode_case((CORPUS / "found" / "neg-ignores-scale" / "case.json").read_bytes())
    checkpoint = folder / "reduction.json"
    checkpoint.write_bytes(msgspec.json.encode(begin("v1/numeric/x", case)))
    found.append(("checkpoint", checkpoint, lambda: begin("v1/numeric/x", case, checkpoint)))
    return found


def main(words: Sequence[str] | None = None) -> int:
    """Print what became of each kind, and every traceback once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(words)
    counts: dict[str, Counter[str]] = {}
    raised: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="hostile-") as scratch:
        files = subjects(Path(scratch))
        slow = [item for item in files if item[0] == "report"]
        quick = [item for item in files if item[0] != "report"]
        rng = random.Random(asked.seed)
        for number in range(asked.inputs):
            kind, file, read = rng.choice(slow if number % 20 == 0 else quick)
            whole = file.read_bytes()
            tree = file.suffix == ".json" and rng.random() < 0.6
            file.write_bytes(mutated_tree(whole, rng) if tree else mutated_bytes(whole, rng))
            try:
                read()
                outcome = "read"
            except ArmdiffError as error:
                outcome = "refused in one line" if len(str(error).splitlines()) == 1 else "refused in several lines"
            except BaseException as error:  # noqa: BLE001 - that is what is looked for
                outcome = "raised"
                place = traceback.extract_tb(error.__traceback__)[-1]
                what = f"{kind}: {type(error).__name__} at {place.filename}:{place.lineno}"
                raised.setdefault(what, "".join(traceback.format_exception(error)[-4:]))
            finally:
                file.write_bytes(whole)
            counts.setdefault(kind, Counter())[outcome] += 1
    for kind, outcomes in sorted(counts.items()):
        sys.stdout.write(f"{kind}: {', '.join(f'{count} {what}' for what, count in sorted(outcomes.items()))}\n")
    for what, trace in raised.items():
        sys.stdout.write(f"\n{what}\n{trace}")
    return 1 if raised or any("refused in several lines" in item for item in counts.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
