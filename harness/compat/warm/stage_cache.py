"""The stage cache: what the compile of a graph for one target leaves for the graph's next target in the same worker.

Two *stages* are cached, of the last graph only, each by the trick of that name (``harness.compat.warm.tricks``):

- ``quantized-cached``: the calibrated, converted and exported graph. Every target prepares the float graph itself; it
  takes the cached one only if its prepared graph has the same fingerprint (``harness.compat.warm.fingerprint``);
- ``edge-cached``: the edge program of that very graph, if the target's partitioner keeps the same nodes whole
  (``harness.compat.warm.edges``).

The cache holds a deep copy made before anybody works on it, and everyone who takes it gets a deep copy of that: all
later stages work in place. A fresh compile's tensors are the module's own, so that upstream can change the user's
weights; a copy's tensors are therefore tied to the module of the one who takes it, wherever the cached one's were tied
to its module. A module whose tensors are not those from back then, bit for bit, gets nothing.

A stage that raises leaves nothing. The first run of a case takes from the cache, and so do its runs with corrections
(``GraphCache.beside``), if making the stage never came to code that they change. Code that only came ahead of the
stage does not matter: whoever takes it has run that, and its prepared graph is the same. The second run uses no cache,
and a finding caused by the cache is reported as unrepeated.

Imports torch, and executorch with the first edge program: only worker processes import this module.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import msgspec
import torch

from harness.case.case import Case, case_digest
from harness.compat.sources import Place
from harness.compat.warm.collecting import between_cases
from harness.compat.warm.fingerprint import fingerprint

if TYPE_CHECKING:
    from harness.compat.warm.edges import Choice

QUANTIZED, EDGE = "quantized-cached", "edge-cached"

_Made = TypeVar("_Made")
_on: set[str] = set()


def enable(stage: str) -> None:
    """Cache a stage from now on."""
    _on.add(stage)


def enabled(stage: str) -> bool:
    """Is a stage cached?"""
    return stage in _on


class StageCache(Protocol):
    """Where a compile takes the stages from that need not be made for each target."""

    def same(self, prepared: torch.fx.GraphModule) -> str | None:
        """What graphs that are prepared alike have in common, if they can be compared."""

    def quantized(self, model: torch.nn.Module, prepared: str | None, make: Callable[[], _Made]) -> _Made:
        """The quantized graph and its export, from a prepared one (what ``same`` said of it)."""

    def edges(self, exported: Any) -> Any:
        """A context in which the lowering of an export may take an edge program."""


class _NoCache:
    """Makes every stage."""

    def same(self, prepared: torch.fx.GraphModule) -> str | None:
        return None

    def quantized(self, model: torch.nn.Module, prepared: str | None, make: Callable[[], _Made]) -> _Made:
        return make()

    @contextmanager
    def edges(self, exported: Any) -> Iterator[None]:
        yield


NO_CACHE: StageCache = _NoCache()


@dataclass
class _Copy:
    """A value, and the tensors that were the module's when it was made."""

    value: Any
    tensors: Mapping[str, torch.Tensor]

    def tied_to(self, model: torch.nn.Module) -> Any:
        """A copy with the module's own tensors, or None if they are not what they were."""
        own = _tensors(model)
        if own is None or own.keys() != self.tensors.keys():
            return None
        pairs = [(tensor, own[name]) for name, tensor in self.tensors.items()]
        return _copied(self.value, pairs) if all(_alike(*pair) for pair in pairs) else None


@dataclass
class _Stage:
    """A stage that was made.

    :ivar reached: what making it came to; None if nobody looked.
    """

    copy: _Copy
    reached: AbstractSet[Place] | None


@dataclass
class _Edge(_Stage):
    """An edge program."""

    choice: Choice


@dataclass
class _Quantized(_Stage):
    """A quantized export, and the edge programs that were made of it."""

    edges: list[_Edge] = field(default_factory=list)


class GraphCache:
    """The cached stages of one graph.

    :ivar takes: take what is cached; otherwise only leave it.
    :ivar reaching: a context that collects the places that are reached inside, of those that are watched.
    """

    def __init__(self) -> None:
        self.takes = True
        self.reaching: Callable[[], AbstractContextManager[AbstractSet[Place] | None]] = nullcontext
        self._changed: frozenset[Place] = frozenset()
        self._leaves = True
        self._quantized: dict[str, _Quantized] = {}
        self._current: tuple[Any, torch.nn.Module, _Quantized] | None = None  # the export in use, and whence it is

    def beside(self, changed: frozenset[Place]) -> GraphCache:
        """The same stages for a compile with other code at some places: it takes what never came there, leaves none."""
        other = GraphCache()
        other._changed, other._leaves, other._quantized = changed, False, self._quantized
        return other

    @property
    def came_to(self) -> frozenset[Place] | None:
        """All that was reached while the stages were made; None if nobody looked at one of them."""
        stages = [stage for entry in self._quantized.values() for stage in (entry, *entry.edges)]
        reached = [stage.reached for stage in stages if stage.reached is not None]
        return frozenset[Place]().union(*reached) if len(reached) == len(stages) else None

    def _may_take(self, stage: _Stage) -> bool:
        return self.takes and (not self._changed or (stage.reached is not None and not stage.reached & self._changed))

    def same(self, prepared: torch.fx.GraphModule) -> str | None:
        """What graphs that are prepared alike have in common, if they can be compared."""
        return fingerprint(prepared) if enabled(QUANTIZED) else None

    def quantized(self, model: torch.nn.Module, prepared: str | None, make: Callable[[], _Made]) -> _Made:
        """The quantized graph and its export (the last of what ``make`` returns)."""
        self._current = None
        if prepared is None:
            return make()
        entry = self._quantized.get(prepared)
        made: Any = entry.copy.tied_to(model) if entry is not None and self._may_take(entry) else None
        if made is None:
            with self.reaching() as reached:
                made = make()
            copied = _copy_of(made, model) if self._leaves else None
            entry = None if copied is None else _Quantized(copied, reached)
        if entry is not None:
            self._quantized[prepared] = entry
            self._current = made[-1], model, entry
        return cast(_Made, made)

    @contextmanager
    def edges(self, exported: Any) -> Iterator[None]:
        """Let the lowering of an export inside take an edge program, or leave one."""
        if not enabled(EDGE) or self._current is None or self._current[0] is not exported:
            yield
            return
        from executorch.exir.program import _program

        from harness.compat.warm.edges import made_with_choice

        original = getattr(_program, _GENERATE, None)
        if original is None:
            yield
            return
        _, model, entry = self._current

        def generate(*args: Any, **named: Any) -> Any:
            for edge in filter(self._may_take, entry.edges):
                if edge.choice.is_made_by(*args[:3]) and (found := edge.copy.tied_to(model)) is not None:
                    return found
            if not self._leaves:
                return original(*args, **named)
            with self.reaching() as reached:
                made, choice = made_with_choice(original, *args, **named)
            if choice is not None and (copied := _copy_of(made, model)) is not None:
                entry.edges.append(_Edge(copied, reached, choice))
            return made

        setattr(_program, _GENERATE, generate)
        try:
            yield
        finally:
            setattr(_program, _GENERATE, original)


class WorkerCache:
    """Caches the stages of the graph that a worker ran last, until a target of it comes again."""

    def __init__(self) -> None:
        self._graph = ""
        self._targets: set[str] = set()
        self._cached: GraphCache | None = None

    @property
    def holds(self) -> bool:
        """Is anything cached?"""
        return self._cached is not None

    def stages(self, case: Case, takes: bool, corrections: Sequence[str] = ()) -> GraphCache | None:
        """The stages of a case's graph, calibration and recipe; those of another graph are given up.

        :param takes: may this compile take what an earlier one left?
        :param corrections: what applies to the compile; stages are of the code as it is installed.
        :returns: None if nothing is cached.
        """
        if corrections:
            return None
        graph = case_digest(msgspec.structs.replace(case, target=""))
        if graph != self._graph or case.target in self._targets:
            self.forget()
        if self._cached is None and _on:
            self._graph, self._cached = graph, GraphCache()
        if self._cached is None:
            return None
        self._targets.add(case.target)
        self._cached.takes, self._cached.reaching = takes, nullcontext
        return self._cached

    def forget(self) -> None:
        """Give up what is cached."""
        if self._cached is not None:
            self._graph, self._targets, self._cached = "", set(), None
            between_cases()


_GENERATE = "_gen_edge_manager_for_partitioners"


def _copy_of(value: Any, model: torch.nn.Module) -> _Copy | None:
    """A copy for the cache, or None if it cannot be copied."""
    own = _tensors(model)
    if own is None:
        return None
    twins: dict[int, torch.Tensor] = {id(tensor): _twin(tensor) for tensor in own.values()}
    try:
        copied = _copied(value, [(tensor, twins[id(tensor)]) for tensor in own.values()])
    except Exception:  # noqa: BLE001 - an object that refuses to be copied is no fault of the case
        return None
    return _Copy(copied, {name: twins[id(tensor)] for name, tensor in own.items()})


def _copied(value: Any, pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> Any:
    """A deep copy with other tensors in the places of some, and of what shares their storage."""
    memo: dict[Any, Any] = {id(old): new for old, new in pairs}
    # torch's own copies look a storage up here; parameters are looked up by their identity only
    memo["torch"] = {old.untyped_storage()._cdata: new.untyped_storage() for old, new in pairs}
    return copy.deepcopy(value, memo)


def _tensors(model: torch.nn.Module) -> dict[str, torch.Tensor] | None:
    """A module's tensors by name; None if two of them overlap, which no copy here would preserve."""
    found: dict[str, torch.Tensor] = {
        **dict(model.named_parameters(remove_duplicate=False)),
        **dict(model.named_buffers(remove_duplicate=False)),
    }
    owners = {tensor.untyped_storage()._cdata: id(tensor) for tensor in found.values()}
    return found if all(owners[item.untyped_storage()._cdata] == id(item) for item in found.values()) else None


def _twin(tensor: torch.Tensor) -> torch.Tensor:
    values = tensor.detach().clone(memory_format=torch.preserve_format)
    return torch.nn.Parameter(values, tensor.requires_grad) if isinstance(tensor, torch.nn.Parameter) else values


def _alike(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Same kind, layout and bits."""
    facts = [(type(x), x.dtype, x.shape, x.stride(), x.storage_offset(), x.requires_grad) for x in (one, other)]
    return facts[0] == facts[1] and torch.equal(_bits(one), _bits(other))


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)
