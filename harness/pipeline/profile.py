"""What whoever deploys a program wants to know of it, as data: where it runs, how near it is to float, how large it is.

Everything is read from one observation. Errors are those of the leg that is nearest to the hardware (FVP, functional
model, reference model), on the samples that the user gave: calibration and given inputs. Cycles are Vela's own
estimate, in the summary that it writes beside its output.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from harness.artifacts.vela import decode_vela
from harness.case.arrays import Array
from harness.case.errors import BadInput
from harness.case.sampling import CALIBRATION, GIVEN
from harness.compat.snapshots import Ref, Snapshot
from harness.evidence.macs import macs
from harness.evidence.observation import Observation
from harness.evidence.references import EAGER, FVP, MODEL, QUANTIZED, TOSA
from harness.pipeline.probes.results import FallenBack

_UNCOUNTED = ("quantized_decomposed.", "getitem")
"""How the names begin of what is no operator of the model: quantizing, and taking one of several results."""


class Fallback(msgspec.Struct, frozen=True, kw_only=True):
    """Operators of one kind that run on the CPU for one reason.

    :param operator: ``aten.topk.default``.
    :param nodes: of the case's graph, where that can be told; ``count`` is how many operators there are.
    :param reason: what upstream's partitioner said; empty if it said nothing.
    """

    operator: str
    count: int
    nodes: tuple[str, ...] = ()
    reason: str = ""


class Error(msgspec.Struct, frozen=True, kw_only=True):
    """How far one output is from float.

    :param sqnr: signal to quantization noise in dB; None if there is no noise, or no signal.
    :param largest: of the absolute errors; ``mean`` their mean; both in the output's own unit.
    """

    sqnr: float | None
    largest: float
    mean: float


class OutputError(msgspec.Struct, frozen=True, kw_only=True):
    """One output against float eager.

    :param compiled: of the compiled program; ``quantized`` of quantized eager, which is what quantization explains.
    """

    output: int
    shape: tuple[int, ...]
    compiled: Error
    quantized: Error | None = None


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """One case's program.

    :param operators: delegated operators and those on the CPU; ``macs`` likewise.
    :param leg: that the errors are of; empty if none ran.
    :param samples: inputs that the errors are taken over.
    :param commands: bytes of all delegates' command streams; ``weights`` likewise; ``payload`` has all blocks.
    :param scratch: bytes of the largest scratch memory of a delegate.
    :param program: bytes of the ``.pte``.
    :param cycles: Vela's estimate for one inference, all delegates together; None where Vela did not run.
    :param clock: Hz that the estimate of time is for.
    """

    delegates: int
    operators: tuple[int, int]
    macs: tuple[int, int]
    fallback: tuple[Fallback, ...] = ()
    leg: str = ""
    samples: int = 0
    errors: tuple[OutputError, ...] = ()
    payload: int = 0
    commands: int = 0
    weights: int = 0
    scratch: int = 0
    program: int = 0
    cycles: int | None = None
    clock: float | None = None


def profile_of(observation: Observation) -> Profile | None:
    """What an observation tells; None if nothing was compiled."""
    record = observation.lowering
    if not record.program:
        return None
    fallen: tuple[FallenBack, ...] = observation.probes.get("delegation", ())
    starts = [item.trace.start for item in record.delegates if item.trace is not None]
    delegated = [name for item in record.delegates for name in item.operators if _is_counted(name)]
    leg = next((name for name in (FVP, MODEL, TOSA) if name in observation.legs and observation.legs[name].ran), "")
    blocks = [*_blocks(observation)]
    estimates = [item.estimate for item in record.delegates]
    known = [item for item in estimates if item is not None]
    whole = bool(known) and len(known) == len(estimates)
    return Profile(
        delegates=len(record.delegates),
        operators=(len(delegated), sum(map(_is_counted, record.fallback))),
        macs=(sum(map(_macs_of, starts)), sum(item.macs for item in fallen)),
        fallback=_by_reason(fallen),
        leg=leg,
        samples=len(_samples(observation)),
        errors=tuple(_errors(observation, leg)) if leg else (),
        payload=sum(len(item.payload) for item in record.delegates),
        commands=sum(commands for commands, _, _ in blocks),
        weights=sum(weights for _, weights, _ in blocks),
        scratch=max((scratch for _, _, scratch in blocks), default=0),
        program=len(record.program),
        cycles=sum(item.cycles for item in known) if whole else None,
        clock=known[0].clock if whole else None,
    )


def _is_counted(operator: str) -> bool:
    return not operator.startswith(_UNCOUNTED)


def _macs_of(start: Snapshot) -> int:
    """Multiply-accumulates of a delegate's graph as it was before the passes."""
    total = 0
    for node in start.nodes.values():
        if node.op == "call_function":
            shapes = [start.nodes[item.name].shape if isinstance(item, Ref) else None for item in node.args]
            total += macs(node.target, node.args, shapes, node.shape)
    return total


def _by_reason(fallen: Sequence[FallenBack]) -> tuple[Fallback, ...]:
    groups: dict[tuple[str, str], list[FallenBack]] = {}
    for item in fallen:
        if not _is_counted(item.operator):
            continue
        reason = "the recipe leaves it, or its neighbour, float" if item.float_by_recipe else item.reason
        groups.setdefault((item.operator, reason), []).append(item)
    return tuple(
        Fallback(
            operator=operator,
            count=len(items),
            nodes=tuple(dict.fromkeys(item.call for item in items if item.call)),
            reason=reason,
        )
        for (operator, reason), items in groups.items()
    )


def _blocks(observation: Observation) -> Iterator[tuple[int, int, int]]:
    """Bytes of commands, weights and scratch of each Ethos-U delegate."""
    for item in observation.lowering.delegates:
        try:
            payload = decode_vela(item.payload) if item.payload != item.tosa else None
        except BadInput:
            continue  # ``buffers`` reports damaged artifacts
        if payload is not None:
            yield len(payload.commands), len(payload.weights), payload.scratch_size


def _samples(observation: Observation) -> list[int]:
    """Indices of the inputs that the user gave."""
    return [index for index, item in enumerate(observation.inputs) if item.origin in (CALIBRATION, GIVEN)]


def _errors(observation: Observation, leg: str) -> Iterator[OutputError]:
    wanted = observation.legs[EAGER].outputs
    quantized = observation.legs.get(QUANTIZED)
    runs = _samples(observation)
    for index, like in enumerate(wanted[0] if wanted else ()):
        compiled = _error(wanted, observation.legs[leg].outputs, runs, index)
        if compiled is not None:
            explained = _error(wanted, quantized.outputs, runs, index) if quantized and quantized.ran else None
            yield OutputError(output=index, shape=tuple(like.shape), compiled=compiled, quantized=explained)


def _error(
    wanted: Sequence[Sequence[Array]], got: Sequence[Sequence[Array]], runs: Sequence[int], output: int
) -> Error | None:
    """Errors of one output over several runs; None if shapes differ, or it is no number."""
    pairs = [(wanted[run][output], got[run][output]) for run in runs if output < len(got[run])]
    if not pairs or any(one.shape != other.shape or one.dtype.kind != "f" for one, other in pairs):
        return None
    signal, noise = (np.concatenate([array.reshape(-1) for array in part]).astype(np.float64) for part in _parts(pairs))
    power, loss = float(np.mean(signal**2)), float(np.mean(noise**2))
    if not math.isfinite(loss):
        return None
    sqnr = 10 * math.log10(power / loss) if power > 0 and loss > 0 else None
    return Error(sqnr=sqnr, largest=float(np.max(np.abs(noise), initial=0.0)), mean=float(np.mean(np.abs(noise))))


def _parts(pairs: Sequence[tuple[Array, Array]]) -> tuple[list[Array], list[Array]]:
    """Float outputs, and what the others are off."""
    return [one for one, _ in pairs], [other.astype(np.float64) - one for one, other in pairs]
