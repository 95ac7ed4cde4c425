"""Whose turn it is among the accelerators."""

from collections import Counter
from types import SimpleNamespace

import pytest

from harness.case.errors import BadInput
from harness.cli.vela import _size
from harness.ethosu.accelerator import ACCELERATORS, accelerator_named, in_turn


def test_families_take_turns_and_so_do_the_sizes_of_each():
    turns = in_turn(tuple(ACCELERATORS))
    assert turns[:6] == (
        "ethos-u55-32", "ethos-u65-256", "ethos-u85-128", "ethos-u55-64", "ethos-u65-512", "ethos-u85-256",
    )  # fmt: skip
    families = Counter(accelerator_named(name).family for name in turns)
    assert families == {"u55": 20, "u65": 20, "u85": 20}
    assert {name: turns.count(name) for name in ACCELERATORS} == {
        item.name: {"u55": 5, "u65": 10, "u85": 4}[item.family] for item in ACCELERATORS.values()
    }
    assert in_turn(["ethos-u85-256"]) == ("ethos-u85-256",)


def test_an_accelerator_that_does_not_exist_is_named_with_those_that_do():
    with pytest.raises(BadInput, match=r"'ethos-u55-512'.*ethos-u55-256"):
        in_turn(["ethos-u55-512"])


def test_programs_are_counted_by_family_with_the_sizes_that_they_ran_on():
    tally = SimpleNamespace(
        programs=Counter({"ethos-u55-32": 2, "ethos-u85-256": 4, "ethos-u55-64": 3}), operators=1, judged=9
    )
    told = "9 programs (5 on ethos-u55-32,64, 4 on ethos-u85-256), 1 operator, in 2 s (270 a minute)"
    assert _size(tally, 2.0, 270.0) == told
