"""A run of the Vela engine as text: what is new with the smallest program that shows it, then what is known.

The last line is the verdict. What Vela refuses, what the reference model calls invalid and what armdiff's model does
not implement is counted with its reason, so that *nothing new* says how much it is about.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from harness.case.wording import counted_as
from harness.reports.listing import RESEMBLING, in_short
from harness.tosa.causes import Cause, Causes
from harness.tosa.program import lines as program_lines
from harness.tosa.tally import VelaTally
from harness.tosa.versions import EVERYWHERE, Versions
from harness.triage.buckets import any_family
from harness.triage.findings import Finding

_MOST_REASONS, _MOST_NAMED = 6, 8


def listing(tally: VelaTally, causes: Causes, *, verbose: bool = False) -> list[str]:
    """Lines for people: causes, then findings that were not reduced, then what is known.

    :param verbose: known findings as new ones are listed.
    """
    told = {id(item) for cause in causes.found.values() for item in cause.shown_by}
    left = [item for item in tally.new if id(item) not in told]
    new = [item for item in left if item.state == "new"]
    alike = [item for item in left if item.state == "resembling"]
    known = [item for item in tally.findings if item.known]
    return [
        *_causes([cause for cause in causes.found.values() if not cause.finding.known]),
        *(
            [f"{counted_as(causes.left, 'finding')} not reduced: the time was over, or armdiff failed on it", ""]
            if causes.left
            else []
        ),
        *_in_full(counted_as(len(new), "new finding"), new, tally),
        *_in_full(f"{counted_as(len(alike), 'finding')} {RESEMBLING}", alike, tally),
        *(
            _in_full(counted_as(len(known), "known finding"), known, tally)
            if verbose
            else in_short(known, tally.corpus)
        ),
        *_about(tally),
    ]


def _causes(causes: Sequence[Cause]) -> list[str]:
    """Each with its smallest program."""
    if not causes:
        return []
    count = sum(len(cause.shown_by) for cause in causes)
    lines = [f"{counted_as(len(causes), 'root cause')} of {counted_as(count, 'finding')} that nothing explains"]
    for cause in sorted(causes, key=lambda cause: -len(cause.shown_by)):
        targets = ", ".join(sorted({finding.target for finding in cause.shown_by}))
        lines += ["", f"  [{len(cause.shown_by)}x on {targets}] {cause.fingerprint}", f"      {cause.finding.message}"]
        lines += [f"        {line}" for line in program_lines(cause.program)]
        lines.append(f"      shows on {', '.join(cause.families)}" + _with_velas(cause.velas))
        first = cause.shown_by[0]
        if first.state == "resembling":
            lines.append(f"      resembles {first.entry}")
        ended = "" if cause.ended else "; the time was over before nothing more could be cut"
        lines.append(f"      {cause.tried} programs tried in {cause.seconds:.1f} s{ended}")
        lines.append(f"      first seen in: armdiff vela {first.case} --accelerator {first.target}")
    return [*lines, ""]


def _with_velas(velas: Mapping[str, str]) -> str:
    """`` with Vela 5.1.0; not with 5.2.0``."""
    if len(velas) == 1:
        return ""
    having = ", ".join(version for version, state in velas.items() if state == "yes")
    others = ", ".join(f"{state} with {version}" for version, state in velas.items() if state != "yes")
    return f"; with Vela {having}" + (f"; {others}" if others else "")


def concluding(tally: VelaTally, causes: Causes) -> list[str]:
    """The last lines: how many programs, and the bugs by root cause: what is known in a line, what is new one by one,
    with the versions of Vela that have it.
    """
    known = [item for item in tally.findings if item.known]
    new = sorted(
        (cause for cause in causes.found.values() if not cause.finding.known), key=lambda cause: -len(cause.shown_by)
    )
    where = f"{counted_as(tally.programs.total(), 'program')}, {counted_as(len(tally.findings), 'finding')}"
    told = {id(item) for cause in causes.found.values() for item in cause.shown_by}
    left = sum(id(item) not in told for item in tally.new)
    alike = sum(cause.finding.state == "resembling" for cause in new)
    bugs = f"{counted_as(len({item.entry for item in known}), 'known bug')}, {len(new) - alike} new"
    bugs += f", {alike} resembling a known one" if alike else ""
    lines = [f"{where}: {bugs}" + (f", {counted_as(left, 'finding')} not reduced" if left else "")]
    if known:
        counts = Counter(item.entry for item in known).most_common()
        named = ", ".join(f"{name} {count}x" for name, count in counts[:_MOST_NAMED])
        rest = len(counts) - _MOST_NAMED
        lines.append(f"  known: {named}" + (f", and {rest} more" if rest > 0 else ""))
    for cause in new:
        having = [version for version, state in cause.velas.items() if state == "yes"]
        count = counted_as(len(cause.shown_by), "finding")
        state = f"resembling {cause.finding.entry}" if cause.finding.state == "resembling" else "new"
        lines.append(f"  {state}: {cause.name}: {count}; on {', '.join(cause.families)}; Vela {', '.join(having)}")
    return lines


def by_version(versions: Versions, joined: VelaTally) -> list[str]:
    """What each version could judge; then what changed, known or not, the shortest program of each kind."""
    if len(versions.tallies) == 1:
        return []
    lines = [""]
    for version, tally in versions.tallies.items():
        found = sum(item.measured["velas"][version] == "yes" for item in joined.findings)
        left = tally.programs.total() - tally.judged
        said = f"; {left} not judged ({tally.outcomes['refused']} refused)" if left else ""
        lines.append(f"Vela {version}: {counted_as(found, 'finding')} in {counted_as(tally.judged, 'program')}{said}")
    changes: dict[str, list[Finding]] = defaultdict(list)
    for finding in joined.findings:
        changes[finding.measured["change"]].append(finding)
    for change, findings in sorted(changes.items(), key=lambda pair: (pair[0].startswith(EVERYWHERE), pair[0])):
        lines += ["", f"{change}: {counted_as(len(findings), 'finding')}"]
        for bucket, group in by_bucket(findings).items():
            names = ", ".join(sorted({item.entry if item.known else item.state for item in group}))
            lines.append(f"  {len(group)}x {bucket} [{names}], {group[0].case}")
    return lines


def verdict(tally: VelaTally, causes: Causes) -> str:
    """The last line."""
    said = counted_as(len(tally.new), "new finding") if tally.new else "nothing new"
    if count := sum(not cause.finding.known for cause in causes.found.values()):
        said += f" of {counted_as(count, 'root cause')}"
    left = tally.programs.total() - tally.judged
    return f"{said} in {counted_as(tally.judged, 'program')}" + (f"; {left} more were not judged" if left else "")


def by_bucket(findings: Sequence[Finding]) -> dict[str, list[Finding]]:
    """Findings by bucket whatever the family, the shortest programs first; large groups first."""
    groups: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        groups[any_family(finding.bucket)].append(finding)
    for group in groups.values():
        group.sort(key=lambda item: (len(item.chain), item.case))
    return dict(sorted(groups.items(), key=lambda pair: (-len(pair[1]), pair[0])))


def _in_full(head: str, findings: Sequence[Finding], tally: VelaTally) -> list[str]:
    if not findings:
        return []
    groups = by_bucket(findings)
    lines = [f"{head}, {counted_as(len(groups), 'kind')}"]
    for bucket, group in groups.items():
        targets = ", ".join(sorted({finding.target for finding in group}))
        lines += ["", f"  [{len(group)}x on {targets}] {bucket}", *_described(group[0], tally)]
    return [*lines, ""]


def _described(finding: Finding, tally: VelaTally) -> list[str]:
    program = tally.smallest.get(finding.case)
    lines = [f"      {finding.message}"]
    if "velas" in finding.measured:
        states = ", ".join(f"{version} {state}" for version, state in finding.measured["velas"].items())
        lines.append(f"      {finding.measured['change']} ({states})")
    if finding.place is not None:
        lines.append(f"      place: {finding.place}")
    if program is not None:
        lines += [f"        {line}" for line in program_lines(program)]
    if finding.state == "resembling":
        lines.append(f"      resembles {finding.entry}")
    if finding.known:
        lines.append(f"      known: {finding.upstream or finding.entry}; {finding.proof}")
    return [*lines, f"      again: armdiff vela {finding.case} --accelerator {finding.target}"]


def _about(tally: VelaTally) -> list[str]:
    words = {
        "refused": "refused by Vela",
        "invalid": "not valid for the reference model",
        "unjudged": "not implemented by armdiff's model",
        "unrepeated": "showed something once and not again, which does not count",
    }
    lines = []
    for outcome, said in words.items():
        if count := tally.outcomes[outcome]:
            lines.append(f"{counted_as(count, 'program')} {said}")
            common = tally.reasons[outcome].most_common(_MOST_REASONS)
            lines += [f"  {times}x {why[:160]}" for why, times in common]
    if tally.refused_draws:
        lines.append(f"{tally.refused_draws} sets of inputs whose result the reference model calls unpredictable")
    return lines
