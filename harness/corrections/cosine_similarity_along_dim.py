"""``cosine-similarity-along-dim``: the vectors that are compared lie along the dimension that was asked for."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

CORRECTION = Correction(
    name="cosine-similarity-along-dim",
    entries=("cosine-similarity-ignores-dim",),
    cause=(
        "DecomposeCosineSimilarityPass looks for dim and eps among the keyword arguments. torch.export puts them among "
        "the others, so that the sums always run along dimension 1."
    ),
    change="The pass reads dim and eps where they stand.",
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
    needs=("saturated-before-large-rescale",),  # a product of norms beside its bound
)
