"""``nearest-resize-doubles-by-size``: a nearest upsample to the same or twice the size goes by the sizes."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_FACTORS = "            scale_factors_yx = scale_factors or (None, None)\n"
_TAKEN = _FACTORS + (
    '            if resize_mode == "nearest" and scale_factors is not None:\n'
    '                scale_factors_yx = _factors_that_count(node.args[0].meta["val"], output_size_yx, scale_factors)\n'
)
_END = "        return PassResult(graph_module, modified)\n"
_HELPER = '''

def _factors_that_count(x, output_size_yx, scale_factors):
    """Without those that PyTorch's kernel ignores: it has two, of which one copies and doubles by the sizes."""
    sizes = (*x.shape[2:], *output_size_yx)
    if not all(isinstance(size, int) for size in sizes):
        return scale_factors
    channels_last = x.shape[1] > 3 and x.is_contiguous(memory_format=torch.channels_last)
    if not channels_last and sum(output_size_yx) > 128:  # _use_vectorized_kernel_cond_2d
        return scale_factors
    return tuple(
        None if after in (before, 2 * before) else factor
        for before, after, factor in zip(x.shape[2:], output_size_yx, scale_factors)
    )
'''

CORRECTION = Correction(
    name="nearest-resize-doubles-by-size",
    entries=("nearest-factor-taken-where-pytorch-doubles",),
    cause=(
        "PyTorch has two kernels for nearest. The one of small results (height and width come to 128 at most), and of "
        "more than three channels that lie last in memory, takes each element once or twice where the result has as "
        "many elements along an axis, or twice as many, whatever the factor is (nearest_idx in "
        "ATen/native/UpSample.h). RewriteUpsamplePass takes the factor."
    ),
    change="Where that kernel runs, and sizes are equal or one is twice the other, an explicit factor does not count.",
    changes=(
        Change(
            "executorch.backends.arm._passes.rewrite_upsample",
            "RewriteUpsamplePass.call",
            {"1.5.1": "74a7b0a0bc6f"},
            (Edit(_FACTORS, _TAKEN), Edit(_END, _END + _HELPER)),
        ),
    ),
    patterns=(("upsample_nearest2d",),),
)
