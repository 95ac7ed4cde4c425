"""Is the patched package the corrected one? Programs of both, byte for byte.

Compared are the bug's corpus cases on their targets and the first drawn graphs of its certificate. A
payload for Ethos-U85 is not the same bytes from run to run, so those targets are left out: the TOSA in
front of Vela is compared on the others. Nor does stock give one program for every graph: what it splits a
partition into, it numbers in the order of a set. So programs that differ are made again, and one in common is enough.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from harness.campaign.campaign import write_case
from harness.campaign.certify.rows import Plan
from harness.case.reading import read_case
from harness.corrections import Correction
from harness.workers.pool import Pool
from harness.workers.protocol import EmitTask

GRAPHS = 5
AGAIN = 6
"""How often programs that differ are made again, each way."""
_TARGETS = ("TOSA-1.0+INT", "ethos-u55-128")


def patch_difference(correction: Correction, plan: Plan, corrected: Pool, patched: Pool) -> str:
    """The first case whose programs differ, in one line; empty if there is none.

    :param corrected: workers with the installed package, where the correction is applied.
    :param patched: workers with the patched package.
    """
    words = (correction.word,)
    cases = [*_cases(correction, plan)]
    ones = corrected.emit_all(EmitTask(case=path, target=target, corrections=words) for path, target in cases)
    others = patched.emit_all(EmitTask(case=path, target=target) for path, target in cases)
    for (path, target), *made in zip(cases, ones, others, strict=True):
        one, other = (item.result() for item in made)
        if (one.program, one.problem) != (other.program, other.problem):
            task = EmitTask(case=path, target=target)
            if _programs(corrected, replace(task, corrections=words)) & _programs(patched, task):
                continue
            seen = [item.problem or f"{len(item.program)} bytes" for item in (one, other)]
            return f"{path} on {target}: {seen[0]} corrected, {seen[1]} patched"
    return ""


def _programs(pool: Pool, task: EmitTask) -> set[tuple[bytes, str | None]]:
    made = [item.result() for item in pool.emit_all([task] * AGAIN)]
    return {(item.program, item.problem) for item in made}


def _cases(correction: Correction, plan: Plan) -> Iterator[tuple[str, str]]:
    from generators.cases import draw_covering

    for entry in plan.corpus:
        if entry.name in correction.entries:
            target = read_case(entry.folder).target
            yield str(entry.folder / "case.json"), _TARGETS[1] if target.startswith("ethos-u85") else target
    graphs = min(GRAPHS, plan.graphs)
    for drawn in draw_covering((correction.patterns,), plan.seed, graphs, _TARGETS)[:graphs]:
        for case in drawn:
            yield str(write_case(case, plan.out / "cases")), case.target
