"""``written-state-not-folded``: a buffer that the module changes is no constant."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

CORRECTION = Correction(
    name="written-state-not-folded",
    entries=("written-state-folded",),
    cause=(
        "ConstantFoldingPass evaluates what depends on attributes alone. Of those that are written it knows copy_ and "
        "put_, so a counter is counted up once, in the user's own buffer, and is a constant from then on."
    ),
    change="What depends on an attribute that is written is not folded, and the attribute keeps its value.",
    changes=(
        Change(
            "executorch.backends.arm._passes.constant_folding_pass",
            "ConstantFoldingPass.call",
            {"1.5.1": "981306b2f496"},
            (
                Edit(
                    "        constant_fold(graph_module)\n",
                    "        from operator import attrgetter\n"
                    "\n"
                    "        written = _written_attributes(graph_module)\n"
                    "        unfolded = _dependents(graph_module, written)\n"
                    "        tensors = [attrgetter(name)(graph_module) for name in sorted(written)]\n"
                    "        values = [tensor.detach().clone() for tensor in tensors]\n"
                    "        constant_fold(graph_module, lambda node: node not in unfolded)\n"
                    "        # Folding has run what it does not replace.\n"
                    "        with torch.no_grad():\n"
                    "            for tensor, value in zip(tensors, values):\n"
                    "                tensor.copy_(value)\n",
                ),
                Edit(
                    "        return PassResult(graph_module, modified)\n",
                    "        return PassResult(graph_module, modified)\n"
                    "\n\n"
                    "def _written_attributes(graph_module: torch.fx.GraphModule) -> set[str]:\n"
                    '    """Attributes that a node writes into, also through views of them."""\n'
                    "    written: set[str] = set()\n"
                    "    owners: dict[torch.fx.Node, set[str]] = {}\n"
                    "    for node in graph_module.graph.nodes:\n"
                    '        if node.op == "get_attr":\n'
                    "            owners[node] = {str(node.target)}\n"
                    '        schema = getattr(node.target, "_schema", None)\n'
                    '        if node.op != "call_function" or schema is None:\n'
                    "            continue\n"
                    "        for argument, value in zip(schema.arguments, node.args):\n"
                    "            if argument.alias_info is not None and isinstance(value, torch.fx.Node):\n"
                    "                owners.setdefault(node, set()).update(owners.get(value, set()))\n"
                    "                if argument.alias_info.is_write:\n"
                    "                    written |= owners.get(value, set())\n"
                    "    return written\n"
                    "\n\n"
                    "def _dependents(\n"
                    "    graph_module: torch.fx.GraphModule, attributes: set[str]\n"
                    ") -> set[torch.fx.Node]:\n"
                    '    """Nodes whose value depends on one of these attributes."""\n'
                    "    found: set[torch.fx.Node] = set()\n"
                    "    for node in graph_module.graph.nodes:\n"
                    '        own = node.op == "get_attr" and str(node.target) in attributes\n'
                    "        if own or any(item in found for item in node.all_input_nodes):\n"
                    "            found.add(node)\n"
                    "    return found\n",
                ),
            ),
        ),
    ),
    patterns=(("add|sub|mul|div",),),
    needs=("inplace-arithmetic-writes-back",),
)
