"""``inplace-arithmetic-writes-back``: arithmetic in place on state still changes the state."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_ALLOWED = "        if not self.allowed_to_transform(meta):\n"
_REWRITTEN = "        return super().call_operator(target_op, args, kwargs, meta, updated=True)\n"
_KNOWN = '    return (\n        node.op == "call_function"\n        and hasattr(node.target, "_schema")\n'

CORRECTION = Correction(
    name="inplace-arithmetic-writes-back",
    entries=("inplace-arithmetic-drops-state",),
    cause=(
        "RewriteInplaceArithmeticPass makes add, sub, mul and div of their forms in place. Nothing writes the result "
        "back, so a buffer of the module stays as it was from call to call."
    ),
    change=(
        "The result is copied into the operand where that is a tensor of the module, or a view of one, and such a "
        "tensor keeps its name from the first pass on, as one that copy_ writes does: it could else take a name that "
        "ScalarsToAttributePass gives to a number."
    ),
    changes=(
        Change(
            "executorch.backends.arm._passes.rewrite_inplace_arithmetic_pass",
            "RewriteInplaceArithmeticPass.call_operator",
            {"1.5.1": "a4af77a6a051"},
            (
                Edit(
                    _ALLOWED,
                    "        if op in OP_MAP:\n"
                    "            if _is_state(args[0]):\n"
                    "                # As copy_, the only write that constant folding in convert_pt2e knows.\n"
                    "                result = super().call_operator(OP_MAP[op], args, kwargs, meta, updated=True)\n"
                    "                copy_op = torch.ops.aten.copy_.default\n"
                    "                return super().call_operator(copy_op, (args[0], result), {}, meta, updated=True)\n"
                    "\n" + _ALLOWED,
                ),
                Edit(
                    _REWRITTEN,
                    _REWRITTEN + "\n\n"
                    "def _is_state(value):\n"
                    '    """Is an operand a tensor of the module or of its caller, or a view of one?"""\n'
                    '    node = getattr(value, "node", None)\n'
                    '    while node is not None and node.op == "call_function":\n'
                    '        schema = getattr(node.target, "_schema", None)\n'
                    "        shares = schema is not None and any(\n"
                    "            result.alias_info is not None for result in schema.returns\n"
                    "        )\n"
                    "        if not shares:\n"
                    "            return False\n"
                    "        node = node.args[0]\n"
                    "    return True\n",
                ),
            ),
        ),
        Change(
            "executorch.backends.arm._passes.mutable_buffer_utils",
            "_is_mutation_node",
            {"1.5.1": "971a810a4b21"},
            (
                Edit(
                    _KNOWN,
                    "    if (\n"
                    '        node.op == "call_function"\n'
                    "        and any(\n"
                    '            name in getattr(node.target, "__name__", "")\n'
                    '            for name in ("add_", "sub_", "mul_", "div_")\n'
                    "        )\n"
                    "        and isinstance(node.args[0], torch.fx.Node)\n"
                    "    ):\n"
                    "        return True\n" + _KNOWN,
                ),
            ),
        ),
    ),
    patterns=(("add|sub|mul|div",),),
    needs=("qmin-clamped",),  # what is written back has qparams of its own
)
