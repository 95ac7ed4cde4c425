"""Upstream's own tests of the Arm backend as subjects: each test's module and inputs, as its pipeline gets them.

``executorch.backends.arm.test`` is in the wheels (seen in 1.5.1) and needs pytest. A test builds a pipeline (a class
of ``tester.test_pipeline``) of a module, inputs and a target, adapts it, and calls ``run``. Here the tests run in
pytest, and ``run`` hands over what the pipeline holds and ends the test: no stage and no assertion of upstream's runs.
Of a test that runs no pipeline the subject is the first module that it exports, with the quantizer that it annotates
with, where it ends as well; without a quantizer it runs to its end, and its module stays float. What a test writes
beside itself goes with a folder of its own.

What is taken away from the tests: skips for want of a tool that armdiff does not use (Vulkan's model converter).
What upstream marks as an expected failure is a subject like any other, with upstream's reason.

Imports torch and executorch: only worker processes import this module.
"""

from __future__ import annotations

import copy
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import pytest
import torch

from harness.case.errors import BadInput, OwnFault
from harness.compat.stack import widths_of
from harness.compat.suite_files import upstream_tests
from harness.compat.torchvision_kernels import spare_missing_kernels

_NO_TOOL = ("Did not find ", "VKML environment is not set")
"""How the reason of a mark begins that is for want of a tool which armdiff does not use (an FVP, Vulkan)."""
_OF_FLOATS = ("bf16", "fp8e4m3", "fp8e5m2", "fft", "cf")
"""Extensions that mean something without an integer profile."""


@dataclass(frozen=True)
class Subject:
    """What one pipeline of one upstream test is about.

    :param test: pytest's name of it, from upstream's test folder: ``ops/test_abs.py::test_abs_tosa_INT[ones]``.
    :param inputs: the test's input tuple, as the test gave it.
    :param target: the target that the test means.
    :param recipe: the recipe that the test means.
    :param other: what of the test's own quantization no recipe says; empty if nothing.
    :param expected: upstream's reason why the test is expected to fail; None if it is not.
    :param dynamic_shapes: the dimensions that the test exports as dynamic, in the form of ``torch.export.export``.
    """

    test: str
    model: torch.nn.Module
    inputs: tuple[Any, ...]
    target: str
    recipe: str
    other: str = ""
    expected: str | None = None
    dynamic_shapes: Any = None


@dataclass(frozen=True)
class Missed:
    """A test of which no subject was taken, and why."""

    test: str
    why: str


def collect(
    paths: Sequence[str], visit: Callable[[Subject], None], *, wanted: Callable[[str], bool] = lambda test: True
) -> list[Missed]:
    """Hand every subject of upstream's tests to ``visit``, one after the other.

    :param paths: files or folders of upstream's test folder, such as ``ops`` or ``ops/test_abs.py``.
    :param wanted: by the test's name, whether it is run at all.
    :returns: the tests that no subject was taken of.
    :raises BadInput: pytest cannot collect a path.
    """
    folder = upstream_tests()
    collector = _Collector(visit, wanted)
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:warnings", "-p", "no:xdist", "--no-header", "--no-summary"]
    options += ["--rootdir", str(folder), "-c", "/dev/null", "-o", "python_files=test_*.py"]
    spare_missing_kernels()
    with _silent():
        status = pytest.main([*options, *(str(folder / path) for path in paths)], plugins=[collector])
    if status in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.INTERNAL_ERROR):
        raise BadInput(", ".join(paths), "cannot be collected by pytest", f"use files or folders below {folder}")
    return collector.missed


@contextmanager
def _silent() -> Iterator[None]:
    """pytest's own report of the tests is of no use here."""
    import contextlib

    with open(os.devnull, "w") as sink, contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink):
        yield


@contextmanager
def _in_a_folder_of_its_own() -> Iterator[None]:
    """Some tests dump artifacts into the working directory, which is the user's."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="armdiff-suite-") as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


class _Taken(BaseException):
    """Ends a test when its pipeline was taken. No ``Exception``, so that the test does not catch it."""


class _Collector:
    """A pytest plugin that takes the subjects."""

    def __init__(self, visit: Callable[[Subject], None], wanted: Callable[[str], bool]) -> None:
        self.visit = visit
        self.wanted = wanted
        self.missed: list[Missed] = []

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if self.wanted(_name(item))]
        for item in items:
            for node in item.listchain():
                node.own_markers = [mark for mark in node.own_markers if not _for_want_of_a_tool(mark)]

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Iterator[None]:
        from executorch.backends.arm.test.tester import test_pipeline as pipelines

        taken: list[Any] = []
        exported = _Exported()

        def take(pipeline: Any, *args: Any, **kwargs: Any) -> None:
            taken.append(pipeline)
            raise _Taken

        kinds = [kind for kind in vars(pipelines).values() if isinstance(kind, type) and "run" in vars(kind)]
        kinds = [kind for kind in kinds if kind.__module__ == pipelines.__name__]  # stages have a run as well
        why = "it runs no pipeline and exports no module"
        with ExitStack() as stack:
            for kind in kinds:
                stack.enter_context(mock.patch.object(kind, "run", take))
            stack.enter_context(exported.watching())
            stack.enter_context(_in_a_folder_of_its_own())
            try:
                yield
            except _Taken:
                pass
            except pytest.skip.Exception as reason:
                why = f"upstream skips it: {reason}"
            except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - whatever upstream's test raises
                why = f"raises before its pipeline runs: {type(error).__name__}: {_first_line(error)}"
        try:
            if taken:
                self._take(pyfuncitem, taken[0])
            elif exported.module is not None:
                self._take_exported(pyfuncitem, exported)
            else:
                self.missed.append(Missed(_name(pyfuncitem), why))
        except Exception as error:  # noqa: BLE001 - pytest would take it for a failure of the test's own
            self.missed.append(Missed(_name(pyfuncitem), str(OwnFault(error, "taking its module"))))
        return True  # type: ignore[return-value]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "setup" and report.outcome != "passed":
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else _first_line(report.longreprtext)
            self.missed.append(Missed(report.nodeid, f"upstream skips it: {reason}"))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.outcome != "passed":
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
            self.missed.append(Missed(report.nodeid, _uncollected(str(reason))))

    def _take(self, item: pytest.Item, pipeline: Any) -> None:
        tester = pipeline.tester
        target, recipe, other = _meant(pipeline)
        self.visit(
            Subject(
                test=_name(item),
                model=tester.original_module,
                inputs=tuple(pipeline.test_data),
                target=target,
                recipe=recipe,
                other=other,
                expected=_expected(item),
                dynamic_shapes=tester.dynamic_shapes,
            )
        )

    def _take_exported(self, item: pytest.Item, exported: _Exported) -> None:
        assert exported.module is not None
        recipe, other = ("float", "") if exported.quantizer is None else _recipe_by(exported.quantizer, None)
        target = "TOSA-1.0+FP" if recipe == "float" else "TOSA-1.0+INT"
        subject = Subject(_name(item), exported.module, exported.inputs, target, recipe, other, _expected(item))
        self.visit(subject)


@dataclass
class _Exported:
    """The first module that a test exports, as it was then, and the first quantizer that it annotates with."""

    module: torch.nn.Module | None = None
    inputs: tuple[Any, ...] = ()
    quantizer: Any = None

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Look on at what a test does."""
        from executorch.backends.arm.quantizer import TOSAQuantizer
        from torch.export import _trace

        export, annotating = _trace._export, TOSAQuantizer.transform_for_annotation

        def exporting(mod: Any, args: Any, kwargs: Any = None, *rest: Any, **words: Any) -> Any:
            if self.module is None and isinstance(mod, torch.nn.Module) and not kwargs:
                self.module, self.inputs = _copy(mod), tuple(args)
            return export(mod, args, kwargs, *rest, **words)

        def annotate(quantizer: Any, model: Any) -> Any:
            if self.module is not None:
                self.quantizer = quantizer
                raise _Taken
            return annotating(quantizer, model)

        with (
            mock.patch.object(_trace, "_export", exporting),
            mock.patch.object(TOSAQuantizer, "transform_for_annotation", annotate),
        ):
            yield


def _copy(module: torch.nn.Module) -> torch.nn.Module:
    """The module as it is now, since the test may train or cast it; the module itself if it cannot be copied."""
    try:
        return copy.deepcopy(module)
    except Exception:  # noqa: BLE001 - whatever a test's own objects raise
        return module


def _expected(item: pytest.Item) -> str | None:
    """Upstream's reason why a test is expected to fail."""
    marks = [mark for mark in item.iter_markers("xfail") if all(mark.args) and mark.kwargs.get("condition", True)]
    reasons = [str(mark.kwargs.get("reason", "")) for mark in marks if not _for_want_of_a_tool(mark)]
    return next(iter(reasons), None)


def _name(item: pytest.Item) -> str:
    return item.nodeid


def _uncollected(reason: str) -> str:
    """Why pytest cannot collect a file, by the last line of what it says."""
    last = reason.strip().splitlines()[-1].removeprefix("E").strip()
    if missing := re.search(r"No module named '([^']+)'", last):
        return f"its file needs the Python module {missing[1]}, which is not installed; install it beside armdiff"
    return f"cannot be collected: {last}"


def _for_want_of_a_tool(mark: pytest.Mark) -> bool:
    return mark.name in ("skipif", "xfail") and str(mark.kwargs.get("reason", "")).startswith(_NO_TOOL)


def _first_line(error: object) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else "(no message)"


def _meant(pipeline: Any) -> tuple[str, str, str]:
    """Target, recipe, and what no recipe says, of a pipeline as the test left it."""
    recipe, other = _recipe(pipeline) if pipeline.has_stage("quantize") else ("float", "")
    specification = pipeline.tester.compile_spec
    accelerator = getattr(specification, "target", None)  # an Ethos-U: "ethos-u55-128"
    if isinstance(accelerator, str) and accelerator.startswith("ethos-u"):
        return accelerator, recipe, other
    tosa = specification.tosa_spec
    profiles = [name for name in ("INT", "FP") if name in tosa.profiles]
    if recipe == "float" and "FP" in profiles:
        profiles = ["FP"]
    extensions = [name for name in sorted(tosa.extensions) if name not in ("u55", "int16")]  # int16: the recipe's
    if recipe == "float":
        extensions = [name for name in extensions if name in _OF_FLOATS]
    words = [f"TOSA-{tosa.version.major}.{tosa.version.minor}", *profiles, *extensions, *["u55"] * tosa.is_U55_subset]
    return "+".join(words), recipe, other


def _recipe(pipeline: Any) -> tuple[str, str]:
    stage = pipeline._stages[pipeline.find_pos("quantize")]
    quantize = stage.args[0] if stage.args else None
    if quantize is None or quantize.quantizer is None:
        return "a8w8", "quantizes by a stage of its own"
    return _recipe_by(quantize.quantizer, quantize.quantization_config)


def _recipe_by(quantizer: Any, configured: Any) -> tuple[str, str]:
    """What a quantizer means; ``configured`` where it has no configuration of its own."""
    held = getattr(quantizer, "quantizer", quantizer)  # seen in 1.5.1: a quantizer wraps the one of its API version
    configuration = getattr(held, "global_config", None)
    if configuration is None:
        configuration = configured
    if configuration is None:
        return "a8w8", "quantizes chosen operators alone"
    return _recipe_of(configuration, getattr(held, "io_config", None))


def _recipe_of(configuration: Any, io: Any) -> tuple[str, str]:
    activation, weight = configuration.input_activation, configuration.weight
    if activation is None:
        return "a8w8", "leaves activations float"
    words, other = [widths_of(configuration)], []
    wide = words == ["a16w8"]
    if wide and weight is not None and weight.quant_max == 7:
        other.append("4-bit weights with 16-bit activations")
    if weight is not None and weight.qscheme == torch.per_tensor_symmetric:
        words.append("per-tensor")
    if not wide and activation.quant_min == -127:
        words.append("qmin=-127")
    if getattr(activation, "is_dynamic", False):
        other.append("quantizes activations dynamically")
    if io is not None:
        words.append("io=same")
    return ",".join(words), ", ".join(other)
