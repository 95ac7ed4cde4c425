"""DMA: copies between regions and into the table memory, with strides, gather and scatter.

Ethos-U55 copies one run of bytes. Ethos-U65 can spread runs over the destination: after each it
skips bytes (SKIP0 after a run, SKIP1 after a row of runs). Ethos-U85 has strides at both ends, and
an index table of 32-bit entries that selects the row of the source (gather) or of the destination
(scatter) in steps of its stride 0.

A copy of bytes that nothing wrote is no issue here (rows are copied with their padding); they stay
unwritten at the destination, and an operation that reads them there reports it.

Facts: GenerateDMA in ethos_u65_register_cs_generator.cpp and ethos_u85_register_cs_generator.cpp.
"""

from __future__ import annotations

import numpy as np

from harness.ethosu.arithmetic import Ints
from harness.ethosu.featuremap import merged
from harness.ethosu.limits import A_RUN, MOST_BYTES, MOST_RUNS
from harness.ethosu.npu import Npu
from harness.ethosu.operands import report_unwritten
from harness.ethosu.records import LUT, Access, StreamError, Unimplemented

_INDEX_BYTES = 4
_FAR = 1 << 62


def dma(npu: Npu) -> None:
    """DMA_START: copy at once."""
    registers = npu.registers
    length = registers.get("DMA0_LEN")
    source = _region(npu, "DMA0_SRC_REGION")
    destination = _region(npu, "DMA0_DST_REGION")
    if npu.accelerator.u85:
        starts, targets = _rows_u85(npu, length)
    else:
        starts, targets = _rows_u65(npu, length)
    _copy(npu, source, destination, starts, targets, length)


def _region(npu: Npu, name: str) -> int:
    if npu.registers.get(name, "region_mode"):
        return LUT
    return npu.registers.get(name, "region")


def _rows_u65(npu: Npu, length: int) -> tuple[Ints, Ints]:
    """Start of each run at the source and at the destination."""
    registers = npu.registers
    source, destination = registers.get("DMA0_SRC"), registers.get("DMA0_DST")
    if registers.get("DMA0_SRC_REGION", "stride_mode"):
        raise Unimplemented("DMA with strides at the source is not implemented")
    mode = registers.get("DMA0_DST_REGION", "stride_mode")
    if mode == 0:
        _check_size(npu, 1, length)
        return np.array([source]), np.array([destination])
    if npu.accelerator.family != "u65" or mode > 2:
        raise Unimplemented(f"DMA stride mode {mode} is not implemented")
    runs, rows = registers.get("DMA0_SIZE0"), registers.get("DMA0_SIZE1") if mode == 2 else 1
    _check_size(npu, runs * rows, length)
    step0 = length + registers.get("DMA0_SKIP0")
    step1 = length * runs + registers.get("DMA0_SKIP1") if mode == 2 else 0
    row, run = np.divmod(np.arange(runs * rows, dtype=np.int64), runs)
    return source + (row * runs + run) * length, destination + row * step1 + run * step0


def _rows_u85(npu: Npu, length: int) -> tuple[Ints, Ints]:
    registers = npu.registers
    mode = registers.get("DMA0_SRC_REGION", "stride_mode")
    if mode > 2:
        raise Unimplemented(f"DMA stride mode {mode} is not implemented")
    gather, scatter = registers.get("DMA0_SRC_REGION", "idx_mode"), registers.get("DMA0_DST_REGION", "idx_mode")
    runs = registers.get("DMA0_SIZE0") if mode else 1
    rows = registers.get("DMA0_SIZE1") if mode == 2 else 1
    _check_size(npu, runs * rows, length)
    row, run = np.divmod(np.arange(runs * rows, dtype=np.int64), runs)
    selected = _indices(npu, rows, runs) if gather or scatter else run
    return (
        registers.get("DMA0_SRC") + _offsets(npu, "SRC", row, selected if gather else run, mode, bool(gather)),
        registers.get("DMA0_DST") + _offsets(npu, "DST", row, selected if scatter else run, mode, bool(scatter)),
    )


def _check_size(npu: Npu, runs: int, length: int) -> None:
    if runs < 1 or runs > MOST_RUNS or runs * length > MOST_BYTES:
        most = f"the model copies up to {MOST_RUNS} runs and {MOST_BYTES} bytes"
        raise StreamError(f"copies {runs} runs of {length} bytes: {most}")
    npu.budget.spend(A_RUN * runs + length * runs)


def _offsets(npu: Npu, end: str, row: Ints, run: Ints, mode: int, indexed: bool) -> Ints:
    registers = npu.registers
    step0 = registers.get(f"DMA0_{end}_STRIDE0") if mode or indexed else 0
    step1 = registers.get(f"DMA0_{end}_STRIDE1") if mode == 2 else 0
    if abs(step0) * int(run.max()) >= _FAR:
        raise StreamError(f"selects row {int(run.max())} by steps of {step0} bytes, which no memory has")
    return row * step1 + run * step0


def _indices(npu: Npu, rows: int, runs: int) -> Ints:
    """The index table; its rows may be apart by IDX_SKIP1 bytes."""
    registers = npu.registers
    region, start = registers.get("DMA0_IDX_REGION"), registers.get("DMA0_IDX")
    skip = registers.get("DMA0_IDX_SKIP1") if rows > 1 else 0
    found = []
    for row in range(rows):
        at = start + row * (runs * _INDEX_BYTES + skip)
        access = Access("INDEX", region, at, at + runs * _INDEX_BYTES)
        npu.reads.append(access)
        data, complete = npu.memory.read_bytes(region, access.start, access.end)
        if not complete:
            report_unwritten(npu, "index table", (access,))
        found.append(np.frombuffer(data, "<i4").astype(np.int64))
    indices = np.concatenate(found)
    most = registers.get("DMA0_IDX_MAX")
    if indices.size and not 0 <= int(indices.min()) <= int(indices.max()) <= most:
        raise StreamError(f"an index is {int(indices.min())} or {int(indices.max())}; DMA0_IDX_MAX allows 0 to {most}")
    return indices


def _copy(npu: Npu, source: int, destination: int, starts: Ints, targets: Ints, length: int) -> None:
    npu.reads.extend(_accesses("SOURCE", source, starts, length))
    npu.writes.extend(_accesses("DESTINATION", destination, targets, length))
    for start, target in zip(starts.tolist(), targets.tolist(), strict=True):
        npu.memory.copy(source, start, destination, target, length)


def _accesses(role: str, region: int, starts: Ints, length: int) -> list[Access]:
    return [Access(role, region, start, end) for start, end in merged([(at, at + length) for at in starts.tolist()])]
