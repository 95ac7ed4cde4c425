"""The finding of a corpus entry, among those that its case shows now.

A run names neither the pass that is to blame nor, for a finding about qparams, where wrong values show: the entry's
expectation does. What a report and a script need is put together here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from harness.triage.buckets import any_pass, pass_of
from harness.triage.corpus import Entry, Expectation
from harness.triage.findings import Finding

_PLACE = ("output", "input", "bound", "unit")
"""What a script needs to know to show wrong values."""


def named(entry: Entry, findings: Sequence[Finding]) -> Finding | None:
    """The finding that an entry's status names, with the pass that it names (one run does not look for it)."""
    expected = entry.expected
    assert expected is not None
    for finding in findings:
        if any_pass(finding.bucket) == any_pass(expected.bucket):
            return msgspec.structs.replace(
                finding,
                bucket=expected.bucket,
                # a bucket spells "ExecuTorch runtime" with a hyphen
                pass_name=finding.pass_name if finding.bucket == expected.bucket else pass_of(expected.bucket),
                measured={**_where_it_shows(expected, findings), **finding.measured},
            )
    return None


def _where_it_shows(expected: Expectation, findings: Sequence[Finding]) -> dict[str, Any]:
    """Output, input and allowed distance of the wrong values in which the very bug shows as well, if it does.

    A finding about qparams has none of these; its script would look at every input, and allow one step for each.
    """
    for finding in findings:
        if "distance" in finding.measured and finding.bucket in expected.also:
            return {name: finding.measured[name] for name in _PLACE if name in finding.measured}
    return {}
