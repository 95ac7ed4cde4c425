"""``replayed-writes-go-nowhere``: a pass that replays a graph does not write into the tensors of the module."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

CORRECTION = Correction(
    name="replayed-writes-go-nowhere",
    entries=("replay-writes-user-state",),
    cause=(
        "ExportPass replays a graph to trace it anew, with the real tensors of its attributes. What writes in place "
        "returns its real operand, and the next one that writes into that changes the user's own buffer."
    ),
    change="What writes in place is replayed on fake tensors of its operands.",
    changes=(
        Change(
            "executorch.exir.pass_base",
            "_ExportPassBase._fx",
            {"1.4.1": "d21aacbb5c10", "1.5.1": "d21aacbb5c10"},
            (
                Edit(
                    "        res_data = getattr(self.interpreter, kind)(target, args_data, kwargs_data)\n",
                    '        schema = getattr(target, "_schema", None)\n'
                    "        if schema is not None and schema.is_mutable and self.fake_tensor_mode is not None:\n"
                    "            # The tensors of attributes are real, and the module's own.\n"
                    "            args_data, kwargs_data = pytree.tree_map_only(\n"
                    "                torch.Tensor,\n"
                    "                lambda x: (\n"
                    "                    x\n"
                    "                    if isinstance(x, FakeTensor)\n"
                    "                    else self.fake_tensor_mode.from_tensor(x, static_shapes=True)\n"
                    "                ),\n"
                    "                (args_data, kwargs_data),\n"
                    "            )\n"
                    "        res_data = getattr(self.interpreter, kind)(target, args_data, kwargs_data)\n",
                ),
            ),
        ),
    ),
    patterns=(("add|sub|mul|div",),),
)
