"""A root cause as an issue that can be sent as it is: one page of Markdown.

Short: at most ``MOST_LINES`` before the script. A long patch is a file beside the page. What the page says is what was
seen while it was written (``Facts``); versions that were not tried now come from the corpus.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.campaign.certify.evidence import Certificate
from harness.compat.releases import PACKAGES, TABLE
from harness.corrections.correction import Correction
from harness.reports.bugs.page import Facts, context, rendered
from harness.reports.bugs.verifying import NEEDS_ENGINE, SHOWS
from harness.reports.upstream.causes import Cause
from harness.triage.corpus import Status

MOST_LINES = 60
"""Lines of a page before its script."""
LONGEST_PATCH = 12
"""Lines of a patch that is shown in the page."""
_COMPARED = 4
"""Lines of wrong values that are shown: what is wrong, and one table."""
_OUTCOMES = {
    "equal": "another program with the same outputs",
    "rounded": "another program with other rounding",
    "right": "right now",
    "better": "less wrong now",
    "worse": "wrong now",
}
"""What a fix does to a case, where it does anything (``harness.campaign.certify.deciding``)."""
_TITLED = 4
"""Other entries of a cause that are shown with their titles."""
_DEPENDS = {True: "ethos-u-vela", False: "executorch"}
"""The package whose versions tell where a bug shows: of Vela's bugs, and of all others."""


def issue_text(cause: Cause, facts: Facts, date: str, applies: Mapping[str, str] | None = None) -> str:
    """The page.

    :param facts: of the cause's head, as it was seen now.
    :param date: the day on which it was seen, as ``2026-11-24``.
    :param applies: correction -> what a checkout makes of its patch, a sentence.
    """
    known = context(facts)
    graphs: Sequence[tuple[str, str]] = known["graphs"]
    known |= {
        "prefix": cause.tracker.prefix,
        "graph": graphs[0][0] if graphs else "the TOSA file that repro.py writes",
        "tosa": next((text for _, text in graphs if text), ""),
        "executed": "\n".join(facts.executed.splitlines()[:_COMPARED]),
        "step": _wrong_step(known["detail"]),
        "noise": "" if known["vela"] else known["noise"],
        "shows": shows_on(facts.status, _DEPENDS[known["vela"]]),
        "tried": _tried(facts, date),
        "emitted": _emitted(known),
        "others": [f"{entry.status.title} (`{entry.name}`)" for entry in cause.others[:_TITLED]],
        "more_others": ", ".join(f"`{entry.name}`" for entry in cause.others[_TITLED:]),
        "cause": cause.told,
        "fixes": [_fix(item, facts, (applies or {}).get(item.name, "")) for item in facts.corrections],
        "unavoidable": cause.head.status.unavoidable,
        "related": list(dict.fromkeys(link for item in (cause.head, *cause.others) for link in item.status.upstream)),
    }
    return rendered("issue.md.jinja", known, facts.script)


def shows_on(status: Status, package: str) -> str:
    """On which versions of a package a bug shows, and on which it does not, the newest first."""
    said: dict[str, dict[str, None]] = {}
    for line in TABLE:
        if line.name in status.lines:
            said.setdefault(status.lines[line.name].status, {})[line.releases[package]] = None
    shown = said.get("reproduces", {})
    others = {version: None for version in said.get("fixed", {}) if version not in shown}
    text = f"{package} {', '.join(shown)}"
    return f"{text}; not {', '.join(others)}" if others else text


def patches(facts: Facts) -> Mapping[str, str]:
    """The patches of a bug's corrections by name, of those that are not shown in the page."""
    return {
        f"{item.name}.patch": patch
        for item in facts.corrections
        if (patch := facts.patches.get(item.name)) and not item.works_around(facts.status.package) and _long(patch)
    }


def _long(patch: str) -> bool:
    return len(patch.splitlines()) > LONGEST_PATCH


def _wrong_step(detail: str) -> str:
    """Of a disassembly, the operation that is marked and what is known of it."""
    lines = detail.splitlines()
    marked = next((place for place, line in enumerate(lines) if line.startswith("> ")), None)
    if marked is None:
        return ""
    rest = lines[marked + 1 :]
    told = next((place for place, line in enumerate(rest) if not line.startswith("  ;")), len(rest))
    return "\n".join(line.removeprefix("> ").strip() for line in (lines[marked], *rest[:told]))


def _tried(facts: Facts, date: str) -> str:
    """What was run while the page was written."""
    packages = " ".join(f"{name} {facts.releases[name]}" for name in PACKAGES if name in facts.releases)
    said = {
        SHOWS: "`repro.py` shows it in a fresh process",
        NEEDS_ENGINE: "`repro.py` makes the file and the right outputs; the stream ran on armdiff's functional model "
        "of the Ethos-U, on no hardware and no FVP",
    }.get(facts.verified.outcome, f"`repro.py`: {facts.verified.outcome}")
    return f"Tried on {date} with {packages}: {said}."


def _emitted(known: Mapping[str, Any]) -> str:
    calls = re.findall(r"(?:torch|F|nn\.functional)\.(\w+)\(|nn\.(\w+)\(", known["snippet"])
    operators = ", ".join(dict.fromkeys(name for pair in calls for name in pair if name))
    named = f" ({operators})" if operators else ""
    return f"`repro.py` makes it from a module{named}, quantized with {known['recipe']}, through ExecuTorch."


def _fix(item: Correction, facts: Facts, applies: str) -> dict[str, Any]:
    patch = facts.patches.get(item.name, "").rstrip()
    certificate = facts.certificates.get(item.name)
    attached = f"The patch is attached (`{item.name}.patch`)." if patch and _long(patch) else ""
    workaround = item.works_around(facts.status.package)
    attached = "" if workaround else " ".join(filter(None, (attached, applies)))
    evidence = evidence_of(certificate) if certificate else ""
    return {
        "workaround": workaround,
        "change": item.change,
        "diff": patch if patch and not workaround and not _long(patch) else "",
        "evidence": " ".join(filter(None, (attached, evidence))),
    }


def evidence_of(certificate: Certificate) -> str:
    """What a certificate has compared, in one sentence."""
    counts = {"drawn graphs": dict[str, int](), "cases of armdiff's corpus": dict[str, int]()}
    for row in certificate.moved:
        into = counts["drawn graphs" if row.cases == "graphs" else "cases of armdiff's corpus"]
        for outcome, count in row.outcomes.items():
            into[outcome] = into.get(outcome, 0) + count
    told = "; ".join(_counted(what, outcomes) for what, outcomes in counts.items() if outcomes)
    verdict = "the bug is gone and nothing that was right is wrong" if certificate.verdict == "certified" else ""
    return f"Compared with and without it ({told}): {verdict or certificate.why}."


def _counted(what: str, outcomes: Mapping[str, int]) -> str:
    said = [f"{outcomes[name]} {words}" for name, words in _OUTCOMES.items() if outcomes.get(name)]
    return f"{sum(outcomes.values())} {what}" + (f", of them {', '.join(said)}" if said else ", no program changed")


def body_lines(text: str) -> int:
    """Lines of a page before its script."""
    return len(text.partition("<details><summary>repro.py")[0].splitlines())


def index(causes: Sequence[tuple[Cause, str, str]]) -> Iterator[str]:
    """The list of a tracker's pages, the most harmful first.

    :param causes: each with its file and where it shows.
    """
    yield f"# {causes[0][0].tracker.folder}"
    yield ""
    yield f"Send to {causes[0][0].tracker.where}. The worst harm comes first."
    yield ""
    yield "| file | what goes wrong | shows on | upstream |"
    yield "|---|---|---|---|"
    for cause, name, shows in causes:
        links = ", ".join(cause.head.status.reports) or "not reported, as far as is known"
        yield f"| [{name}]({name}) | {cause.head.status.title} | {shows} | {links} |"
