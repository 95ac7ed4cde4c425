"""A fix's test in upstream's own style: the module and a pipeline of ``backends/arm/test``, to be sent with the patch.

It is kept only if it proves something: in fresh processes it must fail with the installed release and pass with the
patch. Upstream's pipeline calibrates on the very inputs that it runs, so that a bug which needs other ones does not
show in it; that is said instead.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from harness.case.arrays import Array
from harness.case.case import Case
from harness.case.interrupts import communicated
from harness.case.recipe import parse_recipe
from harness.case.sampling import CALIBRATION, evaluation_inputs
from harness.corrections.correction import Correction
from harness.corrections.patch import diff_of, patched_package
from harness.reports.bugs.script import drawn_model, environment, tidy
from harness.reports.bugs.values import Values
from harness.reports.bugs.verifying import VALUES
from harness.triage.findings import Finding

TIME_LIMIT = 300.0
"""Seconds of one run; most of them go into imports."""
_FAILED, _PASSED = 1, 0
_WIDTHS = ("a8w8", "a16w8")


@dataclass(frozen=True)
class Regression:
    """What became of a test.

    :param file: its name in the folder; empty if none is kept, for the reason in ``why``.
    """

    file: str = ""
    why: str = ""


def regression_test(
    folder: Path,
    case: Case,
    finding: Finding,
    fix: Correction,
    tensors: Mapping[str, Array],
    python: str,
) -> Regression:
    """Write ``test_<fix>.py`` into a folder, if it fails without the fix and passes with it.

    :param tensors: of the case.
    :param python: the interpreter that tries it.
    """
    recipe = parse_recipe(case.recipe)
    if recipe.widths not in _WIDTHS or recipe.mixed or recipe.edited or recipe.qmin != -128 or recipe.io is not None:
        return Regression(why=f"upstream's pipeline has no recipe {case.recipe}")
    if find_spec("pytest") is None:
        return Regression(why="pytest is not installed here, which tries a test; install it")
    file = folder / f"test_{fix.name.replace('-', '_')}.py"
    why = ""
    with tempfile.TemporaryDirectory(prefix="armdiff-test-") as scratch:
        patch = Path(scratch, "fix.patch")
        patch.write_text(diff_of([fix]))
        site = patched_package([fix], patch, Path(scratch))
        for text, values in _candidates(case, finding, fix, tensors):
            file.write_text(text)
            values.write(folder)
            before = _status(file, python)
            if before != _FAILED:
                why = "upstream's pipeline, which calibrates on the inputs that it runs, does not show the bug"
            elif _status(file, python, first_on_path=site) != _PASSED:
                why = "the test fails with the fix as well: another bug of its module shows"
            else:
                return Regression(file=file.name)
    file.unlink()
    (folder / VALUES).unlink(missing_ok=True)
    return Regression(why=why)


def in_page(made: Regression) -> str:
    """What a page says of a fix's test."""
    if made.file:
        return f"`{made.file}` (attached) fails without it and passes with it, in fresh processes."
    return f"No test in the style of `backends/arm/test`: {made.why}."


def _candidates(
    case: Case, finding: Finding, fix: Correction, tensors: Mapping[str, Array]
) -> Iterator[tuple[str, Values]]:
    """Texts to try: with the input that shows the bug, and with the first calibration sample."""
    given = evaluation_inputs(case, dict(tensors))
    chosen = finding.measured.get("input")
    first = chosen if isinstance(chosen, int) and chosen < len(given) else 0
    sample = next((place for place, item in enumerate(given) if item.origin == CALIBRATION), first)
    recipe = parse_recipe(case.recipe)
    for place in dict.fromkeys((first, sample)):
        values = Values(case, tensors)
        parts = drawn_model(case, values)
        inputs = values.evaluation(given[place], place)
        context = {
            **parts.context(inputs),
            "title": f"{fix.cause.partition('. ')[0].rstrip('.')}.",
            "name": fix.name.replace("-", "_"),
            "inputs": inputs,
            "stored": VALUES if values.stored else "",
            "per_channel": recipe.per_channel,
            "int16": recipe.widths == "a16w8",
        }
        yield tidy(environment().get_template("upstream_test.py.jinja").render(context)), values


def _status(file: Path, python: str, first_on_path: Path | None = None) -> int | None:
    """pytest's exit status of a test in a fresh process elsewhere; None if it took too long."""
    known = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))}
    if first_on_path is not None:
        known["PYTHONPATH"] = str(first_on_path)
    options = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--rootdir", str(file.parent))
    words = [python, "-m", "pytest", *options, str(file)]
    child = subprocess.Popen(
        words, cwd=file.parent, env=known, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        communicated(child, TIME_LIMIT)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
        return None
    except BaseException:
        child.kill()
        child.wait()
        raise
    return child.returncode
