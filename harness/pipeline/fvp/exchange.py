"""The exchange folder: program and inputs in, outputs back.

All files are raw bytes: a tensor's elements in memory order, which for channels-last (dim order
0, 2, 3, 1) is NHWC. Shape, dtype and dim order of an output are not in its file: they are the
exported program's. The runner checks the size of inputs (``prepare_input_tensors``); armdiff checks
the size of outputs to the byte.

Invariants: outputs of an earlier run are deleted before the next one, so that what is read was
written by it; the folder's path is short and it is removed at the end.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from harness.case.arrays import Array
from harness.evidence.observation import ValueType
from harness.pipeline.fvp.command import OUTPUT, PROGRAM, input_name, output_name


class BadOutput(RuntimeError):
    """An output file is missing, too short, too long or not promised."""


@contextmanager
def exchange_folder(program: bytes) -> Iterator[Path]:
    """A new folder that holds a ``.pte``, for the length of a context."""
    with tempfile.TemporaryDirectory(prefix="fvp-") as name:
        folder = Path(name)
        (folder / PROGRAM).write_bytes(program)
        yield folder


def write_inputs(folder: Path, arrays: Sequence[Array], types: Sequence[ValueType]) -> None:
    """Write the inputs of a run and delete the outputs of the one before.

    :param arrays: one array an input, in logical (NCHW) order.
    :param types: what the program promises to take.
    :raises ValueError: an array is not of its promised type (a defect of armdiff, not of the program).
    """
    for stale in folder.glob(f"{OUTPUT}-*"):
        stale.unlink()
    for index, (array, wanted) in enumerate(zip(arrays, types, strict=True)):
        if array.shape != wanted.shape or array.dtype != np.dtype(wanted.dtype):
            raise ValueError(
                f"input {index} is {array.dtype} {list(array.shape)}, the program takes {wanted.dtype} "
                f"{list(wanted.shape)}"
            )
        stored = np.ascontiguousarray(array.transpose(_order(wanted)))
        (folder / input_name(index)).write_bytes(stored.tobytes())


def read_outputs(folder: Path, types: Sequence[ValueType]) -> tuple[Array, ...]:
    """The outputs of a run, each in logical (NCHW) order.

    :param types: what the program promises.
    :raises BadOutput: a file is missing, has another size, or was not promised.
    """
    outputs = []
    for index, promised in enumerate(types):
        file, dtype = folder / output_name(index), np.dtype(promised.dtype)
        wanted = int(np.prod(promised.shape, dtype=np.int64)) * dtype.itemsize
        what = f"output {index} ({promised.dtype} {list(promised.shape)})"
        if not file.is_file():
            raise BadOutput(f"the runner wrote no {what}: {file.name} is missing")
        data = file.read_bytes()
        if len(data) != wanted:
            fault = "truncated" if len(data) < wanted else "too long"
            raise BadOutput(f"the runner wrote a {fault} {what}: {file.name} has {len(data)} bytes, not {wanted}")
        order = _order(promised)
        stored = np.frombuffer(data, dtype).reshape([promised.shape[axis] for axis in order])
        inverse = [order.index(axis) for axis in range(len(order))]
        outputs.append(np.ascontiguousarray(stored.transpose(inverse)).reshape(promised.shape))
    extra = sorted({file.name for file in folder.glob(f"{OUTPUT}-*")} - {output_name(i) for i in range(len(types))})
    if extra:
        raise BadOutput(f"the runner wrote {', '.join(extra)}, and the program promises {len(types)} outputs")
    return tuple(outputs)


def _order(value: ValueType) -> tuple[int, ...]:
    """Axes from the slowest to the fastest in memory; strides that do not tell stand for C order."""
    return value.dim_order if len(value.dim_order) == len(value.shape) else tuple(range(len(value.shape)))
