"""A run as text: what is new first, then what only resembles a known bug, then what is known, one line a bug.

The last line is the verdict. *new findings* and *nothing new* speak of what counts: new findings, and those that
resemble a known bug without a proof. What could not be judged is part of the verdict.

Known bugs that do no harm to values (``harmless`` in an entry's ``status.toml``) are folded into one line. ``-v`` lists
every known finding as it lists new ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from harness.campaign.replay_command import Again
from harness.campaign.summary import Tally, by_cause
from harness.case.wording import counted_as
from harness.evidence.observation import oracle_named
from harness.triage.corpus import Entry
from harness.triage.findings import Finding, measured_size
from harness.triage.known import kind_of_proof
from harness.triage.unjudged import counting

SHOWN_PER_BUCKET = 2
LONGEST_CHAIN = 12
INFORMATION = "information, not counted (--strict counts it)"
RESEMBLING = "resembling a known bug, which nothing proves: they count like new ones"


def verdict(tally: Tally) -> str:
    """``nothing new; 3 outputs of 2 cases unjudged (aten.sin)``: the last line of a listing."""
    return with_unjudged(f"new findings{_alike(tally.new)}" if tally.new else "nothing new", tally)


def _alike(findings: Sequence[Finding]) -> str:
    alike = sum(item.state == "resembling" for item in findings)
    return f" ({alike} of {len(findings)} resembling a known bug)" if alike else ""


def with_unjudged(said: str, tally: Tally) -> str:
    """What is said of a run, and what was not judged in it."""
    return "; ".join(filter(None, (said, tally.unjudged.total.phrase)))


def listing(tally: Tally, *, verbose: bool = False) -> list[str]:
    """Lines for people.

    :param verbose: known findings in full.
    """
    new = [item for item in tally.new if item.state == "new"]
    alike = [item for item in tally.new if item.state == "resembling"]
    known = [item for item in tally.counted if item.known]
    lines = [
        *_in_full(_headed(new, "new"), new, tally.again),
        *_in_full(f"{_headed(alike, '')} {RESEMBLING}", alike, tally.again),
    ]
    if verbose:
        lines += _in_full(_headed(known, "known"), known, tally.again)
    else:
        lines += in_short(known, tally.corpus)
    lines += _proofs(known, tally)
    lines += _in_full(f"{INFORMATION}: {len(tally.information)}", tally.information, tally.again)
    return [*lines, *about_the_run(tally)]


def _headed(findings: Sequence[Finding], state: str) -> str:
    return counted_as(len(findings), f"{state} finding".strip())


def _in_full(head: str, findings: Sequence[Finding], again: Again) -> list[str]:
    """One block a bucket, with the shortest graphs that show it."""
    if not findings:
        return []
    groups = by_cause(findings)
    lines = [f"{head}, {counted_as(len(groups), 'kind')}"]
    for bucket, group in groups.items():
        targets = ", ".join(sorted({finding.target for finding in group}))
        lines += ["", f"  [{len(group)}x on {targets}] {bucket}"]
        graphs = {finding.chain: finding for finding in reversed(group)}  # a graph counts once, not once a target
        shown = sorted(graphs.values(), key=lambda item: (len(item.chain), item.case))[:SHOWN_PER_BUCKET]
        for finding in shown:
            lines += described(finding, again)
        if len(graphs) > len(shown):
            lines.append(f"      … and {counted_as(len(graphs) - len(shown), 'more graph')} (all are in the JSON)")
    return [*lines, ""]


def in_short(known: Sequence[Finding], corpus: Sequence[Entry]) -> list[str]:
    """One line a known bug, the commonest first; those that do no harm together in the last one."""
    if not known:
        return []
    entries = {entry.name: entry.status for entry in corpus}
    # what a correction proved may be another face of the bug, a harmful one
    folded = Counter(
        item.entry
        for item in known
        if item.entry in entries and entries[item.entry].harmless and kind_of_proof(item) == "condition"
    )
    harmful = Counter(item.entry for item in known) - folded
    lines = [f"{_headed(known, 'known')} of {counted_as(len({item.entry for item in known}), 'bug')}"]
    for name, count in harmful.most_common():
        title = f": {entries[name].title}" if name in entries else ""
        lines.append(f"  {count}x {name}{title}")
    if folded:
        why = "; ".join(f"{name}: {count}x, {entries[name].harmless}" for name, count in folded.items())
        lines.append(f"  {folded.total()}x without harm to values ({why})")
    return [*lines, "  (-v lists them)", ""]


def _proofs(known: Sequence[Finding], tally: Tally) -> list[str]:
    """How many known findings were proved how, and what it took."""
    counts = Counter(filter(None, map(kind_of_proof, known)))
    if not counts:
        return []
    how = ", ".join(f"{count} by {kind}" for kind, count in counts.most_common())
    return [f"proved to be known: {how}; {tally.seconds['prove']:.0f} s went into proofs", ""]


def described(finding: Finding, again: Again) -> list[str]:
    """A finding in full, its chain first and the command that shows it again last."""
    size = measured_size(finding.measured)
    chain = finding.chain if len(finding.chain) <= LONGEST_CHAIN else (*finding.chain[:4], "…", *finding.chain[-6:])
    head = f"      {' -> '.join(chain)} on {finding.target}, {finding.recipe}" + (f": {size}" if size else "")
    lines = [head, f"        {finding.message}"]
    if finding.place is not None and finding.place.graph == "tosa":
        lines.append(f"        place: {finding.place}")
    if finding.detail and oracle_named(finding.oracle).values and not finding.known:
        lines += [f"          {line}" for line in finding.detail.splitlines()]
    if finding.state == "resembling":
        lines.append(f"        resembles {finding.entry}")
    if finding.known:
        lines.append(f"        known: {finding.upstream or finding.entry}; {finding.proof}")
    lines.append(f"        replay: {again.command(finding.case, finding.oracle)}")
    return lines


def about_the_run(tally: Tally) -> list[str]:
    """What ran, what was not judged, and how long it took."""
    lines = []
    if tally.unrepeated:
        lines.append(f"{counted_as(len(tally.unrepeated), 'finding')} did not show a second time and do not count")
    lines += [f"problem: {problem}" for problem in tally.problems]
    if tally.stopped:
        lines.append(f"stopped: {tally.stopped}")
    for name, row in tally.leg_table().items():
        lines.append(
            f"leg {name}: ran {row['ran']}"
            + (f", skipped {row['skipped']} ({row['why']})" if row["skipped"] else "")
            + (f", unjudged {row['unjudged']}" if row["unjudged"] else "")
        )
    lines += counting.lines(tally.unjudged)
    if tally.bounds:
        ordered = sorted(tally.bounds)
        lines.append(
            f"rounding envelope, widest per case: median {ordered[len(ordered) // 2]:.3g}, "
            f"90th percentile {ordered[int(len(ordered) * 0.9)]:.3g} steps (epsilons for float outputs)"
        )
    lowering = tally.seconds["lower"] + tally.seconds["snapshots"]
    if lowering:
        share = 100 * tally.seconds["snapshots"] / lowering
        lines.append(f"snapshots after every Arm pass: {share:.1f} % of {lowering:.0f} s of lowering")
    return lines
