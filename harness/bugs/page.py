"""``REPORT.md``: a finding as an issue that can be pasted into ExecuTorch's form (or Vela's).

What it says comes from the finding, the corpus entry's status (releases, root cause, links), what the
script printed in its fresh process, and the correction of the bug, if armdiff has one. Nothing is claimed
that was not seen: a script that does not show the bug is called that.

Invariant: no path of this machine.
"""

from __future__ import annotations

import difflib
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jinja2

from harness.aten import GETITEM
from harness.bugs.verifying import IO_FILE, SHOWS, Verified, readable
from harness.building import model_source
from harness.case import Case
from harness.compat.releases import PACKAGES
from harness.compat.vela import default_configuration
from harness.corpus import Status
from harness.corrections.correction import Change, Correction
from harness.recipe import parse_recipe
from harness.target import parse_target
from harness.triage import VALUE_ORACLES, Finding, measured_size

_TABLE = (
    ("default", "1.5.1", "2.13.0"),
    ("et141", "1.4.1", "2.13.0"),
    ("et131", "1.3.1", "2.12.0"),
    ("et120", "1.2.0", "2.11.0"),
    ("seed", "1.2.0", "2.10.0"),
    ("et110", "1.1.0", "2.10.0"),
)
_WORDS = {
    "reproduces": "shows",
    "fixed": "does not show",
    "hidden": "cannot be told: another failure comes first",
}
_EXPECTED = {
    "crash": "The module lowers and runs; or the partitioner leaves the pattern to the CPU, with a reason.",
    "numeric": "The compiled program returns what the quantized module returns, up to the rounding that TOSA allows.",
    "outputs": "As many outputs as the module has, of the same shape, dtype and order.",
    "quality": "The quantized module approximates the float module as closely as its scales allow.",
    "qparams": "The scales and zero points that PT2E chose are those of the compiled graph.",
    "constants": "Every constant of the compiled graph is the value that the quantized module implies.",
    "buffers": "Program, TOSA graph and payload agree on number, order, dtype, shape and bytes of every buffer.",
    "stream": "Vela's command stream reads and writes only what belongs to it, and each operation once.",
    "model-unchanged": "Quantizing a graph does not change the parameters and buffers of the user's module.",
    "deterministic": "The same module gives the same program.",
    "metamorphic": "Twins of a module that mean the same return the same bits.",
}


@dataclass(frozen=True)
class Facts:
    """Everything that a report is made of.

    :param finding: the mismatch, of the smallest case that is known.
    :param script: text of ``repro.py``; ``verified`` is what it did.
    :param status: the corpus entry's contents: title, root cause, releases.
    :param neighbour: the nearest case that runs clean, and in words what ``distinguishes`` it.
    :param releases: package -> version.
    :param executed: what the command streams that the script left return on armdiff's model of the Ethos-U.
    """

    case: Case
    finding: Finding
    script: str
    verified: Verified
    status: Status
    releases: Mapping[str, str]
    corrections: Sequence[Correction] = ()
    neighbour: Case | None = None
    distinguishes: str = ""
    executed: str = ""


def report_text(facts: Facts) -> str:
    """The whole report."""
    finding, case = facts.finding, facts.case
    vela = finding.pass_name == "Vela" or finding.stage == "vela"
    shown = facts.verified.outcome == SHOWS  # the script prints the traceback itself
    context: dict[str, Any] = {
        "title": facts.status.title,
        "vela": vela,
        "summary": _summary(facts),
        "outcome": facts.verified.outcome,
        "tosa": [name for name in facts.verified.files if name.endswith(".tosa")],
        "io": [name for name in facts.verified.files if name.endswith(IO_FILE)],
        "executed": facts.executed,
        "command": _command(case, facts.verified),
        "script": facts.script.rstrip(),
        "message": _sentence(readable(finding.message)),
        "output": facts.verified.output,
        "detail": readable(finding.detail) if vela or (finding.oracle == "crash" and not shown) else "",
        "detail_title": "Around the first wrong operation" if vela and finding.oracle != "crash" else "Traceback",
        "expected": _EXPECTED.get(finding.oracle, "No difference."),
        "blame": _blame(facts),
        "noise": _noise(finding, facts.verified),
        "lines": [*_lines(facts.status)],
        "neighbour": model_source(facts.neighbour).rstrip() if facts.neighbour else "",
        "distinguishes": _sentence(facts.distinguishes) or "The nearest case that does not show it:",
        "upstream": facts.status.upstream,
        "corrections": [_correction(item, facts.releases.get("executorch", "")) for item in facts.corrections],
        "versions": versions(facts.releases),
        "releases": facts.releases,
        "edited": parse_recipe(case.recipe).edited,
        "weights": case.tensors is not None,
        "bucket": finding.bucket,
    }
    loader = jinja2.PackageLoader("harness.bugs")
    environment = jinja2.Environment(
        loader=loader, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    text = environment.get_template("REPORT.md.jinja").render(context)
    before, fence, after = text.partition("```python")  # a script keeps its own blank lines
    return re.sub(r"\n{3,}", "\n\n", before) + fence + _single_blank(after)


def _single_blank(text: str) -> str:
    script, end, rest = text.partition("\n```\n")
    return script + end + re.sub(r"\n{3,}", "\n\n", rest).rstrip() + "\n"


def title_of(finding: Finding) -> str:
    """A title for a bug that nobody has named yet."""
    chain = " -> ".join(_plain(item) for item in finding.chain if item != GETITEM) or "module"
    size = measured_size(finding.measured)
    what = {"crash": finding.message.split(":", 1)[0]}.get(finding.oracle, finding.kind)
    whose = "Vela" if finding.pass_name == "Vela" else "Arm backend"
    return f"{whose}: {chain} on {finding.target}: {what}{f' ({size})' if size else ''}"


def _plain(operator: str) -> str:
    return operator.removeprefix("aten.").removesuffix(".default")


def _sentence(text: str) -> str:
    text = text.strip()
    return text if not text or text.endswith((".", ":", "`")) else f"{text}."


def _summary(facts: Facts) -> str:
    finding = facts.finding
    operators = {node.operator for node in facts.case.graph.nodes}
    chain = " -> ".join(f"`{_plain(item)}`" for item in finding.chain if item in operators and item != GETITEM)
    where = f"a module with {chain}" if chain else "a module"
    note = f"\n\n{facts.status.note}" if facts.status.note else ""
    kinds = {
        "crash": f"Lowering or running {where} for `{finding.target}` (recipe `{finding.recipe}`) fails.",
        "model-unchanged": f"Quantizing {where} changes the module itself.",
    }
    wrong = (
        f"{where[0].upper()}{where[1:]}, compiled for `{finding.target}` (recipe `{finding.recipe}`), comes out wrong"
    )
    size = measured_size(finding.measured)
    return kinds.get(finding.oracle, f"{wrong}: {finding.kind}{f', {size}' if size else ''}.") + note


def _blame(facts: Facts) -> str:
    finding = facts.finding
    if not finding.pass_name and not facts.corrections:
        return ""
    reasons = []
    if finding.pass_name == "Vela":
        reasons.append("Vela: the TOSA graph that it was given is right on the TOSA reference model.")
    elif finding.pass_name:
        how = (
            "the graph after each pass of the Arm pass manager was evaluated on the input that shows it"
            if finding.oracle in VALUE_ORACLES
            else "it is the first after which the property is broken"
            if finding.oracle != "crash"
            else "it raises"
        )
        reasons.append(f"`{finding.pass_name}`: {how}.")
    reasons += [item.cause for item in facts.corrections]
    return " ".join(reasons)


def _noise(finding: Finding, verified: Verified) -> str:
    if finding.oracle not in VALUE_ORACLES:
        return ""
    if finding.pass_name == "Vela":
        return (
            "Both sides are integers: the TOSA reference model runs the very flatbuffer that Vela compiled, and a "
            "command stream has nothing to round differently. Every bit has to agree."
        )
    bound, distance, unit = (finding.measured.get(key) for key in ("bound", "distance", "unit"))
    if bound is None or distance is None:
        return "What quantization itself may do was derived from scales and weights; the difference is beyond it."
    inside = " It shows on an input inside the calibrated range." if finding.measured.get("in_range") else ""
    return (
        "The reference is the quantized module itself, so that quantization is on both sides; what is left is "
        f"rounding, which was derived for each element along this very graph: at most {bound:g} {unit}. "
        f"Observed: {distance:g} {unit}.{inside}"
    )


def _lines(status: Status) -> list[dict[str, str]]:
    return [
        {"executorch": executorch, "torch": torch, "word": _WORDS[status.lines[line].status]}
        for line, executorch, torch in _TABLE
        if line in status.lines
    ]


def _command(case: Case, verified: Verified) -> str:
    if not verified.files:
        return ""
    files = " ".join(name for name in verified.files if name.endswith(".tosa"))
    words = default_configuration(parse_target(case.target).name)
    return (
        f"vela --accelerator-config={words.target} --config=Arm/vela.ini --system-config={words.system_config} "
        f"--memory-mode={words.memory_mode} --output-format=raw {files}"
    )


def _correction(item: Correction, executorch: str) -> dict[str, Any]:
    changes = [
        {"place": f"{change.module}.{change.place}", "diff": _diff(change)} for change in item.for_release(executorch)
    ]
    return {
        "workaround": item.workaround,
        "change": item.change,
        "changes": changes,
        "evidence": (
            f"`armdiff certify {item.name} --patch` writes this as a patch, and checks that it removes the bug and "
            "leaves other programs as they are."
        ),
    }


def _diff(change: Change) -> str:
    """Edits of a place as removed and added lines (what they have in common is left in)."""
    texts = []
    for edit in change.edits:
        lines = difflib.unified_diff(edit.old.splitlines(), edit.new.splitlines(), lineterm="", n=2)
        texts.append("\n".join(line for line in lines if not line.startswith(("---", "+++"))))
    return "\n".join(texts)


def versions(releases: Mapping[str, str]) -> str:
    """Versions as ``collect_env`` prints them, of the packages that matter."""
    libraries = [f"[pip3] {name}=={releases[name]}" for name in sorted(PACKAGES) if name in releases]
    system = " ".join([platform.system(), platform.machine()])
    return "\n".join(
        [
            f"PyTorch version: {releases.get('torch', 'unknown')}",
            f"OS: {system}",
            f"Libc version: {'-'.join(platform.libc_ver())}",
            f"Python version: {platform.python_version()} (64-bit runtime)",
            "Versions of relevant libraries:",
            *libraries,
        ]
    )
