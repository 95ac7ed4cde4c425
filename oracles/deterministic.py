"""``deterministic``: the same case compiled twice gives the same program (the ``deterministic`` probe).

Compared in the order in which things come about, and only the first level that differs is
reported, because it explains the rest: the quantized graph (operators, quantization parameters,
bits of constants), the number of delegates, each TOSA flatbuffer (byte for byte), each payload.
Where the TOSA differs, the two runs' snapshots name the first pass after which they do.

Payloads of one TOSA graph need not be the same bytes: for some convolutions on Ethos-U85, Vela
5.1.0 encodes channels beyond the operation's own, from memory that nothing wrote. So payloads that
differ are decoded, and what the NPU takes from them is compared: scratch sizes, inputs and
outputs, commands, decoded weights and scales, other constants.
"""

from __future__ import annotations

from collections.abc import Iterator

from harness.artifacts.tosa import TosaBlock, decode_tosa
from harness.case.errors import BadInput
from harness.case.wording import counted_as
from harness.compat.snapshots import PassTrace
from harness.ethosu.equivalence import payload_difference
from harness.evidence.observation import DelegateRecord, Mismatch, Observation, Oracle, headline
from harness.evidence.signatures import signature
from harness.pipeline.probes.graphs import differences
from harness.pipeline.probes.results import Repeated


def judge(observation: Observation) -> list[Mismatch]:
    """At most one mismatch: the first level at which the two runs part."""
    again = observation.probes.get("deterministic")
    if not isinstance(again, Repeated) or observation.failure is not None:
        return []
    if again.failure is not None:
        first_line = headline(again.failure.message)[:200]
        text = f"the second compile of the same case raised {again.failure.type}: {first_line}"
        return [_mismatch("second run fails", again.failure.stage, text, signature(again.failure))]
    found = differences(observation.lowering.reference, again.reference)
    if found:
        text = f"two quantizations of the same case differ in {len(found)} nodes, first {found[0]}"
        return [_mismatch("quantized graph differs", "convert", text, found[0].what)]
    return _programs(observation.lowering.delegates, again.delegates)


def _programs(first: tuple[DelegateRecord, ...], second: tuple[DelegateRecord, ...]) -> list[Mismatch]:
    if len(first) != len(second):
        text = f"two lowerings of the same graph give {len(first)} and then {counted_as(len(second), 'delegate')}"
        return [_mismatch("delegates differ", "lower", text)]
    for one, other in zip(first, second, strict=True):
        if one.tosa != other.tosa:
            text = f"{one.name}: two lowerings of the same graph give different TOSA: {_tosa_difference(one, other)}"
            return [_mismatch("TOSA differs", "lower", text, pass_name=_first_pass(one.trace, other.trace))]
    for one, other in zip(first, second, strict=True):
        what = payload_difference(one.payload, other.payload)
        if what:
            text = f"{one.name}: the same TOSA compiled twice gives different payloads: {what}"
            return [_mismatch("payload differs", "vela", text, pass_name="Vela")]
    return []


def _mismatch(kind: str, stage: str, message: str, signature: str = "", pass_name: str | None = None) -> Mismatch:
    return Mismatch("deterministic", kind, message, stage=stage, signature=signature, pass_name=pass_name)


def _first_pass(one: PassTrace | None, other: PassTrace | None) -> str | None:
    """The first pass after which two runs differ; the serializer if none does; None if it cannot be told."""
    if one is None or other is None or one.passes != other.passes:
        return None
    if differences(one.start.nodes, other.start.nodes):
        return None
    for before, after in zip(one.snapshots, other.snapshots, strict=False):
        if differences(before.nodes, after.nodes):
            return before.name
    return "serializer"


def _tosa_difference(one: DelegateRecord, other: DelegateRecord) -> str:
    if one.tosa is None or other.tosa is None:
        return "only one of them has a flatbuffer"
    try:
        blocks = decode_tosa(one.tosa).main, decode_tosa(other.tosa).main
    except BadInput as error:
        return str(error)
    return next(_block_differences(*blocks), "the same graph, laid out differently in the file")


def _block_differences(one: TosaBlock, other: TosaBlock) -> Iterator[str]:
    for first, second in zip(one.operators, other.operators, strict=False):
        if first != second:
            words = [f"{item.op} of {', '.join(item.inputs)}" for item in (first, second)]
            yield f"operator {first.index} is {words[0]} and then {words[1]}"
    if len(one.operators) != len(other.operators):
        yield f"{len(one.operators)} and then {counted_as(len(other.operators), 'operator')}"
    for name, tensor in one.tensors.items():
        twin = other.tensors.get(name)
        if twin is None:
            yield f"tensor {name} is in the first only"
        elif (tensor.shape, tensor.dtype) != (twin.shape, twin.dtype):
            yield f"tensor {name} is {tensor.dtype} {list(tensor.shape)} and then {twin.dtype} {list(twin.shape)}"
        elif tensor.data != twin.data:
            yield f"constant {name} ({tensor.dtype} {list(tensor.shape)}) has other values"


ORACLE = Oracle("deterministic", judge, probed=True, rank=8, expected="The same module gives the same program.")
