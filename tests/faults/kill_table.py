"""The kill table: what every oracle says of each planted fault and of its clean twin.

Words: a fault is *caught* if its own oracle reports it under the expected kind; what that oracle
names (the pass, or else the part of the compiler that the stage belongs to) is *blamed*.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.case.case import encode_case
from harness.evidence.observation import Mismatch
from harness.pipeline.lowering import StageClock
from harness.workers.observing import Options, examine, judge, observe
from tests.faults.fault import Fault
from tests.integration.conftest import _observed

_PARTS = {"prepare": "quantizer", "calibrate": "quantizer", "convert": "quantizer", "vela": "Vela"}


@dataclass(frozen=True)
class Row:
    """One fault.

    :param clean: what the oracles say of the case without the fault; must be nothing
        but information.
    :param found: what they say with it.
    """

    fault: Fault
    clean: tuple[Mismatch, ...]
    found: tuple[Mismatch, ...]

    @property
    def own(self) -> Mismatch | None:
        """What the fault's own oracle says of the expected kind."""
        expected = (self.fault.oracle, self.fault.kind)
        return next((item for item in self.found if (item.oracle, item.kind) == expected), None)

    @property
    def blamed(self) -> str | None:
        return None if self.own is None else self.own.pass_name or _PARTS.get(self.own.stage)

    @property
    def blame_right(self) -> bool:
        """True if nothing need be blamed."""
        return self.fault.blame in (None, self.blamed)

    @property
    def fired(self) -> str:
        """``oracle: kind`` of everything that was reported."""
        return "; ".join(dict.fromkeys(f"{item.oracle}: {item.kind}" for item in self.found))

    @property
    def verdict(self) -> str:
        if self.own is None:
            return "MISSED"
        if self.clean:
            return "caught, and so is the clean twin"
        return "caught" if self.blame_right else "caught, wrong blame"


def row(fault: Fault) -> Row:
    """Observe and judge the clean twin (once a process and case, unless it needs probes) and the planted case."""
    plain = fault.probes == "none"
    clean = (
        _observed(encode_case(fault.case)) if plain else observe(fault.case, StageClock(), Options(probes=fault.probes))
    )
    with fault.planted():
        _, found = examine(fault.case, StageClock(), Options(probes=fault.probes))
    defects = tuple(item for item in judge(clean) if not item.information)
    return Row(fault, defects, tuple(found))
