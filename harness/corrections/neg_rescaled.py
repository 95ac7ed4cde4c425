"""``neg-rescaled``: torch.neg between two domains of different scale gets its RESCALEs."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_MODULE = "executorch.backends.arm._passes.insert_rescales_pass"
_ABS = "            exir_ops.edge.aten.abs.default,\n"
_NEG = "            exir_ops.edge.aten.neg.default,\n"
_QPARAMS = '            input_qparams = node.meta["input_qparams"]\n'
_UNLESS_EQUAL = """\
            if node.target == exir_ops.edge.aten.neg.default and node.meta.get("output_qparams"):
                before = input_qparams[0].get_scale_per_tensor()
                after = node.meta["output_qparams"][0].get_scale_per_tensor()
                if abs(before / after - 1.0) < 1e-6:
                    continue
"""

CORRECTION = Correction(
    name="neg-rescaled",
    entries=("neg-ignores-scale",),
    cause=(
        "The composable quantizer observes the output of neg on its own, but TOSA NEGATE has zero points only and "
        "InsertRescaleInt32Pass does not list neg. The codes are negated without the ratio of the two scales."
    ),
    change=(
        "Where the scales differ, InsertRescaleInt32Pass treats neg like abs: RESCALE to int32, NEGATE, RESCALE to the "
        "output's domain. Where they are equal, NEGATE stays alone and saturates."
    ),
    changes=(
        Change(
            _MODULE,
            "InsertRescaleInt32Pass.included_targets",
            {"1.4.1": "7b3883d55d72", "1.5.1": "7b3883d55d72"},
            (
                Edit(
                    "        exir_ops.edge.aten.mul.Tensor,\n",
                    "        exir_ops.edge.aten.mul.Tensor,\n        exir_ops.edge.aten.neg.default,\n",
                ),
            ),
        ),
        Change(
            _MODULE,
            "InsertRescaleInt32Pass._get_inputs_rescaled_qparams",
            {"1.4.1": "f84bfa979867", "1.5.1": "f84bfa979867"},
            (Edit(_ABS, _ABS + _NEG),),
        ),
        Change(
            _MODULE,
            "InsertRescaleInt32Pass._get_output_qparams",
            {"1.4.1": "a36d0e463f21", "1.5.1": "a36d0e463f21"},
            (Edit(_ABS, _ABS + _NEG),),
        ),
        Change(
            _MODULE,
            "InsertRescaleInt32Pass.call",
            {"1.4.1": "67e903d7915b", "1.5.1": "67e903d7915b"},
            (Edit(_QPARAMS, _QPARAMS + _UNLESS_EQUAL),),
        ),
    ),
    patterns=(("neg",),),
)
