"""Flipped bits and mutated payloads: small versions of ``tests.streams``, and what those commands rest on."""

from __future__ import annotations

import dataclasses
from collections import Counter

import numpy as np
import pytest

from harness.artifacts.npz import decode_npz
from harness.artifacts.vela import decode_vela
from harness.ethosu import machine
from harness.ethosu.commands import decode_commands, driver_actions
from harness.ethosu.machine import execute
from tests.streams import dead, reach, robustness, sensitivity, speed, subjects
from tests.streams.flips import COMMANDS, SCALES, TABLE, WEIGHTS, Flip, chosen
from tests.streams.mutants import KINDS, Mutant, mutant, npz_bytes
from tests.streams.recording import trace


@pytest.fixture(scope="session")
def compiled():
    """Convolutions on Ethos-U55, a softmax, a matmul on Ethos-U85 and the loop."""
    return {item.name: item for item in subjects.compiled(("softmax", "matmul"))} | {
        "convolutions": next(subjects.compiled(("convolutions",))),
        "loop": subjects.loop(),
    }


def test_payload_survives_its_bytes(compiled):
    for subject in compiled.values():
        assert decode_vela(subjects.delegate_bytes(subject.payload)) == subject.payload
        assert decode_npz(npz_bytes(subject)) == subject.payload


# ---- traces ---------------------------------------------------------------------------------------------------------


def test_a_trace_leaves_the_result_alone(compiled):
    subject = compiled["convolutions"]
    inputs = subject.draw(0)
    (plain,) = execute(subject.payload, inputs, subject.accelerator).outputs
    seen = trace(subject.payload, inputs, subject.accelerator)
    assert np.array_equal(plain, seen.execution.outputs[0])
    assert len(seen.records) == len(seen.execution.steps)


def test_constants_are_followed_through_dma(compiled):
    """Ethos-U55 copies weights and tables before it reads them."""
    softmax, convolutions = compiled["softmax"], compiled["convolutions"]
    roles = trace(softmax.payload, softmax.draw(0), softmax.accelerator).roles
    assert {offset for offset, found in roles.items() if "LUT" in found} == set(range(256))
    seen = trace(convolutions.payload, convolutions.draw(0), convolutions.accelerator)
    assert any(step.kind == "DMA_START" for step in seen.execution.steps)
    used = Counter(role for found in seen.roles.values() for role in found)
    assert set(used) == {"WEIGHT", "SCALE"}
    assert used["WEIGHT"] + used["SCALE"] == len(convolutions.payload.weights)


# ---- flips ----------------------------------------------------------------------------------------------------------


def test_forty_flips_are_all_explained(compiled):
    verdicts = [
        verdict
        for name in ("convolutions", "softmax", "matmul")
        for verdict in sensitivity.judged(compiled[name], 14, 7)
    ]
    outcomes = Counter(verdict.outcome for verdict in verdicts)
    assert not outcomes[sensitivity.UNEXPLAINED], [item for item in verdicts if item.outcome == sensitivity.UNEXPLAINED]
    assert min(outcomes[sensitivity.CHANGED], outcomes[sensitivity.ERROR], outcomes[sensitivity.ISSUE]) >= 3
    assert outcomes[sensitivity.DEAD] < len(verdicts) / 3
    table = list(sensitivity.lines(verdicts))
    assert table[1].split()[:2] == ["all", "42"]
    assert "0 of 42 unexplained" in table


def test_flips_are_spread_over_what_there_is(compiled):
    subject = compiled["convolutions"]
    good = trace(subject.payload, subject.draw(0), subject.accelerator)
    flips = list(chosen(subject, good, 50, 0))
    counts = Counter(flip.kind for flip in flips)
    assert set(counts) == {COMMANDS, WEIGHTS, SCALES}
    assert min(counts.values()) >= 10
    assert len({(flip.kind == COMMANDS, flip.bit) for flip in flips}) == 50
    assert flips == list(chosen(subject, good, 50, 0))


def _bit(subject, name, field_bit, number=0):
    """The bit of the n-th command of a name."""
    found = [item for item in decode_commands(subject.payload.commands, subject.accelerator) if item.name == name]
    return Flip(COMMANDS, name, 8 * found[number].offset + field_bit)


def _judge(subject, flip):
    return sensitivity.Good(subject).verdict(flip)


@pytest.mark.parametrize(
    ("name", "bit", "outcome", "detail"),
    [
        ("SET_IFM_ZERO_POINT", 17, sensitivity.CHANGED, ""),
        ("SET_IFM_BASE0", 60, sensitivity.ERROR, "accesses bytes"),
        ("SET_IFM_BASE3", 36, sensitivity.DEAD, dead.ELEMENTS),
        ("SET_OFM_PRECISION", 31, sensitivity.CHANGED, ""),
        ("SET_KERNEL_STRIDE", 23, sensitivity.ISSUE, "reserved"),
    ],
)
def test_known_bits(compiled, name, bit, outcome, detail):
    subject = compiled["convolutions"]
    found = _judge(subject, _bit(subject, name, bit))
    assert found[0] == outcome, found
    assert detail in found[1]


def test_versions_in_front_of_the_stream_are_dead(compiled):
    subject = compiled["convolutions"]
    assert driver_actions(subject.payload.commands).start > 12
    assert _judge(subject, Flip(COMMANDS, "driver actions", 8 * 12 + 24)) == (sensitivity.DEAD, dead.FRONT)


def test_tables_and_weights_matter(compiled):
    softmax, convolutions = compiled["softmax"], compiled["convolutions"]
    assert _judge(softmax, Flip(TABLE, TABLE, 8 * 200 + 6))[0] == sensitivity.CHANGED
    good = trace(convolutions.payload, convolutions.draw(0), convolutions.accelerator)
    weights = [offset for offset, roles in good.roles.items() if roles == {"WEIGHT"}]
    verdicts = [_judge(convolutions, Flip(WEIGHTS, WEIGHTS, 8 * offset + 3)) for offset in weights[100:110]]
    assert {verdict[0] for verdict in verdicts} <= {sensitivity.CHANGED, sensitivity.ERROR, sensitivity.ISSUE}


def test_a_live_bit_is_not_explained_away(compiled):
    """Traces of a stream whose result differs have no reason to be equal."""
    subject = compiled["matmul"]
    flip = _bit(subject, "SET_IFM_ZERO_POINT", 17)
    inputs = [subject.draw(number) for number in range(2)]
    good = [trace(subject.payload, item, subject.accelerator) for item in inputs]
    flipped = [trace(flip.of(subject.payload), item, subject.accelerator) for item in inputs]
    stored = [record for seen in flipped for record in seen.records]
    assert any(record.stored is not None for record in stored)
    for seen, other in zip(good, flipped, strict=True):  # pretend that every step stored the same
        for record, changed in zip(seen.records, other.records, strict=True):
            changed.stored = record.stored
    assert dead.explained(good, flipped, flip, subject.accelerator) is None


def test_sums_that_two_scales_treat_differently_are_counted_exactly(compiled):
    subject = compiled["matmul"]
    seen = trace(subject.payload, subject.draw(0), subject.accelerator)
    one = next(record for record in seen.records if record.scales)
    held = one.scales[0]
    for change in (0, 1, 1 << 8, 1 << 14):
        scale = held.scale.copy()
        scale[5] ^= change
        other = dataclasses.replace(one, scales=(dataclasses.replace(held, scale=scale),))
        count = reach.stages_differ(one, other, set(), subject.accelerator)
        if not change:
            assert count is None  # there is nothing to compare
            continue
        low, high = reach._sums(one, subject.accelerator)[5]
        every = np.arange(low, high + 1)
        first, second = (reach._stage(record, 5, subject.accelerator)(every) for record in (one, other))
        assert count == (int(np.count_nonzero(first != second)), len(every))
    assert count[0] > 0


# ---- mutants --------------------------------------------------------------------------------------------------------


def test_a_hundred_and_fifty_mutants_end_clearly(compiled, monkeypatch):
    monkeypatch.setattr(robustness, "MOST_WORK", 1 << 30)
    monkeypatch.setattr(robustness, "SECONDS", 100)  # a machine's speed is no result: this is for hangs only
    items = tuple(compiled.values())
    found = list(robustness.run(11, range(150), items))
    assert [item for item in found if item["outcome"] not in robustness.CLEAR] == []
    assert {item["kind"] for item in found} == set(KINDS)
    outcomes = Counter(item["outcome"] for item in found)
    assert min(outcomes[word] for word in (robustness.BAD_INPUT, robustness.STREAM_ERROR, robustness.ISSUES)) >= 5
    assert "0 of 150 ended in neither a clear error nor a result" in list(robustness.lines(found))


def test_mutants_depend_on_their_number_only(compiled):
    items = tuple(compiled.values())
    assert mutant(1, 30, items) == mutant(1, 30, items)
    assert mutant(1, 30, items).data != mutant(2, 30, items).data


def _plant(monkeypatch, fault):
    monkeypatch.setitem(machine._KERNELS, "OP_CONV", fault)


@pytest.mark.parametrize(("raised", "word"), [(ValueError("no such axis"), "VALUEERROR"), (IndexError(), "INDEXERROR")])
def test_an_exception_of_the_model_is_found(compiled, monkeypatch, raised, word):
    def fault(npu):
        raise raised

    _plant(monkeypatch, fault)
    subject = compiled["convolutions"]
    good = Mutant("none", subject, "delegate", subjects.delegate_bytes(subject.payload))
    assert robustness.measured(good)["outcome"] == word


def test_a_hang_of_the_model_is_found(compiled, monkeypatch):
    def fault(npu):
        while True:
            pass

    _plant(monkeypatch, fault)
    monkeypatch.setattr(robustness, "SECONDS", 0.2)
    subject = compiled["convolutions"]
    good = Mutant("none", subject, "delegate", subjects.delegate_bytes(subject.payload))
    assert robustness.measured(good)["outcome"] == "SLOW"


def test_what_is_mutated_is_told_from_what_is_not(compiled):
    subject = compiled["convolutions"]
    data = subjects.delegate_bytes(subject.payload)
    assert robustness.outcome(Mutant("none", subject, "delegate", data)) == (robustness.SAME, "")
    assert robustness.outcome(Mutant("none", subject, "delegate", data[:-1]))[0] == robustness.BAD_INPUT


def test_a_loop_without_end_is_refused(compiled, monkeypatch):
    """The loop's subject, its condition taken out of the branch that leaves it."""
    monkeypatch.setattr(machine, "MOST_REPEATED", 500)
    subject = compiled["loop"]
    assert execute(subject.payload, subject.draw(0), subject.accelerator).stopped is None
    payload = _bit(subject, "OP_BRANCH", 16).of(subject.payload)
    stopped = execute(payload, subject.draw(0), subject.accelerator).stopped
    assert "500 operations since the first branch: a loop without end" in str(stopped)


# ---- speed ----------------------------------------------------------------------------------------------------------


def test_a_run_is_timed_on_both_clocks(compiled):
    subject = compiled["softmax"]
    data = subjects.delegate_bytes(subject.payload)
    for item in speed.measured(data, subject.draw(0), subject.accelerator.name, runs=3):
        assert item.clock > 0
        assert item.processor > 0
