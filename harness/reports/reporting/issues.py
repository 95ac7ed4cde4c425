"""Which bugs of a report deserve an issue, and its text.

A bucket gets one if it is *new* (neither the corpus nor ``--known`` has it on its release line), *re-run* (only
findings that showed twice are in a run's results, and a repro.py that does not show the bug vetoes it),
*minimized* to the end and to a case that is no known bug's, and not *filed*: no issue, open or closed, has its key. The
key is the final one regardless of the target family; it stands in a hidden line of every text, so that later nights can
tell::

    <!-- armdiff bucket: v1/numeric/outside-rounding/run/-/*/#permute>flatten>select -->

A filed key is a bucket's if the coarse keys agree and, where the oracle speaks of values, one chain of operators
contains the other in order: the rule by which a corpus entry knows a finding. Filing twice costs more than waiting:
when in doubt, a bucket is held back and the reason is told.
"""

from __future__ import annotations

import hashlib
import html
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness.campaign.run_folder import SMALLEST_IS, Run, cannot_write
from harness.case.chains import contains_in_order
from harness.case.errors import MALFORMED, BadInput
from harness.case.wording import counted_as
from harness.evidence.observation import oracle_named
from harness.reports.reporting.buckets import Bucket, Bug, bucket_folder
from harness.reports.reporting.report import Report
from harness.triage.buckets import any_family, any_pass, any_range, oracle_of, pass_of
from harness.triage.given import checked_bucket, listed, text_of

MOST = 10
"""Issues a night: a release that breaks everything is one to look at by hand."""
LONGEST_TITLE = 200
LONGEST_BODY = 60_000
"""GitHub takes 65536 characters."""
NAMES = "issue-*.md"
_MARK = re.compile(r"<!-- armdiff bucket: (\S+) -->")
_REMEDY = "give lines 'BUCKET [URL] [open|closed]', or what 'gh issue list --json number,state,body' printed"


@dataclass(frozen=True)
class Filed:
    """An issue that exists.

    :param key: a final or a coarse key.
    :param issue: its address or number; ``state`` is open or closed, empty if that was not told.
    """

    key: str
    issue: str
    state: str = ""

    def covers(self, final: str) -> bool:
        """Is it about the bucket with this final key?"""
        theirs, _, filed = any_range(any_family(self.key)).partition("#")
        ours, _, operators = any_range(any_family(final)).partition("#")
        oracle = oracle_of(ours)
        values = oracle_named(oracle).coarse and bool(filed and operators)
        if values and oracle_named(oracle).values and None in (pass_of(theirs), pass_of(ours)):
            theirs, ours = any_pass(theirs), any_pass(ours)
        if theirs != ours or not values:
            return theirs == ours
        one, other = filed.split(">"), operators.split(">")
        return contains_in_order(one, other) or contains_in_order(other, one)


@dataclass(frozen=True)
class Issue:
    """An issue to file."""

    key: str
    title: str
    body: str

    @property
    def name(self) -> str:
        """A file name that stays the same from night to night."""
        return NAMES.replace("*", f"{oracle_of(self.key)}-{hashlib.sha256(self.key.encode()).hexdigest()[:8]}")

    @property
    def text(self) -> str:
        return f"{self.title}\n\n{self.body}"


@dataclass(frozen=True)
class Held:
    """A new bucket that gets no issue, and why."""

    key: str
    why: str


def issues(report: Report, filed: Sequence[Filed] = (), most: int = MOST) -> tuple[list[Issue], list[Held]]:
    """What to file of a report, the most valuable first, and what not.

    :param filed: the issues that exist, open and closed.
    :param most: how many to file at most; the others come another time.
    """
    made: list[Issue] = []
    held: list[Held] = []
    judged_lines = {part.run.info.line_name for part in report.judged.runs if not part.run.info.judged_as.differs}
    for bug in report.new:
        for bucket in bug.buckets:
            key = any_family(bucket.final)
            others = [*filed, *(Filed(issue.key, f"'{issue.title}' of this report") for issue in made)]
            why = _held_for(bucket, key, judged_lines, others)
            if not why and len(made) >= most:
                why = f"{most} issues are enough for one time"
            if why:
                held.append(Held(key, why))
            else:
                made.append(Issue(key, _title(bucket), _body(report, bug, bucket, key)))
    return made, held


def _held_for(bucket: Bucket, key: str, judged_lines: set[str], filed: Iterable[Filed]) -> str:
    """Why a bucket gets no issue; empty if it gets one."""
    if not judged_lines & set(bucket.lines):
        return f"nothing is known on {', '.join(bucket.lines)}, so nothing is new (fuzz --expect LINE)"
    if not bucket.minimized:
        return "it was not minimized"
    best = bucket.minimized[0]
    if best.state != "minimized":
        return "its minimization ended early" if best.state == "stopped" else "it did not show again"
    if best.finding is not None and best.finding.known:
        return f"{SMALLEST_IS} {best.finding.entry} ({best.finding.proof})"
    if best.repro == "does not show":
        return "repro.py does not show it in a fresh process"
    there = next((item for item in filed if item.covers(key)), None)
    return f"filed already: {there.issue}{f' ({there.state})' if there.state else ''}" if there else ""


def read_filed(file: Path) -> list[Filed]:
    """Read which issues exist: GitHub's list as JSON, or a line for each key.

    :raises BadInput: naming the file and the line.
    """
    text = text_of(file, _REMEDY)
    if text.lstrip().startswith("["):
        return list(_of_github(text, file))
    lines = [(where, line.split()) for where, line in listed(text, file)]
    return [Filed(_checked(words[0], where), *(words[1:3] or [str(file)])) for where, words in lines]


class _Listed(msgspec.Struct):
    number: int
    state: str
    body: str | None = None


def _of_github(text: str, file: Path) -> Iterator[Filed]:
    try:
        there: list[_Listed] = msgspec.json.decode(text, type=list[_Listed])
    except (*MALFORMED, json.JSONDecodeError) as error:
        raise BadInput(str(file), str(error), _REMEDY) from None
    for issue in there:
        for key in keys_in(issue.body or ""):
            yield Filed(key, f"#{issue.number}", issue.state.lower())


def _checked(key: str, where: str) -> str:
    checked_bucket(key, where)
    return key


def marker(key: str) -> str:
    """The hidden line that says which bucket an issue is about."""
    safe = re.sub(r"\s|(?<=-)-", lambda found: f"&#{ord(found[0])};", html.escape(key))
    return f"<!-- armdiff bucket: {safe} -->"


def keys_in(body: str) -> list[str]:
    """The keys of the hidden lines in an issue's text."""
    return [html.unescape(found) for found in _MARK.findall(body)]


def write_issues(made: Sequence[Issue], folder: Path) -> list[Path]:
    """Write a file for each issue, and remove those of an earlier time.

    :raises CannotRun: the folder cannot be written.
    """
    files = [folder / f"{place:02}-{issue.name}" for place, issue in enumerate(made, 1)]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob(f"[0-9]*-{NAMES}"):
            old.unlink()
        for file, issue in zip(files, made, strict=True):
            file.write_bytes(issue.text.encode(errors="replace"))
    except OSError as error:
        raise cannot_write(folder, error) from None
    return files


def _title(bucket: Bucket) -> str:
    title = " ".join(f"{bucket.title} ({bucket.oracle}, {', '.join(bucket.targets)})".split())
    return title if len(title) <= LONGEST_TITLE else f"{title[: LONGEST_TITLE - 1]}…"


def _body(report: Report, bug: Bug, bucket: Bucket, key: str) -> str:
    written = _written(report.judged.run, bucket)
    lines = [written if written else _short(bucket)]
    runs = (part.run.info for part in report.judged.runs if part.run.info.line_name in bucket.lines)
    releases = dict.fromkeys(", ".join(f"{name} {version}" for name, version in info.releases.items()) for info in runs)
    seen = f"{counted_as(bucket.hits, 'case')} of {counted_as(len(bucket.graphs), 'graph')}"
    lines += [
        "---",
        f"Seen in {seen} of a nightly run (seed {report.judged.run.info.asked.seed}), on "
        f"{', '.join(bucket.lines)}: {'; '.join(releases)}. A person should read this before it goes upstream.",
    ]
    siblings = [other for other in bug.buckets if other is not bucket]
    if siblings:
        lines.append(
            f"Perhaps of the same cause ({len(siblings)} more): "
            + _fenced("\n".join(other.final for other in siblings))
        )
    return "\n\n".join((*lines, marker(key))) + "\n"


def _written(run: Run, bucket: Bucket) -> str:
    """The REPORT.md of the bucket's folder, if there is one."""
    folder = bucket_folder(run, bucket)
    file = folder / "REPORT.md" if folder else None
    if file is None or not os.path.isfile(file) or not file.resolve().is_relative_to(run.folder.resolve()):
        return ""
    text = _MARK.sub("", file.read_text(errors="replace")).strip()
    if len(text) <= LONGEST_BODY:
        return text
    cut = text[:LONGEST_BODY].rpartition("\n")[0]
    fence = "\n```" if cut.count("\n```") % 2 else ""
    return f"{cut}{fence}\n\n(The rest is in the run's artifact: bugs/{file.parent.name}/REPORT.md.)"


def _short(bucket: Bucket) -> str:
    """What there is to say without a written report: all of it about the case that is shown."""
    shown, worst, best = bucket.shown, bucket.worst, bucket.minimized[0]
    facts = [
        shown.finding.message,
        f"on {shown.finding.target}, recipe {shown.recipe}",
        f"{'smallest graph' if shown.minimized else 'graph'}: {' -> '.join(shown.chain)}",
        f"runs clean: {best.distinguishes}" if best.distinguishes and shown.minimized else "",
        f"in all cases: {bucket.where}",
        f"largest error, in another case ({worst.name}): {worst.size}" if worst is not shown else "",
        f"bucket {bucket.final}",
    ]
    text = _fenced("\n".join(fact for fact in facts if fact))
    if bucket.shown.case is not None:
        data = msgspec.json.format(msgspec.json.encode(bucket.shown.case), indent=1).decode()
        if len(data) <= LONGEST_BODY // 2:
            text += f"\n\nThis case; `armdiff replay case.json` shows what it shows:\n\n{_fenced(data, 'json')}"
    return text


def _fenced(text: str, kind: str = "text") -> str:
    """A block that shows text as it is: no markup, no mentions; the fence is longer than any inside."""
    longest = max((len(found) for found in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return (
        f"\n{fence}{kind}\n{''.join(item if item.isprintable() or item == chr(10) else ' ' for item in text)}\n{fence}"
    )
