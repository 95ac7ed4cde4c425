"""Damaged artifacts end in one clear error: 2,000 seeded mutations of real ones; and the readers against upstream's.

Each mutation is parsed by its reader, which may raise nothing but ``BadInput``, and judged by
``buffers``, which raises nothing at all. That nothing hangs or allocates at will follows from the
readers' budgets (every entry and every copied byte is taken from the size of the file); the peak
is measured as well.
"""

import random
import tracemalloc
from dataclasses import replace

import pytest

from harness.artifacts.program import decode_program
from harness.artifacts.tosa import decode_tosa
from harness.artifacts.vela import decode_vela
from harness.case.errors import BadInput
from oracles.buffers import judge
from tests.integration.conftest import linear_case, relu_join_case, two_outputs_case

MUTATIONS = 500
U55, U85 = "ethos-u55-128", "ethos-u85-256"


def mutated(data, rng):
    """One damaged copy of ``data``."""
    kind = rng.choice(("truncate", "bits", "zeros", "empty", "duplicate", "word", "grow"))
    copy = bytearray(data)
    at = rng.randrange(len(data))
    if kind == "truncate":
        del copy[at:]
    elif kind == "bits":
        for _ in range(rng.choice((1, 2, 8, 64))):
            place = rng.randrange(len(copy))
            copy[place] ^= 1 << rng.randrange(8)
    elif kind == "zeros":
        run = min(rng.choice((1, 4, 16, 256)), len(copy) - at)
        copy[at : at + run] = bytes(run)
    elif kind == "empty":
        copy = bytearray(rng.choice((b"", data[:4], data[:8], b"\0" * 64)))
    elif kind == "duplicate":
        copy[at:at] = copy[at : at + rng.choice((1, 4, 32, 512))]
    elif kind == "word":
        word = rng.choice((0, 1, 2**31 - 1, 2**31, 2**32 - 1, rng.randrange(2**32), rng.randrange(len(data))))
        copy[at & ~3 : (at & ~3) + 4] = word.to_bytes(4, "little")
    else:
        copy += copy[:at]
    return bytes(copy)


def with_delegate(seen, **changes):
    first, *others = seen.lowering.delegates
    return replace(seen, lowering=replace(seen.lowering, delegates=(replace(first, **changes), *others)))


def with_program(seen, data):
    return replace(seen, lowering=replace(seen.lowering, program=data))


def with_payload(seen, payload):
    """The program with other bytes where the first delegate's payload lies."""
    held = decode_program(seen.lowering.program).main.delegates[0]
    data = seen.lowering.program
    return with_program(seen, data[: held.start] + payload + data[held.start + len(held.payload) :])


ARTIFACTS = {
    "program": (two_outputs_case(), decode_program, with_program),
    "TOSA": (relu_join_case(), decode_tosa, lambda seen, data: with_delegate(seen, tosa=data, payload=data)),
    "Vela U55": (linear_case(U55), decode_vela, with_payload),
    "Vela U85": (relu_join_case(U85), decode_vela, with_payload),
}


def artifact(seen, name):
    if name == "program":
        return seen.lowering.program
    return seen.lowering.delegates[0].tosa if name == "TOSA" else seen.lowering.delegates[0].payload


@pytest.mark.parametrize("name", ARTIFACTS)
def test_damage_is_a_clear_error_or_nothing(observed, name):
    case, reader, placed = ARTIFACTS[name]
    seen = observed(case)
    whole = artifact(seen, name)
    rng = random.Random(f"damage of {name}")
    refusals = []
    for _ in range(MUTATIONS):
        data = mutated(whole, rng)
        tracemalloc.start()
        try:
            reader(data)
        except BadInput as error:
            refusals.append(str(error))
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        assert peak < 100 * len(whole) + 2**20
        for mismatch in judge(placed(seen, data)):
            assert mismatch.oracle == "buffers"
            assert len(mismatch.message) < 2000
    assert len(refusals) > MUTATIONS // 10
    assert all(text.isprintable() and len(text) < 500 for text in refusals)


@pytest.mark.parametrize("name", ARTIFACTS)
def test_the_undamaged_artifact_is_clean(observed, name):
    case, reader, placed = ARTIFACTS[name]
    seen = observed(case)
    assert judge(seen) == []
    assert reader(artifact(seen, name))
    assert judge(placed(seen, artifact(seen, name))) == []


@pytest.mark.parametrize(
    "case", [two_outputs_case(), linear_case(U55), relu_join_case(U85)], ids=lambda case: case.target
)
def test_the_reader_of_programs_agrees_with_executorch(observed, case):
    from executorch.exir._serialize import _deserialize_pte_binary
    from executorch.exir.schema import DelegateCall, Tensor

    data = observed(case).lowering.program
    theirs = _deserialize_pte_binary(data)
    theirs = getattr(theirs, "program", theirs)
    [ours], [plan] = decode_program(data).plans, theirs.execution_plan
    assert list(ours.pools) == list(plan.non_const_buffer_sizes)
    assert (list(ours.inputs), list(ours.outputs)) == (plan.inputs, plan.outputs)
    assert len(ours.values) == len(plan.values)
    for value, wanted in zip(ours.values, plan.values, strict=True):
        assert (value.tensor is not None) == isinstance(wanted.val, Tensor)
        if value.tensor is None:
            continue
        assert list(value.tensor.shape) == wanted.val.sizes
        assert list(value.tensor.dim_order) == wanted.val.dim_order
        assert value.tensor.initialized == (wanted.val.data_buffer_idx > 0)
        place, info = value.tensor.place, wanted.val.allocation_info
        assert (place is None) == (info is None)
        if place is not None:
            assert (place.pool, place.offset) == (info.memory_id, info.memory_offset)
    [chain] = plan.chains
    assert len(ours.calls) == len(chain.instructions)
    for call, instruction in zip(ours.calls, chain.instructions, strict=True):
        assert list(call.values) == instruction.instr_args.args
        assert (call.kind == "delegate") == isinstance(instruction.instr_args, DelegateCall)
    for delegate, record in zip(ours.delegates, observed(case).lowering.delegates, strict=True):
        assert delegate.payload == record.payload
