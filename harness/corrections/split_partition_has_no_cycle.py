"""``split-partition-has-no-cycle``: what a partition with a cycle is split into has none."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_PARTITIONER = "executorch.backends.arm.tosa.partitioner"
_TAGGED = (
    "                    for component in components:\n"
    '                        new_tag = f"tag{next(tag_iterator)}"\n'
    "                        tags.add(new_tag)\n"
    "                        for node in component:\n"
    '                            node.meta["delegation_tag"] = new_tag\n'
)
_DETAGGED = (
    "                    while components:\n"
    "                        component = components.pop(0)\n"
    '                        new_tag = f"tag{next(tag_iterator)}"\n'
    "                        for node in component:\n"
    '                            node.meta["delegation_tag"] = new_tag\n'
    "                        # Where it was split there is a boundary now.\n"
    "                        self._detag_boundary_nodes(module, new_tag, reporter)\n"
    "                        component = {n for n in component if is_partitioned(n, new_tag)}\n"
    "                        if _validate_partition(component):\n"
    "                            tags.add(new_tag)\n"
    "                            continue\n"
    "                        for node in component:\n"
    '                            del node.meta["delegation_tag"]\n'
    "                        components.extend(_find_connected_components(component))\n"
)

CORRECTION = Correction(
    name="split-partition-has-no-cycle",
    entries=("split-partition-cycle",),
    cause=(
        "A partition out of which a node was taken that depends on it, and that it depends on, is split into connected "
        "components. Where the rest is connected by another way it is one component, and has the cycle still."
    ),
    change=(
        "Nodes on both sides of what was taken out are not of one component, each component is checked again, and they "
        "come in the graph's order."
    ),
    changes=(
        Change(
            _PARTITIONER,
            "TOSAPartitioner._tag_module",
            {"1.4.1": "3b46eed5001f", "1.5.1": "c443244bca2d"},
            (Edit(_TAGGED, _DETAGGED),),
        ),
        Change(
            _PARTITIONER,
            "_find_connected_components",
            {"1.4.1": "fc1ef808490b", "1.5.1": "fc1ef808490b"},
            (
                Edit(
                    "    remaining = set(nodes)\n",
                    "    remaining = set(nodes)\n    crossed = _crossings(nodes)\n",
                ),
                Edit(
                    "                if inp in remaining and inp not in component:\n",
                    "                if (\n"
                    "                    inp in remaining\n"
                    "                    and inp not in component\n"
                    "                    and crossed[inp] == crossed[node]\n"
                    "                ):\n",
                ),
                Edit(
                    "                if user in remaining and user not in component:\n",
                    "                if (\n"
                    "                    user in remaining\n"
                    "                    and user not in component\n"
                    "                    and crossed[user] == crossed[node]\n"
                    "                ):\n",
                ),
                Edit(
                    "    return components\n",
                    "    # In the graph's order, so that the same graph gives the same program.\n"
                    "    return sorted(components, key=min)\n"
                    "\n\n"
                    "def _crossings(nodes: set[torch.fx.Node]) -> dict[torch.fx.Node, int]:\n"
                    '    """How often a path to each node left the set; a DQ node counts as its only user does."""\n'
                    "    crossed: dict[torch.fx.Node, int] = {}\n"
                    "    if not nodes:\n"
                    "        return crossed\n"
                    "    for node in next(iter(nodes)).graph.nodes:\n"
                    "        crossed[node] = max(\n"
                    "            (\n"
                    "                crossed[item] + int(item in nodes and node not in nodes)\n"
                    "                for item in node.all_input_nodes\n"
                    "            ),\n"
                    "            default=0,\n"
                    "        )\n"
                    "    for node in nodes:\n"
                    "        if node.target in DQ_OPS and len(node.users) == 1:\n"
                    "            user = next(iter(node.users))\n"
                    "            crossed[node] = crossed[user] if user in nodes else crossed[node]\n"
                    "    return crossed\n",
                ),
            ),
        ),
    ),
    patterns=(("index_put",),),
)
