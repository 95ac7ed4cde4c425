"""The ``.npz`` that ``vela --output-format raw`` writes, as a ``VelaPayload``.

It holds what a delegate's payload holds, and the size of the fast scratch besides: ``cmd_data``
and ``weight_data`` are byte strings (zero axes), ``scratch_shape`` and ``scratch_fast_shape``
have one size each, and ``input_…`` and ``output_…`` have ``shape`` [n, 6], ``elem_size``,
``offset`` and ``region`` [n]. Vela's older core (``--debug-force-legacy-core``) writes shapes of
four sizes. Other arrays are not read; some of them are pickles.

Invariants: nothing is unpickled. An array is read only after its size in the archive was added
to a limit, and only if its header asks for no more bytes than the archive has for it.

Fact: write_rawdata_output_from_model in ethosu/vela/rawdata_writer.py of ethos-u-vela 5.1.0.
"""

from __future__ import annotations

import io
import math
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from harness.artifacts.vela import COMMAND_MAGIC, VelaIO, VelaPayload
from harness.case.errors import BadInput

MAGIC = b"PK\x03\x04"
MOST_BYTES = 1 << 29
"""Bytes that all arrays of one file may have together; commands end at 16 MiB, weights far below this."""
_WHERE = "Vela .npz"
_REMEDY = "write it with vela --output-format raw"
_SCALARS = ("cmd_data", "weight_data", "scratch_shape", "scratch_fast_shape")
_NPY: Any = npy_format  # numpy gives its functions no types
_FIELDS = ("shape", "elem_size", "offset", "region")
_AXES = 6
_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    OSError,
    ValueError,
)
"""What zipfile raises on bytes that are no archive, or no longer one."""


def decode_npz(data: bytes) -> VelaPayload:
    """Read the bytes of a file.

    :raises BadInput: it is no such archive, is damaged or too large, or lacks a field, which is named.
    """
    wanted = {*_SCALARS, *(f"{side}_{name}" for side in ("input", "output") for name in _FIELDS)}
    arrays: dict[str, NDArray[Any]] = {}
    room = MOST_BYTES
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for item in archive.infolist():
                name = item.filename.removesuffix(".npy")
                if name not in wanted:
                    continue
                room -= item.file_size
                if room < 0:
                    raise _damaged(f"has more than {MOST_BYTES} bytes in its arrays, {name} among them")
                if item.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise _damaged(f"has {name} in compression method {item.compress_type}")
                with archive.open(item) as member:
                    arrays[name] = _array(name, member.read(item.file_size))  # no more, whatever it unpacks to
    except _BROKEN as error:
        # zipfile quotes what it found in the file, at any length
        raise _damaged(f"cannot be read ({str(error)[:80] or type(error).__name__})") from None
    return payload_of_npz(arrays)


def payload_of_npz(arrays: Mapping[str, Any]) -> VelaPayload:
    """The payload in arrays by name: of a file, or as Vela has them in memory.

    :raises BadInput: naming the field that is missing or is no such array.
    """
    commands = _bytes(arrays, "cmd_data")
    if commands[:4] not in COMMAND_MAGIC:
        raise _damaged(f"has cmd_data that begins with {commands[:4]!r}, not with COP1")
    return VelaPayload(
        commands=commands,
        weights=_bytes(arrays, "weight_data"),
        scratch_size=_size(arrays, "scratch_shape"),
        inputs=_table(arrays, "input"),
        outputs=_table(arrays, "output"),
        fast_scratch_size=_size(arrays, "scratch_fast_shape") if _has(arrays, "scratch_fast_shape") else 0,
    )


def _array(name: str, member: bytes) -> NDArray[Any]:
    """One ``.npy``: the header, then as many bytes as it asks for."""
    stream = io.BytesIO(member)
    try:
        version = _NPY.read_magic(stream)
        read_header = _NPY.read_array_header_1_0 if version == (1, 0) else _NPY.read_array_header_2_0
        shape, columns_first, dtype = read_header(stream)
    except (ValueError, SyntaxError, TypeError, OverflowError, RecursionError, MemoryError):
        raise _damaged(f"has an array {name} without a readable header") from None
    if dtype.hasobject:
        raise _damaged(f"has pickled objects in {name}, which are not read")
    left = len(member) - stream.tell()
    if any(size < 0 for size in shape) or math.prod(shape) * dtype.itemsize != left:
        raise _damaged(f"has an array {name} of shape {list(shape)[:8]} and type {dtype} in {left} bytes")
    return np.ndarray(shape, dtype, member, stream.tell(), order="F" if columns_first else "C")


def _has(arrays: Mapping[str, Any], name: str) -> bool:
    try:
        return name in arrays
    except TypeError:
        return False


def _field(arrays: Mapping[str, Any], name: str) -> NDArray[Any]:
    if not _has(arrays, name):
        raise _damaged(f"has no array {name}")
    try:
        return np.asarray(arrays[name])
    except ValueError:
        raise _damaged(f"has no readable array {name}") from None


def _bytes(arrays: Mapping[str, Any], name: str) -> bytes:
    array = _field(arrays, name)
    if array.dtype.kind not in "SV" and array.dtype.itemsize != 1:
        raise _damaged(f"has {name} of type {array.dtype}, not bytes")
    data = array.tobytes()
    # numpy has no byte string of no bytes: an empty one is stored as a single zero
    return b"" if array.dtype.kind == "S" and data == b"\0" else data


def _integers(arrays: Mapping[str, Any], name: str, axes: int) -> NDArray[np.int64]:
    array = _field(arrays, name)
    if array.size == 0:  # of an empty list numpy makes floating point
        return np.empty((0, _AXES)[:axes], np.int64)
    if array.dtype.kind not in "iu" or array.ndim != axes or (axes == 2 and array.shape[1] > _AXES):
        raise _damaged(f"has {name} of type {array.dtype} and shape {list(array.shape)}")
    return array.astype(np.int64)


def _size(arrays: Mapping[str, Any], name: str) -> int:
    sizes = _integers(arrays, name, 1).tolist()
    if len(sizes) != 1 or sizes[0] < 0:
        raise _damaged(f"has {name} {sizes[:8]} where one size is expected")
    return int(sizes[0])


def _table(arrays: Mapping[str, Any], side: str) -> tuple[VelaIO, ...]:
    shapes, *columns = (_integers(arrays, f"{side}_{name}", 2 if name == "shape" else 1).tolist() for name in _FIELDS)
    for name, column in zip(_FIELDS[1:], columns, strict=True):
        if len(column) != len(shapes):
            raise _damaged(f"has {len(column)} entries in {side}_{name} and {len(shapes)} in {side}_shape")
    table = tuple(
        VelaIO((1,) * (_AXES - len(shape)) + tuple(shape), *row) for shape, *row in zip(shapes, *columns, strict=True)
    )
    for index, entry in enumerate(table):
        if any(size < 0 for size in entry.shape) or entry.element_size <= 0 or entry.offset < 0:
            raise _damaged(f"says that {side} {index} is {entry}")
    return table


def _damaged(problem: str) -> BadInput:
    return BadInput(_WHERE, problem, _REMEDY)
