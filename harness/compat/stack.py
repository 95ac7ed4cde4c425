"""Quantizer, partitioner and compile specification of the installed release, for one case.

Public upstream entry points only. What differs between releases and is bridged here:
``to_edge_transform_and_lower`` and the classes of ``executorch.backends.arm`` live in the same
places from 1.1.0 to 1.5.1; the quantization configurations' fields are named alike.

Imports torch and executorch (5 to 9 s): only worker processes import this module.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from executorch.backends.arm.ethosu import EthosUCompileSpec, EthosUPartitioner
from executorch.backends.arm.quantizer import (
    EthosUQuantizer,
    TOSAQuantizer,
    VgfQuantizer,
    get_symmetric_a16w8_quantization_config,
    get_symmetric_quantization_config,
)
from executorch.backends.arm.quantizer.quantization_config import QuantizationConfig
from executorch.backends.arm.tosa import TosaSpecification
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.backends.arm.vgf import VgfCompileSpec, VgfPartitioner
from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
from torchao.quantization.pt2e.observer import FixedQParamsObserver, MinMaxObserver
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
from torchao.quantization.pt2e.quantizer import QuantizationSpec

from harness.case.errors import CannotRun
from harness.case.recipe import Recipe
from harness.case.target import Target

__all__ = [
    "Stack",
    "convert_pt2e",
    "edge_config",
    "prepare_pt2e",
    "stack_for",
    "to_edge_transform_and_lower",
    "widths_of",
]


@dataclass(frozen=True)
class Stack:
    """The upstream objects that compile one case."""

    quantizer: Any | None
    partitioner: Any


def stack_for(target: Target, recipe: Recipe) -> Stack:
    """The installed release's quantizer and partitioner for a target and recipe."""
    specification: Any
    if target.ethos_u:
        specification = EthosUCompileSpec(target.name)
        quantizer, partitioner = EthosUQuantizer(specification), EthosUPartitioner(specification)
    elif target.vgf:
        specification = VgfCompileSpec(TosaSpecification.create_from_string(target.tosa_specification(recipe)))
        quantizer, partitioner = VgfQuantizer(specification), VgfPartitioner(specification)
    else:
        specification = TosaCompileSpec(TosaSpecification.create_from_string(target.tosa_specification(recipe)))
        quantizer, partitioner = TOSAQuantizer(specification), TOSAPartitioner(specification)
    if not target.quantized:
        return Stack(None, partitioner)
    configuration = _configuration(recipe)
    quantizer.set_global(configuration)
    if recipe.io is not None:
        quantizer.set_io(_io_configuration(recipe, configuration))
    for name in recipe.float_nodes:
        quantizer.set_module_name(name, None)
    for widths, nodes in recipe.mixed:
        for name in nodes:
            quantizer.set_module_name(name, _observed_configuration(recipe, widths))
    return Stack(quantizer, partitioner)


def edge_config() -> EdgeCompileConfig:
    """The compile configuration that upstream's own Arm tests use."""
    return EdgeCompileConfig(_check_ir_validity=False)


def _configuration(recipe: Recipe) -> Any:
    if recipe.fixed_activations:
        return _fixed_configuration()
    return _observed_configuration(recipe, recipe.widths)


def _observed_configuration(recipe: Recipe, widths: str) -> Any:
    """The configuration of these widths, otherwise as the recipe says."""
    if widths == "a16w8":
        configuration = get_symmetric_a16w8_quantization_config(is_per_channel=recipe.per_channel)
    else:
        configuration = get_symmetric_quantization_config(
            is_per_channel=recipe.per_channel,
            act_qmin=recipe.qmin,
            act_qmax=127,
            weight_qmin=-7 if widths == "a8w4" else recipe.weight_qmin,
            weight_qmax=7 if widths == "a8w4" else 127,
        )
    return _with_min_max(configuration) if recipe.min_max_observer else configuration


def widths_of(configuration: Any) -> str:
    """The widths that come nearest to a configuration of somebody's own."""
    if configuration.input_activation is not None and configuration.input_activation.dtype == torch.int16:
        return "a16w8"
    return "a8w4" if configuration.weight is not None and configuration.weight.quant_max == 7 else "a8w8"


def _with_min_max(configuration: Any) -> Any:
    def replaced(spec: Any) -> Any:
        return QuantizationSpec(
            dtype=spec.dtype,
            quant_min=spec.quant_min,
            quant_max=spec.quant_max,
            qscheme=spec.qscheme,
            is_dynamic=False,
            observer_or_fake_quant_ctr=MinMaxObserver.with_args(eps=2**-16),
        )

    return type(configuration)(
        replaced(configuration.input_activation),
        replaced(configuration.output_activation),
        configuration.weight,
        configuration.bias,
    )


def _fixed_configuration() -> Any:
    """The fixed snorm configuration of seed 002: scale 1/127, zero point 0, codes -127 to 127."""
    spec = QuantizationSpec(
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
    return QuantizationConfig(spec, spec, None, None)


def _io_configuration(recipe: Recipe, configuration: Any) -> Any:
    if recipe.io == "same":
        return configuration
    if recipe.io == "fixed":
        return _fixed_configuration()
    try:
        from executorch.backends.arm.quantizer import get_uint8_io_quantization_config
    except ImportError:  # first in 1.3.0
        raise CannotRun(
            "recipe word io=uint8: this executorch has no uint8 I/O configuration; use a release from 1.3.0 on"
        ) from None
    return get_uint8_io_quantization_config()
