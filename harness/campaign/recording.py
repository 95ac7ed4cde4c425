"""Write into a corpus entry's ``status.toml``: what it shows on a release line, and the fingerprints of its programs.

What stands in the file stays, comments included. Of a line, only what cannot be mistaken is written: the bug shows in
the bucket of the default line (whatever pass is blamed), or nothing is found, or the case ends in an error before the
bug could show. Anything else is left for a person to look at.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from harness.campaign.replaying import Replayed
from harness.campaign.run_folder import cannot_write
from harness.compat.releases import DEFAULT
from harness.evidence.observation import CRASH
from harness.triage.buckets import any_pass
from harness.triage.corpus import STATUS, Entry, Expectation

_FINGERPRINTS = re.compile(r"^fingerprints = \[.*?\]\n", re.M | re.S)
_TABLE = re.compile(r"^\[", re.M)


def expectation_of(entry: Entry, row: Replayed) -> Expectation | None:
    """What to expect of an entry on a line from now on; None if a person has to say.

    :param row: what its case showed there, while nothing was expected.
    """
    default = entry.status.lines.get(DEFAULT)
    if row.outcome != "no expectation" or default is None:
        return None
    if not row.findings:
        return Expectation(status="fixed")
    buckets = list(dict.fromkeys(finding.bucket for finding in row.findings))
    for expected in (default, *entry.status.lines.values()):
        if expected.bucket and (own := _alike(buckets, (expected.bucket,))):
            also = _alike(buckets, expected.also)
            rest = tuple(bucket for bucket in buckets if bucket not in (own[0], *also))
            return Expectation(status="reproduces", bucket=own[0], also=also, other=rest)
    if all(finding.oracle == CRASH for finding in row.findings):
        return Expectation(status="hidden", other=tuple(buckets))
    return None


def _alike(buckets: Sequence[str], wanted: Sequence[str]) -> tuple[str, ...]:
    keys = {any_pass(bucket) for bucket in wanted}
    return tuple(bucket for bucket in buckets if any_pass(bucket) in keys)


def record(entry: Entry, line: str, expected: Expectation) -> None:
    """Add a line to an entry's ``status.toml``, behind what is there.

    :raises CannotRun: the file cannot be written.
    """
    words = [f"\n[lines.{line}]", f'status = "{expected.status}"']
    if expected.bucket:
        words.append(f"bucket = {json.dumps(expected.bucket, ensure_ascii=False)}")
    for name in ("also", "other"):
        if buckets := getattr(expected, name):
            words.append(f"{name} = {json.dumps(list(buckets), ensure_ascii=False)}")
    text = _text(entry)
    _write(entry, text + "\n".join((*words, "")))


def add_fingerprint(entry: Entry, fingerprint: str) -> None:
    """Put a fingerprint into an entry's ``status.toml``, before the first table, if it is not there yet.

    :raises CannotRun: the file cannot be written.
    """
    if fingerprint in entry.status.fingerprints:
        return
    text = _FINGERPRINTS.sub("", _text(entry))
    rows = "".join(f"  {json.dumps(item)},\n" for item in (*entry.status.fingerprints, fingerprint))
    table = _TABLE.search(text)
    at = table.start() if table else len(text)
    before = text[:at].rstrip("\n")
    _write(entry, f"{before}\nfingerprints = [\n{rows}]\n\n{text[at:]}")


def _text(entry: Entry) -> str:
    file = entry.folder / STATUS
    try:
        return file.read_text()
    except OSError as error:
        raise cannot_write(file, error) from None


def _write(entry: Entry, text: str) -> None:
    file = entry.folder / STATUS
    try:
        file.write_text(text)
    except OSError as error:
        raise cannot_write(file, error) from None
