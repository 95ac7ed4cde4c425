"""Where a correction changes what is done, and whether a step of a compile comes out otherwise; no torch."""

import textwrap

import pytest

from harness.campaign.certify import single_steps
from harness.campaign.certify.single_steps import Trial
from harness.compat.sources import digest_of, source_of
from harness.corrections import Change, Correction, Edit
from harness.corrections.touching import changed_places, touched
from tests.unit.upstream import MODULE, RELEASE, installed_module

SOURCE = textwrap.dedent(
    '''
    LIMIT = 3


    def route(value):
        """Three ways."""
        if value > 10:
            value = value - 1
        elif value < 0:
            for _ in range(2):
                value = value * 2
        else:
            value = value + 1
        return value


    def limited(value):
        if value > 5:
            value = LIMIT
        return value


    def adder(amount):
        def add(value):
            if value > 5:
                value = value + amount
            return value

        return add


    class MadePartitioner:
        def __init__(self):
            self.most = 1
    '''
).lstrip()


def correction(place, old, new):
    digest = digest_of(source_of(SOURCE, place))
    changes = (Change(MODULE, place, {RELEASE: digest}, (Edit(old, new),)),)
    return Correction("mended", (), "cause", "change", changes, ((),))


@pytest.fixture
def upstream(tmp_path, monkeypatch):
    return installed_module(SOURCE, tmp_path, monkeypatch)


def reached(correction, call, *values):
    """Which values make a call come to what the correction changes."""
    found = []
    for value in values:
        with touched((correction,)) as places:
            call(value)
            if places:
                found.append(value)
    return found


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("value - 1", "value - 2", [11]),
        ("value * 2", "value * 3", [-1]),
        ("value = value + 1", "value = value + 1\n        value += 0", [5]),
        ("elif value < 0", "elif value < 1", [-1, 5]),
        ("value > 10", "value > 20", [11, -1, 5]),
        ("    return value", "    value = abs(value)\n    return value", [11, -1, 5]),
        ("range(2)", "range(3)", [-1]),
        ("    return value", "    if value > 7:\n        value = 7\n    return value", [11]),
        ("    return value", "    most = (7, 8)\n    if value > most[0]:\n        return 7\n    return value", [11]),
        ("    return value", "    from math import e\n    if value > e:\n        return 7\n    return value", [11, 5]),
        (
            "    return value",
            "    if value > 7:\n        value = 7\n    else:\n        pass\n    return value",
            [11, -1, 5],
        ),
        ("    return value", "    if print(value):\n        value = 7\n    return value", [11, -1, 5]),
        ("    return value", "    value = 7\n    if value > 7:\n        value = 7\n    return value", [11, -1, 5]),
        (
            "    return value",
            "    if value > MOST:\n        value = 7\n    return value\n\n\nclass MOST: pass",
            [11, -1, 5],
        ),
        (
            "    return value",
            "    from math import most\n    if value > most:\n        pass\n    return value",
            [11, -1, 5],
        ),
    ],
)
def test_only_calls_that_come_to_the_changed_statement_count(upstream, old, new, where):
    mended = correction("route", old, new)
    assert reached(mended, upstream.route, 11, -1, 5) == where
    assert [upstream.route(value) for value in (11, -1, 5)] == [10, -4, 6]


def test_what_an_edit_changes_inside_a_nested_function_counts_when_that_is_called(upstream):
    mended = correction("adder", "value + amount", "value - amount")
    with touched((mended,)) as places:
        add = upstream.adder(1)
        add(3)
        assert places == set()
        add(6)
        assert places == {(MODULE, "adder")}


def test_a_function_that_somebody_else_changed_counts_as_reached_and_stays_so(upstream, monkeypatch):
    monkeypatch.setattr(upstream.route, "__code__", (lambda value: 100).__code__)
    with touched((correction("route", "value - 1", "value - 2"),)) as places:
        assert places == {(MODULE, "route")}
        assert upstream.route(11) == 100


def test_a_new_local_name_that_hides_an_outer_one_counts_in_every_call(upstream):
    hiding = "value > 5:\n            amount = 2\n"
    mended = correction("adder", "value > 5:\n", hiding)
    assert reached(mended, upstream.adder, 1) == [1]


def test_a_new_local_name_that_hides_a_global_one_counts_in_every_call(upstream):
    mended = correction("limited", "        value = LIMIT", "        LIMIT = 4\n        value = LIMIT")
    assert reached(mended, upstream.limited, 0, 9) == [0, 9]


def test_an_edit_that_leaves_the_code_changes_no_place(upstream):
    assert changed_places((correction("route", "return value", "return value  # said"),)) == frozenset()


# ---- steps ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def trial(upstream, monkeypatch):
    """``trial(steps, variant)``: is it unmoved after a compile made of steps, and of calls outside them?"""
    monkeypatch.setattr(single_steps, "_reached", {})

    def run(steps, variant, *, remains=str):
        monkeypatch.setattr(single_steps, "chosen", lambda words: (variant,))
        single_steps._prepared.cache_clear()
        with touched((variant,)) as places:
            compile_ = Trial([("mended",)], places, upstream.MadePartitioner)
            for name, value in steps:
                if name == "outside":
                    upstream.route(value)
                elif name == "partition":
                    made = upstream.MadePartitioner()
                    compile_.run_step(name, made, lambda item: item.most, remains, first=True)
                else:
                    compile_.run_step(name, upstream, lambda item, value=value: item.route(value), remains, first=False)
            return bool(compile_.unmoved())

    return run


SAME = correction("route", "value - 1", "value + 2 - 3")


def test_a_step_that_leaves_the_same_moves_nothing(trial):
    assert not trial([("Pass", 11)], SAME)  # nobody knew that this step reaches the place
    assert trial([("Pass", 11)], SAME)
    assert trial([("Pass", 11), ("outside", 0)], SAME)
    assert not trial([("Pass", 11), ("outside", 12)], SAME)


@pytest.mark.parametrize(
    ("new", "unmoved"), [("value - 2", False), ("value - nothing", False), ("value - 1 + 0", True)]
)
def test_what_a_variant_leaves_is_compared(trial, new, unmoved):
    trial([("Pass", 11)], SAME)
    assert trial([("Pass", 11)], correction("route", "value - 1", new)) == unmoved


def test_what_is_never_reached_moves_nothing(trial):
    assert trial([("Pass", 11), ("outside", -1)], correction("route", "value + 1", "value + 2"))


def test_a_place_that_many_steps_reach_is_not_tried_in_all(trial):
    trial([("Pass", 11)], SAME)
    assert trial([("Pass", 11)] * single_steps.MOST_CHILDREN, SAME)
    assert not trial([("Pass", 11)] * (single_steps.MOST_CHILDREN + 1), SAME)


def test_a_partitioner_is_made_anew_with_the_variant(trial):
    same = correction("MadePartitioner.__init__", "self.most = 1", "self.most = 2 - 1")
    assert trial([("partition", None)], same)
    assert trial([("partition", None), ("Pass", 11)], same)
    assert not trial([("partition", None)], correction("MadePartitioner.__init__", "self.most = 1", "self.most = 2"))


def test_a_step_that_raises_ends_the_compile_and_leaves_its_variants_open(trial):
    with pytest.raises(TypeError):
        trial([("Pass", "eleven")], SAME)


def test_what_cannot_be_described_is_raised_as_armdiff_s_own(trial):
    trial([("Pass", 11)], SAME)

    def remains(result):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        trial([("Pass", 11)], SAME, remains=remains)
