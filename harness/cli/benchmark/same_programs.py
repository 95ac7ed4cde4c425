"""Do the warm tricks change what is produced? Programs of a worker with all of them and of one with none.

Compared are the ``.pte`` bytes, which hold the TOSA flatbuffer or the payload; payloads for Ethos-U85, which Vela
itself does not repeat, as the NPU takes them (``harness.ethosu.equivalence``). Where a compile ends in an exception,
both must end in the same one; where the process dies, both must: last words differ from run to run.
Where programs differ, a second worker without tricks compiles the case: if two of those differ, too, the toolchain
does not repeat itself there (``vela-batched-softmax`` takes a weight from memory that nobody wrote).

Each worker gets the cases in the order given, a graph's targets one after another, so that what the tricks keep for a
graph's next target is put to use.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from harness.artifacts.program import decode_program
from harness.case.reading import read_case
from harness.ethosu.equivalence import payload_difference
from harness.workers.pool import Pool
from harness.workers.processes import worker_command
from harness.workers.protocol import EmitTask, Emitted

DIED = "the process ended with"


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """One case, warm and cold.

    :param difference: the first one, in one line; empty if there is none.
    :param unstable: two workers without tricks differ as well; then warm and cold are not compared.
    :param compiles: there are programs to compare.
    """

    case: str
    difference: str
    compiles: bool
    unstable: bool = False


def compare(files: Sequence[Path]) -> Iterator[Compared]:
    """Compile every case twice, on two workers at a time."""
    with Pool(1, command=worker_command()) as warm, Pool(1, command=worker_command(("all",))) as cold:
        ones, others = (pool.emit_all(EmitTask(case=str(file)) for file in files) for pool in (warm, cold))
        for file, one, other in zip(files, ones, others, strict=True):
            made, plain = one.result(), other.result()
            target, unstable = read_case(file).target, False
            what = difference(made, plain, target)
            if what:
                with Pool(1, command=worker_command(("all",))) as again:
                    unstable = difference(again.emit(EmitTask(case=str(file))), plain, target) != ""
            yield Compared(
                case=str(file),
                difference="" if unstable else what,
                compiles=plain.problem is None,
                unstable=unstable,
            )


def difference(warm: Emitted, cold: Emitted, target: str) -> str:
    """What a case's two programs for a target do not have in common; empty if nothing."""
    if warm.problem is not None or cold.problem is not None:
        words = [item.problem or f"{len(item.program)} bytes" for item in (warm, cold)]
        died = [DIED in word for word in words]
        return "" if words[0] == words[1] or all(died) else f"{words[0]} warm, {words[1]} cold"
    if warm.program == cold.program:
        return ""
    if not target.startswith("ethos-u85"):
        return f"other bytes: {len(warm.program)} warm, {len(cold.program)} cold"
    ours, theirs = (decode_program(item.program) for item in (warm, cold))
    if ours.named or theirs.named:
        return "other bytes beside named data, which payloads are not compared with"
    if len(ours.main.delegates) != len(theirs.main.delegates):
        return f"{len(ours.main.delegates)} delegates warm, {len(theirs.main.delegates)} cold"
    for number, (one, other) in enumerate(zip(ours.main.delegates, theirs.main.delegates, strict=True)):
        if what := payload_difference(one.payload, other.payload):
            return f"delegate {number}: {what}"
    return ""


def lines(found: Sequence[Compared]) -> list[str]:
    """What differs, and a line that counts."""
    differing = [item for item in found if item.difference]
    said = [f"DIFFERS {item.case}: {item.difference}" for item in differing]
    said += [f"not repeatable without tricks either: {item.case}" for item in found if item.unstable]
    compiled = sum(item.compiles for item in found)
    refused = len(found) - compiled
    said.append(f"{len(found)} cases warm and cold: {compiled} compile, {refused} do not; {len(differing)} differ")
    return said
