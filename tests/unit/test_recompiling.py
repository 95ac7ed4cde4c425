"""A graph module's code is compiled late, and is what it was when it was written."""

import pytest
import torch
from torch.fx import graph_module

from harness.compat.warm.recompiling import compile_late


@pytest.fixture(autouse=True)
def late(monkeypatch):
    monkeypatch.setattr(graph_module, "_forward_from_src", graph_module._forward_from_src)
    compile_late()


@pytest.fixture
def compiled(monkeypatch):
    """Sources that were compiled."""
    sources = []
    execute = graph_module._exec_with_source
    monkeypatch.setattr(
        graph_module, "_exec_with_source", lambda src, *rest: sources.append(src) or execute(src, *rest)
    )
    return sources


def negated():
    graph = torch.fx.Graph()
    graph.output(graph.call_function(torch.neg, (graph.placeholder("x"),)))
    return torch.fx.GraphModule(torch.nn.Module(), graph)


def test_only_what_runs_is_compiled_and_once(compiled):
    module = negated()
    for _ in range(3):
        module.recompile()
    assert compiled == []
    for _ in range(2):
        assert module(torch.ones(1)).item() == -1.0
    assert compiled == [module.code]


def test_the_class_and_a_copy_have_the_function_too(compiled):
    module = negated()
    assert type(module).forward.__name__ == "forward"
    other = torch.fx.GraphModule(module, module.graph)
    assert other.forward(torch.ones(1)).item() == -1.0
    assert len(compiled) == 2


def test_what_runs_is_the_graph_that_was_written_and_not_the_one_of_now():
    module = negated()
    [call] = [node for node in module.graph.nodes if node.op == "call_function"]
    call.target = torch.abs
    assert module(torch.ones(1)).item() == -1.0  # as ever: nobody recompiled it
    module.recompile()
    assert module(-torch.ones(1)).item() == 1.0
