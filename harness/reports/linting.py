"""Findings of one model as a linter tells them: a line a problem, where the user's source is at fault.

A *problem* is what has one cause: all findings of an entry of the corpus at one place, whichever oracle saw them and on
whichever targets; findings that no entry explains belong together if one pass makes them at one place. What values show
of a pass (they name no place) joins what the structure of the program shows of it.

The place is the node that a finding names. Where none does, it is the last operator of the entry's pattern in what the
wrong output depends on, and failing that, the node that makes the output.

A line reads ``FILE:LINE: severity: title, at NODE in MODULE: size; on TARGETS [state: ENTRY]; workaround``. A
workaround is named only if it was tried: if it is the correction that proves the finding to be known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from harness.campaign.summary import Tally, rank
from harness.case.call_sites import CallSite, CallSites, node_called
from harness.case.case import Graph, maker_of
from harness.case.chains import contains_in_order, operator_chain, plain_name
from harness.case.wording import counted_as
from harness.evidence.observation import CRASH, oracle_named
from harness.evidence.references import RUNTIMES
from harness.triage.buckets import any_family
from harness.triage.corpus import Entry
from harness.triage.findings import Finding, measured_size
from harness.triage.known import kind_of_proof, proving_names

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
STATES = ("new", "resembling", "known")
LONGEST_TITLE = 200
VELA = "Vela"


@dataclass(frozen=True)
class Subject:
    """The model that findings are about.

    :param file: what stands for a place that nothing tells.
    :param graph: as it was captured; None where there is no case.
    """

    file: str
    graph: Graph | None = None
    sites: CallSites = field(default_factory=dict)


@dataclass(frozen=True)
class Problem:
    """One line of the listing.

    :param severity: ``error``; ``warning`` if its entry says that it does no harm; ``note`` for mere information.
    :param findings: the worst first.
    :param nodes: where it is, as names of the case's graph; several if nothing tells which.
    """

    severity: Severity
    title: str
    findings: tuple[Finding, ...]
    nodes: tuple[str, ...] = ()

    @property
    def first(self) -> Finding:
        return self.findings[0]


def problems_of(tally: Tally, subject: Subject) -> list[Problem]:
    """Every problem of a model, the worst first; information last."""
    entries = {entry.name: entry for entry in tally.corpus}
    found = [
        _problem(group, entries.get(group[0].entry), subject)
        for group in _grouped([*tally.counted, *tally.information], subject.sites)
    ]
    return sorted(found, key=lambda item: _order(item, subject))


def _order(problem: Problem, subject: Subject) -> tuple[int, int, int, int]:
    line = next((site.line for name in problem.nodes if (site := subject.sites.get(name))), 0)
    return SEVERITIES.index(problem.severity), STATES.index(problem.first.state), rank(problem.first), line


def _grouped(findings: Sequence[Finding], sites: CallSites) -> list[list[Finding]]:
    """Findings by cause and place."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    places: dict[str, dict[str, list[Finding]]] = {}
    for finding in findings:
        node = node_called(finding.node, sites) if finding.node else ""
        cause = _cause(finding)
        place = f"{site.file}:{site.line}:{site.module}" if (site := sites.get(node)) else node
        group = groups.setdefault((cause, place), [])
        group.append(finding)
        places.setdefault(cause, {})[place] = group
    for by_place in places.values():
        unplaced = by_place.get("")
        if unplaced is not None and len(by_place) > 1:  # it is about one of the places that another oracle names
            next(group for place, group in by_place.items() if place).extend(unplaced)
            unplaced.clear()
    return [sorted(group, key=lambda item: (rank(item), -_distance(item))) for group in groups.values() if group]


def _cause(finding: Finding) -> str:
    """What findings of one problem share."""
    if finding.information:
        return f"information/{any_family(finding.bucket)}"
    if finding.entry:
        return f"{finding.state}/{finding.entry}"
    if finding.pass_name and finding.oracle != CRASH:
        return f"pass/{finding.pass_name}"
    return any_family(finding.bucket)


def _problem(group: Sequence[Finding], entry: Entry | None, subject: Subject) -> Problem:
    first = group[0]
    severity: Severity = "note" if all(item.information for item in group) else "error"
    if severity == "error" and entry is not None and entry.status.harmless and _is_harmless(group):
        severity = "warning"
    title = entry.status.title if entry is not None and first.known else _title(first)
    return Problem(severity, title, tuple(group), _nodes(group, entry, subject))


def _is_harmless(group: Iterable[Finding]) -> bool:
    """What a correction proved may be another face of the bug, a harmful one."""
    return all(kind_of_proof(item) == "condition" for item in group)


def _title(finding: Finding) -> str:
    """What a finding is called that is not proved to be an entry's: in its own words, whatever it is like."""
    if finding.oracle == CRASH or finding.information:
        return _shortened(finding.message)
    wrong = f"{finding.kind}: the compiled model {oracle_named(finding.oracle).wrong}"
    if finding.pass_name in (VELA, *RUNTIMES.values()):
        return f"{wrong}, by {finding.pass_name}"
    return f"{wrong}, first after {finding.pass_name}" if finding.pass_name else wrong


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_TITLE else f"{text[: LONGEST_TITLE - 1]}…"


# ---- places ----------------------------------------------------------------------------------------------------------


def _nodes(group: Sequence[Finding], entry: Entry | None, subject: Subject) -> tuple[str, ...]:
    named = dict.fromkeys(node_called(item.node, subject.sites) for item in group if item.node)
    if named or subject.graph is None:
        return tuple(named)
    outputs = [item.measured.get("output") for item in group]
    output = next((item for item in outputs if isinstance(item, int) and item < len(subject.graph.outputs)), None)
    if entry is not None and entry.status.operators:
        found = ends_of_pattern(subject.graph, entry.status.operators, output)
        if found:
            return found
    return () if output is None else (maker_of(subject.graph.outputs[output]),)


def ends_of_pattern(graph: Graph, operators: Sequence[str], output: int | None) -> tuple[str, ...]:
    """The nodes at which an entry's operator pattern ends, of those that an output depends on.

    :param operators: in the order of the data flow (``relu|hardtanh``: one of them).
    :param output: index of the output; None stands for all.
    """
    wanted = {*map(maker_of, graph.outputs if output is None else (graph.outputs[output],))}
    found = []
    for node in reversed(graph.nodes):
        if node.name not in wanted:
            continue
        wanted |= {*map(maker_of, node.inputs)}
        ends_here = {node.operator, plain_name(node.operator)} & {*operators[-1].split("|")}
        if ends_here and contains_in_order(_chain_to(graph, node.name), operators):
            found.append(node.name)
    return tuple(reversed(found))


def _chain_to(graph: Graph, node: str) -> tuple[str, ...]:
    return operator_chain(msgspec.structs.replace(graph, outputs=(node,)))


# ---- lines -----------------------------------------------------------------------------------------------------------


def line_of(problem: Problem, subject: Subject) -> str:
    """The line of a problem."""
    first = problem.first
    targets = ", ".join(dict.fromkeys(item.target for item in problem.findings))
    where, at = _place(problem.nodes, subject)
    size = _size(problem.findings)
    parts = [f"{where}: {problem.severity}: {problem.title}{at}" + (f": {size}" if size else "") + f"; on {targets}"]
    if problem.severity != "note":
        parts[0] += f" [{_state(first)}]"
    names = _workaround(problem.findings)
    if names:
        options = " ".join(f"--correction {name}" for name in names)
        parts.append(f"'{options}' removes it")
    return "; ".join(parts)


def _state(finding: Finding) -> str:
    if finding.state == "resembling":
        return f"like {finding.entry}, not proved"
    return f"known: {finding.entry}" if finding.known else "new"


def _place(nodes: Sequence[str], subject: Subject) -> tuple[str, str]:
    """Where a problem is: before the severity, and behind the title."""
    if not nodes:
        return subject.file, ""
    site: CallSite | None = subject.sites.get(nodes[0])
    more = f" or {counted_as(len(nodes) - 1, 'other place')}" if len(nodes) > 1 else ""
    if site is None:
        return subject.file, f", at {nodes[0]}{more}"
    return str(site), f", at {nodes[0]} in {site.module}{more}"


def _size(findings: Sequence[Finding]) -> str:
    """The worst error that was seen, in words."""
    values = [item for item in findings if not item.information and _distance(item) > 0]
    if not values:
        return ""
    worst = max(values, key=_distance)
    measured: Mapping[str, object] = worst.measured
    size = measured_size(worst.measured)
    if "elements" not in measured or "of" not in measured:
        return f"off by {size}"
    output = f" of output {measured['output']}" if "output" in measured else ""
    return f"{measured['elements']} of {counted_as(str(measured['of']), 'element')}{output} wrong, by up to {size}"


def _distance(finding: Finding) -> float:
    found = finding.measured.get("distance", finding.measured.get("excess", 0.0))
    return float(found) if isinstance(found, (int, float)) else 0.0


def _workaround(findings: Sequence[Finding]) -> tuple[str, ...]:
    """The corrections that took every finding away; none if a finding was proved otherwise."""
    proofs = {proving_names(item) for item in findings}
    return next(iter(proofs)) if len(proofs) == 1 else ()


def verdict_of(problems: Sequence[Problem], *, allow_known: bool) -> str:
    """``2 errors and 1 warning, all known``: what the last line says of findings."""
    counting = [item for item in problems if item.severity != "note"]
    if not counting:
        return "nothing found"
    counts = [(sum(item.severity == name for item in counting), name) for name in SEVERITIES]
    told = " and ".join(counted_as(count, name) for count, name in counts if count)
    if not all(item.first.known for item in counting):
        return told
    return f"{told}, all known and allowed" if allow_known else f"{told}, all known ('--allow-known' lets them pass)"
