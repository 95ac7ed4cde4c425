"""Snapshots: one for every pass of the manager's list, and nothing compiled differently for it."""

import contextlib
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from harness.case.case import Case, Constant, Graph, Input
from harness.compat import passes as compat_passes
from harness.evidence.inspection.analysis import analyse
from harness.evidence.inspection.constants import judged_constants
from harness.pipeline.lowering import LoweringFailed, StageClock, compile_program, quantize
from harness.workers.observing import judge
from tests.faults.qparams import FAULTS as QPARAMS_FAULTS
from tests.integration.conftest import constant_join_case, linear_case, node, relu_join_case, sigmoid_case, uniform


def compiled(case, **words):
    return compile_program(quantize(case, StageClock()), StageClock(), **words)


def judged_as_if(analysis, name, changed):
    """What is said of a constant once its first byte is changed."""
    tensor = analysis.block.tensors[name]
    other = replace(tensor, data=bytes([changed(tensor.data[0]), *tensor.data[1:]]))
    block = replace(analysis.block, tensors={**analysis.block.tensors, name: other})
    [judged] = [item for item in judged_constants(replace(analysis, block=block)) if item.tensor == name]
    return judged


@contextlib.contextmanager
def managers_lists():
    """The list of every manager that lowers a delegate, taken without armdiff's hook."""
    from executorch.backends.arm._passes.arm_pass_manager import ArmPassManager

    lists, original = [], ArmPassManager._tosa_pipeline

    def watched(self, *args):
        result = original(self, *args)
        lists.append([type(item).__name__ for item in self.passes])
        return result

    ArmPassManager._tosa_pipeline = watched
    try:
        yield lists
    finally:
        ArmPassManager._tosa_pipeline = original


def test_the_recorded_list_is_the_managers_own():
    with managers_lists() as lists:
        [delegate] = compiled(relu_join_case()).record.delegates
    trace = delegate.trace
    assert [list(trace.passes)] == lists
    assert [(item.index, item.name) for item in trace.snapshots] == list(enumerate(trace.passes))
    assert trace.finished
    assert max(Counter(trace.passes).values()) > 1  # names repeat: the index is a pass's identity


@pytest.mark.parametrize("keep_graphs", [False, True])
@pytest.mark.parametrize("case", [relu_join_case(), linear_case(), constant_join_case()], ids=["conv", "linear", "cat"])
def test_watching_changes_nothing_that_is_compiled(case, keep_graphs, monkeypatch):
    from harness.pipeline import lowering

    seen = compiled(case, keep_graphs=keep_graphs)

    @contextlib.contextmanager
    def unwatched(keep_graphs=False):
        yield compat_passes.Watched()

    monkeypatch.setattr(lowering, "watched_passes", unwatched)
    plain = compiled(case)
    assert [item.trace for item in plain.record.delegates] == [None]
    assert [item.tosa for item in plain.record.delegates] == [item.tosa for item in seen.record.delegates]


def test_nodes_carry_qparams_constants_and_the_start_node_they_descend_from(observed):
    [delegate] = observed(linear_case()).lowering.delegates
    trace = delegate.trace
    convolution = trace.last.nodes["tosa_conv2d_default"]
    assert trace.start.nodes[convolution.origin].target == "aten.linear.default"
    assert convolution.input_qparams[0].dtype == "int8"
    assert convolution.dtype == "int32"
    weight = trace.last.nodes[convolution.refs[1]]
    assert (weight.kind, weight.value.dtype) == ("buffer", np.int8)
    assert weight.shape == (4, 1, 1, 6)


def test_a_node_that_a_pass_leaves_as_it_was_is_one_state(observed):
    """Else a network's nodes are kept once a pass that traces the graph anew: hundreds of MB."""
    [delegate] = observed(linear_case()).lowering.delegates
    shared = [
        (earlier.nodes[name], later.nodes[name])
        for earlier, later in pairwise(delegate.trace.snapshots)
        for name in earlier.nodes.keys() & later.nodes.keys()
    ]
    assert len({id(one) for one, _ in shared}) < len(shared) / 4
    assert [one.name for one, other in shared if one is not other and compat_passes._equal(one, other)] == []


def test_tables_made_without_metadata_have_an_origin_too(observed):
    [delegate] = observed(sigmoid_case()).lowering.delegates
    tables = [node for node in delegate.trace.last.nodes.values() if ".TABLE." in node.target]
    assert [delegate.trace.start.nodes[node.origin].target for node in tables] == ["aten.sigmoid.default"]


@pytest.mark.parametrize(("operator", "words"), [("split", {"sizes": 6}), ("chunk", {"chunks": 2})])
def test_slices_of_a_constant_are_expected_piece_by_piece(observed, operator, words):
    case = Case(
        graph=Graph(
            inputs=(Input(name="x", shape=(2, 9)),),
            nodes=(node("n0", "full_like", "x", value=3.5), node("n1", operator, "n0", dim=-1, **words)),
            outputs=("n1.0", "n1.1"),
        ),
        calibration={"x": uniform()},
    )
    [delegate] = observed(case).lowering.delegates
    judged = list(judged_constants(analyse(delegate)))
    assert {item.verdict for item in judged} == {"right"}
    assert {item.origin for item in judged} >= {"getitem", "getitem_1"}


@pytest.mark.parametrize("off", [0, 1])
def test_a_constant_that_is_expanded_is_expected_as_often(observed, off):
    """A ramp is expanded. A pass makes a repeat of that, and folds it; its metadata is that of what is expanded."""
    case = Case(
        graph=Graph(
            inputs=(Input(name="x", shape=(4, 8)),),
            constants=(
                Constant(name="c0", shape=(4, 8), kind="ramp", parameters={"dim": 0, "start": -4.0, "stop": 2.0}),
            ),
            nodes=(node("n0", "cat", "c0", "x", dim=0),),
            outputs=("n0",),
        ),
        calibration={"x": uniform()},
    )
    [delegate] = observed(case).lowering.delegates
    analysis = analyse(delegate)
    [name] = [name for name, tensor in analysis.block.tensors.items() if tensor.data and tensor.shape == (4, 8)]
    judged = judged_as_if(analysis, name, lambda first: first ^ off)
    assert (judged.verdict, judged.origin) == (("right", "wrong")[off], "aten_expand_copy_default")


def test_what_fills_up_a_strided_slice_is_not_taken_for_its_value(observed):
    """softmax of a constant is not folded, so the slice of it is computed, behind a CONCAT with a constant."""
    case = Case(
        graph=Graph(
            inputs=(),
            constants=(Constant(name="c0", shape=(1, 1, 1, 2), kind="full", parameters={"value": 1.0}),),
            nodes=(
                node("n0", "cat", "c0", "c0", dim=1),
                node("n1", "softmax", "n0", dim=0),
                node("n2", "slice", "n1", dim=1, start=-1, step=2, stop=2),
            ),
            outputs=("n2",),
        ),
        calibration={},
    )
    seen = observed(case)
    [delegate] = seen.lowering.delegates
    fillers = [item for item in judged_constants(analyse(delegate)) if item.tensor.startswith("aten_full_")]
    assert [item.verdict for item in fillers] == ["right"]
    assert [item for item in judge(seen) if not item.information] == []


@pytest.mark.parametrize("off", [0, 1])
def test_the_places_of_an_unfold_are_those_of_its_windows(observed, off):
    case = Case(
        graph=Graph(
            inputs=(Input(name="x0", shape=(2, 7, 3)),),
            nodes=(node("n0", "unfold", "x0", dim=1, size=3, step=2),),
            outputs=("n0",),
        ),
        calibration={"x0": uniform(-1.0, 1.0)},
    )
    [delegate] = observed(case).lowering.delegates
    analysis = analyse(delegate)
    places = [name for name, item in analysis.block.tensors.items() if item.data and "arange" in name]
    name = next(name for name in places if 2 in analysis.block.tensors[name].values())
    judged = judged_as_if(analysis, name, lambda first: first + off)
    assert judged.verdict == ("right", "unmatched")[off]


@pytest.mark.parametrize("off", [0, 1])
def test_what_a_convolution_convolves_may_be_a_constant(observed, off):
    """A cumsum becomes a convolution, and that of ones_like is not folded."""
    case = Case(
        graph=Graph(
            inputs=(Input(name="x", shape=(1, 1)),),
            nodes=(
                node("n0", "ones_like", "x"),
                node("n1", "min", "n0", dim=0, keepdim=False),
                node("n2", "cumsum", "n1.0", dim=0),
            ),
            outputs=("n2",),
        ),
        calibration={"x": uniform()},
        target="ethos-u55-128",
    )
    [delegate] = observed(case).lowering.delegates
    analysis = analyse(delegate)
    [convolution] = [item for item in analysis.block.operators if item.op == "DEPTHWISE_CONV2D"]
    judged = judged_as_if(analysis, convolution.inputs[0], lambda first: first ^ off)
    assert judged.verdict == ("right", "wrong")[off]


def test_equal_codes_of_two_domains_may_be_one_constant(observed):
    """-1 and 0 are both code -128 in their domains, and FuseEqualPlaceholdersPass merges them."""
    case = Case(
        graph=Graph(
            inputs=(Input(name="x", shape=(1, 1)), Input(name="y", shape=(1,))),
            nodes=(
                node("n0", "zeros_like", "x"),
                node("n1", "full_like", "y", value=-1.0),
                node("n2", "mean", "n0", dims=[0], keepdim=False),
            ),
            outputs=("n1", "n2"),
        ),
        calibration={"x": uniform(), "y": uniform()},
    )
    seen = observed(case)
    [delegate] = seen.lowering.delegates
    assert [name for name in analyse(delegate).block.tensors if name.endswith("_common")]
    assert [item.kind for item in judge(seen) if item.oracle == "qparams"] == []


def test_a_pass_that_raises_leaves_the_snapshots_before_it():
    [fault] = [item for item in QPARAMS_FAULTS if item.name == "conv-without-qparams"]
    with fault.planted(), pytest.raises(LoweringFailed) as raised:
        compiled(fault.case)
    trace = raised.value.unfinished
    assert not trace.finished
    assert trace.passes[len(trace.snapshots)] == "RewriteConvPass"


def test_the_hooks_are_taken_away_again():
    from executorch.backends.arm._passes.arm_pass_manager import ArmPassManager
    from executorch.backends.arm.tosa.backend import TOSABackend

    before = ArmPassManager._transform, TOSABackend._preprocess
    with contextlib.suppress(ZeroDivisionError), compat_passes.watched_passes():
        during = ArmPassManager._transform, TOSABackend._preprocess
        raise ZeroDivisionError
    assert all(hook is not original for hook, original in zip(during, before, strict=True))
    assert before == (ArmPassManager._transform, TOSABackend._preprocess)
