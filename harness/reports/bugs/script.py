"""The text of ``repro.py``: one bug in plain PyTorch and ExecuTorch calls.

The module's class is the text that ``harness.case.building`` executes, the calls are those of
``harness.reports.bugs.calls``, and the values those of ``harness.reports.bugs.values``. What is checked, and how, is
the *form*:

- ``crash``: an exception, or a signal that ends the process
- ``values``: outputs of the lowered program (delegates on the TOSA reference model) against the quantized module
- ``quality``: outputs of the quantized module against the float one
- ``shapes``: number and shapes of the quantized module's outputs against the float one's
- ``unchanged``: the user's module after it was quantized against before
- ``borders``: what a program calls a delegate with against what its TOSA graph takes and returns
- ``zero_points``: zero points of TOSA operators against those that PT2E chose
- ``stream``: what Vela makes of the TOSA graph, if anything; wrong values in a stream need an Ethos-U to show

A script ends with status 1 and a line ``The bug shows.`` if the bug shows. Invariant: it imports upstream's
packages and numpy, never armdiff; no path of this machine is in it.
"""

from __future__ import annotations

import math
import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import jinja2

from harness.case.arrays import Array
from harness.case.aten import changed_state
from harness.case.building import SEEDING, model_source
from harness.case.case import Case
from harness.case.constants import CONSTANT_KINDS
from harness.case.recipe import parse_recipe
from harness.case.registry import operators
from harness.case.sampling import evaluation_inputs
from harness.case.target import parse_target
from harness.compat.releases import PACKAGES
from harness.evidence.observation import CRASH, ReproForm, oracle_named
from harness.evidence.references import RUNTIME, RUNTIMES
from harness.reports.bugs import calls
from harness.reports.bugs.values import DRAWING, Values
from harness.reports.bugs.verifying import VALUES
from harness.triage.buckets import VELA_STAGE
from harness.triage.findings import Finding

OWN_ERROR = "ReferenceModelError"
"""armdiff's own type for an invalid answer; a script raises RuntimeError with the same words."""
_STABLE = re.compile(r"(?<!\w)'[^']*'|\b\w*\d[\w.]*|\b\w+_\w+\b|[{}\[\]()<>,]|\s-\s")
REFUSED = "RuntimeRefused"
"""armdiff's own type for what ExecuTorch's runtime refuses; a script sees RuntimeError, and the reason on its log."""
_RUNS_ON = {False: "the TOSA reference model", True: "ExecuTorch's runtime"}
_ENDS = "during {stage}: "


@dataclass(frozen=True)
class Script:
    """A repro script before it is on disk.

    :param values: what has to be written beside it.
    """

    form: ReproForm
    text: str
    values: Values


def form_of(finding: Finding) -> ReproForm:
    """What a script has to look at to show a finding."""
    if finding.pass_name == "Vela" or finding.stage == VELA_STAGE:
        return "stream"
    form = oracle_named(finding.oracle).form
    if finding.stage == "convert" and finding.kind in ("count", "shape"):
        return "shapes"
    return "zero_points" if form == "values" and finding.kind == "zero point differs" else form


def write_script(
    case: Case, finding: Finding, title: str, releases: Mapping[str, str], tensors: Mapping[str, Array] | None = None
) -> Script:
    """The text of a script that shows a finding.

    :param title: one line, for the script's head.
    :param releases: version of each package that it was found with.
    """
    form = form_of(finding)
    values = Values(case, tensors or {})
    target, recipe = parse_target(case.target), parse_recipe(case.recipe)
    drawn = drawn_model(case, values)
    context: dict[str, Any] = {
        "title": title,
        "form": form,
        "needs": ", ".join(f"{name} {releases[name]}" for name in PACKAGES if name in releases) or ", ".join(PACKAGES),
        "inputs": [],
        "uint8": recipe.io == "uint8",
        **_CONTEXTS[form](case, finding),
    }
    context.setdefault("executes", False)
    if context.setdefault("runs", False):
        context["inputs"] = _inputs(case, finding, values)
    last, through = context["last"], form == "crash" and finding.stage in ("lower", "emit")
    lines = [
        calls.specification(target, recipe, through_vela=through, lowers=last in ("lower", "emit")),
        calls.quantizer(target, case.recipe),
        "before = {name: value.clone() for name, value in model.state_dict().items()}\n" if form == "unchanged" else "",
        "reference = copy.deepcopy(model)\n" if context.get("stateful") else "",
        calls.steps(target, case.recipe, last),
        _STATE_RESET if context.get("stateful") else "",
    ]
    context["setup"] = "".join(lines).rstrip()
    context["stored"] = VALUES if values.stored else ""
    context |= drawn.context(" ".join(context["inputs"]))
    text = environment().get_template(f"{_TEMPLATES.get(form, form)}.py.jinja").render(context)
    return Script(form, tidy(text), values)


@dataclass(frozen=True)
class Drawn:
    """A module as text, and what gives it its weights and its calibration samples.

    :param samples: a list of tuples of tensors.
    :param weights: lines.
    """

    model: str
    samples: str
    weights: list[str]

    def context(self, inputs: str) -> dict[str, Any]:
        """What a template says of it, with the functions that the text calls.

        :param inputs: what else is written and may call them.
        """
        helpers = [SEEDING.rstrip()] if "seed_weights(model" in " ".join(self.weights) else []
        helpers += [text.rstrip() for name, text in DRAWING.items() if f"{name}(" in self.samples + inputs]
        return {"model": self.model, "samples": self.samples, "weights": self.weights, "helpers": helpers}


def drawn_model(case: Case, values: Values) -> Drawn:
    """The text of a case's module."""
    return Drawn(weights=_weights(case, values), samples=values.samples(), model=model_source(case).rstrip())


def _weights(case: Case, values: Values) -> list[str]:
    """Lines that give the module its weights."""
    lines = []
    owners = [entry for node in case.graph.nodes if (entry := operators().get(node.operator)) is not None]
    if any(entry.module is not None for entry in owners):
        lines.append(f"seed_weights(model, {case.seeds.weights})")
    for constant in case.graph.constants:
        if CONSTANT_KINDS[constant.kind].stored:
            key = constant.parameters["key"]
            lines.append(f"model.{constant.name}.data.copy_({values.tensor(values.tensors[key], constant.name)})")
    if lines or any(CONSTANT_KINDS[constant.kind].place == "parameter" for constant in case.graph.constants):
        lines.append("model.requires_grad_(False)")
    return lines


def _inputs(case: Case, finding: Finding, values: Values) -> list[str]:
    """The inputs to run on: the one that the finding names, with the calls before it if there is state, or all."""
    given = evaluation_inputs(case, values.tensors)
    chosen = finding.measured.get("input")
    places = [*range(len(given))]
    if isinstance(chosen, int) and chosen < len(given):
        places = places[: chosen + 1] if changed_state(case.graph) else [chosen]
    return [values.evaluation(given[place], place) for place in places]


def _crash(case: Case, finding: Finding) -> dict[str, Any]:
    kind, number = str(finding.measured.get("type", "Exception")), signal_of(finding)
    runs = finding.stage.startswith("leg:")
    on_runtime = finding.stage == f"leg:{RUNTIME}"
    last = "lower" if runs else finding.stage
    return {
        "error": "RuntimeError" if kind in (OWN_ERROR, REFUSED) else kind,
        "part": "failed" if kind == REFUSED else stable_part(finding),
        "signal": number,
        "caught": "(Exception, SystemExit)" if kind == "SystemExit" else "Exception",
        "expected": f"the program runs on {_RUNS_ON[on_runtime]}" if runs else "the module is lowered",
        "runs": runs,
        "on_runtime": on_runtime,
        "last": last if last in calls.STEPS else "emit",
    }


def signal_of(finding: Finding) -> int | None:
    """The number of the signal that ended the process, if one did."""
    kind = str(finding.measured.get("type", ""))
    number = getattr(signal, kind, None) if kind.startswith("SIG") else None
    return int(number) if number is not None else None


def stable_part(finding: Finding) -> str:
    """The longest piece of an error's first line that holds no names and no numbers, one space between words."""
    _, _, said = finding.message.partition(_ENDS.format(stage=finding.stage))
    pieces = [piece.strip(" .:;") for piece in _STABLE.split(" ".join(said.split()))]
    return max(pieces, key=len, default="")


_STEPS, _EPSILONS = "steps (units of the last place)", "float32 epsilons of the largest value"
"""What distances of quantized and of float outputs are measured in."""


def _values(case: Case, finding: Finding) -> dict[str, Any]:
    """The lowered program's outputs against the reference's, in steps, whole numbers or float32 epsilons.

    An element may differ by more than another. Where a bound for all would hide the one that the finding is about,
    the script looks at that one alone. A finding that names no output (a scale that was lost) may show in any.
    """
    target, unit = parse_target(case.target), str(finding.measured.get("unit", "steps"))
    steps, whole = unit == "steps" and target.quantized, unit == "units"
    allowed, place = _rounded_down(finding.measured.get("bound", 1.0), steps), finding.measured.get("at")
    if finding.measured.get("distance", math.inf) > allowed or "allowed" not in finding.measured:
        place = None
    if place is not None:
        allowed = _rounded_down(finding.measured["allowed"], steps)
    output = finding.measured.get("output", 0 if len(case.graph.outputs) == 1 else None)
    return {
        "runs": True,
        "reads_lowered": True,
        "on_runtime": finding.pass_name == RUNTIMES[RUNTIME],
        "reason": "correct rounding",
        "last": "lower",
        "reference": "quantized" if target.quantized else "model",
        "outputs": "range(len(expected_values))" if output is None else f"[{output}]",
        "place": place,
        "steps": steps,
        "allowed": allowed,
        "unit": _STEPS if steps else "units" if whole else _EPSILONS,
        "whole": whole,
        "codes_text": '"codes"' if steps else '"values"',
    }


def _rounded_down(bound: Any, steps: bool) -> float:
    """Steps are whole numbers."""
    return math.floor(float(bound) + 0.01) if steps else round(float(bound), 2)


_STATE_RESET = """\
with torch.no_grad():  # the quantized module shares its buffers, which calibration has changed
    for name, buffer in reference.named_buffers():
        model.get_buffer(name).copy_(buffer)
"""


def _quality(case: Case, finding: Finding) -> dict[str, Any]:
    """The float module's outputs against the quantized one's, on the input where scales explain least."""
    context = _values(case, finding)
    bound, stateful = float(finding.measured.get("bound", 1.0)), bool(changed_state(case.graph))
    return {
        **context,
        "place": None,
        "reads_lowered": False,
        "last": "convert",
        "stateful": stateful,
        "reference": "reference" if stateful else "model",
        "subject": "quantized",
    } | {
        "reason": "quantization with these scales",
        "allowed": round(bound + 0.001, 3),
    }


def _stream(case: Case, finding: Finding) -> dict[str, Any]:
    crash, counts = finding.oracle == CRASH, finding.kind == "output count"
    duplicate, number = finding.kind.startswith("duplicate"), signal_of(finding)
    ended = f"exit status {-number}" if number is not None else ""  # as subprocess tells a signal
    return {
        "last": "lower",
        "crash": crash,
        "ended": ended,
        "part": ended or stable_part(finding),
        "counts": counts,
        "duplicate": duplicate,
        "executes": not (crash or counts or duplicate),  # what else is wrong shows when the stream runs
        "indexed": any(item.dtype in ("int32", "int64") for item in case.graph.inputs),
    }


_CONTEXTS = {
    "crash": _crash,
    "values": _values,
    "quality": _quality,
    "shapes": lambda case, finding: {"last": "convert"},
    "unchanged": lambda case, finding: {"last": "convert"},
    "borders": lambda case, finding: {"last": "lower"},
    "zero_points": lambda case, finding: {"last": "lower"},
    "stream": _stream,
}
_TEMPLATES = {"quality": "values"}


@cache
def environment() -> jinja2.Environment:
    """What lays out the templates of scripts and reports."""
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("harness.reports.bugs"),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    made.filters["repr"] = repr
    return made


def tidy(text: str) -> str:
    """Imports put in, and blank lines as people write them."""
    head, mark, body = text.partition("@IMPORTS@\n")
    body = re.sub(r"[ \t]+\n", "\n", body)
    body = re.sub(r"\n{2,}(?=[ \]})])", "\n\n", body)
    body = re.sub(r"\n+(?=(?:def|class|if) )", "\n\n\n", body)
    body = re.sub(r"(\n [^\n]*)\n+(?=[A-Z])", r"\1\n\n\n", body)
    return f"{head.rstrip()}\n\n{calls.imports(body)}\n\n{body.strip()}\n" if mark else text
