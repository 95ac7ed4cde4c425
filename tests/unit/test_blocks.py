"""Blocks of networks: each is a valid graph that runs, in the variants that its name promises, and blocks repeat."""

import functools

import pytest
import torch

from generators.blocks import BLOCKS, MOST_BLOCK, Block, draw_blocks
from generators.mutants import MOST_NODES, draw_mutants
from generators.sizes import BUDGET
from harness.case.building import module_of
from harness.case.case import Case
from harness.case.checking import check_case, value_types
from harness.case.sampling import evaluation_inputs

TARGETS = ("TOSA-1.0+INT", "ethos-u85-256")
MARKS = {
    "inverted-residual": ({"conv2d"}, {"add"}, {"batch_norm"}, {"hardswish"}),
    "mbconv": ({"mul", "mean"}, {"adaptive_avg_pool2d"}, {"add"}, {"silu"}),
    "convnext": ({"permute", "layer_norm", "gelu", "add"}, {"mul"}),
    "encoder": ({"multihead_attention", "layer_norm", "add"}, {"relu"}),
    "cached-attention": ({"index_put"}, {"slice_scatter"}, {"cat"}),
    "skip-connection": ({"cat", "max_pool2d"}, {"conv_transpose2d"}, {"upsample_nearest2d"}),
    "keyword-spotting": ({"conv2d", "linear"}, {"flatten"}, {"mean"}, {"softmax"}),
    "audio": ({"conv1d", "mean", "linear", "add"}, {"tanh", "sigmoid"}, {"silu"}),
}
"""Operators that some draw of a block has side by side, a set for each of its variants."""


@functools.cache
def drawn(number: int) -> dict[str, Case]:
    items = draw_blocks(0, number, TARGETS)
    return {block.name: item[0] for block, item in zip(BLOCKS, items, strict=True)}


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.name)
def test_a_block_is_a_valid_graph_that_runs(block: Block) -> None:
    for number in range(6):
        case = drawn(number)[block.name]
        check_case(case)
        types = value_types(case.graph)
        assert len(case.graph.nodes) <= MOST_BLOCK < MOST_NODES
        assert max(type_.elements for type_ in types.values()) <= 2 * BUDGET
        results = module_of(case)(*map(torch.from_numpy, evaluation_inputs(case)[0].arrays))
        results = results if isinstance(results, tuple) else (results,)
        assert [tuple(item.shape) for item in results] == [types[name].shape for name in case.graph.outputs]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.name)
def test_a_block_has_its_variants(block: Block) -> None:
    met = [{node.operator for node in drawn(number)[block.name].graph.nodes} for number in range(16)]
    assert all(any(mark <= operators for operators in met) for mark in MARKS[block.name])
    assert len({drawn(number)[block.name].graph.inputs for number in range(16)}) > 3


def test_a_cache_that_is_written_is_an_output() -> None:
    for number in range(16):
        graph = drawn(number)["cached-attention"].graph
        writers = {node.name for node in graph.nodes if node.operator in ("slice_scatter", "index_put", "cat")}
        assert len(writers) == 2
        assert writers < set(graph.outputs)


def test_blocks_repeat_and_are_others_elsewhere() -> None:
    one = draw_blocks(1, 2, TARGETS)
    assert one == draw_blocks(1, 2, TARGETS)
    assert one != draw_blocks(1, 3, TARGETS)
    assert one != draw_blocks(2, 2, TARGETS)
    assert [case.target for case in one[0]] == list(TARGETS)


def test_mutants_of_blocks_keep_them_whole() -> None:
    parents = list(drawn(0).values())
    sizes = {len(case.graph.nodes) for case in parents}
    found = draw_mutants(parents, 0, 0, 60, TARGETS[:1])
    assert len(found) == 60
    assert min(len(case.graph.nodes) for (case,) in found) >= min(sizes)
    assert max(len(case.graph.nodes) for (case,) in found) > max(sizes)
