"""Go through a domain, stock and corrected."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from harness.campaign.certify.whole import Domain, Judge, domains
from harness.compat.releases import installed
from harness.corrections import find_correction
from harness.corrections.applying import applied
from harness.workers.protocol import Gone, WholeTask

_LEFT, _RIGHT, _WRONG = range(3)


def go_through(task: WholeTask, announce: Callable[[str], None]) -> Gone:
    """What a correction makes of every point of its domain."""
    announce("lower")
    domain, correction = domains()[task.correction], find_correction(task.correction)
    for change in correction.for_release(installed()["executorch"]):
        import_module(change.module)
    judge = domain.judge()
    stock = _answers(domain, judge)
    with applied((correction,)):
        corrected = _answers(domain, judge)
    return compared(domain, stock, corrected)


def compared(domain: Domain, stock: bytes, corrected: bytes) -> Gone:
    """What the answers at every point say of the correction."""
    pairs = enumerate(zip(stock, corrected, strict=True))
    against = [place for place, (before, after) in pairs if _speaks_against(before, after)]
    first = ""
    if against:
        first = next(str(point) for place, point in enumerate(domain.points()) if place == against[0])
    return Gone(
        says=domain.says,
        points=len(stock),
        wrong=stock.count(_WRONG),
        corrected_wrong=corrected.count(_WRONG),
        lost=sum(corrected[place] != _WRONG for place in against),
        first=first,
    )


def _speaks_against(stock: int, corrected: int) -> bool:
    """It is wrong, or no longer does what was right."""
    return corrected == _WRONG or (stock == _RIGHT and corrected == _LEFT)


def _answers(domain: Domain, judge: Judge) -> bytes:
    codes = {None: _LEFT, True: _RIGHT, False: _WRONG}
    return bytes(codes[judge(point)] for point in domain.points())
