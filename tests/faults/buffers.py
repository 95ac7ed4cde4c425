"""Faults at a delegate's border: number, order, dtype and size of its buffers."""

from __future__ import annotations

from contextlib import AbstractContextManager

from tests.faults.cases import boundary_case
from tests.faults.fault import Fault, patched
from tests.integration.conftest import sigmoid_case, two_outputs_case


def _boundary_stays_float() -> AbstractContextManager[None]:
    """Seed 003 (#19364): the program takes a float32 value that the fold inside the delegate made int8.

    The last quantize node stays outside the delegate, as it did in 1.1.0 and does for some splits.
    """
    from executorch.backends.arm.constants import Q_OPS
    from executorch.backends.arm.tosa.partitioner import TOSAPartitioner, is_partitioned
    from executorch.exir.dialects._ops import ops

    original = TOSAPartitioner._detag_boundary_nodes

    def wrong(self, module, tag, reporter, detag_first_fp_node=True):
        original(self, module, tag, reporter, detag_first_fp_node)
        for node in module.graph.nodes:
            last = is_partitioned(node, tag) and not any(is_partitioned(user, tag) for user in node.users)
            if last and node.target in Q_OPS and node.args[0].target == ops.edge.aten.view_copy.default:
                del node.meta["delegation_tag"]

    return patched(TOSAPartitioner, "_detag_boundary_nodes", wrong)


def output_widened() -> AbstractContextManager[None]:
    """#22966's class, TOSA and the program differ in an output's dtype: int32 is written, int8 is taken."""
    import tosa_serializer
    from executorch.backends.arm.tosa import backend
    from executorch.backends.arm.tosa.mapping import TosaArg

    def wrong(node, tosa_graph, tosa_spec):
        block = tosa_graph.currRegion.currBasicBlock
        for output in node.args[0]:
            narrow = TosaArg(output, tosa_spec)
            wide = f"{narrow.name}_wide"
            block.addTensor(wide, list(narrow.shape), tosa_serializer.DType.INT32)
            attribute = tosa_serializer.TosaSerializerAttribute()
            attribute.CastAttribute()
            tosa_graph.addOperator(tosa_serializer.Op.CAST, [narrow.name], [wide], attribute)
            tosa_graph.addOutputTensor(block.tensors[wide])

    return patched(backend, "process_output", wrong)


def _outputs_rewritten(change) -> AbstractContextManager[None]:
    """The serializer writes a changed list of outputs."""
    from executorch.backends.arm.tosa import backend

    original = backend.process_output

    def wrong(node, tosa_graph, tosa_spec):
        [results] = node.args
        node.args = (type(results)(change(results)),)
        original(node, tosa_graph, tosa_spec)

    return patched(backend, "process_output", wrong)


def _outputs_swapped() -> AbstractContextManager[None]:
    """#18486, #13997: outputs in another order than the program takes them."""
    return _outputs_rewritten(reversed)


def _output_duplicated() -> AbstractContextManager[None]:
    """#18866: two slots end up with one output; the second value is lost."""
    return _outputs_rewritten(lambda results: [results[0], *results[:-1]])


def _input_frozen() -> AbstractContextManager[None]:
    """A delegate input that the payload no longer has; the later ones are read in its place."""
    import numpy as np
    from executorch.backends.arm.tosa import backend
    from executorch.backends.arm.tosa.mapping import TosaArg

    original = backend.process_placeholder

    def wrong(node, tosa_graph, edge_program, containing_graph_module, tosa_spec):
        if node.name == edge_program.graph_signature.user_inputs[0]:
            value = TosaArg(node, tosa_spec)
            tosa_graph.addConst(value.shape, value.dtype, np.zeros(value.shape, np.int8), name=value.name)
        else:
            original(node, tosa_graph, edge_program, containing_graph_module, tosa_spec)

    return patched(backend, "process_placeholder", wrong)


class _ShortScratch:
    """Vela's result, whose scratch area ends where the last output in it begins."""

    def __init__(self, data):
        self._data = data

    def __enter__(self):
        self._data.__enter__()
        return self

    def __exit__(self, *reason):
        return self._data.__exit__(*reason)

    def __getitem__(self, name):
        value = self._data[name]
        if name == "scratch_shape":
            return value - value + int(self._data["output_offset"].max())
        return value


class _Numpy:
    """numpy for ``arm_vela``, with another ``load``."""

    def __getattr__(self, name):
        import numpy as np

        if name == "load":
            return lambda *args, **words: _ShortScratch(np.load(*args, **words))
        return getattr(np, name)


def _scratch_one_tensor_too_small() -> AbstractContextManager[None]:
    """#10714, #22884's class, a wrong scratch size: too small by the output that lies last in it."""
    from executorch.backends.arm import arm_vela

    return patched(arm_vela, "np", _Numpy())


FAULTS = (
    Fault(
        "boundary-stays-float",
        "seed 003, #19364: a float32 value in the program is int8 in the delegate",
        "buffers",
        "output dtype widened",
        "FoldAndAnnotateQParamsPass",
        boundary_case(),
        _boundary_stays_float,
    ),
    Fault(
        "output-widened",
        "a delegate output dtype widened (#22966's class)",
        "buffers",
        "output bytes differ",
        "serializer",
        sigmoid_case(),
        output_widened,
    ),
    Fault(
        "outputs-swapped",
        "output order of a multi-output delegate (#18486)",
        "outputs",
        "order",
        "serializer",
        two_outputs_case(),
        _outputs_swapped,
    ),
    Fault(
        "output-duplicated",
        "one output in two slots (#18866)",
        "buffers",
        "output duplicated",
        "serializer",
        two_outputs_case(),
        _output_duplicated,
    ),
    Fault(
        "input-frozen",
        "a delegate input that the payload no longer has",
        "buffers",
        "delegate input dropped, later inputs shift",
        "serializer",
        two_outputs_case(),
        _input_frozen,
    ),
    Fault(
        "scratch-too-small",
        "scratch one tensor too small (#10714, #22884)",
        "buffers",
        "outside scratch",
        "Vela",
        two_outputs_case("ethos-u55-128"),
        _scratch_one_tensor_too_small,
    ),
)
