"""Traits of operators: which only move elements, which write in place, what quantize and dequantize are called.

One table for each language that a graph is in. Everything that looks through operators, from the reading of a domain
to the blame of a constant, takes its set from here, so that an operator is entered once.

ATen operators are named without their overload (``aten.view``), TOSA operators as in a flatbuffer (``RESHAPE``).
"""

from __future__ import annotations

QUANTIZE = "quantized_decomposed.quantize_per_tensor"
DEQUANTIZE = "quantized_decomposed.dequantize_per_tensor"
DEQUANTIZE_CHANNELS = "quantized_decomposed.dequantize_per_channel"

ATEN_ARRANGING = frozenset(
    f"aten.{name}"
    for name in (
        *("view", "reshape", "permute", "transpose", "squeeze", "unsqueeze", "expand", "flatten", "slice", "select"),
        *("clone", "contiguous", "detach", "alias", "repeat", "t", "unbind", "narrow", "expand_as", "view_as", "tile"),
        *("_unsafe_view", "flip", "roll", "movedim", "moveaxis", "swapaxes", "unflatten", "detach_", "lift_fresh_copy"),
        *("split", "split_with_sizes", "chunk", "pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "unfold"),
        *("repeat_interleave", "as_strided", "diagonal", "squeeze_", "unsqueeze_"),
        *(f"{name}_copy" for name in ("squeeze", "unsqueeze", "expand", "view", "select", "slice", "split")),
        *(f"{name}_copy" for name in ("transpose", "permute", "t", "alias", "detach", "unfold", "as_strided")),
    )
)
"""ATen operators that return elements of their first operand, and nothing else."""
ATEN_VIEWS = frozenset(
    f"aten.{name}"
    for name in (
        *("view", "reshape", "permute", "transpose", "squeeze", "unsqueeze", "expand", "flatten", "slice", "select"),
        *("detach", "alias", "t", "unbind", "narrow", "expand_as", "view_as", "_unsafe_view", "movedim", "moveaxis"),
        *("swapaxes", "unflatten", "split", "split_with_sizes", "chunk", "unfold", "as_strided", "diagonal"),
    )
)
"""Those among them whose results share their operand's memory: who writes into a result writes into the operand."""
ATEN_MOVING = ATEN_ARRANGING | frozenset(
    f"aten.{name}"
    for name in (
        *("cat", "concat", "concatenate", "stack", "pad", "constant_pad_nd", "tril", "triu", "select_scatter"),
        *("slice_scatter", "scatter", "gather", "index", "index_select", "index_copy", "embedding", "take_along_dim"),
        *("dropout", "dropout_", "upsample_nearest2d", "relu", "relu_", "amax", "amin", "max_pool1d", "max_pool2d"),
        *("max_pool2d_with_indices", "adaptive_max_pool2d"),
    )
)
"""Also those that choose among operands' elements, or put in zeros: max and relu return one of them unchanged."""

ATEN_WRITING_AT = frozenset(
    f"aten.{name}"
    for name in (
        "index_put",
        "index_put_",
        "index_copy",
        "index_copy_",
        "scatter",
        "scatter_",
        "scatter_add",
        "index_add",
    )
)
"""ATen operators that write at indices: an index that occurs twice leaves open which value stays (TOSA's SCATTER calls
the whole result unpredictable)."""

TOSA_EVERYWHERE = frozenset({"RESCALE"})
"""TOSA operators that tell nothing of a program, since quantized ones have them everywhere."""
TOSA_ARRANGING = frozenset({"RESHAPE", "TRANSPOSE"})
"""TOSA operators that keep every element."""
TOSA_PICKING = TOSA_ARRANGING | {"SLICE", "TILE", "REVERSE", "GATHER", "IDENTITY"}
"""Also those that leave out or repeat elements of one operand."""
TOSA_MOVING = TOSA_PICKING | {"CONCAT", "PAD"}
"""Also those that put elements of others beside them: all TOSA operators that compute nothing."""
TOSA_IN_PLACE = TOSA_MOVING | {"RESCALE", "CLAMP", "CAST"}
"""Also those that may write a result over their operand."""
