"""``written-int64-not-cast``: a write into an int64 buffer goes into the buffer."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_MODULE = "executorch.backends.arm._passes.insert_int32_casts_after_int64_placeholders"
_INT64 = "            if not self._is_tensor_of_dtype(node_val, torch.int64):\n                continue\n"
_END = "        return PassResult(graph_module, modified)\n"

CORRECTION = Correction(
    name="written-int64-not-cast",
    entries=("written-int64-state-cast",),
    cause=(
        "InsertInt32CastsAfterInt64PlaceholdersPass casts every int64 input and attribute to int32 for all that read "
        "it. What writes it in place then writes into the copy that the cast made, and the state stays as it was."
    ),
    change="What is written in place is not cast.",
    changes=(
        Change(
            _MODULE,
            "InsertInt32CastsAfterInt64PlaceholdersPass._insert_placeholder_i64_to_i32_casts",
            {"1.5.1": "666f24b5b717"},
            (
                Edit(
                    _INT64,
                    _INT64 + "            if _is_written(node):\n"
                    "                continue  # a write would go into the copy\n",
                ),
            ),
        ),
        Change(
            _MODULE,
            "InsertInt32CastsAfterInt64PlaceholdersPass.call",
            {"1.5.1": "6c9fe8aac550"},
            (
                Edit(
                    _END,
                    _END + "\n\n"
                    "def _is_written(node: torch.fx.Node) -> bool:\n"
                    '    """Does something write into what a node returns, or what others return of the same name?"""\n'
                    "    same = (item for item in node.graph.nodes if item.target == node.target)\n"
                    "    return any(_has_write(item) for item in same)\n"
                    "\n\n"
                    "def _has_write(node: torch.fx.Node) -> bool:\n"
                    '    """Does a user write into what a node returns, or into a view of it?"""\n'
                    "    for user in node.users:\n"
                    '        schema = getattr(user.target, "_schema", None)\n'
                    "        for argument, value in zip(schema.arguments if schema else (), user.args):\n"
                    "            if value is not node or argument.alias_info is None:\n"
                    "                continue\n"
                    "            if argument.alias_info.is_write or _has_write(user):\n"
                    "                return True\n"
                    "    return False\n",
                ),
            ),
        ),
    ),
    patterns=(("add|sub|mul|div",),),
    needs=("inplace-arithmetic-writes-back",),  # a write that nothing casts for is dropped next
)
