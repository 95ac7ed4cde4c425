"""Places from graphs: the operators around a wrong one, with facts in one vocabulary.

Facts of every operator: ``rank``, ``out_rank`` (axes of the first operand that is no constant, and of the result),
``dtype``, ``out_dtype``, ``batch``, ``out_batch`` (the product of all axes before the last three), ``rows`` (the axis
before the last two), ``depth``, ``out_depth`` (the last axis), ``elements``, ``out_elements``, ``kept`` (1 if the
result has as many elements), ``lead`` (elements of the first operand, also if that is a constant), ``ones`` (axes of
size one), ``operands`` (that are no constants), ``constants``, ``readers`` and, as 0 or 1, ``output`` (its result
leaves the graph), ``input`` (it reads an input of the graph), ``broadcast`` (its operands that are no constants have
unlike shapes) and ``lone`` (one of them has one element, another has more). Nodes of a case's graph have
``ranks_differ`` (their operands, constants too, have unlike numbers of axes) and ``first_arange`` (the first operand
that is no flag is a constant of equal steps); an upsample that is given factors has the largest as ``factor``, and
``doubled`` (1 if its result has as many elements as the operand along some axis after the channels, or twice as many,
where that is not the factor), and a conv3d has ``planes`` (taps along its depth).

Windows have ``kernel``, ``stride``, ``dilation``, ``pad_before`` (the largest over the axes; it is not what an OutPad
cuts away), ``pad`` (the sum), ``taps``, ``skips`` (1 if no window reads some rows or columns, as the stride is larger
than what the kernel covers), ``channels``, ``out_channels``, ``multiplier``, ``narrow`` (the smaller of height and
width of the result) and ``narrow_stride`` (the largest stride along an axis on which the result has one element, or
0). CONV3D has ``planewise`` (along its depth one tap, stride 1 and no padding), TRANSPOSE_CONV2D ``turned_pad`` (the
padding in front of the convolution that it turns into, the larger of both axes). Reductions and joins have ``axis``
(from the front), ``back`` (from the back, -1 is the last) and ``along`` (its elements). RESHAPE has ``last_kept`` (the
last axis stays what it is), ``ones_only`` (only axes of size one come or go) and ``front_only`` (only axes of size one
in front of all others do). TRANSPOSE has ``moved`` (axes of more than one element that change their order),
``moves_first`` (the outermost of them comes elsewhere), ``last_kept`` (the innermost of them stays the innermost),
``narrower`` (the last axis of the result is shorter than the operand's) and ``undoes`` (it puts every axis back, with
the TRANSPOSEs directly in front of it that nothing else reads). SLICE has ``cut`` (axes that lose something), ``outer``
(the first of them, from the back), ``inner`` (the last) and ``behind`` (1 if it begins behind the first element of an
axis). PAD and TILE have them of the axes that grow; a PAD's operand is ``behind`` where it has padding before it. TILE
has ``times``. RESIZE has ``unlike`` (1 if rows and columns grow by different factors). RESCALE has ``scales``
(multipliers) and ``wide`` (1 if its operand or its result has 32 bits). ADD and SUB of operands that are rescaled by
whole factors have ``factor`` (the larger) and ``factors_alike``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import dropwhile, pairwise
from typing import Any

from harness.artifacts.tosa import SHAPE, TosaBlock, TosaOperator, TosaTensor, grows_unlike
from harness.case.case import Graph, maker_of
from harness.case.chains import plain_name
from harness.case.checking import value_types
from harness.case.place import INPUT, Fact, GraphKind, Place, PlacedOperator
from harness.compat.snapshots import Snapshot

UP, DOWN = 9, 6
"""How many edges of the graph lead away from the finding, against and along the flow of data."""
CONSTANTS = ("CONST", "CONST_SHAPE")
_WINDOWS = ("CONV2D", "CONV3D", "DEPTHWISE_CONV2D", "TRANSPOSE_CONV2D", "MAX_POOL2D", "AVG_POOL2D")
Reads = Mapping[int, tuple[int, ...]]


def tosa_place(block: TosaBlock, tensors: Iterable[str], facts: Mapping[str, Fact]) -> Place | None:
    """The surroundings of the operators that make some tensors of a block; of its readers, where one is an input or a
    constant. Inputs of the block are operators named ``INPUT``.

    :param facts: what was seen there.
    :returns: None if none of the tensors belongs to an operator.
    """
    here: list[int] = []
    for name in tensors:
        producer = block.producers.get(name)
        made = producer is not None and producer.op not in CONSTANTS
        here += [producer.index] if producer and made else [reader.index for reader in block.readers(name)]
    names = {item.index: item for item in block.operators if item.op not in CONSTANTS}
    given = {name: -1 - index for index, name in enumerate(block.inputs)}
    reads: dict[int, tuple[int, ...]] = dict.fromkeys(given.values(), ())
    for index, item in names.items():
        made_by = (given.get(name, _maker(block, name)) for name in item.inputs)
        reads[index] = tuple(source for source in made_by if source in names or source in reads)

    def described(index: int) -> tuple[str, dict[str, Fact]]:
        if index < 0:
            return INPUT, {"rank": len(block.tensors[block.inputs[-1 - index]].shape)}
        return names[index].op, tosa_facts(block, names[index])

    return _place("tosa", here, reads, described, facts)


def _maker(block: TosaBlock, name: str) -> int | None:
    producer = block.producers.get(name)
    return None if producer is None else producer.index


def case_place(graph: Graph, facts: Mapping[str, Fact] | None = None) -> Place | None:
    """A case's whole graph as a place, where nothing tells closer; every operator may be the one."""
    types = value_types(graph)
    index = {node.name: place for place, node in enumerate(graph.nodes)}
    reads = {
        place: tuple(index[maker_of(name)] for name in node.inputs if maker_of(name) in index)
        for place, node in enumerate(graph.nodes)
    }
    made = {item.name: item.kind for item in graph.constants}
    given = {item.name for item in graph.inputs}

    def described(place: int) -> tuple[str, dict[str, Fact]]:
        node = graph.nodes[place]
        operands = [types[name] for name in node.inputs if name not in made and name in types]
        result = types.get(node.name) or types.get(f"{node.name}.0")
        found: dict[str, Fact] = {}
        if operands and result is not None:
            found = _shape_facts([item.shape for item in operands], result.shape, operands[0].dtype, result.dtype)
        found |= dict(_numbers(node.attributes))
        if plain_name(node.operator).startswith("upsample") and operands and result is not None:
            found |= _by_factors(node.attributes, operands[0].shape[2:], result.shape[2:])
        if plain_name(node.operator) == "conv3d":
            kernels = [types[name].shape[2:] for name in node.inputs[1:2] if name in types]
            found["planes"] = (kernels or [node.attributes["kernel"]])[0][0]
        read = [name for name in node.inputs if name in types]
        value = next((name for name in read if types[name].dtype != "bool"), "")
        found["ranks_differ"] = int(len({len(types[name].shape) for name in read}) > 1)
        found["first_arange"] = int(made.get(value) == "arange")
        readers = sum(node.name in map(maker_of, other.inputs) for other in graph.nodes)
        found |= {
            "constants": sum(name in made for name in node.inputs),
            "readers": readers,
            "output": int(node.name in map(maker_of, graph.outputs)),
            "input": int(any(name in given for name in node.inputs)),
        }
        return plain_name(node.operator), found

    return _place("aten", list(index.values()), reads, described, facts or {}, whole=True)


def trace_place(start: Snapshot, node: str, facts: Mapping[str, Fact] | None = None) -> Place | None:
    """The surroundings of a node of the graph that the Arm passes began with; quantize and dequantize nodes have the
    names ``quantize`` and ``dequantize``.
    """
    calls = [state for state in start.nodes.values() if state.op == "call_function"]
    index = {state.name: place for place, state in enumerate(calls)}
    reads = {place: tuple(index[name] for name in state.refs if name in index) for place, state in enumerate(calls)}

    def described(place: int) -> tuple[str, dict[str, Fact]]:
        state = calls[place]
        operands = [start.nodes[name] for name in state.refs if name in start.nodes]
        constants = sum(bool(item.kind) for item in operands)
        if not operands:
            return _edge_name(state.target), {}
        shapes = [item.shape for item in operands]
        found = _shape_facts(shapes, state.shape, operands[0].dtype, state.dtype)
        return _edge_name(state.target), {**found, "constants": constants, "readers": len(start.users[state.name])}

    here = [index[node]] if node in index else []
    return _place("aten", here, reads, described, facts or {})


def _edge_name(target: str) -> str:
    """``quantize`` for ``quantized_decomposed.quantize_per_tensor.default``, ``cat`` for ``aten.cat.default``."""
    name = target.split(".")[1] if target.count(".") else target
    return name.split("_per_", 1)[0] if target.startswith("quantized_decomposed.") else name.removesuffix("_copy")


def seen_place(facts: Mapping[str, Fact]) -> Place:
    """A place of which nothing but what was seen is known: no operators."""
    return Place(graph="aten", operators=(), here=(), facts=dict(facts))


def _numbers(attributes: Mapping[str, Any]) -> Iterable[tuple[str, Fact]]:
    """Attributes of a node that are numbers or words; of lists of numbers the largest."""
    for name, value in attributes.items():
        if isinstance(value, bool):
            yield name, int(value)
        elif isinstance(value, (int, float, str)):
            yield name, value
        elif isinstance(value, (list, tuple)) and value and all(isinstance(item, (int, float)) for item in value):
            yield name, max(value)


def _by_factors(attributes: Mapping[str, Any], sizes: Sequence[int], results: Sequence[int]) -> dict[str, Fact]:
    """Facts of an upsample, if it is given factors: drawn, or as the last argument of a captured call."""
    factors = attributes.get("factors") or (attributes.get("args") or [None])[-1]
    if not isinstance(factors, (list, tuple)) or len(factors) != len(sizes):
        return {}
    axes = zip(sizes, results, factors, strict=True)
    doubled = any(result in (size, 2 * size) and result != size * factor for size, result, factor in axes)
    return {"factor": max(factors), "doubled": int(doubled)}


def _place(
    kind: GraphKind,
    here: Sequence[int],
    reads: Reads,
    described: Callable[[int], tuple[str, dict[str, Fact]]],
    facts: Mapping[str, Fact],
    *,
    whole: bool = False,
) -> Place | None:
    here = [index for index in dict.fromkeys(here) if index in reads]
    if not here:
        return None
    users: dict[int, list[int]] = {}
    for index, sources in reads.items():
        for source in sources:
            users.setdefault(source, []).append(index)
    near = set(reads)
    if not whole:
        above = _reached(here, reads, UP)
        # siblings count: what else reads an operand of the place's own ancestors
        near = above | _reached([*here, *_reached(here, reads, 2)], users, DOWN)
    order = sorted(near)
    number = {index: place for place, index in enumerate(order)}
    operators = []
    for index in order:
        op, found = described(index)
        sources = tuple(number[source] for source in reads[index] if source in number)
        operators.append(PlacedOperator(op=op, facts=found, reads=sources))
    return Place(graph=kind, operators=tuple(operators), here=tuple(number[index] for index in here), facts=dict(facts))


def _reached(start: Iterable[int], edges: Mapping[int, Sequence[int]], distance: int) -> set[int]:
    found = set(start)
    edge = list(found)
    for _ in range(distance):
        edge = [other for index in edge for other in edges.get(index, ()) if other not in found]
        found |= set(edge)
    return found


def tosa_facts(block: TosaBlock, operator: TosaOperator) -> dict[str, Fact]:
    """The facts of one TOSA operator."""
    tensors = [block.tensors[name] for name in operator.inputs]
    data = [item for item in tensors if item.dtype != SHAPE]
    constants = [item for item in data if item.data is not None]
    operands = [item for item in data if item.data is None] or data[:1]
    result = block.tensors[operator.outputs[0]] if operator.outputs else None
    if not operands or result is None:
        return {}
    found = _shape_facts(
        [item.shape for item in operands], result.shape, operands[0].dtype.lower(), result.dtype.lower()
    )
    found |= {
        "lead": data[0].elements,
        "constants": len(constants),
        "readers": len(block.readers(result.name)),
        "output": int(result.name in block.outputs),
        "input": int(any(item.name in block.inputs for item in operands)),
    }
    if operator.op in ("ADD", "SUB"):
        found |= _factor_facts(block, operator)
    if operator.op == "RESCALE":
        found |= {"scales": data[1].elements, "wide": int("int32" in (found["dtype"], found["out_dtype"]))}
    if operator.op in _WINDOWS:
        found |= _window_facts(operator, data, operands[0].shape, result.shape)
    if operator.op == "TRANSPOSE":
        found["undoes"] = int(_undoes(block, operator))
    axis = operator.attributes.get("Axis")
    if isinstance(axis, int):
        shape = operands[0].shape
        found |= {"axis": axis, "back": axis - len(shape), "along": shape[axis]}
    return found | _movement_facts(operator, tensors, operands[0].shape, result.shape)


def _shape_facts(
    operands: Sequence[Sequence[int]], result: Sequence[int], dtype: str, out_dtype: str
) -> dict[str, Fact]:
    shape = operands[0]
    return {
        "rank": len(shape),
        "out_rank": len(result),
        "dtype": dtype,
        "out_dtype": out_dtype,
        "batch": math.prod(shape[:-3]),
        "out_batch": math.prod(result[:-3]),
        "rows": shape[-3] if len(shape) > 2 else 1,
        "depth": shape[-1] if shape else 1,
        "out_depth": result[-1] if result else 1,
        "elements": math.prod(shape),
        "out_elements": math.prod(result),
        "kept": int(math.prod(shape) == math.prod(result)),
        "ones": sum(size == 1 for size in shape),
        "operands": len(operands),
        "broadcast": int(any(tuple(other) != tuple(shape) for other in operands[1:])),
        "lone": int(1 in (sizes := {math.prod(operand) for operand in operands}) and len(sizes) > 1),
    }


def _factor_facts(block: TosaBlock, operator: TosaOperator) -> dict[str, Fact]:
    """Of two operands that are rescaled by whole factors; nothing of others."""
    factors = [_whole_factor(block, name) for name in operator.inputs]
    if len(factors) != 2 or not all(factors):
        return {}
    return {"factor": max(factors), "factors_alike": int(factors[0] == factors[1])}


def _whole_factor(block: TosaBlock, name: str) -> int:
    """By how much a RESCALE made a tensor; 0 if none did, by several factors or by none that is whole."""
    producer = block.producers.get(name)
    if producer is None or producer.op != "RESCALE":
        return 0
    pair = [block.tensors[operand] for operand in producer.inputs[1:3]]
    if any(item.data is None or item.elements != 1 for item in pair):
        return 0
    multiplier, shift = (int(item.values().ravel()[0]) for item in pair)
    return 0 if shift < 0 or multiplier % (1 << shift) else multiplier >> shift


def _window_facts(
    operator: TosaOperator, data: Sequence[TosaTensor], shape: Sequence[int], result: Sequence[int]
) -> dict[str, Fact]:
    attributes = operator.attributes
    kernel = tuple(attributes.get("Kernel", ()))
    multiplier = 1
    if not kernel and len(data) > 1:
        weights = data[1].shape
        kernel = weights[:2] if operator.op == "DEPTHWISE_CONV2D" else weights[1:-1]
        multiplier = weights[-1] if operator.op == "DEPTHWISE_CONV2D" else 1
    strides = tuple(attributes.get("Stride", ()))
    dilations = tuple(attributes.get("Dilation", ())) or (1,) * len(kernel)
    pad = tuple(attributes.get("Pad", attributes.get("OutPad", ())))
    plane: dict[str, Fact] = {}
    if operator.op == "CONV3D":
        plane["planewise"] = int(kernel[0] == strides[0] == 1 and not any(pad[:2]))
    if operator.op == "TRANSPOSE_CONV2D":
        plane["turned_pad"] = max(size - 1 + out for size, out in zip(kernel, pad[::2], strict=True))
    return {
        **plane,
        "kernel": max(kernel, default=1),
        "taps": math.prod(kernel),
        "stride": max(strides, default=1),
        "dilation": max(dilations, default=1),
        "pad": sum(pad),
        "pad_before": max((0, *pad[::2])),
        "channels": shape[-1],
        "out_channels": result[-1],
        "multiplier": multiplier,
        "skips": int(
            operator.op != "TRANSPOSE_CONV2D"
            and any(
                size > 1 and step > (taps - 1) * apart + 1
                for size, step, taps, apart in zip(result[1:-1], strides, kernel, dilations, strict=False)
            )
        ),
        "narrow": min(result[1:-1], default=1),
        "narrow_stride": max((step for step, size in zip(strides, result[1:-1], strict=False) if size == 1), default=0),
    }


def _undoes(block: TosaBlock, operator: TosaOperator) -> bool:
    """Does a TRANSPOSE, with those directly in front of it that nothing else reads, put every axis back?"""
    order = tuple(operator.attributes.get("Perms", ()))
    before = block.producers.get(operator.inputs[0])
    while before is not None and before.op == "TRANSPOSE" and len(block.readers(before.outputs[0])) == 1:
        perms = before.attributes["Perms"]
        order = tuple(perms[axis] for axis in order)
        if order == tuple(sorted(order)):
            return True
        before = block.producers.get(before.inputs[0])
    return False


def _movement_facts(
    operator: TosaOperator, tensors: Sequence[TosaTensor], shape: tuple[int, ...], result: tuple[int, ...]
) -> dict[str, Fact]:
    if operator.op == "RESHAPE":
        last_kept = int(bool(shape) and bool(result) and shape[-1] == result[-1])
        ones_only, front_only = (int(part(shape) == part(result)) for part in (_without_ones, _without_front))
        return {"last_kept": last_kept, "ones_only": ones_only, "front_only": front_only}
    if operator.op == "TRANSPOSE":
        order = [axis for axis in operator.attributes.get("Perms", ()) if shape[axis] > 1]
        return {
            "moved": sum(one > other for one, other in pairwise(order)),
            "moves_first": _moves_first(order, shape),
            "last_kept": int(not order or order[-1] == max(order)),
            "narrower": int(bool(shape) and result[-1] < shape[-1]),
        }
    if operator.op in ("SLICE", "PAD", "TILE"):
        cut = [axis - len(shape) for axis, (one, other) in enumerate(zip(shape, result, strict=True)) if one != other]
        found: dict[str, Fact] = {"cut": len(cut), "outer": min(cut, default=0), "inner": max(cut, default=0)}
        values = tensors[1].values().ravel() if len(tensors) > 1 and tensors[1].data is not None else ()
        if operator.op == "TILE":
            return found | {"times": max((int(item) for item in values), default=1)}
        starts = values if operator.op == "SLICE" else values[::2]
        return found | {"behind": int(any(start > 0 for start in starts))} if len(values) else found
    if operator.op == "RESIZE" and len(tensors) > 1 and tensors[1].data is not None:
        return {"unlike": int(grows_unlike(tensors[1].values()))}
    return {}


def _moves_first(order: Sequence[int], shape: Sequence[int]) -> int:
    """Does the outermost axis of more than one element come elsewhere?"""
    first = next((axis for axis, size in enumerate(shape) if size > 1), None)
    return int(bool(order) and order[0] != first)


def _without_ones(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(size for size in shape if size != 1)


def _without_front(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(dropwhile(lambda size: size == 1, shape))
