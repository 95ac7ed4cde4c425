"""The upstream calls that compile a case, as the lines of a script.

They say what ``harness.compat.stack`` and ``harness.pipeline.lowering`` do, with literals in place of a recipe, so that
whoever reads a script sees plain ExecuTorch. The two are held together by a test: a script has to come to
the same scales as the case that it was written from.

Words: *steps* are the stages of a lowering that a script goes through, in order; it stops after the one that
fails.
"""

from __future__ import annotations

import re

import msgspec

from harness.case.recipe import Recipe, parse_recipe
from harness.case.target import Target

STEPS = ("export", "prepare", "calibrate", "convert", "export-quantized", "lower", "emit")
"""Stages that a script can stop after."""

_FIXED = """\
fixed = QuantizationSpec(
    dtype=torch.int8,
    quant_min=-127,
    quant_max=127,
    qscheme=torch.per_tensor_symmetric,
    is_dynamic=False,
    observer_or_fake_quant_ctr=FixedQParamsObserver.with_args(
        scale=1.0 / 127.0,
        zero_point=0,
        dtype=torch.qint8,
        qscheme=torch.per_tensor_symmetric,
        quant_min=-127,
        quant_max=127,
    ),
)
fixed = QuantizationConfig(fixed, fixed, None, None)
"""

_MIN_MAX = """\
activation = QuantizationSpec(
    dtype=configuration.input_activation.dtype,
    quant_min=configuration.input_activation.quant_min,
    quant_max=configuration.input_activation.quant_max,
    qscheme=configuration.input_activation.qscheme,
    is_dynamic=False,
    observer_or_fake_quant_ctr=MinMaxObserver.with_args(eps=2**-16),
)
configuration = QuantizationConfig(activation, activation, configuration.weight, configuration.bias)
"""

_EDITED = """\
for node in quantized.graph.nodes:  # by hand: another domain for the results of {operator}
    if node.op != "call_function" or str(node.target).split(".")[1:2] != ["{operator}"]:
        continue
    for quantize in [user for user in node.users if ".quantize_per_tensor" in str(user.target)]:
        scale, zero_point = quantize.args[1:3]
        readers = [user for user in quantize.users if "dequantize_per_tensor" in str(user.target)]
        for item in (quantize, *readers):
            item.args = (item.args[0], scale * 2.0, zero_point + 5, *item.args[3:])
quantized.recompile()
"""


def specification(target: Target, recipe: Recipe, *, through_vela: bool, lowers: bool = True) -> str:
    """Lines that define ``compile_spec`` and, if the script goes that far, ``partitioner``.

    :param through_vela: compile for an Ethos-U with Vela (for VGF with Arm's converter); otherwise stop at the TOSA
        graph that it would get.
    """
    spec = f'compile_spec = EthosUCompileSpec("{target.name}")\n'
    partitioner = "partitioner = EthosUPartitioner(compile_spec)\n"
    if target.vgf:
        text = f'TosaSpecification.create_from_string("{target.tosa_specification(recipe)}")'
        spec = f"compile_spec = VgfCompileSpec({text})\n"
        partitioner = "# up to the TOSA graph that the model converter is given\n"
        partitioner += "partitioner = TOSAPartitioner(TosaCompileSpec(compile_spec.tosa_spec))\n"
        if through_vela:
            partitioner = "partitioner = VgfPartitioner(compile_spec)\n"
    elif not target.ethos_u:
        text = f'TosaSpecification.create_from_string("{target.tosa_specification(recipe)}")'
        spec = f"compile_spec = TosaCompileSpec({text})\n"
        partitioner = "partitioner = TOSAPartitioner(compile_spec)\n"
    elif not through_vela:
        partitioner = "# up to the TOSA graph that Vela is given\n"
        partitioner += "partitioner = TOSAPartitioner(TosaCompileSpec(compile_spec.tosa_spec))\n"
    return spec + (partitioner if lowers else "")


def quantizer(target: Target, text: str) -> str:
    """Lines that define ``quantizer`` as a recipe says; empty where nothing is quantized."""
    recipe = parse_recipe(text)
    if not target.quantized:
        return ""
    kind = "EthosUQuantizer" if target.ethos_u else "VgfQuantizer" if target.vgf else "TOSAQuantizer"
    lines = [f"quantizer = {kind}(compile_spec)\n"]
    made, configuration = _observed(recipe)
    if recipe.fixed_activations or recipe.io == "fixed":
        lines.append(_FIXED)
    if recipe.fixed_activations:
        lines.append("quantizer.set_global(fixed)\n")
    else:
        lines += [*made, f"quantizer.set_global({configuration})\n"]
    if recipe.io is not None:
        same = "fixed" if recipe.fixed_activations else configuration
        io = {"same": same, "fixed": "fixed", "uint8": "get_uint8_io_quantization_config()"}[recipe.io]
        lines.append(f"quantizer.set_io({io})\n")
    lines += [f'quantizer.set_module_name("{name}", None)  # stays float\n' for name in recipe.float_nodes]
    for widths, nodes in recipe.mixed:
        made, configuration = _observed(msgspec.structs.replace(recipe, widths=widths))
        lines += [*made, *(f'quantizer.set_module_name("{name}", {configuration})\n' for name in nodes)]
    return "".join(lines)


def _observed(recipe: Recipe) -> tuple[list[str], str]:
    """Lines that make a configuration, if it takes any, and what it is called behind them."""
    made = _configuration(recipe)
    return ([f"configuration = {made}\n", _MIN_MAX], "configuration") if recipe.min_max_observer else ([], made)


def _configuration(recipe: Recipe) -> str:
    if recipe.widths == "a16w8":
        return f"get_symmetric_a16w8_quantization_config(is_per_channel={recipe.per_channel})"
    words = [f"is_per_channel={recipe.per_channel}"]
    if recipe.qmin != -128:
        words.append(f"act_qmin={recipe.qmin}, act_qmax=127")
    if recipe.widths == "a8w4":
        words.append("weight_qmin=-7, weight_qmax=7")
    elif recipe.weight_qmin != -127:
        words.append(f"weight_qmin={recipe.weight_qmin}, weight_qmax=127")
    return f"get_symmetric_quantization_config({', '.join(words)})"


def steps(target: Target, text: str, last: str) -> str:
    """Lines that lower ``model`` up to a stage (one of ``STEPS``), that stage included."""
    recipe, quantized = parse_recipe(text), target.quantized
    name = "quantized" if quantized else "exported"
    lines = {
        "export": "graph = torch.export.export(model, CALIBRATION[0]).module(check_guards=False)\n",
        "prepare": "prepared = prepare_pt2e(graph, quantizer)\n",
        "calibrate": "for sample in CALIBRATION:\n    prepared(*sample)\n",
        "convert": "quantized = convert_pt2e(prepared)\n"
        + (_EDITED.format(operator=recipe.edited) if recipe.edited else ""),
        "export-quantized": "exported = torch.export.export(quantized, CALIBRATION[0])\n",
        "lower": "edge = to_edge_transform_and_lower(\n    exported,\n    partitioner=[partitioner],\n"
        "    compile_config=EdgeCompileConfig(_check_ir_validity=False),\n)\n",
        "emit": "edge.to_executorch()\n",
    }
    if not quantized:
        lines["export"] = f"{name} = torch.export.export(model, CALIBRATION[0])\n"
        for stage in ("prepare", "calibrate", "convert", "export-quantized"):
            lines[stage] = ""
    return "".join(lines[stage] for stage in STEPS[: STEPS.index(last) + 1])


IMPORTS = (
    ("copy.deepcopy", "import copy"),
    ("json.", "import json"),
    ("math.", "import math"),
    ("os.", "import os"),
    ("signal.", "import signal"),
    ("subprocess.", "import subprocess"),
    ("sys.", "import sys"),
    ("tempfile.", "import tempfile"),
    ("traceback.", "import traceback"),
    ("zlib.", "import zlib"),
    ("Path(", "from pathlib import Path"),
    ("", ""),
    ("np.", "import numpy as np"),
    ("torch", "import torch"),
    ("F.", "import torch.nn.functional as F"),
    ("tosa_reference_model.", "import tosa_reference_model"),
    ("EthosU", "executorch.backends.arm.ethosu:EthosUCompileSpec,EthosUPartitioner"),
    (
        "quant",
        "executorch.backends.arm.quantizer:EthosUQuantizer,TOSAQuantizer,VgfQuantizer,get_symmetric_a16w8_quantization_config,"
        "get_symmetric_quantization_config,get_uint8_io_quantization_config",
    ),
    ("QuantizationConfig", "executorch.backends.arm.quantizer.quantization_config:QuantizationConfig"),
    ("TosaSpecification", "executorch.backends.arm.tosa:TosaSpecification"),
    ("Vgf", "executorch.backends.arm.vgf:VgfCompileSpec,VgfPartitioner"),
    ("TosaCompileSpec", "executorch.backends.arm.tosa.compile_spec:TosaCompileSpec"),
    ("TOSAPartitioner", "executorch.backends.arm.tosa.partitioner:TOSAPartitioner"),
    ("exir", "executorch.exir:EdgeCompileConfig,to_edge_transform_and_lower"),
    ("DType", "tosa.DType:DType"),
    ("Op", "tosa.Op:Op"),
    ("TosaPipelineINT", "executorch.backends.arm.test.tester.test_pipeline:TosaPipelineINT"),
    ("TosaGraph", "tosa.TosaGraph:TosaGraph"),
    ("Runtime.", "import executorch.kernels.quantized  # registers kernels"),
    ("Runtime", "executorch.runtime:Runtime"),
    ("nn.", "from torch import nn"),
    ("Observer", "torchao.quantization.pt2e.observer:FixedQParamsObserver,MinMaxObserver"),
    ("pt2e", "torchao.quantization.pt2e.quantize_pt2e:convert_pt2e,prepare_pt2e"),
    ("QuantizationSpec", "torchao.quantization.pt2e.quantizer:QuantizationSpec"),
)
"""What a script may import: a mark that needs it, and the line, or a module with the names that may be taken."""


def imports(body: str) -> str:
    """The import lines that a script's body needs."""
    lines: list[str] = []
    for mark, text in IMPORTS:
        module, _, names = text.partition(":")
        if not mark:
            lines.append("")
        elif names:
            used = [name for name in names.split(",") if re.search(rf"\b{name}\b", body)]
            if used:
                lines.append(f"from {module} import {', '.join(used)}")
        elif re.search(rf"(?<![\w.]){re.escape(mark)}", body):
            lines.append(text)
    return "\n".join(lines).strip() + "\n"
