"""A program that has nothing to decompose is traced once for its edge program, and becomes the same program."""

from inspect import unwrap

import pytest
import torch
from executorch.exir.program import _program
from torch.export import ExportedProgram

from harness.case.recipe import parse_recipe
from harness.case.target import parse_target
from harness.compat.stack import edge_config, stack_for, to_edge_transform_and_lower
from harness.compat.warm.decomposing import decompose_what_is_there


class Stacked(torch.nn.Module):
    def forward(self, x):
        return torch.stack((torch.relu(x), x))


@pytest.fixture
def traces(monkeypatch):
    """Tables that programs were traced with since the last look."""
    tables = []
    original = ExportedProgram.run_decompositions

    def counted(program, table=None):
        tables.append(table)
        return original(program, table)

    monkeypatch.setattr(ExportedProgram, "run_decompositions", counted)
    generate = unwrap(_program._gen_edge_manager_for_partitioners)  # of executorch itself
    monkeypatch.setattr(_program, generate.__name__, generate)
    return tables


def edge_graph(module):
    """Nodes of the edge program of a module, as text, and what of it was delegated."""
    exported = torch.export.export(module, (torch.ones(2, 3),))
    partitioner = stack_for(parse_target("TOSA-1.0+FP"), parse_recipe("float")).partitioner
    lowered = to_edge_transform_and_lower(exported, partitioner=[partitioner], compile_config=edge_config())
    delegates = [item.original_module.graph for name, item in lowered.exported_program().graph_module.named_children()]
    return [str(graph) for graph in (lowered.exported_program().graph, *delegates)]


@pytest.mark.parametrize(("module", "times"), [(torch.nn.Hardtanh(), 1), (Stacked(), 2)], ids=["whole", "decomposed"])
def test_a_program_is_traced_again_for_what_is_decomposed(module, times, traces):
    plain = edge_graph(module)
    before = len(traces)
    if not decompose_what_is_there():
        pytest.skip("the installed executorch makes edge programs in another way, which is left alone")
    traces.clear()
    assert edge_graph(module) == plain
    assert (len(traces), before) == (times, 3)
