"""What runs on a node, inside the process that the cluster's engine started there.

That process never imports torch: it hands each case to a worker process of its own (``harness.workers.pool``), so a
case that dies is a finding and not a lost node. The worker stays warm between the cases of a campaign. When the
engine's process is killed its workers go with it, and what they had written lies in the engine's own scratch folder.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from harness.case.errors import CannotRun
from harness.workers.cluster.parcel import Parcel, Unable, laid_out, packed_identity, packed_reply, unpack
from harness.workers.pool import Pool, default_jobs
from harness.workers.processes import limits_for

IDLE = 600.0
"""Seconds after which the workers of a campaign that asks for nothing make room for another's."""


@dataclass
class _Seat:
    """The workers that a node keeps for a campaign.

    :ivar busy: cases that run on them.
    :ivar used: when the last one began or ended.
    """

    pool: Pool
    busy: int = 0
    used: float = field(default_factory=time.monotonic)


_seats: dict[str, _Seat] = {}
_lock = threading.Lock()


def identity() -> bytes:
    """What this node runs cases with."""
    return packed_identity()


def answer(data: bytes) -> bytes:
    """Run the case of a parcel."""
    parcel = unpack(data)
    original = parcel.task.case
    try:
        with tempfile.TemporaryDirectory(prefix="armdiff-", dir=_scratch()) as name, _seated(parcel) as pool:
            task = laid_out(parcel, Path(name))
            # by a thread of the pool: a worker dies with the thread that started it, and the engine's may end
            [result] = pool.run([task])
            return packed_reply(result, task.case, original)
    except (CannotRun, OSError) as error:
        return packed_reply(Unable(str(error)), original, original)


def leave(campaign: str) -> None:
    """End a campaign's workers here; returns at once, because the engine waits for it."""
    with _lock:
        seat = _seats.pop(campaign, None)
    if seat is not None:
        _end(seat)


@contextmanager
def _seated(parcel: Parcel) -> Iterator[Pool]:
    now = time.monotonic()
    with _lock:
        for other in [name for name, seat in _seats.items() if not seat.busy and now - seat.used > IDLE]:
            _end(_seats.pop(other))
        if parcel.campaign not in _seats:
            _seats[parcel.campaign] = _Seat(_pool(parcel))
        seat = _seats[parcel.campaign]
        seat.busy += 1
    try:
        yield seat.pool
    finally:
        with _lock:
            seat.busy -= 1
            seat.used = time.monotonic()


def _pool(parcel: Parcel) -> Pool:
    # a node does not know how many others share its machine: memory is divided as a campaign of its own would
    limits = limits_for(default_jobs(), parcel.seconds)
    return Pool(default_jobs(), limits=limits, command=(sys.executable, "-m", parcel.worker)).__enter__()


def _end(seat: _Seat) -> None:
    threading.Thread(target=seat.pool.__exit__, args=(None, None, None), daemon=True).start()


def _scratch() -> str | None:
    """The folder that the engine cleans up after a killed process; None outside of the engine."""
    from distributed import get_worker

    try:
        return str(get_worker().local_directory)
    except ValueError:
        return None
