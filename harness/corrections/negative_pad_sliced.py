"""``negative-pad-sliced``: a pad with a negative width crops with a SLICE and pads with the rest."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_MODULE = "executorch.backends.arm._passes.rewrite_pad"
_PAIRS = """\
        # Each dim needs 2 padding values. For example, to pad the last dimension, the pad has the form
"""
_CROP = """\
        # TOSA PAD takes no negative padding, which crops: slice that part off.
        for i in range(0, len(pad), 2):
            before, after = (
                width if isinstance(width, int) and width < 0 else 0
                for width in pad[i : i + 2]
            )
            if before == 0 and after == 0:
                continue
            dim = len(input_tensor.data.shape) - 1 - i // 2
            input_tensor = super().call_operator(
                exir_ops.edge.aten.slice_copy.Tensor,
                (input_tensor, dim, -before, input_tensor.data.shape[dim] + after),
                {},
                meta,
                True,
            )
        pad = [
            0 if isinstance(width, int) and width < 0 else width for width in pad
        ]

"""

CORRECTION = Correction(
    name="negative-pad-sliced",
    entries=("negative-pad-not-rejected",),
    cause=(
        "The operator support accepts aten.pad with negative widths, which crop, and RewritePadPass passes them on to "
        "TOSA PAD. Its padding must not be negative, so that lowering fails."
    ),
    change="RewritePadPass crops with slice_copy, which becomes SLICE, and pads with the other widths.",
    changes=(
        Change(
            _MODULE,
            "RewritePadPass._rewrite_constant_pad",
            {"1.4.1": "569350167330", "1.5.1": "569350167330"},
            (Edit(_PAIRS, _CROP + _PAIRS),),
        ),
    ),
    patterns=(("pad",),),
)
