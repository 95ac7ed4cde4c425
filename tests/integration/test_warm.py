"""The warm tricks change nothing that is produced: workers with all of them and with none, byte for byte."""

import inspect
import pickle
import textwrap
from contextlib import nullcontext
from pathlib import Path
from unittest import mock

import pytest

from generators.cases import draw_block
from harness.case.case import encode_case
from harness.case.reading import read_case
from harness.case.target import DEFAULT_TARGETS
from harness.cli.benchmark.same_programs import difference
from harness.workers.pool import Pool
from harness.workers.processes import WORKER, worker_command
from harness.workers.protocol import EmitTask
from tests.forked import forked_workers
from tests.integration.conftest import relu_join_case

CORPUS = Path(__file__).parents[2] / "corpus"
ENTRY = "found/select-then-flatten-wrong-elements"


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    """Paths of cases: one by hand, one that is drawn, on every default target, and one of the corpus.

    ``armdiff bench --same`` holds many more against the plain ones.
    """
    folder = tmp_path_factory.mktemp("cases")
    by_hand = [relu_join_case(DEFAULT_TARGETS[1])]
    drawn = [case for graph in draw_block(3, 0, 1, DEFAULT_TARGETS) for case in graph]
    files = []
    for place, case in enumerate([*by_hand, *drawn]):
        files.append(folder / f"{place}-{case.target}.json")
        files[-1].write_bytes(encode_case(case))
    return [*files, CORPUS / ENTRY / "case.json"]


@pytest.fixture(scope="module")
def emitted(cases, warm):
    """What a fork of this process, which has every trick, emits of each case, and what a worker with none does."""
    found = []
    for start, command in ((forked_workers, WORKER), (nullcontext, worker_command(("all",)))):
        with start(), Pool(1, command=command) as pool:
            found.append([pool.emit(EmitTask(case=str(file))) for file in cases])
    return found


def test_warm_and_cold_programs_are_the_same(cases, emitted):
    compared = 0
    for file, warm, cold in zip(cases, *emitted, strict=True):
        compared += not warm.problem
        assert difference(warm, cold, read_case(file).target) == "", file
    assert compared == 5


def test_a_kept_edge_program_lowers_to_the_same(observed):
    from harness.compat.warm import sharing, stage_cache
    from harness.pipeline.lowering import StageClock, compile_program, quantize

    case = relu_join_case()
    expected = observed(case).lowering
    stage_cache.enable(stage_cache.EDGE)
    made = []
    with sharing.shared_edge() as edge:
        edge.making = lambda: made.append(1)
        for _ in range(2):
            record = compile_program(quantize(case, StageClock()), StageClock()).record
            assert [item.tosa for item in record.delegates] == [item.tosa for item in expected.delegates]
            assert record.program == expected.program
    assert len(made) == 2  # before and after the first one, and never again


@pytest.mark.parametrize("seed", range(6))
def test_the_fast_search_of_a_histogram_is_torchao_s(seed):
    import torch
    from torchao.quantization.pt2e import observer as installed

    from harness.compat.sources import source_of, text_of
    from harness.compat.warm.histogram import search, use_fast_search

    if not use_fast_search():
        pytest.skip("the installed torchao has another search, which is left alone")
    names = dict(vars(installed))  # this process is warm: torchao's own is in its file only
    exec(textwrap.dedent(source_of(text_of(installed.__name__), "HistogramObserver._non_linear_param_search")), names)
    torchao_s = names["_non_linear_param_search"]
    assert torchao_s is not search
    torch.manual_seed(seed)
    observer = installed.HistogramObserver(dtype=torch.int8, quant_min=-128, quant_max=127)
    for count in (3, 50, 2000)[: 1 + seed % 3]:
        observer(torch.cat([torch.randn(count), torch.tensor([seed * 20.0])]).clamp(min=-2.0 * (seed % 2)))
    found, expected = search(observer), torchao_s(observer)
    assert [value.item() for value in found] == [value.item() for value in expected]


def test_the_text_of_graph_modules_is_forgotten_between_cases_and_they_run_on():
    import copy
    import linecache

    import torch
    from torch.fx.graph_module import _loader

    from harness.compat.warm.collecting import between_cases

    module = torch.fx.symbolic_trace(torch.nn.ReLU())
    name = module.forward.__code__.co_filename
    between_cases(done=False)
    assert name in _loader.eval_cache
    assert name in linecache.cache
    between_cases()
    assert not _loader.eval_cache
    assert name not in linecache.cache
    assert module(torch.tensor([-1.0, 1.0])).tolist() == [0.0, 1.0]
    module.recompile()
    assert copy.deepcopy(module)(torch.tensor([-1.0, 1.0])).tolist() == [0.0, 1.0]


def test_no_graph_is_kept_between_cases_by_the_caches_of_torch_and_executorch():
    import gc
    import weakref

    import torch
    from executorch.exir.backend.utils import is_same_node
    from torch._subclasses.fake_tensor import FakeTensorMode, _DispatchCacheKey
    from torch.ao.quantization.fx.utils import assert_and_get_unique_device
    from torch.fx.experimental.proxy_tensor import _FAKE_TENSOR_ID_TO_PROXY_MAP_FOR_EXPORT
    from torchao.utils import _assert_and_get_unique_device

    from harness.compat.warm.collecting import between_cases

    def traced():
        return torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.ReLU(), torch.nn.ReLU()))

    uses = (
        lambda graph: is_same_node(*[node for node in graph.graph.nodes if node.op == "call_module"]),
        assert_and_get_unique_device,
        _assert_and_get_unique_device,
        lambda graph: FakeTensorMode.cache.update({_DispatchCacheKey(("delegate", graph)): None}),
        lambda graph: _FAKE_TENSOR_ID_TO_PROXY_MAP_FOR_EXPORT.update({1: next(iter(graph.graph.nodes))}),
    )
    FakeTensorMode.cache[_DispatchCacheKey(("kept", 1))] = None
    graphs = []
    for use in uses:
        graph = traced()
        use(graph)
        graphs.append(weakref.ref(graph.graph))
    del graph
    gc.collect()
    assert all(graph() is not None for graph in graphs), "torch lets go of them by itself: take the entry out"
    between_cases()
    gc.collect()
    assert [graph() for graph in graphs] == [None] * len(uses)
    assert _DispatchCacheKey(("kept", 1)) in FakeTensorMode.cache


def test_code_is_compiled_once_and_bears_each_module_s_own_name(monkeypatch):
    import torch
    from torch.fx import graph_module

    from harness.compat.warm import codegen

    if "dont_inherit=True" not in inspect.getsource(graph_module._exec_with_source):
        pytest.skip("the installed torch compiles otherwise, and is left alone")
    monkeypatch.setattr(graph_module, "compile", compile, raising=False)
    codegen.compile_code_once()
    codegen.compiled.cache_clear()
    one, other, last = (torch.fx.symbolic_trace(kind()) for kind in (torch.nn.ReLU, torch.nn.ReLU, torch.nn.Sigmoid))
    files = [module.forward.__code__.co_filename for module in (one, other, last)]
    assert codegen.compiled.cache_info().hits >= 1
    assert len({*files}) == 3
    assert all(name in graph_module._loader.eval_cache for name in files)
    values = torch.tensor([-1.0, 1.0])
    assert one(values).tolist() == other(values).tolist() == [0.0, 1.0]
    assert torch.equal(last(values), values.sigmoid())
    assert "relu" in inspect.getsource(other.forward)


@pytest.mark.parametrize(
    "look",
    [
        lambda module, _: list(inspect.signature(module.forward).parameters) == ["input"],
        lambda module, torch: module(torch.tensor([-1.0, 2.0])).tolist() == [0.0, 2.0],
        lambda module, _: "torch.relu" in module.code,
        lambda module, _: "torch.relu" in str(module),
        lambda module, _: "torch.relu" in pickle.loads(pickle.dumps(module)).code,
        lambda module, torch: "torch.relu" in torch.fx.symbolic_trace(module).code,
    ],
)
def test_the_code_of_a_graph_is_written_when_somebody_looks(look):
    import torch

    graph = torch.fx.Graph()
    graph.output(graph.call_function(torch.relu, (graph.placeholder("input"),)))
    inner = torch.fx.GraphModule(torch.nn.Module(), graph)
    outer = torch.fx.Graph()
    outer.output(outer.call_module("inner", (outer.placeholder("input"),)))
    kind = torch.fx.Graph
    with mock.patch.object(kind, "python_code", autospec=True, side_effect=kind.python_code) as writing:
        outside = torch.fx.GraphModule({"inner": inner}, outer)
        inner.recompile()
        assert not writing.called
        assert look(inner, torch)
        writing.assert_called()
        assert outside(torch.tensor([-1.0, 2.0])).tolist() == [0.0, 2.0]
        relu = next(node for node in inner.graph.nodes if node.op == "call_function")
        relu.target = torch.neg
        outside.recompile()  # and of what is in it
        assert outside(torch.tensor([-1.0, 2.0])).tolist() == [1.0, -2.0]


def test_a_flattened_tree_leaves_no_garbage_and_is_the_same():
    import gc

    from torch.utils._pytree import tree_flatten, tree_unflatten

    from harness.compat.warm.sharing import flatten_without_garbage

    tree = {"a": [1, (2, 3)], "b": None}
    expected = tree_flatten(tree)
    flatten_without_garbage()
    gc.collect()
    assert tree_flatten(tree) == expected
    assert tree_flatten(tree, is_leaf=lambda item: item == (2, 3))[0] == [1, (2, 3), None]
    assert tree_unflatten(*tree_flatten(tree)) == tree
    assert gc.collect() == 0


def test_the_operands_of_a_pass_s_nodes_are_walked_plainly_and_are_the_same(warm, monkeypatch):
    import torch
    from executorch.exir import pass_base
    from executorch.exir.pass_base import ExportPass, _ExportPassBase
    from torch.utils import _pytree

    from harness.compat.warm import retracing

    class Layer(torch.nn.Module):
        def forward(self, x):
            joined = torch.cat([x, torch.full_like(x, float("-inf"), dtype=torch.float32), x[:, 1:]], dim=-1)
            largest, _ = torch.nn.functional.pad(joined, (1, 2), value=0.5).to(torch.int32).max(-1, True)
            return largest, x.sum((0,), dtype=torch.float64), joined.clone(memory_format=torch.contiguous_format)

    def nodes(module):
        whole = ExportPass()(module).graph_module
        return [
            (
                node.op,
                node.name,
                str(node.target),
                str(node.args),
                str(node.kwargs),
                str(node.meta["val"]),
                [*node.meta],
            )
            for node in whole.graph.nodes
            if node.op != "output"
        ]

    module = torch.export.export(Layer(), (torch.randn(2, 3),)).graph_module
    tracer = _ExportPassBase.ExportTracer
    with mock.patch.object(retracing, "_walked", side_effect=retracing._walked) as walked:
        found = nodes(module)
        assert walked.called
    with monkeypatch.context() as plainly:
        plainly.setattr(pass_base, "pytree", _pytree)
        plainly.setattr(tracer, "create_proxy", tracer.create_proxy.__wrapped__)
        assert nodes(module) == found
    assert len(found) > 8

    constant = torch.ones(2, 3)

    class Tensors(ExportPass):
        def call_operator(self, op, args, kwargs, meta):
            return super().call_operator(op, (constant, *args[1:]), kwargs, meta)

    relu = torch.export.export(torch.nn.ReLU(), (torch.randn(2, 3),)).graph_module
    text = str(Tensors()(relu).graph_module.graph)
    assert "_tensor_constant0" in text, "a tensor goes the long way, and becomes an attribute"
    assert _ExportPassBase._fx.__code__.co_filename == pass_base.__file__, "a correction changes this method's code"


def test_kernels_of_composite_operators_are_registered_once_and_given_back():
    import torch
    from torch._subclasses import fake_impls
    from torch.export import exported_program

    table = exported_program.default_decompositions().materialize()
    decompositions, _ = exported_program._split_decomp_table_to_cia_and_python_decomp(table)
    kind = torch._ops.OpOverload
    assert len(decompositions) > 500
    before = {op: dict(op.py_kernels) for op in decompositions}
    seen, fakes = [], []
    for _ in range(3):  # torch takes some operators' own rule for fake tensors away with the first override
        watched = mock.patch.object(kind, "py_impl", autospec=True, side_effect=kind.py_impl)
        with watched as registered, exported_program._override_composite_implicit_decomp(decompositions):
            seen.append({op: dict(op.py_kernels) for op in decompositions})
            fakes.append({op for op in decompositions if op in fake_impls.op_implementations_dict})
        assert {op: dict(op.py_kernels) for op in decompositions} == before
    assert not registered.called
    assert seen[1] == seen[2] != before
    keys = [{op: [*kernels] for op, kernels in item.items()} for item in seen]
    assert keys[0] == keys[2]
    assert fakes[0] == fakes[1] == fakes[2] != set()
    composite = torch._C.DispatchKey.CompositeImplicitAutograd
    other = dict.fromkeys(decompositions, print)
    with exported_program._override_composite_implicit_decomp(other):  # another decomposition is another kernel
        assert {op.py_kernels[composite] for op in other} == {print}


def test_libraries_operators_are_looked_for_again_when_there_are_more():
    import torch
    from torch._export import utils

    from harness.compat.warm.sharing import load_operators_once

    load_operators_once()
    with torch.library._scoped_library("armdiff_test", "DEF") as library:
        library.define("one(Tensor x) -> Tensor")
        assert torch.ops.armdiff_test.one.default  # torch finds an operator when it is named
        first = utils._collect_all_valid_cia_ops_for_namespace(torch.ops.armdiff_test)
        library.define("two(Tensor x) -> Tensor")
        library.impl("two", lambda x: x + 1, "CompositeImplicitAutograd")
        assert torch.ops.armdiff_test.two.default
        second = utils._collect_all_valid_cia_ops_for_namespace(torch.ops.armdiff_test)
    assert [str(item) for item in second - first] == ["armdiff_test.two.default"]


@pytest.fixture
def untraced(monkeypatch):
    """torchao's module with the trick, for one test."""
    from torchao.quantization.pt2e import qat_utils

    from harness.compat.warm.patterns import untraced_without_root

    monkeypatch.setattr(qat_utils, "_fold_conv_bn_qat_helper", qat_utils._fold_conv_bn_qat_helper)
    if not untraced_without_root():
        pytest.skip("the installed torchao folds in another way, which is left alone")
    return qat_utils


@pytest.mark.parametrize(("root", "traced"), [(False, 0), (True, 1)], ids=["no root", "root"])
def test_patterns_of_training_are_traced_for_a_graph_that_could_match_one(root, traced, untraced, monkeypatch):
    import torch

    def trace(*_, **__):
        asked.append(1)
        raise StopIteration

    class Normalized(torch.nn.Module):
        def forward(self, x):
            x = torch.ops.aten.sqrt.default(x) if root else x
            ones = torch.ops.aten.ones.default([2])
            return torch.ops.aten.batch_norm.default(x, ones, ones, ones, ones, False, 0.1, 1e-5, False)

    asked = []
    monkeypatch.setattr(untraced, "_get_aten_graph_module_for_pattern", trace)
    module = torch.fx.symbolic_trace(Normalized())
    before = str(module.graph)
    with nullcontext() if not root else pytest.raises(StopIteration):
        assert str(untraced._fold_conv_bn_qat(module).graph) == before
    assert len(asked) == traced


@pytest.mark.parametrize("conv", ["conv1d", "conv2d", "conv_transpose1d", "conv_transpose2d"])
def test_a_pattern_of_training_takes_a_root(conv, untraced):
    import torch

    function = getattr(torch.nn.functional, conv)
    shape = (1, 1, *[3] * int(conv[-2]))
    examples = (torch.randn(shape), torch.randn(shape), *[torch.randn(1) for _ in range(4)])
    pattern = untraced._get_quantized_qat_conv_bn_pattern(True, False, False, function, False)
    traced = untraced._get_aten_graph_module_for_pattern(
        pattern, examples, **untraced._get_quantized_conv_bn_example_inputs_kwargs(True, False, False, False)
    )
    assert torch.ops.aten.sqrt.default in {node.target for node in traced.graph.nodes}
