"""What probes leave in an observation: frozen data, no live objects.

``Skipped`` stands for a probe that ran and can make no claim, with the reason; every other type
belongs to one probe. Oracles read these and nothing else of ``harness.pipeline.probes`` that needs torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from harness.case.arrays import Array
from harness.compat.snapshots import NodeState
from harness.evidence.observation import DelegateRecord, Envelope, Failure, LegResult, Observation, OutputType
from harness.evidence.references import QUANTIZED, TOSA


@dataclass(frozen=True)
class Skipped:
    """The probe can claim nothing about this case."""

    reason: str


@dataclass(frozen=True)
class Repeated:
    """A second run of a case: from a fresh module, or from the live one (quantized twice).

    :param reference: the second run's quantized graph.
    :param delegates: the second run's delegates (empty where it was only quantized).
    :param failure: what the second run raised.
    """

    reference: Mapping[str, NodeState] = field(default_factory=dict)
    delegates: tuple[DelegateRecord, ...] = ()
    failure: Failure | None = None


@dataclass(frozen=True)
class TwinRun:
    """What a twin of the quantized graph returned on the TOSA reference model.

    :param relation: ``order of cat``, ``channel rotation`` or ``batch split``.
    :param operator: the operator that the twin alters (empty for ``batch split``).
    :param node: its name in the quantized graph.
    :param inputs: indices of the evaluation inputs that it ran on.
    :param outputs: one list of outputs for each of them, undone to the original's order.
    """

    relation: str
    operator: str
    node: str
    inputs: tuple[int, ...]
    outputs: tuple[tuple[Array, ...], ...]


@dataclass(frozen=True)
class Pieces:
    """A program whose values inside are outputs too, judged piece by piece (``harness.evidence.rounding.cuts``).

    :param cuts: the value at each cut: name and operator of the node that computes it.
    :param inputs: indices of the evaluation inputs that it ran on.
    :param types: types of the outputs, and behind them of the values at the cuts.
    :param reference: for each input the same of quantized eager, every piece on the values that the program computed.
    :param compiled: the same of the TOSA reference model.
    :param rounding: what a correct program may return, piece by piece; a lost qmin is forgiven.
    """

    cuts: tuple[tuple[str, str], ...]
    inputs: tuple[int, ...]
    types: tuple[OutputType, ...]
    reference: tuple[tuple[Array, ...], ...]
    compiled: tuple[tuple[Array, ...], ...]
    rounding: tuple[tuple[Envelope, ...], ...]

    @property
    def outputs(self) -> int:
        """How many outputs the program itself has."""
        return len(self.types) - len(self.cuts)

    def seen(self, observation: Observation) -> Observation:
        """The observation as it would be if the program returned its values inside, and nothing else was known."""
        return Observation(
            observation.case,
            tuple(observation.inputs[index] for index in self.inputs),
            replace(observation.lowering, outputs=self.types, delegates=()),
            {QUANTIZED: LegResult(outputs=self.reference), TOSA: LegResult(outputs=self.compiled)},
            rounding=self.rounding,
        )


@dataclass(frozen=True)
class FallenBack:
    """One operator of the lowered program that runs on the CPU.

    :param listed: do upstream's tables for the target's profile name it?
    :param reason: what the partitioner reported; empty if it reported nothing.
    :param float_by_recipe: the recipe leaves it, or what it directly reads or feeds, float.
    :param call: the node of the case's graph that it comes from (``NodeState.call``).
    :param macs: its multiply-accumulates.
    """

    operator: str
    node: str
    listed: Literal["yes", "no", "unknown"]
    reason: str = ""
    float_by_recipe: bool = False
    call: str = ""
    macs: int = 0
