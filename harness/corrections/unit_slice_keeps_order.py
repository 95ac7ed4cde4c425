"""``unit-slice-keeps-order``: a view that merges axes across a one-element slice does not move in front of it."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_EDITS = (
    Edit(
        "                prev_target_axis <= target_axis for prev_target_axis in prev_target_axes\n",
        "                prev_target_axis < target_axis for prev_target_axis in prev_target_axes\n",
    ),
)

CORRECTION = Correction(
    name="unit-slice-keeps-order",
    entries=("select-then-flatten-wrong-elements", "select-after-permute-flatten"),
    cause=(
        "ViewMap.remap_unit_slice folds the sliced axis into the first target axis behind it, also if that axis holds "
        "source axes in front of the slice. A slice of such an axis takes other elements."
    ),
    change="The target axis that the sliced axis is folded into may hold no source axis in front of the slice.",
    changes=(
        Change(
            "executorch.backends.arm._passes.dim_maps", "ViewMap.remap_unit_slice", {"1.4.1": "c5ed645d8986"}, _EDITS
        ),
        Change(
            "executorch.backends.transforms.dim_maps", "ViewMap.remap_unit_slice", {"1.5.1": "3eeb864cec84"}, _EDITS
        ),
    ),
    patterns=(("select|slice|chunk|split|narrow|unbind|index_select",),),
)
