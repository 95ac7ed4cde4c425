"""Write down what a corpus entry shows on a release line that its ``status.toml`` says nothing of.

Only what cannot be mistaken is written: the bug shows in the bucket of the default line (whatever pass is blamed), or
nothing is found, or the case ends in an error before the bug could show. Anything else is left for a person to look at.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from harness.campaign.replaying import Replayed
from harness.campaign.run_folder import cannot_write
from harness.compat.releases import DEFAULT
from harness.evidence.observation import CRASH
from harness.triage.buckets import any_pass
from harness.triage.corpus import STATUS, Entry, Expectation


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
    if default.bucket and (own := _alike(buckets, (default.bucket,))):
        also = _alike(buckets, default.also)
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
    file = entry.folder / STATUS
    words = [f"\n[lines.{line}]", f'status = "{expected.status}"']
    if expected.bucket:
        words.append(f"bucket = {json.dumps(expected.bucket, ensure_ascii=False)}")
    for name in ("also", "other"):
        if buckets := getattr(expected, name):
            words.append(f"{name} = {json.dumps(list(buckets), ensure_ascii=False)}")
    try:
        with file.open("a") as status:
            status.write("\n".join((*words, "")))
    except OSError as error:
        raise cannot_write(file, error) from None
