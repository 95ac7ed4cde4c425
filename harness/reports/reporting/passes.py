"""The branches of ExecuTorch's Arm backend that a run took, from the cases that measured them.

A *way* is a branch that a module has; whether any input can take it is unknown. A case is *fresh* if it took a
branch that no case before it took: when fresh cases become rare, drawing more of the same finds little.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.campaign.run_folder import Done


@dataclass(frozen=True)
class Module:
    """One file of the backend.

    :param name: its path below ``backends/arm``.
    """

    name: str
    taken: int
    ways: int


@dataclass(frozen=True)
class Passes:
    """What the measured cases took, all together.

    :param cases: cases that were measured.
    :param fresh: for each of them, in order, the branches that no earlier one took.
    :param modules: those with most branches left first.
    """

    cases: int
    fresh: tuple[int, ...]
    modules: tuple[Module, ...]

    @property
    def taken(self) -> int:
        return sum(module.taken for module in self.modules)

    @property
    def ways(self) -> int:
        return sum(module.ways for module in self.modules)

    @property
    def never(self) -> tuple[str, ...]:
        """Modules of which no branch was taken."""
        return tuple(sorted(module.name for module in self.modules if not module.taken))

    @property
    def share_of_fresh(self) -> float:
        """Of the last half of the cases, the share that took something new."""
        last = self.fresh[len(self.fresh) // 2 :]
        return sum(count > 0 for count in last) / len(last) if last else 0.0


def passes(done: Sequence[Done]) -> Passes:
    """Put the measured cases of a run together."""
    taken: dict[str, set[tuple[int, int]]] = {}
    ways: Mapping[str, int] = {}
    fresh: list[int] = []
    for item in done:
        found = item.result.branches
        if found is None:
            continue
        ways = {**ways, **found.ways}
        before = sum(map(len, taken.values()))
        for name, branches in found.taken.items():
            taken.setdefault(name, set()).update(branches)
        fresh.append(sum(map(len, taken.values())) - before)
    modules = [Module(name, len(taken.get(name, ())), count) for name, count in ways.items()]
    modules.sort(key=lambda module: (module.taken - module.ways, module.name))
    return Passes(len(fresh), tuple(fresh), tuple(modules))
