"""``duplicate-users-keep-domains``: equal calls are merged only if they are quantized alike.

For ``--correction FILE``; not certified, and so not one of ``harness/corrections``. Alone it mended
the bug in 377 comparisons wherever it showed, and broke nothing; together with all corrections two of 280
drawn cases are wrong, one of them because the CLAMP of ``qmin-clamped`` behind a mean of several
batches meets a defect of Vela's.
"""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_RETURN = "        return (node.op, target_key, normalized_args, normalized_kwargs)\n"

CORRECTION = Correction(
    name="duplicate-users-keep-domains",
    entries=("duplicate-users-merged-across-domains",),
    cause=(
        "FuseDuplicateUsersPass takes two users of a value for one if target, arguments and keyword arguments are "
        "equal. It runs after FoldAndAnnotateQParamsPass, when the domain of a result is in the node's metadata only, "
        "so all readers of the second result get codes of the first one's scale and zero point."
    ),
    change="The signature of a user includes its output_qparams, unless they are those of its operands.",
    changes=(
        Change(
            "executorch.backends.transforms.fuse_duplicate_users_pass",
            "FuseDuplicateUsersPass._build_user_signature",
            {"1.5.1": "762d025c013d"},
            (
                Edit(
                    _RETURN,
                    "        # Backends that fold Q/DQ nodes into metadata keep a result's quantization there.\n"
                    "        # Where it is the operand's, or none is kept, codes are handed on as they are.\n"
                    '        keys = ("input_qparams", "output_qparams")\n'
                    "        read, written = ([*(node.meta.get(key) or {}).values()] for key in keys)\n"
                    '        qparams = repr(written) if any(item not in read for item in written) else ""\n\n'
                    + _RETURN.replace("normalized_kwargs)", "normalized_kwargs, qparams)"),
                ),
            ),
        ),
    ),
    patterns=(("sigmoid|tanh|gelu|abs|ones_like",),),
)
