"""``REPORT.md``: a finding as an issue that can be pasted into ExecuTorch's form (or Vela's).

What it says comes from the finding, the corpus entry's status (releases, root cause, links), what the
script printed in its fresh process, and the correction of the bug, if armdiff has one. Nothing is claimed
that was not seen: a script that does not show the bug is called that.

Invariant: no path of this machine.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.campaign.certify.evidence import Certificate
from harness.campaign.certify.page import in_brief
from harness.case.aten import GETITEM
from harness.case.building import model_source
from harness.case.case import Case
from harness.case.recipe import parse_recipe
from harness.case.target import parse_target
from harness.compat.releases import PACKAGES, TABLE
from harness.compat.vela import default_configuration
from harness.corrections.correction import Correction
from harness.evidence.observation import CRASH, oracle_named
from harness.evidence.references import RUNTIMES
from harness.reports.bugs.script import environment
from harness.reports.bugs.sentences import message, recipe_in_words, sentence, snippet, what_is_wrong
from harness.reports.bugs.smallest import smallest_facts
from harness.reports.bugs.tosa_text import tosa_text
from harness.reports.bugs.verifying import IO_FILE, SHOWS, Verified, readable, without_paths
from harness.reports.reporting.words import operator_name
from harness.tosa.causes import Cause
from harness.triage.buckets import VELA_STAGE
from harness.triage.corpus import Status
from harness.triage.findings import Finding, measured_size

_WORDS = {
    "reproduces": "shows",
    "fixed": "does not show",
    "hidden": "cannot be told: another failure comes first",
}


_COLUMNS = {True: ("ethos-u-vela", "executorch"), False: ("executorch", "torch")}
"""The packages whose versions a maintainer asks for: of Vela, and of ExecuTorch."""

_FIRST_WRONG = "first wrong: "
"""What the message of a wrong command stream says before the operation."""


@dataclass(frozen=True)
class Facts:
    """Everything that a report is made of.

    :param finding: the mismatch, of the smallest case that is known.
    :param script: text of ``repro.py``; ``verified`` is what it did.
    :param status: the corpus entry's contents: title, root cause, releases.
    :param neighbour: the nearest case that runs clean, and in words what ``distinguishes`` it.
    :param releases: package -> version.
    :param executed: what the command streams that the script left return on armdiff's model of the Ethos-U.
    :param smallest: of a bug of Vela, the smallest TOSA program that shows it.
    :param mentioned: title of each other entry that the status speaks of, by name.
    :param certificates: what is stored for the corrections, by name.
    :param patches: the unified diff of each correction for the ExecuTorch repository, where the release that it is for
        is the installed one.
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
    smallest: Cause | None = None
    mentioned: Mapping[str, str] = field(default_factory=dict)
    certificates: Mapping[str, Certificate] = field(default_factory=dict)
    patches: Mapping[str, str] = field(default_factory=dict)

    @property
    def of_vela(self) -> bool:
        """Is the defect Vela's? Where it refuses a graph, it may be right."""
        return self.finding.pass_name == "Vela"


def report_text(facts: Facts) -> str:
    """The whole report."""
    known = context(facts)
    return rendered("vela.md.jinja" if known["vela"] else "executorch.md.jinja", known, facts.script)


def rendered(template: str, known: Mapping[str, Any], script: str) -> str:
    """A template's text, with the script in place of ``@SCRIPT@``."""
    text = environment().get_template(template).render(known)
    code = f"```python\n{script.rstrip()}\n```"  # put in last: it keeps its own blank lines
    return re.sub(r"\n{3,}", "\n\n", text).rstrip().replace("@SCRIPT@", code, 1) + "\n"


def context(facts: Facts) -> dict[str, Any]:
    """What the templates of a bug's text say."""
    finding, case = facts.finding, facts.case
    shown = facts.verified.outcome == SHOWS  # the script prints the traceback itself
    wrong_values = facts.of_vela and oracle_named(finding.oracle).values
    for_vela = facts.of_vela or finding.stage == VELA_STAGE
    return {
        "title": facts.status.title,
        "vela": for_vela,
        "sentence": what_is_wrong(case, finding),
        "snippet": snippet(case),
        "recipe": recipe_in_words(case.recipe),
        "target": case.target,
        "graphs": [(name, tosa_text(data)) for name, data in facts.verified.files.items() if name.endswith(".tosa")],
        "smallest": smallest_facts(facts.smallest),
        "outcome": facts.verified.outcome,
        "io": [name for name in facts.verified.files if name.endswith(IO_FILE)],
        "executed": facts.executed,
        "command": _command(case, facts.verified),
        "message": message(finding, codes_follow="expected codes" in facts.verified.output),
        "output": facts.verified.output,
        "detail": readable(finding.detail) if wrong_values or (finding.oracle == CRASH and not shown) else "",
        "detail_title": "Around the first wrong operation" if wrong_values else "Traceback",
        "expected": _expected(facts),
        "blame": _blame(facts),
        "blame_title": _blame_title(finding, wrong_values),
        "noise": _noise(finding, facts.verified),
        "columns": _COLUMNS[for_vela],
        "lines": _lines(facts.status, _COLUMNS[for_vela]),
        "neighbour": model_source(facts.neighbour).rstrip() if facts.neighbour else "",
        "distinguishes": sentence(facts.distinguishes) or "The nearest case that does not show it:",
        "related": [*facts.status.upstream, *(f"`{name}`: {title}" for name, title in facts.mentioned.items())],
        "corrections": [_correction(item, facts) for item in facts.corrections],
        "versions": versions(facts.releases),
        "releases": facts.releases,
        "edited": parse_recipe(case.recipe).edited,
        "weights": case.tensors is not None,
        "bucket": finding.bucket,
    }


def _blame_title(finding: Finding, wrong_values: bool) -> str:
    if wrong_values:
        return "First wrong operation"
    is_pass = finding.pass_name and finding.pass_name not in ("Vela", *RUNTIMES.values())
    return "First wrong pass, and why" if is_pass else "Root cause"


def title_of(finding: Finding) -> str:
    """A title for a bug that nobody has named yet."""
    chain = " -> ".join(operator_name(item) for item in finding.chain if item != GETITEM) or "module"
    size = measured_size(finding.measured)
    what = finding.message.split(":", 1)[0] if finding.oracle == CRASH else finding.kind
    whose = finding.pass_name if finding.pass_name in ("Vela", *RUNTIMES.values()) else "Arm backend"
    return f"{whose}: {chain} on {finding.target}: {what}{f' ({size})' if size else ''}"


def _expected(facts: Facts) -> str:
    finding = facts.finding
    if finding.oracle == CRASH and finding.stage == VELA_STAGE:
        return (
            "Vela compiles the graph; or ExecuTorch does not make it: the partitioner leaves the pattern to the "
            "CPU or a pass lowers it otherwise."
        )
    if facts.of_vela and oracle_named(finding.oracle).values:
        return "The command stream returns what the TOSA reference model returns for the TOSA file that Vela compiled."
    return oracle_named(finding.oracle).expected


def _blame(facts: Facts) -> str:
    """Which pass (or operation), how that is known, and the root cause as far as somebody has found it."""
    finding, reasons = facts.finding, []
    name = finding.pass_name or ""
    if facts.of_vela and oracle_named(finding.oracle).values:
        _, marked, first = finding.message.partition(_FIRST_WRONG)
        if marked:
            how = (
                "found by comparing what each operation of the command stream stores with the tensors of the TOSA graph"
            )
            reasons.append(f"{first[:1].upper()}{first[1:]}: {how}.")
        reasons.append("The TOSA graph is not to blame: the reference is the TOSA reference model on the same file.")
    elif facts.of_vela:
        reasons.append("Vela: what it was given does not have the defect.")
    elif name in RUNTIMES.values():
        reasons.append(
            f"{name}: the same program, its delegates on the TOSA reference model and the rest in eager PyTorch, "
            "returns what it should."
        )
    elif ".." in name:
        first, _, last = name.partition("..")
        reasons.append(f"Right after `{first}`, wrong after `{last}`; the graph between them could not be evaluated.")
    elif name and oracle_named(finding.oracle).values:
        reasons.append(
            f"`{name}` is the first after which the graph returns something else: armdiff evaluated it after each pass "
            "of the Arm pass manager, on the input that shows the bug."
        )
    elif name and finding.oracle == CRASH:
        reasons.append(f"The error is raised in `{name}`.")
    elif name:
        reasons.append(f"`{name}` is the first after which this is so: armdiff looked at the graph after each pass.")
    causes = [facts.status.note] if facts.status.note else [item.cause for item in facts.corrections]
    return "\n\n".join(" ".join(part).strip() for part in (reasons, causes) if any(part))


def _noise(finding: Finding, verified: Verified) -> str:
    if not oracle_named(finding.oracle).values:
        return ""
    if finding.pass_name == "Vela":
        return (
            "Both sides are integers: the TOSA reference model runs the very flatbuffer that Vela compiled, and a "
            "command stream has nothing to round differently. Every bit has to agree."
        )
    if finding.kind == "shape":
        return "Quantization may change values; it changes no shape."
    bound, distance, unit = (finding.measured.get(key) for key in ("bound", "distance", "unit"))
    if oracle_named(finding.oracle).form == "quality" or bound is None or distance is None:
        return "What quantization itself may do was derived from scales and weights; the difference is beyond it."
    inside, where = finding.measured.get("in_range"), ""
    if inside is not None:
        outside = " The input is outside the calibrated range, where the quantized module saturates, too."
        where = " It shows on an input inside the calibrated range." if inside else outside
    same = "quantized module itself, so that quantization is on both sides"
    if not parse_target(finding.target).quantized:
        same = "module itself, and nothing is quantized"
    return (
        f"The reference is the {same}; what is left is "
        f"rounding, which was derived for each element along this very graph: at most {_amount(bound, unit)} here. "
        f"Observed: {_amount(distance, unit)}.{where}"
    )


def _amount(number: float, unit: object) -> str:
    """``1 step``, ``6 steps``."""
    return f"{number:g} {str(unit).removesuffix('s') if number == 1 else unit}"


def _lines(status: Status, packages: Sequence[str]) -> list[tuple[str, ...]]:
    """The versions of some packages on each line that was tried, and what the bug does there; nothing twice."""
    tried = [line for line in TABLE if line.name in status.lines]
    rows = ((*(line.releases[name] for name in packages), _WORDS[status.lines[line.name].status]) for line in tried)
    return list(dict.fromkeys(rows))


def _command(case: Case, verified: Verified) -> str:
    """Vela's command line: as the script printed it, or with what the target stands for."""
    if printed := re.findall(r"^\$ (vela .+)$", verified.output, re.M):
        return "\n".join(printed)
    files = " ".join(name for name in verified.files if name.endswith(".tosa"))
    words = default_configuration(parse_target(case.target).name)
    return (
        f"vela --accelerator-config={words.target} --config=Arm/vela.ini --system-config={words.system_config} "
        f"--memory-mode={words.memory_mode} --output-format=raw {files}"
    )


def _correction(item: Correction, facts: Facts) -> dict[str, Any]:
    workaround = item.works_around(facts.status.package)
    return {
        "workaround": workaround,
        "change": item.change,
        "diff": "" if workaround else facts.patches.get(item.name, "").rstrip(),  # Vela's developers have no use for it
        "places": [
            f"{change.module}.{change.place}" for change in item.for_release(facts.releases.get("executorch", ""))
        ],
        "evidence": _evidence(item, facts.certificates.get(item.name)),
    }


def _evidence(item: Correction, certificate: Certificate | None) -> str:
    """What is known of a correction besides that it ends the bug, or how to know."""
    if item.origin:
        file = Path(item.origin).name
        return (
            f"It lies beside the case, as `{file}`, and ends the bug there. It has no certificate: the file says what "
            f"is known of it, and `armdiff certify {file}` measures what else it changes."
        )
    command = f"`armdiff certify {item.name} --patch` writes it as a patch"
    if certificate:
        return f"{without_paths(in_brief(certificate))} {command}."
    return f"{command}, and checks that the bug is gone and that programs which were right are as they were."


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
