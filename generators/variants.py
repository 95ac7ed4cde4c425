"""``draw_variants``: the same graph and weights under other calibrations and recipes, for the pass-level mode.

Calibration moves scales and zero points, and with them what the Arm passes fold and the serializer writes; a
recipe moves the ranges of codes. A recipe costs more than a calibration (``harness.campaign.breadth``), so that only a
few are drawn and every one serves many variants.
"""

from __future__ import annotations

import itertools

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from generators.adversarial import draw_calibration
from generators.cases import RUN, SAMPLES, SEEDS, fresh_examples, run_seed
from generators.recipes import recipes
from harness.case.case import Case, case_digest
from harness.case.operators import Draw

PER_RECIPE = 15
"""Variants that one recipe serves: the edge program that a recipe needs costs as much as five of them."""


def draw_variants(case: Case, seed: int, count: int) -> list[Case]:
    """A generated case and ``count - 1`` variants of it, none twice. The same arguments give the same variants.

    A graph without inputs has few; then there are less.

    :param case: quantized, without tensors of its own.
    """
    own = int(case_digest(case), 16)
    needed = -(-count // PER_RECIPE) - 1
    words = [case.recipe]
    runs = (fresh_examples(run_seed(seed, own, run), _recipes(case)) for run in range(1 + needed // RUN))
    words += [item.recipe for item in itertools.chain.from_iterable(item for run in runs for item in run)][:needed]
    found = {case_digest(case): case}
    for run in range(count):
        for [item] in fresh_examples(run_seed(seed, own, -1 - run), _variants(case, words)):
            found.setdefault(case_digest(item), item)
        if len(found) >= count:
            break
    return list(found.values())[:count]


@st.composite
def _recipes(draw: Draw, case: Case) -> tuple[Case, ...]:
    return (msgspec.structs.replace(case, recipe=draw(recipes(case.graph))),)


def _variants(case: Case, words: list[str]) -> SearchStrategy[tuple[Case, ...]]:
    @st.composite
    def variant(draw: Draw) -> tuple[Case, ...]:
        seeds = msgspec.structs.replace(case.seeds, calibration=draw(SEEDS))
        return (
            msgspec.structs.replace(
                case,
                calibration=draw_calibration(draw, case.graph),
                samples=draw(st.sampled_from(SAMPLES)),
                recipe=draw(st.sampled_from(words)),
                seeds=seeds,
            ),
        )

    return variant()
