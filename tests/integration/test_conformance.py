"""Programs of Arm's conformance generator: built, compiled, run, compared."""

import pytest

from tests.exactness import conformance, table
from tests.exactness.__main__ import compare
from tests.exactness.comparing import EXACT
from tests.exactness.configurations import configuration_for
from tests.exactness.preparing import prepare
from tests.exactness.store import Store

TARGETS = ("ethos-u55-128", "ethos-u85-256")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("conformance")


def test_programs_of_two_seeds_are_built_once_and_exact(folder):
    said = []
    programs = conformance.programs(folder, said.append, "^(table|clamp)")
    again = conformance.programs(folder, said.append, "^(table|clamp)")
    assert len(said) == len(conformance.SEEDS)
    assert [(item.name, item.tosa) for item in again] == [(item.name, item.tosa) for item in programs]
    assert {item.group for item in programs} == {"conformance int8", "conformance int16"}
    assert len({item.name for item in programs}) == len(programs)
    jobs = [(item, configuration_for(item.name, target)) for target in TARGETS for item in programs]
    store = Store(folder)
    prepare(jobs, store, 1, lambda line: None)
    verdicts = compare(jobs, store, 1)
    assert [(item.name, item.detail) for item in verdicts if item.outcome != EXACT] == []
    assert {table.family_of(item.name) for item in verdicts} == {"table", "clamp"}
    assert all(item.calls == 1 for item in verdicts)


def test_a_generator_that_fails_says_why(folder):
    with pytest.raises(RuntimeError, match=r"tosa_verif_build_tests failed for \^nothing\$"):
        conformance.programs(folder, lambda line: None, "^nothing$")
