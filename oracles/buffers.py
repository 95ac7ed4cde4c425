"""``buffers``: who allocates, who writes: do program, TOSA graph and payload mean the same buffers?

Each layer is held against the next: the values of a delegate call in the ``.pte`` (from the
flatbuffer) against what the lowering decided (stage ``emit``), those against the TOSA graph's
inputs and outputs (stage ``lower``), and the TOSA graph against the payload's own tables (stage
``vela``, or ``vgf``). A call's arguments lie in one list in the file; where the inputs end comes from
the lowering record. Then the memory plan of the program (``harness.artifacts.planning``).

What is not claimed: axes in Vela's tables, which may be the shape after a reshape (elements and
bytes must agree); lifetimes inside the scratch memory, where Vela may put an output over an input
that it no longer reads (the runtime copies inputs in before the run and outputs out after it).

Facts: EthosUBackend.cpp and EthosUBackend_Cortex_M.cpp (binding by position, region 1 assumed,
``copy_with_layout_adjustment`` for packed and padded outputs), executorch cff6f4d, August 2026;
alignment of 16: VelaBinStream.cpp, and the least that Vela's ``--cpu-tensor-alignment`` allows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from harness.artifacts.planning import plan_faults
from harness.artifacts.program import Plan, decode_program
from harness.artifacts.tosa import TosaBlock, decode_tosa
from harness.artifacts.vela import ALIGNMENT, SCRATCH, VelaIO, VelaPayload, decode_vela
from harness.artifacts.vgf import VgfPayload, decode_vgf
from harness.case.errors import BadInput
from harness.case.wording import counted_as
from harness.evidence.called_delegates import CalledDelegate, matched, recorded
from harness.evidence.delegate_io import (
    WIDENED,
    Disagreement,
    against_tosa,
    against_type,
    duplicated,
    forgotten_by,
    retyped_by,
    shared_root,
    tosa_against_vela,
)
from harness.evidence.inspection.origins import call_made
from harness.evidence.inspection.surroundings import CONSTANTS, seen_place, tosa_place
from harness.evidence.observation import DelegateRecord, Mismatch, Observation, Oracle
from harness.evidence.references import RUNTIMES, VGF
from harness.evidence.vgf_payload import tosa_against_vgf

VELA_BACKEND, VGF_BACKEND = "EthosUBackend", "VgfBackend"
MOST_NAMED = 3


def judge(observation: Observation) -> list[Mismatch]:
    """Dropped inputs of every delegate; then all that the program's bytes tell."""
    record = observation.lowering
    found = [_dropped(item) for item in record.delegates if len(item.inputs) != len(item.tosa_inputs)]
    if not record.program:
        return found
    try:
        program = decode_program(record.program)
    except BadInput as error:
        return [*found, _damaged(error, "emit", None)]
    pairs = list(matched(program.main, record.delegates))
    each = [item for delegate in recorded(program.main, pairs) for item in _of_delegate(delegate, program.named)]
    found += _widened_together(each, sum(len(delegate.results) for delegate in record.delegates))
    found += _missing(program.main, record.delegates, [item for _, _, item in pairs])
    counts = [len(item.inputs) for _, _, item in pairs if item is not None]
    for fault in plan_faults(program.main, counts):
        found.append(Mismatch("buffers", fault.kind, fault.text, stage="emit", measured={"values": fault.count}))
    return found


def delegates_at_fault(observation: Observation) -> frozenset[str]:
    """Names of the delegates of which a mismatch tells."""
    record = observation.lowering
    names = {item.name for item in record.delegates if len(item.inputs) != len(item.tosa_inputs)}
    try:
        program = decode_program(record.program) if record.program else None
    except BadInput:
        program = None
    if program is not None:
        called = recorded(program.main, list(matched(program.main, record.delegates)))
        names |= {item.record.name for item in called if any(True for _ in _of_delegate(item, program.named))}
    return frozenset(names)


def _widened_together(each: Sequence[Mismatch], outputs: int) -> list[Mismatch]:
    """Widened outputs of several delegates as one mismatch: they share a cause and are counted over the program."""
    widened = [item for item in each if item.kind == WIDENED]
    if len(widened) < 2:
        return list(each)
    count = sum(int(item.measured["outputs"]) for item in widened)
    whole = replace(
        widened[0],
        message=f"{count} of {outputs} delegate outputs of the program are wrong: "
        + "; ".join(item.message for item in widened),
        pass_name=next((item.pass_name for item in widened if item.pass_name), None),
        measured={"outputs": count, "of": outputs},
    )
    return [whole, *(item for item in each if item.kind != WIDENED)]


def _missing(
    plan: Plan, records: Sequence[DelegateRecord], pairs: Sequence[DelegateRecord | None]
) -> Iterator[Mismatch]:
    """Delegates that the lowering made, whose results are read, and that the program does not call; or more calls."""
    found = {id(item) for item in pairs}
    lost = [item.name for item in records if id(item) not in found and any(item.results)]
    surplus = pairs.count(None)
    if lost or surplus:
        yield Mismatch(
            "buffers",
            "delegate count",
            f"the program calls {counted_as(len(pairs), 'delegate')} where the lowering made {len(records)}: "
            f"{', '.join(lost[:MOST_NAMED]) or 'none'} not called, {surplus} calls of another origin",
            stage="emit",
            measured={"called": len(pairs), "made": len(records)},
        )


def _of_delegate(delegate: CalledDelegate, named: Mapping[str, bytes]) -> Iterator[Mismatch]:
    record = delegate.record
    if delegate.held.payload != record.payload or delegate.held.backend != record.backend:
        yield Mismatch(
            "buffers",
            "payload differs",
            f"{delegate.named}: the program holds {len(delegate.held.payload)} bytes for {delegate.held.backend}, "
            f"not the {len(record.payload)} bytes that the lowering made for {record.backend}",
            stage="emit",
        )
    if delegate.held.backend == VELA_BACKEND and delegate.held.start % ALIGNMENT:
        yield Mismatch(
            "buffers",
            "misaligned",
            f"{delegate.named}: its payload begins at byte {delegate.held.start} of the program, "
            f"which is no multiple of {ALIGNMENT}; the runtime refuses it",
            stage="emit",
        )
    yield from _emitted(delegate)
    block = None
    try:
        if record.tosa is not None:
            block = decode_tosa(record.tosa).main
            yield from _lowered(delegate, block)
    except BadInput as error:
        yield _damaged(error, "lower", delegate.named)
    if record.backend == VGF_BACKEND and block is not None:
        try:
            yield from _converted(delegate, block, decode_vgf(delegate.held.payload))
        except BadInput as error:
            yield _damaged(error, "vgf", delegate.named)
    if record.backend != VELA_BACKEND:
        return
    try:
        yield from _compiled(delegate, block, decode_vela(delegate.held.payload, named))
    except BadInput as error:
        yield _damaged(error, "vela", delegate.named)


def _emitted(delegate: CalledDelegate) -> Iterator[Mismatch]:
    """The program's values against what the lowering decided."""
    record, called = delegate.record, len(delegate.call.values)
    if called != len(record.inputs) + len(record.results):
        yield Mismatch(
            "buffers",
            "value count",
            f"{delegate.named}: the program calls it with {counted_as(called, 'value')}, where the lowering made "
            f"{counted_as(len(record.inputs), 'input')} and {counted_as(len(record.results), 'output')}",
            stage="emit",
            measured={"called_with": called, "inputs": len(record.inputs), "outputs": len(record.results)},
        )
        return
    for side, types in (("input", record.arguments), ("output", record.results)):
        tensors = delegate.tensors(side)
        if len(types) != len(tensors):
            continue
        seen = [against_type(tensor, type_) for tensor, type_ in zip(tensors, types, strict=True)]
        yield from _grouped(delegate, side, seen, _names(delegate, side, None), "emit", None)


def _lowered(delegate: CalledDelegate, block: TosaBlock) -> Iterator[Mismatch]:
    """The program's values against the TOSA graph's inputs and outputs."""
    record = delegate.record
    if len(delegate.call.values) != len(record.inputs) + len(record.results):
        return
    if len(block.outputs) != len(record.results):
        text = f"the program takes {counted_as(len(record.results), 'output')}, its TOSA graph has"
        yield _count(delegate, "output", text, len(record.results), block.outputs, "lower", None)
    else:
        tensors = [block.tensors[name] for name in block.outputs]
        packs = record.backend == VELA_BACKEND
        seen = [against_tosa(*pair, packs, "output") for pair in zip(delegate.tensors("output"), tensors, strict=True)]
        for found in _grouped(delegate, "output", seen, block.outputs, "lower", _retyped(delegate, seen)):
            there = zip(block.outputs, seen, strict=True)
            wrong = [block.producers.get(name) for name, item in there if item is not None and item.kind == found.kind]
            constant = all(maker is not None and maker.op in CONSTANTS for maker in wrong)
            yield replace(found, place=seen_place({"constant": int(constant)}))
        twice = duplicated(record.trace, block.outputs)
        if twice:
            yield Mismatch(
                "buffers",
                "output duplicated",
                f"{delegate.named}: its TOSA graph has outputs {list(block.outputs)[:8]}, {twice} more than once, "
                f"where the last pass left {len(block.outputs)} different values",
                stage="lower",
                pass_name="serializer",
            )
    order = {name: index for index, name in enumerate(record.inputs)}
    places = [order.get(name, -1) for name in block.inputs]
    if -1 in places or len(set(places)) != len(places):
        if len(block.inputs) != len(record.inputs):
            return  # which one is gone cannot be told: `dropped` has said so
        places = list(range(len(block.inputs)))
    if places != sorted(places):
        yield Mismatch(
            "buffers",
            "input order",
            f"{delegate.named}: the program passes {list(record.inputs)}, its TOSA graph takes {list(block.inputs)}",
            stage="lower",
        )
    given = delegate.tensors("input")
    seen = [
        against_tosa(given[place], block.tensors[name], False, "input")
        for place, name in zip(places, block.inputs, strict=True)
    ]
    yield from _grouped(delegate, "input", seen, block.inputs, "lower", None)


def _retyped(delegate: CalledDelegate, seen: Sequence[Disagreement | None]) -> str | None:
    """Who is to blame if all wrong outputs got their dtype from one place; None if not."""
    tensors = delegate.tensors("output")
    wrong = [(index, tensor) for index, tensor in enumerate(tensors) if seen[index] is not None and tensor is not None]
    who = {retyped_by(delegate.record.trace, index, tensor.dtype) for index, tensor in wrong}
    alike = all(item is None or item.kind != "shape differs" for item in seen)
    return who.pop() if len(who) == 1 and alike else None


def _lost(names: Sequence[str], table: Sequence[VelaIO], block: TosaBlock) -> list[str]:
    """Tensors of the TOSA graph's border whose sizes, in whatever order, no entry of the payload's table has."""
    there = Counter(_sizes(io.shape) for io in table)
    lost = []
    for name in names:
        sizes = _sizes(block.tensors[name].shape)
        if there[sizes] == 0:
            lost.append(name)
        there[sizes] -= 1
    return lost


def _sizes(shape: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(size for size in shape if size != 1))


def _compiled(delegate: CalledDelegate, block: TosaBlock | None, payload: VelaPayload) -> Iterator[Mismatch]:
    """The TOSA graph against the payload's tables, and the tables against the scratch memory."""
    for side, table in (("input", payload.inputs), ("output", payload.outputs)):
        if block is not None:
            wanted = block.inputs if side == "input" else block.outputs
            if len(table) != len(wanted):
                text = f"its payload has {counted_as(len(table), side)}, the TOSA graph that Vela compiled"
                count = _count(delegate, side, text, len(table), wanted, "vela", "Vela")
                node = call_made(_lost(wanted, table, block), delegate.record)
                yield replace(count, place=tosa_place(block, wanted, {}), node=node)
            else:
                pairs = zip([block.tensors[name] for name in wanted], table, strict=True)
                seen = [tosa_against_vela(tensor, io, side) for tensor, io in pairs]
                yield from _grouped(delegate, side, seen, wanted, "vela", "Vela")
        names = _names(delegate, side, block)
        yield from _placed(delegate, side, table, payload.scratch_size, names)
        yield from _apart(delegate, side, table, names, block)


def _converted(delegate: CalledDelegate, block: TosaBlock, payload: VgfPayload) -> Iterator[Mismatch]:
    """The TOSA graph against the resources of its VGF payload."""
    for side, table, wanted in (("input", payload.inputs, block.inputs), ("output", payload.outputs, block.outputs)):
        if len(table) != len(wanted):
            text = f"its payload has {counted_as(len(table), side)}, the TOSA graph that was converted"
            yield _count(delegate, side, text, len(table), wanted, "vgf", RUNTIMES[VGF])
            continue
        pairs = zip([block.tensors[name] for name in wanted], table, strict=True)
        seen = [tosa_against_vgf(tensor, resource, side) for tensor, resource in pairs]
        yield from _grouped(delegate, side, seen, wanted, "vgf", RUNTIMES[VGF])


def _placed(
    delegate: CalledDelegate, side: str, table: Sequence[VelaIO], scratch: int, names: Sequence[str]
) -> Iterator[Mismatch]:
    def check(io: VelaIO) -> Disagreement | None:
        if io.region != SCRATCH:
            text = f"lies in region {io.region}, where the runtime binds inputs and outputs in region {SCRATCH}"
            return Disagreement("outside scratch", text)
        if io.end > scratch:
            text = f"lies at bytes {io.offset} to {io.end} of a scratch memory of {counted_as(scratch, 'byte')}"
            return Disagreement("outside scratch", text)
        if io.offset % ALIGNMENT:
            return Disagreement("misaligned", f"begins at byte {io.offset}, which is no multiple of {ALIGNMENT}")
        return None

    yield from _grouped(delegate, side, [check(io) for io in table], names, "vela", "Vela")


def _apart(
    delegate: CalledDelegate, side: str, table: Sequence[VelaIO], names: Sequence[str], block: TosaBlock | None
) -> Iterator[Mismatch]:
    """Inputs are all written before the run; outputs are all read after it, and may share what they are views of."""
    placed = sorted((index for index, io in enumerate(table) if io.bytes), key=lambda index: table[index].offset)
    open_: list[int] = []
    for index in placed:
        io = table[index]
        open_ = [other for other in open_ if table[other].end > io.offset]
        for other in open_:
            if io.region == table[other].region and not (side == "output" and _may_share(block, table, index, other)):
                yield Mismatch(
                    "buffers",
                    "payload overlap",
                    f"{delegate.named}: {side} {other} ({_at(names, other)}) at bytes {table[other].offset} to "
                    f"{table[other].end} and {side} {index} ({_at(names, index)}) at bytes {io.offset} to {io.end} "
                    f"of region {io.region} overlap",
                    stage="vela",
                    pass_name="Vela",
                )
                return
        open_.append(index)


def _may_share(block: TosaBlock | None, table: Sequence[VelaIO], one: int, other: int) -> bool:
    return block is None or len(block.outputs) != len(table) or shared_root(block, one, other)


def _grouped(
    delegate: CalledDelegate,
    side: str,
    seen: Sequence[Disagreement | None],
    names: Sequence[str],
    stage: str,
    pass_name: str | None,
) -> Iterator[Mismatch]:
    """One mismatch a kind, with how many of the inputs or outputs it is about."""
    kinds = dict.fromkeys(item.kind for item in seen if item is not None)
    for kind in kinds:
        hits = [(index, item) for index, item in enumerate(seen) if item is not None and item.kind == kind]
        places = "; ".join(f"{side} {index} ({_at(names, index)}): {item.text}" for index, item in hits[:MOST_NAMED])
        more = "" if len(hits) <= MOST_NAMED else f"; and {len(hits) - MOST_NAMED} more"
        summary = f"{hits[0][1].summary}: " if hits[0][1].summary else ""
        yield Mismatch(
            "buffers",
            kind,
            f"{delegate.named}: {len(hits)} of {len(seen)} {side}s: {summary}{places}{more}",
            stage=stage,
            pass_name=pass_name,
            measured={f"{side}s": len(hits), "of": len(seen)},
            information=hits[0][1].information,
        )


def _names(delegate: CalledDelegate, side: str, block: TosaBlock | None) -> Sequence[str]:
    if block is not None:
        return block.inputs if side == "input" else block.outputs
    return delegate.record.inputs if side == "input" else ()


def _at(names: Sequence[str], index: int) -> str:
    return names[index] if index < len(names) else "unnamed"


def _count(
    delegate: CalledDelegate, side: str, text: str, seen: int, names: Sequence[str], stage: str, pass_name: str | None
) -> Mismatch:
    """:param text: who has how many, and who has those that `names` are the names of."""
    return Mismatch(
        "buffers",
        f"{side} count",
        f"{delegate.named}: {text} {len(names)} ({', '.join(names[:8])})",
        stage=stage,
        pass_name=pass_name,
        measured={"seen": seen, "expected": len(names)},
    )


def _damaged(error: BadInput, stage: str, named: str | None) -> Mismatch:
    text = f"{named}: {error}" if named else str(error)
    return Mismatch("buffers", "damaged artifact", text, stage=stage, signature=error.where)


def _dropped(delegate: DelegateRecord) -> Mismatch:
    kept = set(delegate.tosa_inputs)
    lost = [(index, name) for index, name in enumerate(delegate.inputs) if name not in kept]
    where = ", ".join(f"{index} ({name})" for index, name in lost) or "unknown"
    shifted = bool(lost) and lost[0][0] < len(delegate.tosa_inputs)
    culprit = forgotten_by(delegate.trace, lost[0][1]) if lost else None
    after = f" (nothing reads it after {culprit})" if culprit and culprit != "serializer" else ""
    effect = "; bound by position, a later input is read in its place" if shifted else ""
    return Mismatch(
        oracle="buffers",
        kind="delegate input dropped, later inputs shift" if shifted else "delegate input dropped",
        stage="lower",
        pass_name=culprit if culprit == "serializer" else None,  # dead code goes in whichever pass comes next
        message=(
            f"{delegate.name} ({delegate.backend}) is called with {counted_as(len(delegate.inputs), 'input')}, "
            f"its TOSA graph has {len(delegate.tosa_inputs)}: input {where} is gone{after}{effect}"
        ),
        measured={"called_with": len(delegate.inputs), "takes": len(delegate.tosa_inputs), "shifted": shifted},
    )


ORACLE = Oracle(
    "buffers",
    judge,
    coarse=True,
    rank=7,
    form="borders",
    expected="Program, TOSA graph and payload agree on number, order, dtype, shape and bytes of every buffer.",
    wrong="gives a program whose buffers do not fit together",
)
