"""Upstream's own test pipelines for the Arm backend, run on a case (``armdiff bench`` compares itself with them).

``executorch.backends.arm.test.tester.test_pipeline`` is in the wheels (seen in 1.5.1) and needs pytest. A case's
pipeline is the class that upstream has for its target, with every stage that runs without FVP and Vulkan: quantize,
export, compare with the float model, lower, to_executorch, and for TOSA targets the reference model. What is set:

- the quantizer of the case's recipe and all of its calibration samples (``change_args``), as upstream's tests do;
- the number of MACs, where the target's is not the pipeline's own;
- the check that there is exactly one delegate is taken out: of a generated graph nobody knows that beforehand.

A comparison that fails is the pipeline's verdict and not the end of it: the stages that follow run. Everything
else that upstream raises ends it.

Imports torch and executorch: only worker processes import this module.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any

import torch
from executorch.backends.arm.test import common
from executorch.backends.arm.test.tester import test_pipeline as pipelines
from executorch.backends.arm.test.tester.quantize import ArmQuantize

from harness.case.recipe import Recipe
from harness.case.target import Target
from harness.compat.stack import stack_for

Sample = tuple[torch.Tensor, ...]

_ETHOS_U: Mapping[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "ethos-u55": (pipelines.EthosU55PipelineINT, common.get_u55_compile_spec),
    "ethos-u65": (pipelines.EthosU65PipelineINT, common.get_u65_compile_spec),
    "ethos-u85": (pipelines.EthosU85PipelineINT, common.get_u85_compile_spec),
}
_COMPARISON = "run_method_and_compare_outputs"


def run_pipeline(
    model: torch.nn.Module,
    samples: list[Sample],
    target: Target,
    recipe: Recipe,
    stage: Callable[[str], AbstractContextManager[None]],
) -> list[str]:
    """Run the pipeline of a target; returns the verdicts of comparisons that failed.

    :param samples: calibration samples; the first one is the test data.
    :param stage: entered with the name of each stage while it runs.
    :raises Exception: whatever upstream raises.
    """
    _make_importable(model)
    pipeline = _pipeline(model, samples, target, recipe)
    pipeline.pop_stage("check_count.exir")
    verdicts: list[str] = []
    for item in pipeline._stages:  # seen in 1.5.1: a list of objects with id and func
        item.func = _watched(item.id, item.func, stage, verdicts)
    pipeline.run()
    return verdicts


def _pipeline(model: torch.nn.Module, samples: list[Sample], target: Target, recipe: Recipe) -> Any:
    pipeline: Any
    if target.vgf:
        return _vgf_pipeline(model, samples, target, recipe)
    extensions = target.tosa_specification(recipe).split("+")[2:]
    if not target.quantized:
        return pipelines.TosaPipelineFP(model, samples[0], [], [], tosa_extensions=extensions)
    if target.ethos_u:
        kind, specification = _ETHOS_U[target.family]
        pipeline = kind(model, samples[0], [], [], run_on_fvp=False)
        pipeline.tester.compile_spec = specification(macs=int(target.name.rpartition("-")[2]))
    else:
        pipeline = pipelines.TosaPipelineINT(model, samples[0], [], [], tosa_extensions=extensions)
    quantizer = stack_for(target, recipe).quantizer
    return pipeline.change_args("quantize", ArmQuantize(quantizer, calibration_samples=samples))


def _vgf_pipeline(model: torch.nn.Module, samples: list[Sample], target: Target, recipe: Recipe) -> Any:
    words = {
        "run_on_vulkan_runtime": False,
        "tosa_spec": target.tosa_specification(recipe),
        "quantize": target.quantized,
    }
    pipeline = pipelines.VgfPipeline(model, samples[0], [], [], **words)
    if not target.quantized:
        return pipeline
    quantizer = stack_for(target, recipe).quantizer
    return pipeline.change_args("quantize", ArmQuantize(quantizer, calibration_samples=samples))


def _make_importable(model: torch.nn.Module) -> None:
    """Let strict export, which the tester uses, import the module that the class says it was defined in."""
    scope = type(model).forward.__globals__
    if scope["__name__"] not in sys.modules or scope["__name__"] in _made_up:
        _made_up.add(scope["__name__"])
        module = sys.modules[scope["__name__"]] = ModuleType(scope["__name__"])
        module.__dict__.update(scope)


_made_up: set[str] = set()
"""Modules that exist only here: the source of a case's module is executed, not imported."""


def _watched(
    name: str, run: Callable[..., Any], stage: Callable[[str], AbstractContextManager[None]], verdicts: list[str]
) -> Callable[..., Any]:
    def watched(*args: Any, **kwargs: Any) -> Any:
        with stage(name):
            try:
                return run(*args, **kwargs)
            except AssertionError as error:
                if not name.startswith(_COMPARISON):
                    raise
                verdicts.append(f"{name}: {str(error).splitlines()[0] if str(error) else 'differs'}")
                return None

    return watched
