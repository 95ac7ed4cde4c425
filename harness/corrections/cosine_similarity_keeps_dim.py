"""``cosine-similarity-keeps-dim``: a cosine similarity is taken along the dimension that it is given."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

CORRECTION = Correction(
    name="cosine-similarity-keeps-dim",
    entries=("cosine-similarity-dim-ignored",),
    cause=(
        "DecomposeCosineSimilarityPass looks for dim and eps among the keyword arguments alone. torch.export makes "
        "positional arguments of them, so that every cosine similarity is taken along dimension 1, with an eps of 1e-8."
    ),
    change="The pass takes dim and eps from the positional arguments first.",
    changes=(
        Change(
            "executorch.backends.arm._passes.decompose_cosine_similarity_pass",
            "DecomposeCosineSimilarityPass.call_operator",
            {"1.5.1": "f72db354dd18"},
            (
                Edit(
                    '        dim = kwargs.get("dim", 1)\n        eps = kwargs.get("eps", 1e-8)\n',
                    '        dim = args[2] if len(args) > 2 else kwargs.get("dim", 1)\n'
                    '        eps = args[3] if len(args) > 3 else kwargs.get("eps", 1e-8)\n',
                ),
            ),
        ),
    ),
    patterns=(("cosine_similarity",),),
    needs=("saturated-before-large-rescale",),
)
