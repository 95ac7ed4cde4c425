"""``qmin-clamped``: a RESCALE that stands for a quantize node keeps that node's qmin and qmax."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_RESCALES = "executorch.backends.arm._passes.insert_rescales_pass"
_IMPORT = "from executorch.backends.arm._passes.insert_rescales_pass import (\n"
_ENSURES = "        self._ensure_uint8_io_only(graph_module)\n"
_CLAMP_PASS = '''

def set_quant_range(node: Node, qargs: QuantArgs) -> None:
    """Mark a node whose codes are bounded more tightly than by its dtype."""
    if qargs.dtype not in (torch.int8, torch.int16):
        return
    dtype_info = torch.iinfo(qargs.dtype)
    if qargs.qmin > dtype_info.min or qargs.qmax < dtype_info.max:
        node.meta["quant_range"] = (qargs.qmin, qargs.qmax)


class ClampRescalesPass(ArmPass):
    """Insert a CLAMP after each RESCALE that is marked by set_quant_range.

    RESCALE saturates at the ends of its output dtype, while a quantize node
    saturates at its qmin and qmax, which may lie inside of them (for example -127 for
    symmetric int8). So do NEGATE and AVG_POOL2D, whose zero points can take a code
    beyond them. Runs last, so that RESCALEs have been fused before.

    """

    _passes_required_after: Set[Type[ExportPass]] = set()

    def _is_clamped(self, node: Node, qmin: int, qmax: int) -> bool:
        """Return True if all that becomes of the value is clamped anyway."""
        for user in node.users:
            if user.target == exir_ops.backend.tosa.CLAMP.default:
                min_val, max_val = cast(tuple[int, int], user.args[1:3])
                if min_val < qmin or max_val > qmax:
                    return False
            elif user.target not in (
                exir_ops.backend.tosa.RESHAPE.default,
                exir_ops.backend.tosa.TRANSPOSE.default,
            ) or not self._is_clamped(user, qmin, qmax):
                return False
        return len(node.users) > 0

    def _is_between_conv_and_table(self, node: Node) -> bool:
        """Return True for a RESCALE that reads a convolution and is read by TABLEs.

        Vela 5.1.0 fuses a CLAMP and a TABLE into the convolution, and drops the
        TABLE if a TRANSPOSE follows (Ethos-U85), so there must be no CLAMP.

        """
        conv_targets = (
            exir_ops.backend.tosa.CONV2D.default,
            exir_ops.backend.tosa.DEPTHWISE_CONV2D.default,
            exir_ops.backend.tosa.TRANSPOSE_CONV2D.default,
        )
        return node.all_input_nodes[0].target in conv_targets and self._is_table_input(
            node
        )

    def _is_table_input(self, node: Node) -> bool:
        """Return True if only TABLEs read the value, also reshaped or transposed."""
        moves = (
            exir_ops.backend.tosa.RESHAPE.default,
            exir_ops.backend.tosa.TRANSPOSE.default,
        )
        return len(node.users) > 0 and all(
            user.target == exir_ops.backend.tosa.TABLE.default
            or (user.target in moves and self._is_table_input(user))
            for user in node.users
        )

    def call(self, graph_module: GraphModule) -> PassResult:
        modified = False
        for node in list(graph_module.graph.nodes):
            if node.target in (
                exir_ops.backend.tosa.AVG_POOL2D.default,
                exir_ops.backend.tosa.NEGATE.default,
            ):
                for qargs in node.meta.get("output_qparams", {}).values():
                    set_quant_range(node, qargs)
            elif node.target != exir_ops.backend.tosa.RESCALE.default:
                continue
            quant_range = node.meta.pop("quant_range", None)
            if quant_range is None or self._is_clamped(node, *quant_range):
                continue
            if self._is_between_conv_and_table(node):
                continue
            with graph_module.graph.inserting_after(node):
                clamp_node = create_node(
                    graph_module.graph,
                    exir_ops.backend.tosa.CLAMP.default,
                    from_node=node,
                )
            node.replace_all_uses_with(clamp_node)
            clamp_node.args = (node, *quant_range)
            modified = True

        if modified:
            graph_module.recompile()
        return PassResult(graph_module, modified)
'''


def _marked(indent: str, name: str, qargs: str) -> str:
    """A call of the helper, imported where it is used."""
    return f"{indent}{_IMPORT}{indent}    set_quant_range,\n{indent})\n\n{indent}set_quant_range({name}, {qargs})\n"


CORRECTION = Correction(
    name="qmin-clamped",
    # its CLAMP parts the chain of two tables
    entries=("qmin-lost", "vela-u85-chained-int16-tables"),
    cause=(
        "Quantize nodes whose qmin is inside the range of their dtype (-127 of int8, -32767 of every a16w8 recipe) "
        "become RESCALE, which saturates at the end of the dtype. No pass emits a CLAMP for qmin or qmax."
    ),
    change=(
        "A RESCALE made from such a quantize node is marked with its qmin and qmax, and a new last pass inserts a "
        "CLAMP after each marked RESCALE, and each NEGATE or AVG_POOL2D with such qparams, that no CLAMP bounds yet. "
        "Not between a convolution and a TABLE, where Vela would drop the TABLE: there the range stays open."
    ),
    changes=(
        Change(
            _RESCALES,
            "InsertRescalePass.ensures",
            {"1.4.1": "dc8d8b5fdf6e", "1.5.1": "dc8d8b5fdf6e"},
            (Edit(_ENSURES, _ENSURES + _CLAMP_PASS),),
        ),
        Change(
            _RESCALES,
            "InsertRescalePass.fold_dq_q_to_rescale",
            {"1.4.1": "0801762c9924", "1.5.1": "0801762c9924"},
            (
                Edit(
                    "            rescale_node.meta = copy(user.meta)\n",
                    "            rescale_node.meta = copy(user.meta)\n"
                    "            set_quant_range(rescale_node, q_args)\n",
                ),
            ),
        ),
        Change(
            _RESCALES,
            "InsertRescaleInt32Pass._rescale_outputs",
            {"1.4.1": "2ff422ca4903", "1.5.1": "2ff422ca4903"},
            (
                Edit(
                    "        for user in users_copy:\n",
                    "        set_quant_range(rescale_node, qarg)\n\n        for user in users_copy:\n",
                ),
            ),
        ),
        Change(
            _RESCALES,
            "InsertControlFlowRescalesPass._insert_rescale",
            {"1.4.1": "56ff3ec6accf", "1.5.1": "56ff3ec6accf"},
            (
                Edit(
                    "        return rescale_node\n",
                    "        set_quant_range(rescale_node, out_qparams)\n        return rescale_node\n",
                ),
            ),
        ),
        Change(
            "executorch.backends.arm._passes.rewrite_conv_pass",
            "RewriteConvPass.insert_output_rescale",
            {"1.4.1": "78a4e45b5c00", "1.5.1": "d343f063c398"},
            (
                Edit(
                    "        rescale_fake_tensor = exir_ops.backend.tosa.RESCALE.default(\n",
                    _marked("        ", "rescale_node", "output_qparams")
                    + "        rescale_fake_tensor = exir_ops.backend.tosa.RESCALE.default(\n",
                ),
            ),
        ),
        Change(
            "executorch.backends.arm._passes.rewrite_matmul",
            "RewriteMatmulPass._insert_output_rescale",
            {"1.4.1": "150ffd677bd5", "1.5.1": "150ffd677bd5"},
            (
                Edit(
                    "            tosa_matmul_node.replace_all_uses_with(rescale_node)\n",
                    _marked("            ", "rescale_node", "output_qparams")
                    + "            tosa_matmul_node.replace_all_uses_with(rescale_node)\n",
                ),
            ),
        ),
        Change(
            "executorch.backends.arm._passes.arm_pass_manager",
            "ArmPassManager._tosa_pipeline",
            {"1.4.1": "fe4194001772", "1.5.1": "ed04563f52be"},
            (
                Edit(
                    "        # Allow subclasses to configure pass insertions before building pipeline\n",
                    "        from executorch.backends.arm._passes.insert_rescales_pass import (\n"
                    "            ClampRescalesPass,\n"
                    "        )\n\n"
                    "        # Allow subclasses to configure pass insertions before building pipeline\n",
                ),
                Edit(
                    "                InsertRescalePass(),\n",
                    "                InsertRescalePass(),\n                ClampRescalesPass(),\n",
                ),
            ),
        ),
    ),
    patterns=(
        ("add|sub|mul|minimum|maximum|abs|neg|sum|mean|cat|softmax",),
        ("conv1d|conv2d|conv_transpose2d|linear|addmm|bmm|matmul|avg_pool2d|adaptive_avg_pool2d",),
    ),
)
