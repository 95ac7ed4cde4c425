"""What a certificate says, as data: JSON of this is the certificate, ``harness.campaign.certify.page`` its Markdown.

An *outcome* says what one comparison means:

======== =====================================================================================
same     the artifacts are the same
equal    other artifacts, every oracle passes both ways, outputs are the same bits
rounded  likewise, and outputs differ inside what rounding allows
right    stock was wrong; every oracle passes with the corrections
better   stock was wrong; some of its mismatches are gone and none is new
alike    stock was wrong, in the same way with the corrections
uncovered stock was wrong; the corrections uncover another known bug behind it, or one of Vela's where stock
         ended before Vela
vela     the program meets a bug of Vela's that stock's does not, and nothing else; a known one, and proved, unless
         with all corrections together
worse    a mismatch that stock does not have
======== =====================================================================================

``worse`` refuses a correction. So does ``rounded``, except for a workaround that moves operators to
the CPU: those are computed in float there, and round otherwise; and where already the quantized graph is
another one. And so does ``vela`` with one correction, in more than one of twenty graphs that it changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from harness.case.errors import MALFORMED, BadInput
from harness.compat.releases import TABLE
from harness.corrections.correction import Correction

Outcome = Literal["same", "equal", "rounded", "right", "better", "alike", "uncovered", "vela", "worse"]
Verdict = Literal["certified", "not-needed", "refused"]


class Function(msgspec.Struct, frozen=True, kw_only=True):
    """A place that a correction changes, with digests of its source before and after."""

    module: str
    place: str
    installed: str
    corrected: str


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """A corpus case on one target: what stock, the correction, and all corrections together give.

    :param bug: does stock show the entry's own bug on this target?
    :param stock: bucket -> message; ``corrected`` and ``together`` likewise.
    :param legs: legs that ran with the correction.
    """

    entry: str
    target: str
    bug: bool
    stock: dict[str, str] = {}
    corrected: dict[str, str] = {}
    together: dict[str, str] = {}
    legs: tuple[str, ...] = ()


class Whole(msgspec.Struct, frozen=True, kw_only=True):
    """What going through everything that the corrected function can be asked, within stated bounds, found.

    :param says: the bounds, and what was checked.
    :param points: how many there are.
    :param wrong: points where the installed function is wrong; ``corrected_wrong``: where the corrected one is.
    :param lost: points where the installed function does something, and right, and the corrected one does nothing.
    """

    says: str
    points: int
    wrong: int
    corrected_wrong: int
    lost: int


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the cases of one kind on one target.

    :param cases: ``graphs`` (drawn), ``corpus``, ``kin`` (like the bug's own cases) or ``together`` (drawn, all
        corrections at once).
    :param outcomes: outcome -> how many.
    :param reached: how many came to the code that the correction changes; None if nobody looked.
    """

    cases: str
    target: str
    outcomes: dict[str, int]
    reached: int | None = None

    @property
    def changed(self) -> int:
        """How many became other programs."""
        return sum(self.outcomes.values()) - self.outcomes.get("same", 0)


class Reach(NamedTuple):
    """Graphs, drawn ones and kin, by what the correction did to them.

    :param tried: how many were compared.
    :param reached: of these, how many came to the corrected code.
    :param changed: of these, how many became another program.
    :param right: of these, on how many every oracle passes with the correction.
    """

    tried: int
    reached: int
    changed: int
    right: int


class Counterexample(msgspec.Struct, frozen=True, kw_only=True):
    """The smallest case found that refuses a correction.

    :param case: its file.
    :param nodes: operators in it.
    :param vela: the bug of Vela that alone is new in the corrected run; empty if something else is.
    :param stock: what the oracles say of the stock run, bucket -> message; ``corrected`` likewise.
    """

    case: str
    target: str
    outcome: str
    what: str
    chain: tuple[str, ...] = ()
    nodes: int = 0
    vela: str = ""
    stock: dict[str, str] = {}
    corrected: dict[str, str] = {}


class Certificate(msgspec.Struct, frozen=True, kw_only=True):
    """The evidence for one correction on one set of installed releases.

    :param why: the verdict's reason in one sentence.
    :param needs: corrections that were applied along with it.
    :param graphs: target -> how many graphs were compared.
    :param whole: what going through a whole domain found, if the correction has one.
    :param vela: what the correction alone leads to in Vela -> in how many graphs.
    :param patch: name of the diff beside it, if one was exported and certified.
    :param command: how to make it again.
    """

    name: str
    verdict: Verdict
    why: str
    line: str
    releases: dict[str, str]
    workaround: bool = False
    cause: str = ""
    change: str = ""
    upstream: tuple[str, ...] = ()
    written_for: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    digest: str = ""
    functions: tuple[Function, ...] = ()
    shown: tuple[Shown, ...] = ()
    moved: tuple[Moved, ...] = ()
    graphs: dict[str, int] = {}
    seed: int = 0
    counterexample: Counterexample | None = None
    vela: dict[str, int] = {}
    whole: Whole | None = None
    patch: str = ""
    command: str = ""


def reach_of(certificate: Certificate) -> Reach | None:
    """How many graphs came to the corrected code; None if the certificate is from before that was counted."""
    rows = [row for row in certificate.moved if row.cases in ("graphs", "kin") and row.reached is not None]
    if not rows:
        return None
    counts = Counter[str]()
    for row in rows:
        counts.update(row.outcomes)
    return Reach(
        tried=counts.total(),
        reached=sum(row.reached or 0 for row in rows),
        changed=counts.total() - counts["same"],
        right=sum(counts[name] for name in ("equal", "rounded", "right")),
    )


def stored_certificate(folder: Path, line: str, name: str) -> Certificate | None:
    """A correction's certificate for a release line (``FOLDER/<line>/<name>.json``), if there is one.

    :raises BadInput: the file is no certificate.
    """
    file = folder / line / f"{name}.json"
    if not file.is_file():
        return None
    try:
        return msgspec.json.decode(file.read_bytes(), type=Certificate)
    except MALFORMED as error:
        raise BadInput(str(file), str(error), f"make it again with 'armdiff certify {name}'") from None


def certified_on(correction: Correction, folder: Path) -> Iterator[tuple[str, str, str]]:
    """Where a correction is certified: (line, its name, the certificate's line if that is another one).

    A line that was made from another one by exchanging compilers has that one's executorch: what is certified of a pass
    there holds here, and what works around a compiler is certified for that compiler alone.
    """
    made = {line.name: stored_certificate(folder, line.name, correction.name) for line in TABLE}
    for line in TABLE:
        own, other = made[line.name], made.get(line.of)
        if own is not None:
            stands, on = own, ""
        elif other is not None and not correction.workaround:
            stands, on = other, line.of
        else:
            continue
        if stands.verdict == "certified":
            yield line.name, correction.name, on
