"""What one case left behind, as data: the only thing that oracles see.

An ``Observation`` is a case plus its lowering's record, what each leg returned, and what probes
measured; or the failure that ended it early. Oracles are pure functions of it and never run a
model, so each can be tested on hand-made observations.

Words: a *failure* is an exception or a native death with its stage; an output's *domain* is the
quantization (scale, zero point) in which the program returns it, which gives the unit *step*;
an *envelope* is the range of values that a correct implementation may return for each element
(``harness.evidence.rounding``).

Invariants: arrays are numpy; lists run over evaluation inputs first, outputs second, and are
never zipped without a check of their length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from harness.case.arrays import Array
from harness.case.case import Case
from harness.case.place import Place
from harness.case.registry import entries
from harness.case.sampling import EvaluationInput
from harness.compat.snapshots import NodeState, PassTrace


@dataclass(frozen=True)
class Failure:
    """An exception (or a native death) and where it happened.

    :param stage: what was going on: ``export``, ``prepare``, …, ``leg:tosa-reference``.
    :param type: exception class, or the signal's name ("SIGSEGV").
    :param message: the exception's text, whole.
    :param pass_name: the Arm pass that was running, if one was.
    :param frame: last frame inside an upstream package: ``module:function``.
    :param node: the graph node that it was working on, if the frames tell.
    :param detail: traceback or the last lines of native output.
    """

    stage: str
    type: str
    message: str
    pass_name: str | None = None
    frame: str | None = None
    detail: str = ""
    node: str | None = None


def headline(message: str) -> str:
    """The first line; where it ends with a colon, what it announces as well: ``Validation error: MaxPool: - …``."""
    lines = [line.strip() for line in message.strip().splitlines() if line.strip()] or [""]
    last = next((index for index, line in enumerate(lines) if not line.endswith(":")), len(lines) - 1)
    return " ".join(lines[: last + 1])


@dataclass(frozen=True)
class Domain:
    """The quantization of one program output: value = (code - zero_point) * scale."""

    scale: float
    zero_point: int
    qmin: int
    qmax: int


@dataclass(frozen=True)
class OutputType:
    """Shape and dtype of one program output, and its domain where it is a dequantized value."""

    shape: tuple[int, ...]
    dtype: str
    domain: Domain | None = None


@dataclass(frozen=True)
class ValueType:
    """Shape, dtype and dim order of a value that crosses a delegate's border.

    :param dim_order: axes from the slowest to the fastest in memory.
    """

    shape: tuple[int, ...]
    dtype: str
    dim_order: tuple[int, ...] = ()


@dataclass(frozen=True)
class Estimate:
    """What Vela expects of one delegate (its own words: for real figures run it on an FVP or FPGA).

    :param cycles: of the NPU's clock, for one inference.
    :param clock: Hz of the system configuration that it was compiled for.
    """

    cycles: int
    clock: float


@dataclass(frozen=True)
class DelegateRecord:
    """One delegate of the lowered program.

    :param tosa: the TOSA flatbuffer, which for Ethos-U is the one that Vela compiled.
    :param payload: what the delegate holds: the flatbuffer itself, or Vela's blocks.
    :param inputs: names of the values that the program calls it with, in order.
    :param tosa_inputs: names of the TOSA graph's inputs, in order.
    :param operators: ATen or edge operators that it replaced, in graph order.
    :param arguments: type of each value that the program calls it with, in order.
    :param results: type of each value that the program takes from it, in order; None for a result
        that nothing reads.
    :param trace: what the Arm passes did to it.
    :param estimate: Vela's; None for other backends, and where Vela wrote none.
    """

    name: str
    backend: str
    tosa: bytes | None
    payload: bytes
    inputs: tuple[str, ...]
    tosa_inputs: tuple[str, ...]
    operators: tuple[str, ...]
    arguments: tuple[ValueType, ...] = ()
    results: tuple[ValueType | None, ...] = ()
    trace: PassTrace | None = None
    estimate: Estimate | None = None


@dataclass(frozen=True)
class LoweringRecord:
    """What the one compile of a case left behind (data only; live objects stay in the worker).

    :param outputs: the types that the *quantized* (or float) graph promises.
    :param domains: what PT2E decided: name of each quantized value in the quantized graph -> domain.
    :param mutated: parameters and buffers of the user's module that quantizing or lowering changed.
    :param fallback: operators that stayed on the CPU, quantize/dequantize aside.
    :param program: the serialized ``.pte``.
    :param unfinished: the passes of a delegate whose lowering raised, up to the last that ended.
    :param refused: the TOSA flatbuffer on which Vela raised; empty if it was not Vela, or Vela's process died.
    :param reference: the quantized graph that was lowered: its nodes by name, with its constants.
    :param seconds: stage -> seconds.
    """

    outputs: tuple[OutputType, ...] = ()
    domains: Mapping[str, Domain] = field(default_factory=dict)
    delegates: tuple[DelegateRecord, ...] = ()
    mutated: tuple[str, ...] = ()
    fallback: tuple[str, ...] = ()
    program: bytes = b""
    unfinished: PassTrace | None = None
    refused: bytes = b""
    reference: Mapping[str, NodeState] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class LegResult:
    """What one leg returned: per evaluation input a list of output arrays; or why it did not run.

    :param fault: it was skipped because armdiff itself failed.
    """

    outputs: tuple[tuple[Array, ...], ...] = ()
    skipped: str | None = None
    failure: Failure | None = None
    fault: bool = False

    @property
    def ran(self) -> bool:
        return self.skipped is None and self.failure is None


@dataclass(frozen=True)
class Envelope:
    """For one output on one evaluation input: lowest and highest correct value of each element.

    ``unjudged`` names operators without a rule; where they matter the ends are infinite.
    """

    low: Array
    high: Array
    unjudged: tuple[str, ...] = ()


@dataclass(frozen=True)
class Observation:
    """A case and everything that was observed of it.

    :param rounding: the ``rounding`` probe: per evaluation input, per output, what a correct
        implementation of the reference leg's graph may return.
    :param saturation: the same if a lost qmin is forgiven; None where no recipe sets one.
    :param probes: results of the probes that ran, by name (``harness.pipeline.probes``).
    :param quantization: the ``quantization`` probe: the float function that the quantized graph
        stands for, without its rounding (calibration inputs only; None elsewhere).
    """

    case: Case
    inputs: tuple[EvaluationInput, ...] = ()
    lowering: LoweringRecord = field(default_factory=LoweringRecord)
    legs: Mapping[str, LegResult] = field(default_factory=dict)
    rounding: tuple[tuple[Envelope, ...], ...] | None = None
    saturation: tuple[tuple[Envelope, ...], ...] | None = None
    quantization: tuple[tuple[Envelope, ...] | None, ...] | None = None
    failure: Failure | None = None
    probes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Mismatch:
    """One disagreement, as an oracle states it.

    :param kind: a short stable word for what is wrong ("outside rounding"); part of the bucket.
    :param message: one line for people: what was seen, what was expected, where, in which unit.
    :param legs: the two legs that disagree, if it is about legs.
    :param measured: numbers behind the message, JSON scalars.
    :param pass_name: the first pass after which the property is broken, or "serializer", "Vela".
    :param last_right: the last pass after which it held, where ``pass_name`` is the end of a wider
        bracket than one pass.
    :param information: worth telling and no defect; counts as a finding only if asked for.
    :param detail: lines that show the place, for people: a disassembly.
    :param place: the operators around it, for conditions of corpus entries; None where nothing tells.
    :param node: the node of the case's graph that it is about (``NodeState.call``); empty where nothing tells.
    :param signature: message with names and numbers removed where the kind alone would merge
        different causes (exceptions); part of the bucket.
    """

    oracle: str
    kind: str
    message: str
    stage: str = "run"
    pass_name: str | None = None
    legs: tuple[str, str] | None = None
    measured: Mapping[str, float | int | str | bool] = field(default_factory=dict)
    signature: str = ""
    last_right: str | None = None
    information: bool = False
    detail: str = ""
    place: Place | None = None
    node: str = ""


@dataclass(frozen=True, kw_only=True)
class Unjudged:
    """What an oracle could not judge of one case, and why.

    :param what: the operator that is to blame (``aten.sin``), or the reason in a few words; equal ones add up.
    :param why: the reason, in one line.
    :param leg: the leg whose outputs were not judged; empty if it is no matter of one leg.
    :param outputs: indices of the program's outputs that it concerns.
    :param parts: how much of them was not judged, ``of`` how much there is, in ``unit``; 0 of 0: no part was.
    """

    what: str
    why: str
    leg: str = ""
    outputs: tuple[int, ...] = ()
    parts: int = 0
    of: int = 0
    unit: str = "elements"


ReproForm = Literal["crash", "values", "quality", "shapes", "unchanged", "borders", "zero_points", "stream"]


@dataclass(frozen=True)
class Oracle:
    """One oracle: a name, a pure function from an observation to mismatches, and what the engine must know of it.

    :param unjudged: what it could not judge, from the observation and its own mismatches; None if it always can.
    :param values: does it speak of values that a program returns? Its coarse buckets may then hold several causes.
    :param coarse: do its coarse buckets say too little, so that operators have to say which bug it is?
    :param replayed: is its wrong value one that the graph after each pass can be evaluated for?
    :param lowered: does it need nothing but the lowering, neither a run nor a border of the program?
    :param probed: may a probe be what shows its mismatches?
    :param smaller: the oracle that says of a smaller graph's outputs what this one says of values inside; empty if
        none does.
    :param rank: its place in listings, the worst harm first.
    :param form: what a repro script looks at, unless Vela is to blame (``harness.reports.bugs.script``).
    :param expected: what a report says should be, a sentence.
    :param wrong: what a report says of the lowered module, a verb and its object.
    """

    name: str
    judge: Callable[[Observation], list[Mismatch]]
    unjudged: Callable[[Observation, Sequence[Mismatch]], Iterable[Unjudged]] | None = None
    values: bool = False
    coarse: bool = False
    replayed: bool = False
    lowered: bool = False
    probed: bool = False
    smaller: str = ""
    rank: int = 99
    form: ReproForm = "values"
    expected: str = "No difference."
    wrong: str = "comes out wrong"


CRASH = "crash"
"""The one oracle that the engine names: it speaks of failures, and only the engine sees a worker die."""


@cache
def oracles() -> Mapping[str, Oracle]:
    """Every oracle of ``oracles``, by name."""
    return entries("oracle", "oracles", "ORACLE")


def oracle_named(name: str) -> Oracle:
    """The oracle of a finding; one that says nothing of itself, if the finding is of another release of armdiff."""
    return oracles().get(name) or Oracle(name, lambda observation: [])
