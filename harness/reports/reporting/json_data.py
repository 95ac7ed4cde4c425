"""The report as JSON data: the fields that every verb's JSON has (``harness.campaign.summary.as_json``) and the rest.

``findings`` holds every finding; ``bugs`` has them by cause and bucket, ranked, with the shown case and the one with
the largest error in full, each with the finding that it shows. Paths of cases that are there are relative to the folder
where the report lies; ``runs`` has each run that it is about. Versions are those that the run was made with.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec

from harness.campaign.summary import as_json
from harness.reports.reporting.buckets import Bucket, Bug
from harness.reports.reporting.coverage import Grid
from harness.reports.reporting.material import relative
from harness.reports.reporting.report import Report
from harness.reports.reporting.shown import CaseFile, Shown


def data(report: Report, folder: Path | None = None) -> dict[str, Any]:
    """Everything that the pages show.

    :param folder: where it will lie; None stands for the run's folder.
    """
    run, coverage, timing = report.judged.run, report.coverage, report.timing
    place = os.path.abspath(folder or run.folder)
    made = as_json(
        report.judged.tally,
        armdiff=run.info.armdiff,
        releases=run.info.releases,
        verdict={
            "sentence": report.sentence,
            "new_bugs": len(report.new),
            "new_buckets": sum(len(bug.buckets) for bug in report.new),
            "known_bugs": len(report.known),
        },
        run=msgspec.to_builtins(run.info),
        runs=[
            {"folder": os.path.relpath(os.path.abspath(part.run.folder), place), **msgspec.to_builtins(part.run.info)}
            for part in report.judged.runs
        ],
        bugs=[_bug(bug, place) for place, bug in enumerate(report.bugs, 1)],
        coverage={
            "graphs": coverage.graphs,
            "reached": {reach.what: dict(reach.counts) for reach in coverage.reaches},
            "never": {reach.what: list(reach.never) for reach in coverage.reaches},
            "recipes": dict(coverage.recipes),
            "pairs": _grid(coverage.pairs),
            "calibrations": _grid(coverage.calibrated),
            "outcomes": _grid(coverage.outcomes),
            "failures": msgspec.to_builtins(coverage.failures),
            "branches": {
                "cases": coverage.passes.cases,
                "taken": coverage.passes.taken,
                "ways": coverage.passes.ways,
                "never": list(coverage.passes.never),
            },
        },
        timing={
            "seconds": round(timing.seconds, 3),
            "graphs_per_minute": round(timing.per_minute, 3),
            "stages": {stage: round(spent, 3) for stage, spent in timing.stages.items()},
            "slice_seconds": round(timing.slice_seconds, 3),
            "rates": [round(rate, 3) for rate in timing.rates],
        },
        undone=msgspec.to_builtins(report.not_run),
        previous=None if report.previous is None else msgspec.to_builtins(report.previous),
    )
    cases = [*made["invalid"], *made["findings"], *made["unrepeated"]]
    for bucket in (bucket for bug in made["bugs"] for bucket in bug["buckets"]):
        cases += [bucket["smallest"], *bucket["cases"]]
        for item in bucket["minimized"]:
            item |= {name: relative(run, item[name], folder) for name in ("case", "origin", "neighbour") if item[name]}
            if item["finding"]:
                item["finding"]["case"] = item["case"]
        for shown in filter(None, (bucket["shown"], bucket["worst"], bucket["neighbour"])):
            shown["path"] = relative(run, shown["path"], folder)
            if shown["finding"]:
                shown["finding"]["case"] = shown["path"]
    for item in cases:
        item["case"] = relative(run, item["case"], folder)
    return made


def _bug(bug: Bug, place: int) -> dict[str, Any]:
    return {
        "rank": place,
        "title": bug.title,
        "known": bug.known,
        "state": bug.state,
        "cause": bug.cause,
        "hits": bug.hits,
        "graphs": bug.graphs,
        "targets": list(bug.targets),
        "buckets": [_bucket(bucket) for bucket in bug.buckets],
    }


def _bucket(bucket: Bucket) -> dict[str, Any]:
    return {
        "bucket": bucket.key,
        "final": bucket.final,
        "oracle": bucket.oracle,
        "kind": bucket.kind,
        "stage": bucket.stage,
        "pass": bucket.pass_name,
        "known": bucket.known,
        "state": bucket.state,
        "entry": bucket.entry or None,
        "proof": bucket.first.proof or None,
        "upstream": list(bucket.upstream),
        "hits": bucket.hits,
        "graphs": len(bucket.graphs),
        "targets": dict(bucket.targets),
        "lines": list(bucket.lines),
        "sizes": msgspec.to_builtins(bucket.sizes),
        "cases": [
            {"case": finding.case, "target": finding.target, "recipe": finding.recipe, "state": finding.state}
            for finding in (item.finding for item in bucket.seen)
        ],
        "smallest": msgspec.to_builtins(bucket.first),
        "shown": _shown(bucket.shown),
        "worst": _shown(bucket.worst),
        "minimized": msgspec.to_builtins(bucket.minimized),
        "neighbour": _shown(bucket.neighbour) if bucket.neighbour else None,
    }


def _shown(shown: CaseFile) -> dict[str, Any]:
    finding = shown.finding if isinstance(shown, Shown) else None
    return {
        "path": shown.path,
        "minimized": isinstance(shown, Shown) and shown.minimized is not None,
        "why": shown.why or None,
        "finding": msgspec.to_builtins(finding),
        "case": msgspec.to_builtins(shown.case),
    }


def _grid(grid: Grid) -> dict[str, Any]:
    return {
        "rows": list(grid.rows),
        "columns": list(grid.columns),
        "counts": {k: dict(v) for k, v in grid.counts.items()},
    }
