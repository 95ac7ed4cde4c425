"""What the first run of a case came to, of the code that corrections change.

A correction whose code it never came to cannot take a finding away, so nobody has to run the case with it. And a run
with a correction takes the cached stages that were made before control came to what the correction changes.

Where nobody looked, everything counts as reached: while corrections apply to all runs, or branches are measured.

Imports torch and executorch; runs in worker processes only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module

from harness.case.errors import ArmdiffError
from harness.compat.sources import Place
from harness.compat.warm.stage_cache import NO_CACHE, GraphCache, StageCache
from harness.corrections import chosen, corrections
from harness.corrections.applying import function_at
from harness.corrections.touching import changed_places, first_reader, reaching, touched


@dataclass(frozen=True)
class Reached:
    """The places of corrections that a run came to.

    :param places: those of this run; None if nobody looked.
    :param cache: what the run took and left.
    """

    places: AbstractSet[Place] | None = None
    cache: GraphCache | None = None

    def comes_to(self, word: str) -> bool:
        """Did it come to what a correction changes, as far as is known?

        :param word: of ``--correction``.
        """
        earlier = frozenset[Place]() if self.cache is None else self.cache.came_to
        if self.places is None or earlier is None or word not in corrections():
            return True
        try:
            changed = changed_places(chosen((word,)))
        except ArmdiffError:  # whoever runs the case with it says why that cannot be done
            return True
        return bool(changed & (self.places | earlier))

    def stages(self, words: Sequence[str]) -> StageCache:
        """What a run with corrections may take."""
        if self.places is None or self.cache is None:
            return NO_CACHE
        functions, assigned = set[Place](), set[str]()
        for module, place in changed_places(chosen(words)):
            if function_at(import_module(module), place) is None:
                assigned.add(module)
            else:
                functions.add((module, place))
        if any(first_reader(module) != "backend" for module in assigned):
            return NO_CACHE
        return self.cache.beside(frozenset(functions))


@contextmanager
def watched(cache: GraphCache | None) -> Iterator[Reached]:
    """See which corrections the run inside comes to; not while corrections apply.

    :param cache: what it takes stages from.
    """
    with touched(chosen(("all",))) as places:
        if cache is not None:
            cache.reaching = reaching
        yield Reached(places, cache)
