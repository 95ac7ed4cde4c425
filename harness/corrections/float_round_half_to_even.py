"""``float-round-half-to-even``: a float round takes the even neighbour of a value halfway between two."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_CONDITION = """\
        is_non_negative = super().call_operator(
            ge, (x, zero), kwargs, meta, updated=True
        )
        plus_half = super().call_operator(add, (x, 0.5), kwargs, meta, updated=True)
        minus_half = super().call_operator(sub, (x, 0.5), kwargs, meta, updated=True)
        floor = super().call_operator(floor, (plus_half,), kwargs, meta, updated=True)
        ceil = super().call_operator(ceil, (minus_half,), kwargs, meta, updated=True)
        return super().call_operator(
            where,
            (is_non_negative, floor, ceil),
            kwargs,
            meta,
            updated=True,
        )
"""
_NEAREST = """\

        def call(op, *args):
            return super(DecomposeRoundPass, self).call_operator(
                op, args, {}, meta, updated=True
            )

        # The difference to a neighbour is exact, unlike x + 0.5.
        below, above = call(floor, x), call(ceil, x)
        past = call(exir_ops.edge.aten.sub.Tensor, x, below)
        halved = call(exir_ops.edge.aten.mul.Tensor, below, half)
        even = call(ge, call(floor, halved), halved)
        halfway = call(where, even, below, above)
        nearest = call(where, call(ge, half, past), halfway, above)
        return call(where, call(ge, past, half), nearest, below)
"""
CORRECTION = Correction(
    name="float-round-half-to-even",
    entries=("round-half-away-in-float",),
    cause=(
        "DecomposeRoundPass makes floor(x + 0.5) of a round, and ceil(x - 0.5) below zero, which takes a value halfway "
        "between two away from zero. torch.round takes the even one. The sum is rounded itself, besides: the largest "
        "number below 0.5 becomes 1, and odd numbers beyond 2**23 move."
    ),
    change="The pass compares x - floor(x) with 0.5, and takes the even neighbour where they are equal.",
    upstream=("https://github.com/pytorch/executorch/pull/21065",),
    changes=(
        Change(
            "executorch.backends.arm._passes.decompose_round_pass",
            "DecomposeRoundPass.call_operator",
            {"1.4.1": "4e154f58e58f", "1.5.1": "4e154f58e58f"},
            (
                Edit("        zero = super()", "        half = super()"),
                Edit("            args=((1,), 0.0),\n", "            args=((1,), 0.5),\n"),
                Edit(_CONDITION, _NEAREST),
            ),
        ),
    ),
    patterns=(("round",),),
)
