"""Who is there: the nodes of a cluster as one campaign sees them, and which of them has a free place.

A node is a process of the engine with its address, and has as many places as it has threads. It is *new* when it is
first seen, then accepted or refused; it may go, and what comes back under another address is another node. Nothing
here knows the engine. Every method may be called from any thread.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.case.errors import CannotRun


@dataclass
class Nodes:
    """The nodes of a cluster.

    :param patience: seconds that a campaign waits for a node when all are lost.
    :ivar refused: address -> why, for the refused nodes that are there.
    """

    patience: float = 60.0
    refused: dict[str, str] = field(default_factory=dict)
    _new: dict[str, int] = field(default_factory=dict)
    _places: dict[str, int] = field(default_factory=dict)
    _busy: Counter[str] = field(default_factory=Counter)
    _over: Exception | None = None
    _changed: threading.Condition = field(default_factory=threading.Condition)

    @property
    def places(self) -> int:
        """Places of all accepted nodes."""
        with self._changed:
            return sum(self._places.values())

    def accepted(self) -> list[str]:
        """Addresses of the nodes that run cases."""
        with self._changed:
            return sorted(self._places)

    def see(self, threads: Mapping[str, int]) -> tuple[list[str], list[str]]:
        """Take note of who is there now: returns the new nodes, and those that had been accepted and are gone."""
        with self._changed:
            known = {*self._new, *self._places, *self.refused}
            gone = known - {*threads}
            lost = sorted(gone & {*self._places})
            for address in gone:
                for group in (self._new, self._places, self.refused):
                    group.pop(address, None)
                del self._busy[address]
            new = sorted({*threads} - known)
            self._new.update((address, threads[address]) for address in new)
            self._changed.notify_all()
            return new, lost

    def accept(self, address: str) -> None:
        """Let a new node run cases."""
        with self._changed:
            if address in self._new:
                self._places[address] = self._new.pop(address)
            self._changed.notify_all()

    def refuse(self, address: str, why: str) -> bool:
        """Let a node run nothing (any more); was it there, and not refused before?"""
        with self._changed:
            told = address in self._new or address in self._places
            self._new.pop(address, None)
            self._places.pop(address, None)
            if told:
                self.refused[address] = why
            self._changed.notify_all()
            return told

    def is_there(self, address: str) -> bool:
        """Does an accepted node have this address?"""
        with self._changed:
            return address in self._places

    def settled(self, seconds: float) -> bool:
        """Wait until no node is new any more; False if that takes longer."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._new or self._over is not None, seconds)

    def take(self) -> str:
        """Wait for a free place, on the node with the fewest cases, and return the node's address.

        :raises CannotRun: no node came for too long, or the cluster is lost.
        """
        with self._changed:
            until = time.monotonic() + self.patience
            while True:
                if self._over is not None:
                    raise self._over
                if self._places:
                    until = time.monotonic() + self.patience
                free = [
                    (self._busy[address], address)
                    for address, places in self._places.items()
                    if self._busy[address] < places
                ]
                if free:
                    address = min(free)[1]
                    self._busy[address] += 1
                    return address
                left = until - time.monotonic()
                if left <= 0:
                    raise CannotRun(self._none_left())
                self._changed.wait(left)

    def give(self, address: str) -> None:
        """Give back a place."""
        with self._changed:
            if address in self._busy:
                self._busy[address] -= 1
            self._changed.notify_all()

    def end(self, why: Exception) -> None:
        """Have everybody who waits, now or later, get this error."""
        with self._changed:
            self._over = self._over or why
            self._changed.notify_all()

    def check(self) -> None:
        """:raises Exception: what the nodes were ended with."""
        with self._changed:
            if self._over is not None:
                raise self._over

    def _none_left(self) -> str:
        if self.refused:
            return next(iter(self.refused.values()))
        return (
            f"no node of the cluster is left (waited {self.patience:.0f} s); "
            "start some with 'dask worker', and go on with --resume"
        )
