"""What Vela made of one delegate, as data: command words, weights, scratch, inputs and outputs.

Words: a *block* is a named piece of the payload; a *region* is the memory that an offset counts
in: 0 weights and constants, 1 scratch, which holds inputs and outputs as well, 2 fast scratch.
A block may be *external*: it holds a key, and the bytes are the program's named data.

Facts: ``vela_compile`` in backends/arm/arm_vela.py (header: 16-byte name, u32 length, one byte
external, 11 reserved; data padded to 16), VelaBinStream.cpp beside the runtime, which reads the
same, and section 1 of ETHOS_U_FACTS.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass

from harness.case.errors import BadInput

FIRST, LAST = "vela_bin_stream", "vela_end_stream"
SCRATCH = 1
ALIGNMENT = 16
_HEADER = struct.Struct("<16sIB11s")
_IO = struct.Struct("<9i")
_BLOCKS = ("cmd_data", "weight_data", "scratch_size", "inputs", "outputs")
COMMAND_MAGIC = (b"COP1", b"COP2")


@dataclass(frozen=True)
class VelaIO:
    """One input or output.

    :param shape: six sizes, padded with ones in front.
    :param element_size: bytes an element.
    :param offset: first byte inside its region.
    """

    shape: tuple[int, ...]
    element_size: int
    offset: int
    region: int

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        return self.elements * self.element_size

    @property
    def end(self) -> int:
        return self.offset + self.bytes


@dataclass(frozen=True)
class VelaPayload:
    """A whole payload.

    :param commands: driver actions and command words, from the FourCC on.
    :param weights: contents of region 0.
    :param scratch_size: bytes of region 1.
    :param fast_scratch_size: bytes of region 2; 0 where it is not said (a delegate never does).
    """

    commands: bytes
    weights: bytes
    scratch_size: int
    inputs: tuple[VelaIO, ...]
    outputs: tuple[VelaIO, ...]
    fast_scratch_size: int = 0


def decode_vela(data: bytes, named: Mapping[str, bytes] | None = None) -> VelaPayload:
    """Read a payload.

    :param named: the program's named data, for external blocks.
    :raises BadInput: it is empty, no payload, truncated, or its blocks are not those of a payload.
    """
    blocks = _blocks(data, named or {})
    missing = [name for name in _BLOCKS if name not in blocks]
    if missing:
        raise _damaged(f"has no block {missing[0]}")
    if blocks["cmd_data"][:4] not in COMMAND_MAGIC:
        raise _damaged(f"has commands that begin with {blocks['cmd_data'][:4]!r}, not with COP1")
    if len(blocks["scratch_size"]) != 4:
        raise _damaged(f"has {len(blocks['scratch_size'])} bytes of scratch_size where 4 are expected")
    return VelaPayload(
        commands=blocks["cmd_data"],
        weights=blocks["weight_data"],
        scratch_size=int.from_bytes(blocks["scratch_size"], "little"),
        inputs=_table(blocks, "inputs"),
        outputs=_table(blocks, "outputs"),
    )


def _blocks(data: bytes, named: Mapping[str, bytes]) -> dict[str, bytes]:
    blocks: dict[str, bytes] = {}
    at, name = 0, ""
    while name != LAST:
        if at + _HEADER.size > len(data):
            raise _damaged(f"ends at byte {len(data)}, inside the header of the block after {name or 'nothing'!r}")
        raw, length, external, _ = _HEADER.unpack_from(data, at)
        name = raw.split(b"\0", 1)[0].decode(errors="replace")
        at += _HEADER.size
        if (name == FIRST) != (at == _HEADER.size) or name not in (FIRST, LAST, *_BLOCKS) or name in blocks:
            raise _damaged(f"has a block {name!r} at byte {at - _HEADER.size}, where none of that name belongs")
        if at + length > len(data):
            raise _damaged(f"has a block {name!r} of {length} bytes with {len(data) - at} bytes left")
        blocks[name] = _contents(data[at : at + length], external, named)
        at += length + (-length) % ALIGNMENT
    if at != len(data):
        raise _damaged(f"has {len(data) - at} bytes after its last block")
    return blocks


def _contents(block: bytes, external: int, named: Mapping[str, bytes]) -> bytes:
    if external == 0:
        return block
    key = block.decode(errors="replace")
    if external != 1 or key not in named:
        raise _damaged(f"has an external block (flag {external}) whose key {key[:16]!r} the program does not hold")
    return named[key]


def _table(blocks: Mapping[str, bytes], name: str) -> tuple[VelaIO, ...]:
    block = blocks[name]
    count = int.from_bytes(block[:4], "little", signed=True)
    if len(block) < 4 or count < 0 or len(block) != 4 + count * _IO.size:
        raise _damaged(f"has {len(block)} bytes of {name} for {count} entries of {_IO.size}")
    rows = (_IO.unpack_from(block, 4 + index * _IO.size) for index in range(count))
    table = tuple(VelaIO(row[:6], *row[6:]) for row in rows)
    for index, io in enumerate(table):
        if any(size < 0 for size in io.shape) or io.element_size <= 0 or io.offset < 0:
            raise _damaged(f"says that {name[:-1]} {index} is {io}")
    return table


def _damaged(problem: str) -> BadInput:
    return BadInput("Vela payload", problem, "compile it again")
