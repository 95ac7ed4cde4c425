"""Between a program and its flatbuffer, in both directions.

``program_of`` reads what campaigns, the corpus and upstream's suite leave behind: one block, integers only. Constants
that many elements have become explicit values; nothing guesses a rule behind them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from harness.artifacts.tosa import TosaBlock, TosaTensor, decode_tosa
from harness.case.errors import BadInput
from harness.compat.tosa_writer import WrittenOperator, WrittenTensor, write_tosa
from harness.locate.divergence.draws import indexed_rows
from harness.tosa.program import BITS, SHAPE, Operator, Program, Tensor, problem

_STORED = {"BOOL": "?", "INT8": "<i1", "INT16": "<i2", "INT32": "<i4", SHAPE: "<i8"}
_CONSTANTS = ("CONST", "CONST_SHAPE")


def to_flatbuffer(program: Program) -> bytes:
    """The program as TOSA 1.0."""
    tensors = [
        WrittenTensor(tensor.name, tensor.shape, tensor.dtype, stored(tensor.values(), tensor.dtype))
        if tensor.constant
        else WrittenTensor(tensor.name, tensor.shape, tensor.dtype, None)
        for tensor in program.tensors
    ]
    steps = [WrittenOperator(item.op, item.inputs, item.outputs, item.attributes) for item in program.operators]
    return write_tosa(tensors, steps, program.inputs, program.outputs)


def from_flatbuffer(tosa: bytes) -> Program:
    """A flatbuffer as a program.

    :raises BadInput: it is damaged, has several blocks (control flow), tensors that are not of integers, or is no
        program for what ``problem`` says of it: what the rest of the engine takes for granted holds of every program.
    """
    graph = decode_tosa(tosa)
    if len(graph.blocks) != 1:
        raise BadInput("TOSA flatbuffer", f"has {len(graph.blocks)} blocks", "give a graph without control flow")
    block = graph.main
    rows = indexed_rows(block)
    program = Program(
        tensors=tuple(_tensor(item, rows.get(item.name)) for item in _used(block)),
        operators=tuple(
            Operator(item.op, item.inputs, item.outputs, dict(item.attributes))
            for item in block.operators
            if item.op not in _CONSTANTS
        ),
        inputs=block.inputs,
        outputs=block.outputs,
    )
    if found := problem(program):
        raise BadInput("TOSA flatbuffer", f"is no program: {found}", "give a graph whose operators are in order")
    return program


def _used(block: TosaBlock) -> list[TosaTensor]:
    names = {name for item in block.operators for name in (*item.inputs, *item.outputs)}
    return [item for item in block.tensors.values() if item.name in names | set(block.inputs) | set(block.outputs)]


def _tensor(item: TosaTensor, rows: int | None) -> Tensor:
    """A tensor; an input of indices is confined to the rows that there are."""
    if item.dtype not in BITS:
        raise BadInput(
            f"TOSA tensor {item.name}", f"is {item.dtype}", "give a graph of integers: an Ethos-U has no other"
        )
    if item.data is None:
        return Tensor(item.name, item.shape, item.dtype, span=None if rows is None else (0, rows - 1))
    return Tensor(item.name, item.shape, item.dtype, tuple(int(value) for value in item.values().ravel()))


def stored(values: NDArray[np.int64], dtype: str) -> bytes:
    """Values as the schema stores them: int4 two a byte, int48 in six bytes."""
    flat = np.ascontiguousarray(values, np.int64).ravel()
    if dtype == "INT48":
        return flat.astype("<i8").view(np.uint8).reshape(-1, 8)[:, :6].tobytes()
    if dtype == "INT4":
        nibbles = (np.append(flat, 0) if len(flat) % 2 else flat).astype(np.uint8) & 15
        return (nibbles[0::2] | nibbles[1::2] << 4).tobytes()
    return flat.astype(_STORED[dtype]).tobytes()
