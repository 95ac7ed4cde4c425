"""Several runs as one: the shards of a campaign, or a campaign on several release lines.

Each run is judged by what is known on its own release line (``harness.reports.reporting.material``); here their counts
are added and their cases numbered through, so that everything else sees one run. The merged run's folder is the
one that holds all the others, its paths are relative to that, and every path was looked up in its own run's
folder first: a path that leads out of a run leads nowhere here either.

Shards run side by side: seconds of stages are added, the wall time is the longest one, and the curve of
throughput lays the runs' clocks over each other. The same graph on two release lines counts twice.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import TypeVar

import msgspec

from harness.campaign.run_folder import BUGS, Asked, Done, Minimized, Run, RunInfo, State
from harness.campaign.summary import Tally
from harness.reports.reporting.material import JudgedRun, Seen, case_file, graph_of, per_graph
from harness.triage.findings import Finding
from harness.workers.protocol import CaseResult

_Item = TypeVar("_Item")


def merged(parts: Sequence[JudgedRun]) -> JudgedRun:
    """One judged run out of several, in their order; a single one is itself.

    :param parts: at least one.
    """
    if len(parts) == 1:
        return parts[0]
    root = Path(os.path.commonpath([os.path.abspath(part.run.folder) for part in parts]))
    info = _info([part.run.info for part in parts])
    width = max(1, len(info.asked.targets))
    done: list[Done] = []
    seen: list[Seen] = []
    tally, first = Tally(strict=info.asked.strict), 0
    for part in parts:
        move = _mover(part.run, root)

        def renumbered(number: int, run: Run = part.run, first: int = first) -> int:
            return (first + graph_of(run, number)) * width + number % per_graph(run)

        done += [_done(item, renumbered(item.number), move) for item in part.run.done]
        seen += [
            replace(
                item,
                finding=_finding(item.finding, move),
                number=renumbered(item.number),
                graph=first + item.graph,
            )
            for item in part.seen
        ]
        _add(tally, part.tally, move)
        first += 1 + max((graph_of(part.run, item.number) for item in part.run.done), default=-1)
    minimized = [_minimized(item, part.run, root) for part in parts for item in part.run.minimized]
    return JudgedRun(
        run=Run(folder=root, info=info, done=tuple(done), minimized=tuple(minimized)),
        tally=tally,
        seen=tuple(seen),
        information=tuple(_finding(item, _mover(part.run, root)) for part in parts for item in part.information),
        graphs=tally.graphs,
        unfinished=sum(part.unfinished for part in parts),
        parts=tuple(parts),
    )


def missing_shards(infos: Sequence[RunInfo]) -> list[str]:
    """Which shards of the runs' campaigns are not among them, in words: ``shards 3/8, 4/8 of default, seed 7``."""
    campaigns: dict[tuple[str, int, int], set[int]] = {}
    for info in infos:
        index, count = info.asked.shard
        campaigns.setdefault((info.line_name, info.asked.seed, count), set()).add(index)
    found = []
    for (line, seed, count), there in campaigns.items():
        names = [f"{index}/{count}" for index in range(1, count + 1) if index not in there]
        if names:
            found.append(f"{'shard' if len(names) == 1 else 'shards'} {', '.join(names)} of {line}, seed {seed}")
    return found


def _mover(run: Run, root: Path) -> Callable[[str], str]:
    """Where a run's case lies, as seen from the folder of all runs."""
    return lambda path: Path(os.path.relpath(case_file(run, path), root)).as_posix() if path else path


def _finding(finding: Finding, move: Callable[[str], str]) -> Finding:
    return msgspec.structs.replace(finding, case=move(finding.case))


def _done(item: Done, number: int, move: Callable[[str], str]) -> Done:
    result: CaseResult = msgspec.structs.replace(
        item.result,
        case=move(item.result.case),
        findings=tuple(_finding(found, move) for found in item.result.findings),
        unrepeated=tuple(_finding(found, move) for found in item.result.unrepeated),
    )
    return msgspec.structs.replace(item, number=number, result=result)


def _minimized(item: Minimized, run: Run, root: Path) -> Minimized:
    move, own = _mover(run, root), PurePath(item.folder).name == item.folder
    folder = os.path.relpath(run.folder / BUGS / item.folder, root / BUGS) if item.folder and own else ""
    return msgspec.structs.replace(
        item,
        origin=move(item.origin),
        case=move(item.case),
        neighbour=move(item.neighbour) if item.neighbour else item.neighbour,
        folder=Path(folder).as_posix() if folder else "",
    )


def _add(total: Tally, part: Tally, move: Callable[[str], str]) -> None:
    """Add a run's counts to those of all."""
    total.graphs += part.graphs
    total.cases += part.cases
    total.invalid += [msgspec.structs.replace(item, case=move(item.case)) for item in part.invalid]
    total.findings += [_finding(item, move) for item in part.findings]
    total.unrepeated += [_finding(item, move) for item in part.unrepeated]
    total.problems += part.problems
    total.ran.update(part.ran)
    for leg, reasons in part.skipped.items():
        total.skipped[leg].update(reasons)
    total.seconds.update(part.seconds)
    total.bounds += part.bounds
    total.unjudged.merge(part.unjudged)


def _info(infos: Sequence[RunInfo]) -> RunInfo:
    packages = _each(name for info in infos for name in info.releases)
    ended = [info.ended for info in infos]
    states = {info.state for info in infos}
    state: State = "running" if "running" in states else "interrupted" if "interrupted" in states else "done"
    return RunInfo(
        armdiff=" and ".join(_each(info.armdiff for info in infos)),
        releases={name: " and ".join(_each(info.releases.get(name, "none") for info in infos)) for name in packages},
        line=" and ".join(_each(info.line_name for info in infos)),
        asked=_asked([info.asked for info in infos]),
        started=min(info.started for info in infos),
        ended=None if None in ended else max(item for item in ended if item is not None),
        seconds=max(info.seconds for info in infos),
        state=state,
        problems=tuple(problem for info in infos for problem in info.problems),
    )


def _asked(asked: Sequence[Asked]) -> Asked:
    return Asked(
        targets=_each(target for item in asked for target in item.targets),
        seed=asked[0].seed,
        strict=any(item.strict for item in asked),
        corrections=_each(name for item in asked for name in item.corrections),
    )


def _each(items: Iterable[_Item]) -> tuple[_Item, ...]:
    """Each once, in order."""
    return tuple(dict.fromkeys(items))
