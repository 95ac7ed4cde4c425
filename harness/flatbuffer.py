"""Read what a TOSA flatbuffer says about itself, with the schema classes of tosa-tools.

Only names and counts of the main block's inputs and outputs so far; oracles about artifacts build
on this. A damaged flatbuffer raises ``BadInput`` instead of whatever the generated accessors do.
"""

from __future__ import annotations

import struct
from typing import Any

from harness.errors import BadInput

IDENTIFIER = b"TOSA"


def input_names(tosa: bytes) -> tuple[str, ...]:
    """Names of the main block's inputs, in order."""
    return _names(tosa, "Inputs")


def output_names(tosa: bytes) -> tuple[str, ...]:
    """Names of the main block's outputs, in order."""
    return _names(tosa, "Outputs")


def _names(tosa: bytes, field: str) -> tuple[str, ...]:
    try:
        block = _main_block(tosa)
        count = getattr(block, f"{field}Length")()
        return tuple(getattr(block, field)(index).decode() for index in range(count))
    except (struct.error, IndexError, AttributeError, TypeError, UnicodeDecodeError, ValueError) as error:
        raise BadInput(
            "TOSA flatbuffer", f"is damaged ({type(error).__name__}: {error})", "compile it again"
        ) from error


def _main_block(tosa: bytes) -> Any:
    from tosa.TosaGraph import TosaGraph

    if tosa[4:8] != IDENTIFIER:
        raise BadInput("TOSA flatbuffer", f"begins with {tosa[:8]!r}", "give the bytes of a .tosa file")
    return TosaGraph.GetRootAs(tosa, 0).Regions(0).Blocks(0)
