"""Mutants of real graphs: the clean flatbuffer passes, a wrong RESCALE or table is seen, the rest is explained."""

import functools

import numpy as np
import pytest

from harness.evidence.references import TOSA
from tests.children import isolated
from tests.integration.conftest import linear_case, sigmoid_case, two_outputs_case
from tests.mutation.explain import NOT_EXERCISED, UNSEEN, trace
from tests.mutation.mutate import mutate
from tests.mutation.score import NUMERIC, OUT_OF_RANGE, SEEN, judge_mutants, mutants_of
from tests.mutation.subject import judged, run_mutant, subject_of, with_leg

CASES = (linear_case, sigmoid_case, two_outputs_case)


@functools.cache
def subject(case):
    found, why = subject_of(case())
    assert found is not None, why
    return found


def only_delegate(live):
    [(name, tosa)] = live.lowered.tosa.items()
    return name, tosa


def drawn(tosa, kind, wanted, tries=200):
    """The first mutant of a kind whose description contains ``wanted``."""
    rng = np.random.default_rng(1)
    return next(found for found in (mutate(tosa, rng, kind) for _ in range(tries)) if wanted in found[1].what)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_the_clean_flatbuffer_is_not_seen_and_every_mutant_has_a_verdict(case):
    live = subject(case)
    name, tosa = only_delegate(live)
    clean = run_mutant(live.lowered, name, tosa, live.observation.inputs)
    assert judged(with_leg(live.observation, clean)) == []
    assert live.further is not None
    assert judged(live.further) == []
    assert len(live.calls[name]) == len(live.observation.inputs)
    mutants = mutants_of(live, 6, [0])
    verdicts = judge_mutants(live, mutants)
    assert len(verdicts) == len(mutants) == 6
    assert {item.verdict for item in verdicts} <= {*SEEN, *UNSEEN}


@pytest.mark.parametrize(
    ("case", "kind", "what"),
    [
        (linear_case, "RESCALE multiplier", "halved"),
        (linear_case, "RESCALE output zero point", "+1"),
        (linear_case, "RESCALE shift", "+1"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_a_wrong_rescale_is_seen_by_numeric(case, kind, what):
    live = subject(case)
    name, tosa = only_delegate(live)
    [verdict] = judge_mutants(live, [(name, *drawn(tosa, kind, what))])
    assert verdict.verdict == NUMERIC, verdict
    assert verdict.facts["distance"] >= 1


def test_a_table_entry_is_seen_where_an_evaluation_input_reads_it():
    """A table right behind the input: every code can be reached, and few inputs of four elements read a handful."""
    live = subject(two_outputs_case)
    name, tosa = only_delegate(live)
    rng = np.random.default_rng(0)
    verdicts = judge_mutants(live, [(name, *mutate(tosa, rng, "TABLE entry")) for _ in range(24)])
    assert {item.verdict for item in verdicts} - {NUMERIC, OUT_OF_RANGE} == {NOT_EXERCISED}
    assert any(item.seen for item in verdicts)
    for facts in (item.facts for item in verdicts if item.verdict == NOT_EXERCISED):
        assert facts["own"] is False
        assert facts["differs_on_random"] or facts["seen_on_further"]


def test_a_trace_holds_what_every_operator_returns():
    live = subject(sigmoid_case)
    name, tosa = only_delegate(live)
    [tensors] = isolated(1, lambda number: trace(tosa, live.calls[name][0]))
    assert set(live.observation.lowering.delegates[0].tosa_inputs).isdisjoint(tensors)
    assert any("table" in tensor for tensor in tensors)
    assert live.observation.legs[TOSA].ran
