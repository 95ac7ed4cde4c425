"""What the steps of a run stored, whose results they read, and what nobody read.

The *sources* of a stored result are the steps whose results it read, told by the last writer of every
byte. *Idle* bytes are those that a step wrote and nothing read before they were overwritten or the
stream ended; *holes* are where something is read, or returned, that nothing has written. Streams that
are right have hardly any of either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from harness.artifacts.vela import VelaIO
from harness.ethosu.arithmetic import Ints
from harness.ethosu.featuremap import BRICK, addresses, read
from harness.ethosu.memory import Memory
from harness.ethosu.npu import Npu
from harness.ethosu.records import LUT, Step
from harness.ethosu.state import CHAINED, KEEP, feature_map_of
from harness.locate.divergence.replaying import Player, chain_written, shape_of
from harness.locate.divergence.stored import CHAIN, Stored

Observe = Callable[[Memory, "Owners", Stored], None]


def trace(player: Player, observe: Observe) -> None:
    """Run, and call ``observe`` after every step that stored something."""
    owners = Owners(player.program.payload.inputs)

    def watch(npu: Npu, copied: Ints | None) -> None:
        step = npu.executed()
        sources = owners.read(npu, step)
        stored = _stored(npu, step, copied, sources)
        if stored is not None:
            owners.write(npu.memory, stored)
            observe(npu.memory, owners, stored)

    player.watched(watch)
    owners.finish(player.program.payload.outputs)


def read_by(step: Step, role: str, memory: Memory) -> Stored | None:
    """What a step finds where it reads an operand; None if it does not read that from memory.

    :param role: IFM or IFM2.
    """
    ranges = [item for item in step.reads if item.role == role]
    if not ranges:
        return None
    registers = step.registers
    size = 1 << registers[f"{role}_PRECISION"]["precision"]
    places = np.concatenate([np.arange(item.start, item.end - size + 1, size) for item in ranges])
    strides = None
    if registers[f"{role}_PRECISION"].get("format"):
        strides = registers[f"{role}_STRIDE_Y"]["value"], registers[f"{role}_STRIDE_C"]["value"]
        summed = step.kind == "CONV" or (step.kind == "POOL" and "IFM_DEPTH_M1" in registers)
        depth = registers["IFM_DEPTH_M1" if summed and role == "IFM" else "OFM_DEPTH_M1"]["value"] + 1
        offset = places - registers[f"{role}_BASE0"]["value"]
        brick = offset % strides[0] // strides[1] if strides[0] and strides[1] else 0
        places = places[brick * BRICK + offset % (BRICK * size) // size < depth]
    data = memory.region(ranges[0].region).data
    raw = data[places[:, None] + np.arange(size)]
    values = np.ascontiguousarray(raw).view(f"<i{size}").ravel().astype(np.int64)
    return Stored(step, ranges[0].region, places, size, values, strides=strides)


@dataclass
class Owners:
    """The last step that wrote each byte, -1 for none, and what became of it.

    :param inputs: of the payload; their bytes are written, by no step.
    :param idle: for each step, addresses of idle bytes of its result.
    :param clobbers: steps that made such bytes idle by overwriting them.
    :param holes: for each region, first address of each hole and the address after its last.
    """

    inputs: Sequence[VelaIO] = ()
    last: dict[int, Ints] = field(default_factory=dict)
    unread: dict[int, NDArray[np.bool_]] = field(default_factory=dict)
    idle: dict[int, list[int]] = field(default_factory=dict)
    clobbers: set[int] = field(default_factory=set)
    holes: dict[int, set[tuple[int, int]]] = field(default_factory=dict)

    def of(self, region: int, places: Ints | slice) -> set[int]:
        """Steps that wrote any of these bytes last."""
        return set(np.unique(self.last[region][places]).tolist()) - {-1} if region in self.last else set()

    def read(self, npu: Npu, step: Step) -> frozenset[int]:
        """Steps whose results this one reads."""
        found: set[int] = set()
        for item in step.reads:
            self._note_region(npu.memory, item.region)
            found |= self.of(item.region, slice(item.start, item.end))
            self.unread[item.region][item.start : item.end] = False
            missing = np.flatnonzero(npu.memory.region(item.region).written[item.start : item.end] == 0)
            self.note_hole(item.region, item.start + missing)
        if npu.accelerator.u85:
            for role in ("IFM", "IFM2"):
                if npu.registers.get_or(f"{role}_PRECISION", 0, "storage") == CHAINED:
                    found |= self.of(CHAIN - npu.registers.get(f"{role}_REGION"), slice(0, 1))
            if npu.registers.get_or("ACC_FORMAT", 0, "input") == KEEP:
                found.add(step.index - 1)
        return frozenset(found)

    def write(self, memory: Memory, stored: Stored) -> None:
        """Note that the step's bytes are its own now, and unread."""
        if stored.region > CHAIN:
            self._note_region(memory, stored.region)
            if self._overwrite(stored.region, stored.bytes):
                self.clobbers.add(stored.index)
            self.unread[stored.region][stored.bytes] = True
        self.take(memory, stored)

    def take(self, memory: Memory, stored: Stored) -> None:
        """Note that the step's bytes are its own now."""
        if stored.region <= CHAIN:
            self.last[stored.region] = np.full(stored.high, stored.index, np.int64)
            return
        self._note_region(memory, stored.region)
        self.last[stored.region][stored.bytes] = stored.index

    def finish(self, outputs: Sequence[VelaIO]) -> None:
        """At the end of the stream: what is neither read nor an output was computed for nothing."""
        for slot in outputs:
            if slot.region in self.unread:
                self.unread[slot.region][slot.offset : slot.end] = False
        for region, unread in self.unread.items():
            if region != LUT:
                self._overwrite(region, np.flatnonzero(unread))

    def note_hole(self, region: int, places: Ints) -> None:
        """Bytes that have no value, or not the one that they should have."""
        if len(places):
            self.holes.setdefault(region, set()).add((int(places.min()), int(places.max()) + 1))

    def _note_region(self, memory: Memory, region: int) -> None:
        if region in self.last:
            return
        size = len(memory.region(region).data)
        self.last[region], self.unread[region] = np.full(size, -1, np.int64), np.zeros(size, np.bool_)
        for slot in self.inputs:
            if slot.region == region:
                self.unread[region][slot.offset : slot.end] = True

    def _overwrite(self, region: int, places: Ints) -> bool:
        """Note which of these bytes are idle, and whether any is."""
        lost = places[self.unread[region][places]]
        for owner in np.unique(self.last[region][lost]).tolist():
            self.idle.setdefault(owner, []).extend(lost[self.last[region][lost] == owner].tolist())
        return bool(len(lost))


def _stored(npu: Npu, step: Step, copied: Ints | None, sources: frozenset[int]) -> Stored | None:
    if step.kind == "DMA_START":
        return _transferred(npu, step, sources)
    if npu.result is None:
        return None
    shape = shape_of(npu.result)
    if copied is not None and copied.shape != shape:
        copied = None
    buffer = chain_written(npu)
    if buffer is not None:
        values, size = npu.chained[buffer], 1 << npu.registers.get("OFM_PRECISION", "precision")
        places = np.arange(values.size).reshape(shape) * size
        return Stored(step, CHAIN - buffer, places, size, values, copied, sources)
    target = feature_map_of(npu.registers, "OFM", shape)
    values, _ = read(npu.memory, target)
    strides = (target.stride_y, target.stride_c) if target.bricks else None
    return Stored(step, target.region, addresses(target), target.size, values, copied, sources, strides)


def _transferred(npu: Npu, step: Step, sources: frozenset[int]) -> Stored | None:
    if not step.writes:
        return None
    region = step.writes[0].region
    at = np.concatenate([np.arange(item.start, item.end) for item in step.writes])
    values = npu.memory.region(region).data[at].view(np.int8).astype(np.int64)
    return Stored(step, region, at.reshape(1, 1, -1), 1, values.reshape(1, 1, -1), None, sources)
