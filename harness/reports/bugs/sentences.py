"""A finding in sentences: what is wrong, with which inputs, under which recipe, and what was seen.

A maintainer reads the first lines of a report. They say in one sentence what is wrong and how much of it; the shapes
of the inputs stand in the first snippet; a recipe is told in words, not in armdiff's spelling alone. Values are told in
the order in which a script prints them: what was expected, then what came.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from harness.case.aten import GETITEM
from harness.case.building import model_source
from harness.case.case import Case
from harness.case.recipe import Recipe, parse_recipe
from harness.evidence.observation import CRASH, headline, oracle_named
from harness.evidence.references import RUNTIME, RUNTIMES, VGF
from harness.reports.bugs.script import OWN_ERROR, REFUSED
from harness.reports.bugs.verifying import without_paths
from harness.reports.reporting.drawing import distribution_text
from harness.reports.reporting.words import operator_name
from harness.triage.buckets import VELA_STAGE
from harness.triage.findings import Finding, measured_size

_MOST_LINES = 22
"""Lines of a module that are shown outside the script."""
_LONGEST = 120
_TOOLS = {
    "Vela": "Vela's command stream of",
    RUNTIMES[RUNTIME]: "ExecuTorch's runtime, running the program of",
    RUNTIMES[VGF]: "The VGF payload of",
}
"""Who is blamed without being a pass, and how a sentence about wrong values begins."""
_ON_REFERENCE = "on the TOSA reference model"
_RUN_BY = {f"leg:{RUNTIME}": "by ExecuTorch's runtime", f"leg:{VGF}": "by ExecuTorch's VGF runtime"}
_WORST = re.compile(r"worst at (\[[^\]]*\]): ([\w-]+) ([^\s,]+), ([\w-]+) ([^\s,]+)(?=[,; ]|$)")
_CODES = re.compile(r"; codes (\[[^\]]*\]) where (\[[^\]]*\]) were expected")
_ELEMENT = re.compile(r"(\S+) where the reference has (\S+) at (\[[^\]]*\])")
_SHARE = re.compile(r"\d+ of \d+ elements")

_WIDTHS = {
    "a8w8": "8-bit activations and weights",
    "a16w8": "16-bit activations and 8-bit weights",
    "a8w4": "8-bit activations and 4-bit weights",
    "float": "no quantization",
}
_IO = {
    "same": "inputs and outputs quantized like everything else",
    "fixed": "inputs and outputs with scale 1/127 and zero point 0",
    "uint8": "uint8 inputs and outputs",
}


def sentence(text: str) -> str:
    """A text with a full stop, if it does not end otherwise."""
    text = text.strip()
    return text if not text or text.endswith((".", ":", "`")) else f"{text}."


def what_is_wrong(case: Case, finding: Finding) -> str:
    """The defect in one sentence."""
    module, target, oracle = _module(case, finding), f"`{finding.target}`", oracle_named(finding.oracle)
    if finding.oracle == CRASH and finding.stage.startswith("leg:"):
        where = _RUN_BY.get(finding.stage, _ON_REFERENCE)
        return sentence(f"The program of {module} for {target} cannot be run {where}: {_reason(finding)}")
    if finding.oracle == CRASH and finding.stage == VELA_STAGE:
        return sentence(f"Vela does not compile the TOSA graph of {module} for {target}: {_reason(finding)}")
    if finding.oracle == CRASH:
        where = f" in `{finding.pass_name}`" if finding.pass_name else ""
        return sentence(f"Lowering {module} for {target} fails{where}: {_reason(finding)}")
    if oracle.form == "unchanged":
        return f"Quantizing {module} changes the user's own module."
    blamed = finding.pass_name if finding.pass_name and ".." not in finding.pass_name else ""
    if not oracle.values:
        after = f" after `{blamed}`" if blamed and blamed not in _TOOLS else ""
        by = "compiled by Vela" if blamed == "Vela" else "lowered"
        return f"{module[:1].upper()}{module[1:]}, {by} for {target}, {oracle.wrong}{after}: {_what(finding)}."
    share, size = _SHARE.search(finding.message), measured_size(finding.measured)
    amount = ", ".join(filter(None, (share and share[0], size and f"up to {size} off")))
    who = _TOOLS.get(finding.pass_name or "", "The compiled program of")
    if oracle.form == "quality" or finding.stage == "convert":
        who = "The quantized graph of"
    after = f"; they are right up to `{blamed}`, and wrong after it" if blamed and blamed not in _TOOLS else ""
    what = "outputs of wrong shape" if finding.kind == "shape" else f"wrong values ({amount or finding.kind})"
    return f"{who} {module} for {target} returns {what}{after}."


def _what(finding: Finding) -> str:
    """The kind of a defect, and the beginning of what was seen."""
    seen = re.sub(r"^lowered_module_\d+: ", "", without_paths(finding.message)).split(";", 1)[0].strip(" .")
    return f"{finding.kind} ({seen})" if 0 < len(seen) <= _LONGEST else finding.kind


def _module(case: Case, finding: Finding) -> str:
    operators = {node.operator for node in case.graph.nodes}
    chain = [operator_name(item) for item in finding.chain if item in operators and item != GETITEM]
    return f"`{' -> '.join(chain)}`" if chain else "a module"


def _reason(finding: Finding) -> str:
    """An error's first line, without what the sentence says already; a signal has no words of its own."""
    kind = str(finding.measured.get("type", ""))
    if kind.startswith("SIG"):
        return f"the process ends with {kind}"
    said = message(finding).split(f"during {finding.stage}: ", 1)[-1]
    return headline(said)[:200]


def message(finding: Finding, *, codes_follow: bool = False) -> str:
    """What armdiff saw, with the words of its own explained, expected values before those that came.

    :param codes_follow: a script's output is shown with it, which has the codes of all elements in their order.
    """
    text = without_paths(finding.message).replace("during leg:tosa-reference", _ON_REFERENCE)
    text = text.removeprefix(f"{OWN_ERROR} {_ON_REFERENCE}: ")
    text = text.removeprefix(f"{REFUSED} during {finding.stage}: ")
    text = _WORST.sub(r"worst at \1: expected \5 (\4), actual \3 (\2)", text)
    text = _CODES.sub("" if codes_follow else r"; codes that occur, sorted: expected \2, actual \1", text)
    text = _ELEMENT.sub(r"at \3 expected \2, actual \1", text)
    if finding.pass_name == "Vela" and oracle_named(finding.oracle).values:
        text = f"The command stream, executed on armdiff's model of the Ethos-U: {text}"
    return sentence(text)


def recipe_in_words(text: str) -> str:
    """A recipe as somebody says it who configures a quantizer, with its spelling."""
    return f"{', '.join(_recipe(parse_recipe(text)))} (`{text}`)"


def _recipe(recipe: Recipe) -> Iterator[str]:
    yield _WIDTHS[recipe.widths]
    if recipe.widths == "float":
        return
    yield "a weight scale for each channel" if recipe.per_channel else "one weight scale for each tensor"
    if recipe.fixed_activations:
        yield "activations with scale 1/127 and zero point 0"
    if recipe.qmin != -128:
        yield f"activation codes from {recipe.qmin} to 127"
    if recipe.weight_qmin != -127:
        yield f"weight codes from {recipe.weight_qmin} to 127"
    if recipe.io is not None:
        yield _IO[recipe.io]
    if recipe.min_max_observer:
        yield "a min-max observer"
    if recipe.float_nodes:
        yield f"{' and '.join(recipe.float_nodes)} left float"
    for widths, nodes in recipe.mixed:
        yield f"{' and '.join(nodes)} with {_WIDTHS[widths]}"
    if recipe.edited:
        yield f"the qparams of {recipe.edited} edited by hand"


def snippet(case: Case) -> str:
    """The module, and what its inputs are: shape, dtype, and how they are calibrated."""
    lines = model_source(case).rstrip().splitlines()
    if len(lines) > _MOST_LINES:
        lines = [f"# {len(lines)} lines: see repro.py"]
    return "\n".join((*_inputs(case), *lines))


def _inputs(case: Case) -> Iterator[str]:
    for item in case.graph.inputs:
        calibration = case.calibration.get(item.name)
        said = f", calibrated {distribution_text(calibration)}" if calibration else ""
        yield f"# input {item.name}: {item.dtype} {list(item.shape)}{said}"
