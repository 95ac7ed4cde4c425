"""Hand-made TOSA blocks and pass traces, as small as a test needs them."""

import numpy as np

from harness.artifacts.tosa import TosaBlock, TosaOperator, TosaTensor
from harness.compat.snapshots import NodeState, PassTrace, Ref, Snapshot

_NUMPY = {"INT8": np.int8, "INT16": np.int16, "INT32": np.int32, "FP32": np.float32, "SHAPE": np.int64}


def value(name, shape=(1, 4), dtype="INT8"):
    return TosaTensor(name, tuple(shape), dtype)


def constant(name, values, dtype="INT8"):
    array = np.asarray(values, dtype=_NUMPY[dtype])
    return TosaTensor(name, array.shape, dtype, array.tobytes())


def rescale(
    name, source, multiplier, shift, zero_in=0, zero_out=0, to="INT8", start="INT8", shape=(1, 4), **attributes
):
    """A RESCALE with its parameter tensors and its result."""
    multipliers, shifts = np.atleast_1d(multiplier), np.atleast_1d(shift)
    tensors = (
        constant(f"{name}_multipliers", multipliers, "INT32"),
        constant(f"{name}_shifts", shifts),
        constant(f"{name}_input_zp", [zero_in], start),
        constant(f"{name}_output_zp", [zero_out], to),
        value(name, shape, to),
    )
    names = (source, *(tensor.name for tensor in tensors[:4]))
    return ("RESCALE", names, (name,), {"Scale32": True, "RoundingMode": 1, **attributes}), tensors


def block(inputs, outputs, operators, tensors):
    """Operators are (op, inputs, outputs, attributes)."""
    numbered = tuple(TosaOperator(index, *item) for index, item in enumerate(operators))
    return TosaBlock("main", tuple(inputs), tuple(outputs), numbered, {item.name: item for item in tensors})


def call(name, target, *args, origin=None, **words):
    """A call node; strings among the arguments that begin with ``%`` are references."""
    return NodeState(name, "call_function", target, tuple(map(_argument, args)), origin=origin or name, **words)


def placeholder(name, values=None, **words):
    array = None if values is None else np.asarray(values)
    kind = "" if values is None else "buffer"
    return NodeState(
        name, "placeholder", name, origin=name, value=array, kind=kind, lifted=name if kind else "", **words
    )


def quantize(name, source, scale, zero_point, qmin=-128, qmax=127, dtype="int8"):
    target = "quantized_decomposed.quantize_per_tensor.default"
    return call(name, target, source, scale, zero_point, qmin, qmax, f"torch.{dtype}")


def dequantize(name, source, scale, zero_point, qmin=-128, qmax=127, dtype="int8"):
    target = "quantized_decomposed.dequantize_per_tensor.default"
    return call(name, target, source, scale, zero_point, qmin, qmax, f"torch.{dtype}")


def output(*names):
    return NodeState("output", "output", "output", (tuple(Ref(name) for name in names),))


def snapshot(*nodes, index=-1, name="start"):
    return Snapshot(index, name, {node.name: node for node in nodes})


def trace(start, *later, passes=None, finished=True):
    """``later`` are (pass name, nodes)."""
    snapshots = tuple(snapshot(*nodes, index=index, name=name) for index, (name, nodes) in enumerate(later))
    names = tuple(name for name, _ in later) if passes is None else tuple(passes)
    return PassTrace(names, snapshot(*start), snapshots, finished)


def _argument(item):
    if isinstance(item, str) and item.startswith("%"):
        return Ref(item[1:])
    return tuple(map(_argument, item)) if isinstance(item, (list, tuple)) else item
