"""Parts of the corrections that keep a pattern that Vela compiles wrongly away from Ethos-U: no correction itself.

Each adds a check to ``EthosUPartitioner``, so that the TOSA backend does not see it. All of them use the
same two anchors, which stay unique however many corrections there are.
"""

from __future__ import annotations

from harness.corrections.correction import Change, Edit

_CHECKS = "executorch.backends.arm.operator_support.ethos_u55_support"
_END = """\
    # We can't easily figure out dtype, return None
    return None
"""
_LAST = """\
        self.intermediate_path = compile_spec._get_intermediate_path()
"""

THROUGH = '''
    @staticmethod
    def _moves_data(node: fx.Node) -> bool:
        """Return whether the node only quantizes, reshapes or permutes."""
        from executorch.backends.arm.constants import DQ_OPS, Q_OPS

        return node.target in (
            *Q_OPS,
            *DQ_OPS,
            exir_ops.edge.aten.view_copy.default,
            exir_ops.edge.aten.squeeze_copy.dims,
            exir_ops.edge.aten.unsqueeze_copy.default,
            exir_ops.edge.aten.permute_copy.default,
            exir_ops.edge.dim_order_ops._clone_dim_order.default,
        )
'''
"""A method for checks that look at what an operator reads, or who reads it."""

CONSUMERS = '''
    def _consumers(self, node: fx.Node) -> typing.Iterator[tuple[fx.Node, fx.Node]]:
        """Yield the operators which read the node, and their operand."""
        for user in node.users:
            if self._moves_data(user) or "getitem" in str(user.target):
                yield from self._consumers(user)
            elif user.op == "call_function":
                yield user, node
'''
"""A method for checks that look at who reads an operator."""

ACTIVATIONS = """\
    _activations = (
        *TableOps.included_ops(),
        exir_ops.edge.aten.relu.default,
        exir_ops.edge.aten.hardtanh.default,
        exir_ops.edge.aten.clamp.default,
        exir_ops.edge.aten.clamp.Tensor,
    )
"""
"""What Vela fuses into the operator before it."""

BINARY = """\
    targets = (
        exir_ops.edge.aten.add.Tensor,
        exir_ops.edge.aten.sub.Tensor,
        exir_ops.edge.aten.mul.Tensor,
        exir_ops.edge.aten.minimum.default,
        exir_ops.edge.aten.maximum.default,
    )
"""
"""Elementwise operators of two operands."""

JOINED = """\
    _joined_by = (
        exir_ops.edge.aten.cat.default,
        exir_ops.edge.aten.constant_pad_nd.default,
        exir_ops.edge.aten.pad.default,
    )
"""
"""What makes its operand a part of a larger tensor."""

BESIDE_VIEW = '''
    def _is_viewed(self, node: fx.Node) -> bool:
        """Return whether the node's operand has another shape elsewhere."""
        for operand in node.all_input_nodes:
            shape = get_first_fake_tensor(operand).shape
            source = operand
            while self._moves_data(source):
                source = source.all_input_nodes[0]
            if any(view.shape != shape for view in self._shapes(source)):
                return True
        return False

    def _shapes(self, node: fx.Node) -> typing.Iterator[torch.Tensor]:
        """Yield the node's value, and those of all nodes which move it."""
        yield get_first_fake_tensor(node)
        for user in filter(self._moves_data, node.users):
            yield from self._shapes(user)
'''
"""A method for checks of operators whose operand has two shapes: a view, and what that reads."""

SLICES = (
    THROUGH
    + CONSUMERS
    + '''
    def is_node_supported(
        self, submodules: typing.Mapping[str, torch.nn.Module], node: fx.Node
    ) -> bool:
        sliced = self._sliced(node)
        return sliced is None or not any(
            self._is_misread(user, operand)
            for user, operand in self._consumers(sliced)
        )

    @staticmethod
    def _sliced(node: fx.Node) -> fx.Node | None:
        """Return the slice that the node is, or is a part of."""
        if "getitem" in str(node.target):
            node = node.all_input_nodes[0]
        if node.target in (
            exir_ops.edge.aten.slice_copy.Tensor,
            exir_ops.edge.aten.select_copy.int,
            exir_ops.edge.aten.split_copy.Tensor,
            exir_ops.edge.aten.split_with_sizes_copy.default,
        ):
            return node
        return None
'''
)
"""Methods for checks of slices, which define _is_misread(user, operand): does Vela take the wrong elements?"""

SLICES_TOO = SLICES.replace("def is_node_supported(", "def _reads_no_slice_wrongly(")
"""The same for checks that look at other operators as well, and call it from an is_node_supported of their own."""


EXPOSED = (
    "delegate-output-dtype",
    "unused-inputs-kept",
    "constant-keeps-quantized-dtype",
    "avg-pool-zero-point-literal",
)
"""What such a workaround needs: corrections of bugs that show where the CPU reads what Ethos-U does not take."""

U55 = "self.tosa_spec.is_U55_subset"
"""The condition of checks for Ethos-U55 and U65 only."""

U85 = "not self.tosa_spec.is_U55_subset"
"""The condition of checks for Ethos-U85 only."""


def rejected(name: str, source: str, condition: str = "", argument: str = "") -> tuple[Change, ...]:
    """The changes that define a check and give it to the partitioner.

    :param source: text of the class ``name``, after ``class``.
    :param condition: a Python expression inside ``EthosUPartitioner.__init__``: when the check is made.
    :param argument: a Python expression there, too: what the check is made with.
    """
    adds = f"        self.additional_checks = [*(self.additional_checks or ()), {name}({argument})]\n"
    if condition:
        adds = f"        if {condition}:\n    {adds}"
    imports = f"""\

        # Vela compiles this pattern wrongly.
        from executorch.backends.arm.operator_support.ethos_u55_support import (
            {name},
        )

"""
    return (
        Change(
            _CHECKS,
            "_try_determine_dtype",
            {"1.4.1": "b6f7e09400dd", "1.5.1": "b6f7e09400dd"},
            (Edit(_END, f"{_END}\n\nclass {name}(OperatorSupportBase):\n{source}"),),
        ),
        Change(
            "executorch.backends.arm.ethosu.partitioner",
            "EthosUPartitioner.__init__",
            {"1.4.1": "dcd238f7c4bf", "1.5.1": "d1d48986154c"},
            (Edit(_LAST, _LAST + imports + adds),),
        ),
    )
