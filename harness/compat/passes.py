"""Watch every Arm pass of a lowering: one snapshot of the graph after each.

``ArmPassManager._transform`` runs the list that ``_tosa_pipeline`` built (seen in 1.1.0 to 1.5.1;
it takes the graph module up to 1.3.1 and the exported program as well from 1.4.1). For the length
of one lowering every object of that list is replaced by a stand-in that forwards everything, runs
the pass and looks at the graph: whatever the pass's base class, nothing is missed, and the
recorded list is the manager's own. ``TOSABackend._preprocess`` brackets one delegate and returns
its flatbuffer, by which traces find their delegates.

Cost: nodes that a pass left alone are recognized by the identity of their parts and not read
again. ``keep_graphs`` also copies the graph after every pass that changed it, for blame.

Imports executorch: only worker processes import this module.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any

import torch
from executorch.backends.arm._passes.arm_pass_manager import ArmPassManager
from executorch.backends.arm.tosa.backend import TOSABackend

from harness.compat.snapshots import NodeState, PassTrace, Snapshot, value_origin
from harness.compat.states import ORIGIN, StateReader, operator_name
from harness.compat.warm.collecting import between_passes


@dataclass
class LiveGraph:
    """A copy of the graph after one pass, with the tensors of its constants."""

    index: int
    name: str
    module: torch.fx.GraphModule
    constants: Mapping[str, torch.Tensor]


@dataclass
class Watched:
    """Traces of the delegates lowered inside, in order.

    :param of_tosa: trace by the flatbuffer that its delegate's passes ended in.
    :param unfinished: the trace of a delegate whose lowering raised.
    :param graphs: per trace, copies of its graphs (``keep_graphs`` only).
    """

    keep_graphs: bool = False
    of_tosa: dict[bytes, PassTrace] = field(default_factory=dict)
    unfinished: PassTrace | None = None
    graphs: dict[bytes, list[LiveGraph]] = field(default_factory=dict)
    seconds: float = 0.0


@contextmanager
def watched_passes(keep_graphs: bool = False) -> Iterator[Watched]:
    """Record every pass of every delegate lowered inside."""
    watched = Watched(keep_graphs)
    preprocess, transform = TOSABackend._preprocess, ArmPassManager._transform
    recorders: list[_Recorder] = []

    def watched_preprocess(program: Any, *args: Any, **kwargs: Any) -> Any:
        recorder = _Recorder(program, watched)
        recorders.append(recorder)
        try:
            result = preprocess(program, *args, **kwargs)
        except BaseException:
            watched.unfinished = recorder.trace()
            raise
        finally:
            recorders.pop()
            watched.seconds += recorder.seconds
        trace = recorder.trace()
        if trace is not None:
            watched.of_tosa[bytes(result.processed_bytes)] = trace
            watched.graphs[bytes(result.processed_bytes)] = recorder.graphs
        return result

    def watched_transform(manager: Any, *args: Any) -> Any:
        if not recorders or recorders[-1].started:  # annotation, or a control-flow submodule
            return transform(manager, *args)
        passes = manager.passes
        recorders[-1].start([_name(item) for item in passes], args[-1])
        manager.passes = [_stand_in(item, index, recorders[-1]) for index, item in enumerate(passes)]
        try:
            return transform(manager, *args)
        finally:
            manager.passes = passes

    TOSABackend._preprocess = staticmethod(watched_preprocess)
    ArmPassManager._transform = watched_transform
    try:
        yield watched
    finally:
        TOSABackend._preprocess = staticmethod(preprocess)
        ArmPassManager._transform = transform


class _StandIn:
    """Stands for one pass object: forwards attributes, runs it, reports the graph.

    From 1.4.1 on the manager hands the program that it works on to every pass that has an
    attribute ``exported_program``; a stand-in always has one, so the recorder knows that program.
    """

    def __init__(self, item: Any, index: int, recorder: _Recorder) -> None:
        object.__setattr__(self, "_item", item)
        object.__setattr__(self, "_index", index)
        object.__setattr__(self, "_recorder", recorder)

    def __getattr__(self, name: str) -> Any:
        item = object.__getattribute__(self, "_item")
        return getattr(item, name, None) if name == _PROGRAM else getattr(item, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == _PROGRAM:
            self._recorder.working_on(value)
            if not hasattr(self._item, _PROGRAM):
                return
        setattr(self._item, name, value)

    def __call__(self, graph_module: Any) -> Any:
        result = _runs(self._item, graph_module, self._recorder.program)
        self._recorder.after(self._index, _name(self._item), graph_after(result, graph_module))
        return result


def graph_after(result: Any, graph_module: Any) -> Any:
    """The graph that a pass leaves: its result's, or the one that it was given."""
    changed = getattr(result, "graph_module", None)
    return graph_module if changed is None else changed


def _simply(item: Any, graph_module: Any, program: Callable[[], Any]) -> Any:
    return item(graph_module)


_runs: Callable[[Any, Any, Callable[[], Any]], Any] = _simply


@contextmanager
def passes_run_by(run: Callable[[Any, Any, Callable[[], Any]], Any]) -> Iterator[None]:
    """Let somebody else call every pass inside: with the pass, its graph, and a way to the program it works on."""
    global _runs
    _runs = run
    try:
        yield
    finally:
        _runs = _simply


def _stand_in(item: Any, index: int, recorder: _Recorder) -> _StandIn:
    """A stand-in whose class has the pass's name: pass managers put it into their messages."""
    named: type[_StandIn] = type(type(item).__name__, (_StandIn,), {"__module__": type(item).__module__})
    return named(item, index, recorder)


_PROGRAM = "exported_program"


def _name(item: Any) -> str:
    return item.__name__ if hasattr(item, "__name__") else type(item).__name__


class _Recorder:
    """Snapshots of one delegate."""

    def __init__(self, program: Any, watched: Watched) -> None:
        self.watched = watched
        self._reader = StateReader(program)
        self.seconds = 0.0
        self.started = False
        self.graphs: list[LiveGraph] = []
        self._copies: dict[str, torch.Tensor] = {}
        self._passes: tuple[str, ...] = ()
        self._start: Snapshot | None = None
        self._snapshots: list[Snapshot] = []
        self._seen: dict[str, tuple[tuple[Any, ...], NodeState]] = {}
        self._nodes: Mapping[str, NodeState] = {}

    def start(self, passes: list[str], graph_module: Any) -> None:
        self.started = True
        self._passes = tuple(passes)
        for node in graph_module.graph.nodes:
            node.meta[ORIGIN] = node.name
        self._start = self._snapshot(-1, "start", graph_module)

    def working_on(self, program: Any) -> None:
        """The program whose constants the next pass sees (None: the manager put an old value back)."""
        if program is not None:
            self._reader.program = program

    def program(self) -> Any:
        """The program that the running pass works on."""
        return self._reader.program

    def after(self, index: int, name: str, graph_module: Any) -> None:
        self._snapshots.append(self._snapshot(index, name, graph_module))
        between_passes()

    def trace(self) -> PassTrace | None:
        if self._start is None:
            return None
        finished = len(self._snapshots) == len(self._passes)
        return PassTrace(self._passes, self._start, tuple(self._snapshots), finished, self.seconds)

    def _snapshot(self, index: int, name: str, graph_module: Any) -> Snapshot:
        started = time.perf_counter()
        self._reader.refresh()
        nodes: dict[str, NodeState] = {}
        seen: dict[str, tuple[tuple[Any, ...], NodeState]] = {}  # a key of a node that is gone would hold its graph
        fresh = False
        for node in graph_module.graph.nodes:
            if ORIGIN not in node.meta:
                node.meta[ORIGIN] = self._adopted(node)
            key = self._key(node)
            known = self._seen.get(node.name)
            if known is None or known[0] != key:
                state = self._reader.state(node)
                if known is not None and _equal(known[1], state):
                    state = known[1]  # a pass that traces the graph anew leaves most nodes as they were
                else:
                    fresh = True
                known = key, state
            seen[node.name] = known
            nodes[node.name] = known[1]
        self._seen = seen
        if fresh or list(nodes) != list(self._nodes):
            self._nodes = nodes
            if self.watched.keep_graphs:
                self.graphs.append(self._copy(index, name, graph_module))
        self.seconds += time.perf_counter() - started
        return Snapshot(index, name, self._nodes)

    def _adopted(self, node: Any) -> str | None:
        """Origin of a node that a pass made without metadata.

        Constants are named after the node that they were made from (``aten_cat_default_pre_computed``),
        a TABLE by its constant (``b_<node>_table_constant``). The name is that of a node of the
        snapshot before: passes number nodes afresh, so it must be looked up at once.
        """
        named = node
        if node.op == "call_function":
            if ".TABLE." not in operator_name(node.target):
                return None
            named = node.args[1]
        if named.op != "placeholder":
            return None
        inner = named.name.removeprefix("b_") if named.name.endswith("_table_constant") else named.name
        found = [name for name in self._nodes if inner == name or inner.startswith(f"{name}_")]
        if not found or self._start is None:
            return None
        return value_origin(self._nodes[max(found, key=len)], self._nodes, self._start)

    def _key(self, node: Any) -> tuple[Any, ...]:
        """Everything that a state is made of, compared by identity where it is compared at all."""
        meta = node.meta
        tensor = self._reader.tensor(node)
        return (
            node.op,
            node.target,
            node.args,
            node.kwargs,
            _Same(meta.get("val")),
            _same_values(meta.get("input_qparams")),
            _same_values(meta.get("output_qparams")),
            _Same(tensor),
            -1 if tensor is None else tensor._version,
        )

    def _copy(self, index: int, name: str, graph_module: Any) -> LiveGraph:
        graph = torch.fx.Graph()
        output = graph.graph_copy(graph_module.graph, {}, return_output_node=True)
        assert output is not None
        graph.output(output[0])
        module = torch.fx.GraphModule(graph_module, graph)
        constants = {}
        for copied, node in zip(graph.nodes, graph_module.graph.nodes, strict=True):
            copied.meta = dict(node.meta)
            tensor = self._reader.tensor(node)
            if tensor is not None:
                constants[copied.name] = self._copy_of(copied.name, tensor)
        return LiveGraph(index, name, module, constants)

    def _copy_of(self, name: str, tensor: torch.Tensor) -> torch.Tensor:
        """A copy of a constant; that of an earlier pass, if it is still the same."""
        copy = self._copies.get(name)
        if copy is None or (copy.dtype, copy.shape) != (tensor.dtype, tensor.shape) or not torch.equal(copy, tensor):
            copy = self._copies[name] = tensor.clone()
        return copy


class _Same:
    """Equal only to a holder of the very same object, which it keeps alive."""

    __slots__ = ("held",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, held: Any) -> None:
        self.held = held

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.held is other.held


def _same_values(qparams: Any) -> Any:
    return None if qparams is None else {key: _Same(value) for key, value in qparams.items()}


_COMPARED = tuple(item.name for item in fields(NodeState) if item.name not in ("value", "call"))


def _equal(first: NodeState, second: NodeState) -> bool:
    """Equality that takes constants by identity: arrays have no truth value."""
    return first.value is second.value and all(getattr(first, name) == getattr(second, name) for name in _COMPARED)
