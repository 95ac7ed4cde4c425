"""Faults that change the function before anything is lowered: every compiled leg agrees with the quantized graph."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager

from harness.case.case import Case, Graph, Input, Node, TensorType
from tests.faults.fault import Fault, patched
from tests.integration.conftest import linear_case, uniform


def _aten_case(operator: str, shape: tuple[int, ...], result: tuple[int, ...], *args: object, count: int = 1) -> Case:
    """One captured operator: its first ``count`` arguments are inputs x0, x1, …"""
    names = [f"x{index}" for index in range(count)]
    return Case(
        graph=Graph(
            inputs=tuple(Input(name=name, shape=shape) for name in names),
            nodes=(
                Node(
                    name="n0",
                    operator=operator,
                    inputs=tuple(names),
                    attributes={"args": [*({"value": name} for name in names), *args], "kwargs": {}},
                    types=(TensorType(shape=result, dtype="float32"),),
                ),
            ),
            outputs=("n0",),
        ),
        calibration={name: uniform(-1.0, 2.0) for name in names},
        target="TOSA-1.0+INT",
    )


def mean_case() -> Case:
    """The mean of everything, whose divisor is a constant at the end of its codes."""
    return _aten_case("aten.mean.default", (2, 4), ())


def layer_norm_case() -> Case:
    """A normalization over few elements, called as nn.LayerNorm does: upstream mistakes an epsilon left out."""
    return _aten_case("aten.layer_norm.default", (2, 4), (2, 4), [4], None, None, 1e-5, False)


def attention_case() -> Case:
    """Attention whose scale is that of its head's width."""
    return _aten_case("aten.scaled_dot_product_attention.default", (1, 2, 4, 8), (1, 2, 4, 8), count=3)


def _mean_of_one_more() -> AbstractContextManager[None]:
    from executorch.backends.arm._passes import decompose_meandim_pass

    return patched(decompose_meandim_pass, "prod", lambda sizes: math.prod(sizes) + 1)


def _unbiased_variance() -> AbstractContextManager[None]:
    from executorch.backends.arm._passes import decompose_layernorm_pass

    original = decompose_layernorm_pass.create_node

    def wrong(graph, target, args=(), kwargs=None, **words):
        if kwargs and "correction" in kwargs:
            kwargs = {**kwargs, "correction": 1}
        return original(graph, target, args, kwargs or {}, **words)

    return patched(decompose_layernorm_pass, "create_node", wrong)


def _scale_forgets_the_root() -> AbstractContextManager[None]:
    """Attention divided by the width of its head, not by the root of it."""
    import torch
    from executorch.backends.arm.quantizer import TOSAQuantizer

    original = TOSAQuantizer.transform_for_annotation

    def wrong(self, model):
        for node in model.graph.nodes:
            if node.target == torch.ops.aten.scaled_dot_product_attention.default:
                node.kwargs = {**node.kwargs, "scale": 1.0 / node.args[0].meta["val"].shape[-1]}
        model.recompile()
        return original(self, model)

    return patched(TOSAQuantizer, "transform_for_annotation", wrong)


def _codes_shifted() -> AbstractContextManager[None]:
    """Constants folded to codes that are four off."""
    from torchao.quantization.pt2e import constant_fold

    original = constant_fold.replace_node_with_constant

    def wrong(gm, node, constant, *rest):
        if "int8" in str(constant.dtype):
            constant = (constant.int() + 4).clamp(-127, 127).to(constant.dtype)
        original(gm, node, constant, *rest)

    return patched(constant_fold, "replace_node_with_constant", wrong)


def _fault(name: str, stands_for: str, case: Case, planted) -> Fault:
    return Fault(name, stands_for, "quality", "loss beyond quantization", "quantizer", case, planted)


FAULTS = (
    _fault("mean-divisor", "a mean over one element too many", mean_case(), _mean_of_one_more),
    _fault("layer-norm-variance", "a layer norm with unbiased variance", layer_norm_case(), _unbiased_variance),
    _fault("attention-scale", "attention with a wrong scale", attention_case(), _scale_forgets_the_root),
    _fault("constant-codes", "weights whose codes stand for something else", linear_case(), _codes_shifted),
)
