"""A TOSA graph as text: what a maintainer of Vela reads before opening the file.

One line an operator, in the file's order: result with dtype and shape, operator, operands, attributes. A constant is
shown where it is read: a single value as it is, anything larger by dtype and shape. Values have short names: inputs
``in0``…, results ``t0``…, outputs ``out0``…
"""

from __future__ import annotations

from collections.abc import Iterator

from harness.artifacts.tosa import TosaBlock, TosaOperator, decode_tosa
from harness.case.errors import BadInput

MOST_LINES = 20


def tosa_text(flatbuffer: bytes) -> str:
    """The lines of a graph, the end of a long one left out; empty if it cannot be read."""
    try:
        lines = list(_lines(decode_tosa(flatbuffer).main))
    except BadInput:  # a report is worth writing without it
        return ""
    more = len(lines) - MOST_LINES
    return "\n".join(lines if more <= 0 else [*lines[: MOST_LINES - 1], f"… {more + 1} more lines"])


def _lines(block: TosaBlock) -> Iterator[str]:
    names = {name: f"in{place}" for place, name in enumerate(block.inputs)}
    operators = [item for item in block.operators if not item.op.startswith("CONST")]
    for place, name in enumerate(name for item in operators for name in item.outputs):
        names.setdefault(name, f"t{place}")
    names |= {name: f"out{place}" for place, name in enumerate(block.outputs) if name not in block.inputs}
    for name in block.inputs:
        yield f"{names[name]}: {_type(block, name)}"
    for item in operators:
        results = ", ".join(f"{names[name]}: {_type(block, name)}" for name in item.outputs)
        operands = ", ".join(names.get(name) or _constant(block, name) for name in item.inputs)
        yield f"{results} = {item.op}({operands}){_attributes(item)}"


def _type(block: TosaBlock, name: str) -> str:
    tensor = block.tensors[name]
    return f"{tensor.dtype.lower()} {list(tensor.shape)}"


def _constant(block: TosaBlock, name: str) -> str:
    """A constant: its values if they are few, else its dtype and shape."""
    tensor = block.tensors[name]
    if tensor.data is not None and tensor.elements <= (8 if tensor.dtype == "SHAPE" else 1):
        values = tensor.values().reshape(-1).tolist()
        return str(values if tensor.dtype == "SHAPE" else values[0])
    return f"{tensor.dtype.lower()} {list(tensor.shape)}"


def _attributes(item: TosaOperator) -> str:
    held = [f"{name}={value}" for name, value in item.attributes.items() if value not in (None, [], ())]
    return f" {{{', '.join(held)}}}" if held else ""
