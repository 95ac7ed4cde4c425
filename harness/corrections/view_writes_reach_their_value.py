"""``view-writes-reach-their-value``: what is written into a view of a value is in the value for all later readers."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_RETURN = "            return GraphModulePassManager(self.passes)(graph_module).graph_module\n"
_HELPER = '''

def _make_writes_functional(graph_module: GraphModule) -> None:
    """Make what is written into a view of an intermediate value a new value, which all later readers read."""
    import torch

    aten = torch.ops.aten
    graph = graph_module.graph
    scatters = {aten.slice.Tensor: aten.slice_scatter.default, aten.select.int: aten.select_scatter.default}
    shaped = {aten.view.default, aten.unsqueeze.default, aten.squeeze.dim, aten.squeeze.dims}
    moved = {aten.transpose.int, aten.permute.default}

    def viewed(node):
        return node.args[0] if node.target in {*scatters, *shaped, *moved} else None

    def call(like, target, *args, **kwargs):
        node = graph.call_function(target, args, kwargs)
        args, kwargs = torch.fx.node.map_arg((args, kwargs), lambda item: item.meta["val"])
        node.meta = {**like.meta, "val": target(*args, **kwargs)}
        return node

    def result(write, operator):
        if operator is not aten.copy.default:
            return call(write, operator, *write.args, **write.kwargs)
        return call(write, aten.expand.default, write.args[1], list(write.meta["val"].shape))

    def put_back(view, value):
        base, more = view.args[0], view.args[1:]
        if view.target in scatters:
            return call(view, scatters[view.target], base, value, *more)
        if view.target is aten.transpose.int:
            return call(view, view.target, value, *more)
        if view.target is aten.permute.default:
            axes = [axis % len(more[0]) for axis in more[0]]
            return call(view, view.target, value, [axes.index(axis) for axis in range(len(axes))])
        return call(view, aten.view.default, value, list(base.meta["val"].shape))

    for write in list(graph.nodes):
        schema = getattr(write.target, "_schema", None)
        if schema is None or not schema.is_mutable or not schema.name.endswith("_"):
            continue
        packet = getattr(aten, schema.name.removeprefix("aten::").removesuffix("_"), None)
        operator = getattr(packet, write.target._overloadname, None)
        views = [write.args[0]]
        while viewed(views[-1]) is not None:
            views.append(viewed(views[-1]))
        root = views.pop()
        nodes = list(graph.nodes)
        place = nodes.index(write)
        later = set(nodes[place + 1 :])
        aliases = [root]
        for node in nodes[:place]:
            if viewed(node) in aliases:
                aliases.append(node)
        read = any(user in later for alias in aliases for user in alias.users)
        if operator is None or root.op != "call_function" or not read:
            continue
        if operator is aten.copy.default and not any(view.target in scatters for view in views):
            continue
        with graph.inserting_before(write):
            value = result(write, operator)
            for view in views:
                value = put_back(view, value)
            now = {root: value}
            for alias in aliases[1:]:
                now[alias] = call(alias, alias.target, now[viewed(alias)], *alias.args[1:])
        now[write] = now[write.args[0]]
        for alias, value in now.items():
            alias.replace_all_uses_with(value, later.__contains__, propagate_meta=False)
        graph.erase_node(write)
    graph.eliminate_dead_code()
'''

CORRECTION = Correction(
    name="view-writes-reach-their-value",
    entries=("inplace-arithmetic-on-view-dropped", "write-into-view-lost"),
    cause=(
        "The quantizer's graph has writes that are not functional yet. RewriteInplaceArithmeticPass makes a new value "
        "of one into a view, which nothing reads; of other writes, Q/DQ nodes come between the view and its value."
    ),
    change="Before everything else, what is written into a view of an intermediate value makes a new value.",
    changes=(
        Change(
            "executorch.backends.arm._passes.arm_pass_manager",
            "ArmPassManager.transform_for_annotation_pipeline",
            {"1.5.1": "1886bcf3e329"},
            (
                Edit(
                    "            # Preprocessing passes\n",
                    '            if any(getattr(getattr(node.target, "_schema", None), "is_mutable", False)\n'
                    "                   for node in graph_module.graph.nodes):\n"
                    "                _make_writes_functional(graph_module)\n"
                    "            # Preprocessing passes\n",
                ),
                Edit(_RETURN, _RETURN + _HELPER),
            ),
        ),
    ),
    patterns=(("add|sub|mul|div",),),
)
