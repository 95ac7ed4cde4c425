"""Live graphs as data: what is read of a tensor."""

import itertools

import pytest
import torch

from harness.compat.states import dim_order_of
from harness.pipeline.legs import arrays_of
from harness.pipeline.state import state_kept


@pytest.mark.parametrize("shape", [(), (3,), (2, 1), (1, 2, 1, 3), (2, 3, 4, 5), (0, 2)])
def test_the_dim_order_that_is_remembered_is_torch_s(shape):
    for axes in itertools.permutations(range(len(shape))):
        moved = torch.empty(shape).permute(axes)
        for tensor in (moved, moved.expand((4, *moved.shape)), moved.contiguous()):
            assert dim_order_of(tensor) == tensor.dim_order() == dim_order_of(tensor)


def test_what_a_leg_returned_stays_when_the_state_is_put_back():
    module = torch.nn.Module()
    module.register_buffer("count", torch.zeros(2))
    with state_kept(module):
        [array] = arrays_of(module.count.add_(1))
    assert module.count.tolist() == [0, 0]
    assert array.tolist() == [1, 1]
