"""Value faults for the survey of blame: one pass leaves a wrong number in its graph.

A plant runs the installed pass and then changes what it left (``_after``), or changes what one
of its helpers returns. Every plant acts on *each* graph that the pass left the fitting node in,
and says whether it did: a plant that found nothing to change is no finding.

Passes that run before annotation have no plant here: they change quantized eager as well, which
is no numeric finding.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

from harness.compat.states import operator_name
from harness.locate.blame.bracket import AFTER
from tests.faults.constants import without_constant_folding
from tests.faults.fault import patched, together

_PASSES = "executorch.backends.arm._passes"
Planted = Callable[[list[str]], AbstractContextManager[None]]
"""Opens a context in which the pass is wrong; names of the changed nodes are appended to the list."""
Edit = Callable[[Any, Any], bool]
"""``edit(node, pass)`` changes one node; False if the node does not fit."""


@dataclass(frozen=True)
class ValuePlant:
    """A wrong number.

    :param culprit: the pass that leaves it, or ``serializer``.
    :param cases: names of the survey's cases on which it shows.
    """

    name: str
    culprit: str
    planted: Planted
    cases: tuple[str, ...]


def _class(module: str, name: str) -> Any:
    return getattr(import_module(f"{_PASSES}.{module}"), name)


def _after(module: str, name: str, edit: Edit, most: int = 1) -> Planted:
    """The pass runs, then ``edit`` changes the first ``most`` nodes that fit."""

    def planted(changed: list[str]) -> AbstractContextManager[None]:
        owner = _class(module, name)
        original = owner.call

        def wrong(self: Any, graph_module: Any) -> Any:
            known = {node.name for node in graph_module.graph.nodes}
            result = original(self, graph_module)
            left = most
            for node in result.graph_module.graph.nodes:
                node.meta["survey.new"] = node.name not in known
            for node in list(result.graph_module.graph.nodes):
                if left and node.op == "call_function" and edit(node, self):
                    changed.append(node.name)
                    left -= 1
            result.graph_module.recompile()
            return result

        return patched(owner, "call", wrong)

    return planted


def _helper(module: str, name: str, function: str, wrong: Callable[..., Any]) -> Planted:
    """``wrong(original, …)`` stands for a helper of the pass."""

    def planted(changed: list[str]) -> AbstractContextManager[None]:
        owner = _class(module, name)
        original = getattr(owner, function)

        def called(*args: Any, **kwargs: Any) -> Any:
            changed.append(function)
            return wrong(original, *args, **kwargs)

        return patched(owner, function, called)

    return planted


def _is(node: Any, *names: str) -> bool:
    return operator_name(node.target).startswith(names)


def _scaled(factor: float, node: Any, _: Any) -> bool:
    """The first RESCALE that the pass made."""
    if not (_is(node, "tosa.RESCALE") and node.meta["survey.new"]):
        return False
    node.update_arg(2, [scale * factor for scale in node.args[2]])
    return True


def _result_scaled(factor: float, node: Any, pass_: Any) -> bool:
    """The first new RESCALE that returns to few bits."""
    return "int32" not in str(node.args[1:2]) and _scaled(factor, node, pass_)


def _result_moved(by: int, node: Any, _: Any) -> bool:
    """The output zero point of the first RESCALE to 8 bits."""
    if not (_is(node, "tosa.RESCALE") and str(node.args[1]) == "torch.int8"):
        return False
    node.update_arg(4, node.args[4] + (by if node.args[4] < 100 else -by))
    return True


def _read_moved(by: int, node: Any, _: Any) -> bool:
    """The input zero point of the first RESCALE from 8 bits."""
    if not (_is(node, "tosa.RESCALE") and str(node.args[1]) == "torch.int32"):
        return False
    node.update_arg(3, node.args[3] + (by if node.args[3] < 100 else -by))
    return True


def _qparams_changed(key: str, names: tuple[str, ...], scale: float, move: int, node: Any, _: Any) -> bool:
    qparams = node.meta.get(key)
    if not qparams or not _is(node, *names):
        return False
    own = qparams[0]
    changed = own._replace(scale=own.scale * scale, zp=own.zp + (move if own.zp < 100 else -move))
    node.meta[key] = {**qparams, 0: changed}
    return True


def _clamp_moved(by: int, node: Any, _: Any) -> bool:
    if not _is(node, "aten.clamp") or len(node.args) < 3 or node.args[2] is None:
        return False
    node.update_arg(2, int(node.args[2]) - by)
    return True


def _swapped(name: str, node: Any, _: Any) -> bool:
    """The operands of a binary operator change places."""
    if not _is(node, name) or node.args[0] is node.args[1]:
        return False
    node.args = (node.args[1], node.args[0], *node.args[2:])
    return True


def _minimum_for_maximum(node: Any, _: Any) -> bool:
    from executorch.exir.dialects._ops import ops

    if not _is(node, "tosa.REDUCE_MAX"):
        return False
    node.target = ops.backend.tosa.REDUCE_MIN.default
    return True


def _order_changed(name: str, node: Any, _: Any) -> bool:
    """Two dimensions of one size change places in a permutation."""
    if not _is(node, name):
        return False
    order, sizes = list(node.args[1]), list(node.meta["val"].shape)
    for one in range(len(sizes)):
        for other in range(one + 1, len(sizes)):
            if sizes[one] == sizes[other] > 1:
                order[one], order[other] = order[other], order[one]
                node.update_arg(1, order)
                return True
    return False


def _window_moved(node: Any, _: Any) -> bool:
    """A convolution or pool reads one row later: a row of padding changes sides."""
    at = {"tosa.CONV2D": 4, "tosa.AVG_POOL2D": 5, "tosa.MAX_POOL2D": 3}
    place = next((index for name, index in at.items() if _is(node, name)), None)
    if place is None or node.args[place][0] == 0:
        return False
    top, bottom, *rest = node.args[place]
    node.update_arg(place, [top - 1, bottom + 1, *rest])
    return True


def _slice_moved(node: Any, _: Any) -> bool:
    """A slice that starts behind the first element starts one earlier."""
    if (
        not _is(node, "aten.slice_copy")
        or node.args[2] < 1
        or node.args[3] > node.args[0].meta["val"].shape[node.args[1]]
    ):
        return False
    node.update_arg(2, node.args[2] - 1)
    node.update_arg(3, node.args[3] - 1)
    return True


def _table_rolled(original: Any, *args: Any, **kwargs: Any) -> Any:
    entries, shift = original(*args, **kwargs)
    return entries.roll(12), shift


def _table_scaled(original: Any, self: Any, torch_op: Any, in_quantargs: Any, out_quantargs: Any) -> Any:
    return original(self, torch_op, in_quantargs, out_quantargs._replace(scale=out_quantargs.scale * 1.25))


def _table_misread(original: Any, self: Any, torch_op: Any, in_quantargs: Any, out_quantargs: Any) -> Any:
    return original(self, torch_op, in_quantargs._replace(scale=in_quantargs.scale * 0.75), out_quantargs)


def _constant_moved(original: Any, self: Any, node: Any) -> Any:
    """Folded constants of 8 bits are nine codes off."""
    import torch

    module = import_module(f"{_PASSES}.fuse_constant_ops_pass")
    create = module.create_constant_placeholder

    def moved(*args: Any, **kwargs: Any) -> Any:
        data = kwargs["data"]
        if data.dtype == torch.int8:
            kwargs["data"] = torch.where(data < 100, data.clamp(max=100) + 9, data - 9)
        return create(*args, **kwargs)

    with patched(module, "create_constant_placeholder", moved):
        return original(self, node)


def _pad_moved(original: Any, self: Any, input_tensor: Any, pad: Any, value: Any, meta: Any) -> Any:
    qparams = meta.data.get("input_qparams")
    return original(self, input_tensor, pad, value + (10 * qparams[0].scale if qparams else 0), meta)


def _left_to_passes(planted: Planted) -> Planted:
    """Constants reach the delegate unfolded, as up to 1.2.0."""
    return lambda changed: together(without_constant_folding(), planted(changed))


def _multiplier_off(changed: list[str]) -> AbstractContextManager[None]:
    """The serializer writes multipliers that are a sixteenth too small."""
    from executorch.backends.arm.operators import op_tosa_rescale

    original = op_tosa_rescale._compute_multiplier_and_shift

    def wrong(scales: list[float], width: int = 32) -> tuple[list[int], list[int]]:
        changed.append("multiplier")
        multipliers, shifts = original(scales, width)
        return [item - (item >> 4) for item in multipliers], shifts

    return patched(op_tosa_rescale, "_compute_multiplier_and_shift", wrong)


_RESCALES = ("insert_rescales_pass", "InsertRescaleInt32Pass")
_FOLD = ("fold_qdq_with_annotated_qparams_pass", "FoldAndAnnotateQParamsPass")
_TABLES = ("insert_table_ops", "InsertTableOpsPass")

PLANTS = (
    ValuePlant(
        "fold-output-scale",
        "FoldAndAnnotateQParamsPass",
        _after(
            *_FOLD,
            partial(
                _qparams_changed,
                "output_qparams",
                ("aten.exp", "aten.sigmoid", "aten.convolution", "aten.linear"),
                1.3,
                0,
            ),
        ),
        ("softmax", "attention", "mean", "norm"),
    ),
    ValuePlant(
        "fold-sum-zero-point",
        "FoldAndAnnotateQParamsPass",
        _after(*_FOLD, partial(_qparams_changed, "input_qparams", ("aten.sum",), 1.0, 9)),
        ("softmax", "mean", "norm"),
    ),
    ValuePlant(
        "rescale32-scale",
        "InsertRescaleInt32Pass",
        _after(*_RESCALES, partial(_result_scaled, 1.3)),
        ("softmax", "attention", "mean", "norm", "wide-softmax", "two-delegates"),
    ),
    ValuePlant(
        "rescale32-input",
        "InsertRescaleInt32Pass",
        _after(*_RESCALES, partial(_read_moved, 11)),
        ("softmax", "mean", "norm"),
    ),
    ValuePlant(
        "rescale32-zero-point",
        "InsertRescaleInt32Pass",
        _after(*_RESCALES, partial(_result_moved, 9)),
        ("softmax", "mean", "norm", "arithmetic"),
    ),
    ValuePlant(
        "clamp-codes",
        "QuantizeClampArgumentsPass",
        _after("fold_qdq_with_annotated_qparams_pass", "QuantizeClampArgumentsPass", partial(_clamp_moved, 30)),
        ("mean", "moves", "arithmetic"),
    ),
    ValuePlant(
        "table-rolled",
        "InsertTableOpsPass",
        _helper(*_TABLES, "generate_table_values", _table_rolled),
        ("softmax", "attention", "mean", "wide-softmax"),
    ),
    ValuePlant(
        "table-output-scale",
        "InsertTableOpsPass",
        _helper(*_TABLES, "generate_table_values", _table_scaled),
        ("softmax", "attention", "mean", "wide-mean"),
    ),
    ValuePlant(
        "table-input-scale",
        "InsertTableOpsPass",
        _helper(*_TABLES, "generate_table_values", _table_misread),
        ("softmax", "attention", "mean", "tables"),
    ),
    ValuePlant(
        "conv-window",
        "RewriteConvPass",
        _after("rewrite_conv_pass", "RewriteConvPass", _window_moved),
        ("softmax", "mean", "pools", "norm"),
    ),
    ValuePlant(
        "conv-rescale",
        "RewriteConvPass",
        _after("rewrite_conv_pass", "RewriteConvPass", partial(_scaled, 0.8)),
        ("softmax", "mean", "pools", "attention", "wide-mean", "two-delegates"),
    ),
    ValuePlant(
        "matmul-rescale",
        "RewriteMatmulPass",
        _after("rewrite_matmul", "RewriteMatmulPass", partial(_scaled, 1.25)),
        ("attention", "matmul-mean"),
    ),
    ValuePlant(
        "pad-value",
        "RewritePadPass",
        _helper("rewrite_pad", "RewritePadPass", "_rewrite_constant_pad", _pad_moved),
        ("moves", "pad-softmax"),
    ),
    ValuePlant(
        "slice-start",
        "ConvertSplitToSlicePass",
        _after("convert_split_to_slice", "ConvertSplitToSlicePass", _slice_moved),
        ("moves", "split-mean"),
    ),
    ValuePlant(
        "permute-up",
        "PropagateViewCopyPermuteUpPass",
        _after(
            "propagate_view_copy_permute_pass",
            "PropagateViewCopyPermuteUpPass",
            partial(_order_changed, "aten.permute_copy"),
        ),
        ("softmax", "mean", "moves"),
    ),
    ValuePlant(
        "permute-down",
        "PropagateViewCopyPermuteDownPass",
        _after(
            "propagate_view_copy_permute_pass",
            "PropagateViewCopyPermuteDownPass",
            partial(_order_changed, "aten.permute_copy"),
        ),
        ("softmax", "mean", "moves"),
    ),
    ValuePlant(
        "avg-pool-window",
        "RewriteAvgPool2dPass",
        _after("rewrite_avg_pool2d_pass", "RewriteAvgPool2dPass", _window_moved),
        ("pool-softmax",),
    ),
    ValuePlant(
        "max-pool-window",
        "RewriteMaxPool2dPass",
        _after("rewrite_max_pool2d_pass", "RewriteMaxPool2dPass", _window_moved),
        ("pools", "pool-softmax"),
    ),
    ValuePlant(
        "reduce-min",
        "ExirToTosaPass",
        _after("exir_to_tosa_pass", "ExirToTosaPass", _minimum_for_maximum),
        ("softmax", "two-delegates", "attention", "wide-softmax", "pool-softmax"),
    ),
    ValuePlant(
        "operands-swapped",
        "ExirToTosaPass",
        _after("exir_to_tosa_pass", "ExirToTosaPass", partial(_swapped, "tosa.SUB")),
        ("norm", "arithmetic"),
    ),
    ValuePlant(
        "folded-constant",
        "FuseConstantArgsPass",
        _left_to_passes(_helper("fuse_constant_ops_pass", "FuseConstantArgsPass", "_fuse_nodes", _constant_moved)),
        ("constants-softmax", "constants-mean"),
    ),
    ValuePlant(
        "multiplier",
        AFTER,
        _multiplier_off,
        ("softmax", "mean", "arithmetic", "wide-mean"),
    ),
)
