"""What was compiled and computed once, kept in a folder as MessagePack (no pickle).

One file for each compiled payload, keyed by the flatbuffer and the way Vela was called, and one for
each reference result, keyed by the flatbuffer and its inputs' names. The versions of Vela and of
tosa-tools are part of the keys. A file is complete or absent: it is renamed into place.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.compat.releases import installed

S = TypeVar("S", bound=msgspec.Struct)


class StoredArray(msgspec.Struct, frozen=True):
    """An array as data."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes

    @property
    def array(self) -> NDArray[Any]:
        return np.frombuffer(self.data, self.dtype).reshape(self.shape)


class Compiled(msgspec.Struct, frozen=True):
    """Vela's raw ``.npz`` as arrays, or the line that says why there is none."""

    arrays: dict[str, StoredArray] = {}
    refused: str = ""
    seconds: float = 0.0

    @property
    def payload(self) -> dict[str, NDArray[Any]]:
        return {name: stored.array for name, stored in self.arrays.items()}


class Call(msgspec.Struct, frozen=True):
    """One set of inputs with what the reference model returned; ``refused`` says why it did not."""

    inputs: tuple[StoredArray, ...]
    outputs: tuple[StoredArray, ...] = ()
    refused: str = ""


class Reference(msgspec.Struct, frozen=True):
    """All calls of one program."""

    calls: tuple[Call, ...]


def stored(array: NDArray[Any]) -> StoredArray:
    """An array as data, C order."""
    return StoredArray(array.dtype.str, array.shape, np.ascontiguousarray(array).tobytes())


class Store:
    """The folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def load(self, key: str, kind: type[S]) -> S | None:
        """What was kept under a key."""
        try:
            return msgspec.msgpack.decode(self._file(key).read_bytes(), type=kind)
        except FileNotFoundError:
            return None

    def save(self, key: str, value: msgspec.Struct) -> None:
        """Keep something."""
        file = self._file(key)
        file.parent.mkdir(exist_ok=True)
        temporary = file.with_suffix(f".{os.getpid()}")
        temporary.write_bytes(msgspec.msgpack.encode(value))
        temporary.replace(file)

    def __contains__(self, key: str) -> bool:
        return self._file(key).exists()

    def _file(self, key: str) -> Path:
        return self.folder / key[:2] / key


def key_of(kind: str, tosa: bytes, *words: object) -> str:
    """A key of a flatbuffer and the words that say what was done with it."""
    package = {"compiled": "ethos-u-vela", "reference": "tosa-tools"}.get(kind, "executorch")
    text = " ".join([kind, installed().get(package, ""), hashlib.sha256(tosa).hexdigest(), *map(str, words)])
    return hashlib.sha256(text.encode()).hexdigest()


def arrays_of(npz: Mapping[str, Any]) -> dict[str, StoredArray]:
    """The numeric arrays of a raw ``.npz`` (Vela also stores quantization as Python objects)."""
    return {name: stored(np.asarray(npz[name])) for name in npz if not name.endswith("quantization")}
