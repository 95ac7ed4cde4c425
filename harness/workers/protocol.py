"""What a campaign and its worker processes say to each other: questions and answers (``harness.workers.frames``).

The parent sends a ``Task``; the worker answers with any number of ``Stage`` and ``Run`` frames (so that a native
death has a last stage, and whoever waits sees what goes on) and one ``CaseResult``.
"""

from __future__ import annotations

import msgspec

from harness.evidence.observation import Unjudged
from harness.pipeline.engines import EngineChoice
from harness.pipeline.probes import ProbeMode
from harness.pipeline.profile import Profile
from harness.triage.findings import Finding
from harness.triage.known import KnownBug
from harness.triage.masking import Counts


class Task(msgspec.Struct, frozen=True, kw_only=True, tag="task"):
    """One case to run.

    :param case: path of the case file; its tensors lie beside it.
    :param legs: only these legs (empty: all that apply).
    :param confirm: re-run the case and keep only what shows twice.
    :param confirmed: buckets that showed twice already: their crashes and structural mismatches are
        not run again (wrong values are, unless they are known).
    :param known: the bugs that the corpus knows: what is proved to be one of them is not run again.
    :param user_file: the checked file whose ``configure`` prepares the quantizer.
    :param plant: also measure whether two planted steps would be caught.
    :param probes: which probes run (``harness.pipeline.probes``).
    :param ethos_u_engine: which legs execute an Ethos-U command stream (``harness.pipeline.engines``).
    :param corrections: names or files of the corrections that apply (``harness.corrections``).
    :param graph: names the case's graph: its cases on other targets best run in the same worker.
    :param apart: runs in a process that ends with it, and that ran nothing before it: a network leaves hundreds of MiB.
    :param profile: also measure what whoever deploys the model wants to know (``harness.pipeline.profile``).
    """

    case: str
    legs: tuple[str, ...] = ()
    confirm: bool = True
    confirmed: tuple[str, ...] = ()
    known: tuple[KnownBug, ...] = ()
    user_file: str | None = None
    plant: bool = False
    probes: ProbeMode = "default"
    ethos_u_engine: EngineChoice = "default"
    corrections: tuple[str, ...] = ()
    graph: str = ""
    apart: bool = False
    profile: bool = False


class CaptureTask(msgspec.Struct, frozen=True, kw_only=True, tag="capture"):
    """Capture a user's file as a case with tensors, written into ``folder``.

    :param seconds: how long the file, its forward and torch.export may take together.
    """

    file: str
    folder: str
    target: str
    recipe: str
    seconds: float = 120.0


class SuiteTask(msgspec.Struct, frozen=True, kw_only=True, tag="suite"):
    """Capture what upstream's tests in one file are about (``harness.campaign.suite``).

    :param file: from upstream's test folder, such as ``ops/test_abs.py``.
    :param folder: where cases and their tensors are written.
    :param targets: each subject becomes a case for each of these that takes its recipe.
    :param words: only tests whose name has one of them (none: all).
    :param seconds: how long that may take together.
    """

    file: str
    folder: str
    targets: tuple[str, ...]
    words: tuple[str, ...] = ()
    seconds: float = 600.0


class SuiteTest(msgspec.Struct, frozen=True, kw_only=True):
    """What was taken of one of upstream's tests.

    :param test: pytest's name of it, from upstream's test folder.
    :param cases: the case's file for each target, by name and without the folder; a test of the same module, inputs
        and recipe has the same.
    :param recipe: the recipe that the test means.
    :param other: what of the test's own quantization no recipe says; empty if nothing.
    :param expected: why upstream expects the test to fail; None if it does not.
    :param why: why there is no case, in one line; empty if there is one.
    """

    test: str
    cases: dict[str, str] = {}
    recipe: str = ""
    other: str = ""
    expected: str | None = None
    why: str = ""


class SuiteFile(msgspec.Struct, frozen=True, kw_only=True, tag="suite file"):
    """What was taken of one of upstream's test files; ``problem`` says in one line why nothing could be."""

    file: str
    tests: tuple[SuiteTest, ...] = ()
    problem: str | None = None


class EmitTask(msgspec.Struct, frozen=True, kw_only=True, tag="emit"):
    """Lower a case and hand back its program.

    :param case: path of the case file; its tensors lie beside it.
    :param target: compile for this target instead of the case's own.
    :param corrections: names or files of the corrections that apply (``harness.corrections``).
    """

    case: str
    target: str | None = None
    corrections: tuple[str, ...] = ()


Variant = tuple[str, ...]
"""Names or files of corrections that apply together."""


class CompareTask(msgspec.Struct, frozen=True, kw_only=True, tag="compare"):
    """Compile a case stock and with each of several variants (``harness.campaign.certify``).

    :param case: path of the case file; its tensors lie beside it.
    :param guarded: where Vela ends its process, be told so by an exception (``harness.compat.vela_in_child``).
    """

    case: str
    variants: tuple[Variant, ...]
    guarded: bool = False


class MaskTask(msgspec.Struct, frozen=True, kw_only=True, tag="mask"):
    """Lower a case and say what an imaginary bug in it would be taken for (``harness.triage.masking``).

    :param case: path of the case file; its tensors lie beside it.
    """

    case: str
    known: tuple[KnownBug, ...] = ()


class Masked(msgspec.Struct, frozen=True, kw_only=True, tag="masked"):
    """Counts by family of buckets, or why there are none, in one line."""

    counts: dict[str, Counts] = {}
    problem: str | None = None


class Stage(msgspec.Struct, frozen=True, tag="stage"):
    """The stage that is about to run."""

    name: str


AGAIN = "again"
"""The run of a case that asks whether what was found shows twice. Every other one but the first is part of a proof."""


class Run(msgspec.Struct, frozen=True, tag="run"):
    """The run of a case that is about to begin, where it is not the first: ``again``, ``with correction NAME``."""

    name: str


class Serves(msgspec.Struct, frozen=True, tag="serves"):
    """Another process answers from here on: a fork of the worker (``harness.workers.forks``)."""

    pid: int


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """The fork that was asked ended without an answer.

    :param status: its exit status; negative for a signal.
    """

    status: int


class Tightness(msgspec.Struct, frozen=True, kw_only=True):
    """How sharp the numeric comparison of one case was.

    :param bound: widest distance that the envelope allowed on in-range inputs, in units.
    :param caught: were two planted steps in one element caught? None if not asked.
    """

    bound: float = 0.0
    caught: bool | None = None


class Branches(msgspec.Struct, frozen=True, kw_only=True):
    """The branches of the Arm backend that one case took (``harness.workers.branches``).

    :param taken: module -> branches, sorted.
    :param ways: module -> branches that it has, for every module that is looked at.
    """

    taken: dict[str, tuple[tuple[int, int], ...]]
    ways: dict[str, int]


class CaseResult(msgspec.Struct, frozen=True, kw_only=True, tag="result"):
    """What became of one case.

    :param invalid: why the module is no test (it fails in plain eager), or None.
    :param problem: bad input or environment, one line, or None.
    :param unjudged: what no oracle could judge of it, and why (``harness.triage.unjudged``).
    :param branches: the branches of the Arm backend that it took, if they were measured.
    :param legs: leg -> "ran", "failed" or the reason why it was skipped.
    :param profile: what was measured of the program, if that was asked for.
    :param processor: seconds of processor time that the worker spent since its last answer (a fresh one: since its
        start); 0 if it died. ``proofs`` is the part of them that went into proofs.
    """

    case: str
    target: str = ""
    invalid: str | None = None
    problem: str | None = None
    findings: tuple[Finding, ...] = ()
    unrepeated: tuple[Finding, ...] = ()
    legs: dict[str, str] = {}
    seconds: dict[str, float] = {}
    delegates: int = 0
    delegated: tuple[str, ...] = ()
    fallback: tuple[str, ...] = ()
    tightness: Tightness | None = None
    unjudged: tuple[Unjudged, ...] = ()
    branches: Branches | None = None
    profile: Profile | None = None
    processor: float = 0.0
    proofs: float = 0.0


class Captured(msgspec.Struct, frozen=True, kw_only=True, tag="captured"):
    """Where a captured case was written, or why it could not be."""

    case: str = ""
    problem: str | None = None


class Emitted(msgspec.Struct, frozen=True, kw_only=True, tag="emitted"):
    """The bytes of a ``.pte``, or why there are none, in one line.

    :param tosa: delegate -> the TOSA flatbuffer that it was made from.
    """

    program: bytes = b""
    tosa: dict[str, bytes] = {}
    problem: str | None = None


QUANTIZED_GRAPH = "quantized graph"
"""How the first difference of two compiles begins where already what PT2E made differs."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """A case stock and with one variant of corrections.

    :param reached: the stock compile came to what the variant's last correction changes
        (``harness.corrections.touching``); assignments aside, if it changes functions as well.
    :param same: the artifacts are the same, and nothing was executed.
    :param what: the first difference between the artifacts.
    :param stock: what the oracles say of the stock run, without mere information.
    :param corrected: likewise with the corrections.
    :param apart: where a leg returns other values; empty if all return the same bits.
    """

    variant: tuple[str, ...]
    reached: bool = False
    same: bool = False
    what: str = ""
    stock: tuple[Finding, ...] = ()
    corrected: tuple[Finding, ...] = ()
    apart: str = ""


class Compared(msgspec.Struct, frozen=True, kw_only=True, tag="compared"):
    """The comparisons of one case, in the order of the variants, or why there are none.

    :param invalid: why the module is no test (it fails in plain eager), or None.
    :param problem: bad input or environment, or a death of the worker, one line, or None.
    """

    case: str
    target: str = ""
    comparisons: tuple[Comparison, ...] = ()
    invalid: str | None = None
    problem: str | None = None
    seconds: dict[str, float] = {}


class WholeTask(msgspec.Struct, frozen=True, kw_only=True, tag="whole"):
    """Go through the whole finite domain of what a correction changes (``harness.campaign.certify.whole``).

    :param correction: its name.
    """

    correction: str

    @property
    def case(self) -> str:
        """What messages call it."""
        return f"the domain of {self.correction}"


class Gone(msgspec.Struct, frozen=True, kw_only=True, tag="gone through"):
    """What going through a domain found.

    :param points: how many there are.
    :param wrong: of the installed function; ``corrected_wrong`` of the corrected one.
    :param lost: points where the installed function does something, and right, and the corrected one does otherwise.
    :param first: the first point that speaks against the correction; empty if none does.
    """

    says: str = ""
    points: int = 0
    wrong: int = 0
    corrected_wrong: int = 0
    lost: int = 0
    first: str = ""
    problem: str | None = None


class SweepTask(msgspec.Struct, frozen=True, kw_only=True, tag="sweep"):
    """Run the passes on variants of one case (``harness.campaign.breadth``).

    :param cases: paths of case files that differ in calibration, recipe and seeds only; no tensors beside them.
    :param corrections: names or files of the corrections that apply (``harness.corrections``).
    """

    cases: tuple[str, ...]
    corrections: tuple[str, ...] = ()


class SweptCase(msgspec.Struct, frozen=True, kw_only=True):
    """What the pass-level mode says of one variant.

    :param findings: without mere information; to be confirmed by the full pipeline.
    """

    case: str
    findings: tuple[Finding, ...] = ()


class Swept(msgspec.Struct, frozen=True, kw_only=True, tag="swept"):
    """The variants of one case, in the order in which they were asked for, or why there are none.

    :param edge_programs: how many edge programs served them.
    :param invalid: why the module is no test (it fails in plain eager), or None.
    :param problem: bad input or environment, or a death of the worker, one line, or None.
    """

    cases: tuple[SweptCase, ...] = ()
    edge_programs: int = 0
    invalid: str | None = None
    problem: str | None = None
    seconds: dict[str, float] = {}


class TimeTask(msgspec.Struct, frozen=True, kw_only=True, tag="time"):
    """Process the cases of one graph, one after the other, and say how long it took (``harness.cli.benchmark``).

    :param cases: paths of case files; their tensors lie beside them.
    """

    cases: tuple[str, ...]


class Timed(msgspec.Struct, frozen=True, kw_only=True, tag="timed"):
    """What one graph took.

    :param wall: seconds by the clock.
    :param processor: seconds of processor time, child processes included.
    :param stages: stage -> seconds by the clock; what is in none is the rest of ``wall``.
    :param failed: target -> why nothing was compiled for it.
    :param resident: bytes of the process in memory afterwards.
    """

    wall: float
    processor: float
    stages: dict[str, float] = {}
    failed: dict[str, str] = {}
    resident: int = 0
