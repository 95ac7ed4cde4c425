"""The table: a row for each target and group of programs, below it everything that is not exact."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from tests.exactness.comparing import COMPARED, DIFFERENT, EXACT, REFERENCE, UNIMPLEMENTED, VELA, WRONG, Verdict
from tests.exactness.explained import explanation_named

_HEAD = (
    "target",
    "group",
    "programs",
    "compiled",
    "reference refused",
    "compared",
    "exact",
    "not exact",
    "unimplemented",
    "failed",
    "explained",
    "certain issues",
    "information",
)


DELEGATES = ("int8", "int16")
"""Groups of lowered graphs; every other group holds programs of single operators."""
_MOST_REASONS = 4


def row(verdicts: Sequence[Verdict]) -> dict[str, int]:
    """Counts of one row; *failed* are stream errors and exceptions."""
    outcomes = Counter(item.outcome for item in verdicts)
    return {
        "programs": len(verdicts),
        "compiled": len(verdicts) - outcomes[VELA],
        "reference refused": outcomes[REFERENCE],
        "compared": sum(outcomes[word] for word in COMPARED),
        "exact": outcomes[EXACT],
        "not exact": outcomes[DIFFERENT],
        "explained": sum(bool(item.explained) for item in verdicts),
        "unimplemented": outcomes[UNIMPLEMENTED],
        "failed": sum(outcomes[word] for word in WRONG) - outcomes[DIFFERENT] - outcomes[UNIMPLEMENTED],
        "certain issues": sum(any(issue.certain for issue in item.issues) for item in verdicts),
        "information": sum(any(not issue.certain for issue in item.issues) for item in verdicts),
    }


def rows(verdicts: Iterable[Verdict]) -> dict[tuple[str, str], dict[str, int]]:
    """Rows by target and group, in the order of the verdicts."""
    groups: dict[tuple[str, str], list[Verdict]] = defaultdict(list)
    for item in verdicts:
        groups[item.target, item.group].append(item)
    return {key: row(items) for key, items in groups.items()}


def unexplained(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """What makes the command fail."""
    return [item for item in verdicts if item.outcome in WRONG and not item.explained]


def lines(verdicts: Sequence[Verdict], *, issues: bool = True, operators: bool = True) -> list[str]:
    """The whole report."""
    body = [(*key, *(str(counts[name]) for name in _HEAD[2:])) for key, counts in rows(verdicts).items()]
    widths = [max(len(line[place]) for line in (_HEAD, *body)) for place in range(len(_HEAD))]
    report = [_aligned(line, widths) for line in (_HEAD, *body)]
    report += _not_exact(verdicts)
    if issues:
        report += _issue_lines(verdicts)
    if operators:
        report += _operator_lines(verdicts)
    return report


def _aligned(line: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(
        cell.ljust(width) if place < 2 else cell.rjust(width)
        for place, (cell, width) in enumerate(zip(line, widths, strict=True))
    ).rstrip()


def _not_exact(verdicts: Sequence[Verdict]) -> list[str]:
    wrong = [item for item in verdicts if item.outcome in WRONG]
    compared = sum(item.outcome in COMPARED for item in verdicts)
    report = ["", f"Not exact: {len(wrong)}" if wrong else f"Not exact: none of {compared} compared."]
    for name in dict.fromkeys(item.explained for item in sorted(wrong, key=lambda item: item.explained)):
        same = [item for item in wrong if item.explained == name]
        known = explanation_named(name) if name else None
        title = f"{name} ({known.culprit}): {known.reason}" if known else "NOT EXPLAINED"
        report.append(f"  {len(same)} {title}")
        for item in same:
            words = f"{item.configuration} {item.name} [{' '.join(item.operators)}] {item.outcome}: {item.detail}"
            report.append(f"    {words}")
    return report


def _issue_lines(verdicts: Sequence[Verdict]) -> list[str]:
    found: dict[tuple[str, str, bool], list[str]] = defaultdict(list)
    for item in verdicts:
        for issue in item.issues:
            found[item.target, issue.kind, issue.certain].append(f"{item.name}: {issue.message}")
    report = ["", "Stream issues by target and kind (programs, first one):"] if found else ["", "No stream issues."]
    for (target, kind, certain), items in sorted(found.items()):
        report.append(f"  {target} {kind} ({'certain' if certain else 'information'}): {len(items)}; {items[0]}")
    return report


def _operator_lines(verdicts: Sequence[Verdict]) -> list[str]:
    """For each family of single-operator programs: accepted and refused, and the reasons, the most frequent first."""
    families: dict[tuple[str, str], list[Verdict]] = defaultdict(list)
    for item in verdicts:
        if item.group not in DELEGATES:
            families[item.target, family_of(item.name)].append(item)
    report = ["", "What Vela accepted, by family of programs:"] if families else []
    for (target, family), items in families.items():
        reasons = Counter(_reason(item.detail) for item in items if item.outcome == VELA)
        refused = reasons.total()
        why = "; ".join(f"{count} refused: {reason}" for reason, count in reasons.most_common(_MOST_REASONS))
        report.append(f"  {target} {family}: {len(items) - refused} of {len(items)} accepted{'; ' if why else ''}{why}")
    return report


def _reason(said: str) -> str:
    """What Vela said without sizes and names, which differ from program to program."""
    return re.sub(r"\d+", "N", said)[:160]


def family_of(name: str) -> str:
    """The family of a program's name (``add-003``, ``add-s1-003``)."""
    parts = name.split("-")[:-1]
    return "-".join(parts[:-1] if parts[-1][:1] == "s" and parts[-1][1:].isdigit() else parts)


def data(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """Everything as JSON data."""
    return {
        "rows": [{"target": target, "group": group, **counts} for (target, group), counts in rows(verdicts).items()],
        "unexplained": [item.name for item in unexplained(verdicts)],
        "verdicts": msgspec.to_builtins(list(verdicts)),
    }
