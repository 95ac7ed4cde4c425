"""Which inputs make a product of int32 numbers leave 32 bits.

TOSA 1.0 keeps the low 32 bits of such a product (MUL), and the reference model does so without a word, while it refuses
sums and differences that overflow. The NPU rescales the whole product. ExecuTorch scales its operands so that no
product overflows; a reducer that cuts the scaling away would end with this instead of what it began with.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from harness.artifacts.tosa import TosaBlock, TosaOperator, decode_tosa
from harness.case.arrays import Array
from harness.locate.divergence import Draw
from harness.locate.divergence.reference import all_values
from harness.pipeline.legs.tosa_reference import ReferenceModelError

_BOUNDS = np.iinfo(np.int32)


def fitting_products(tosa: bytes, draws: Sequence[Draw]) -> tuple[Draw, ...]:
    """The inputs of a TOSA graph on which every int32 product stays within 32 bits."""
    products = _products(decode_tosa(tosa).main)
    return tuple(draw for draw in draws if not (products and _one_leaves(tosa, draw.arrays, products)))


def _one_leaves(tosa: bytes, arrays: Sequence[Array], products: Sequence[tuple[str, str]]) -> bool:
    try:
        values = all_values(tosa, arrays)
    except (ReferenceModelError, ValueError):  # judged as undefined where the graph itself is run
        return False
    return any(_leaves(*(values[name].astype(np.int64) for name in names)) for names in products)


def _products(block: TosaBlock) -> list[tuple[str, str]]:
    """The operands of products that are not shifted: a shifted one is taken whole before its shift."""
    return [
        (operator.inputs[0], operator.inputs[1])
        for operator in block.operators
        if operator.op == "MUL" and block.tensors[operator.inputs[0]].dtype == "INT32" and not _shifted(block, operator)
    ]


def _shifted(block: TosaBlock, operator: TosaOperator) -> bool:
    shift = block.tensors[operator.inputs[2]] if len(operator.inputs) > 2 else None
    return shift is not None and shift.data is not None and bool(shift.values().any())


def _leaves(first: Array, second: Array) -> bool:
    product = first * second
    return bool(((product < _BOUNDS.min) | (product > _BOUNDS.max)).any())
