"""A dozen single-operator programs on two targets: compiled, run, compared, counted."""

import json
import os
import signal
import subprocess
import sys

import msgspec
import numpy as np
import pytest

from tests.children import Death, spread
from tests.exactness import dumping, table
from tests.exactness.__main__ import compare
from tests.exactness.comparing import DIFFERENT, EXACT, REFERENCE, VELA
from tests.exactness.configurations import configuration_for, default
from tests.exactness.preparing import compiled_key, prepare, reference_key
from tests.exactness.programs import build, names
from tests.exactness.store import Compiled, Reference, Store, stored

PROGRAMS = (
    "conv2d-001",
    "depthwise-004",
    "transpose-conv-001",
    "matmul-002",
    "avg-pool-004",
    "reduce-sum-003",
    "add-002",
    "table-001",
    "rescale-003",
    "transpose-040",
    "chain-quantized-004",
    "equal-001",
)
TARGETS = ("ethos-u55-128", "ethos-u85-256")
MISPLACED = "conv2d-000"
"""A 1x1 convolution of two batches with CLAMP, which Vela 5.1.0 compiles wrongly."""


@pytest.fixture(scope="module")
def programs():
    wanted = (*PROGRAMS, MISPLACED, "reduce-product-000")
    return {name: build(name, family, number, 0) for name, family, number in names(0) if name in wanted}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return Store(tmp_path_factory.mktemp("cache"))


def verdicts_of(store, jobs):
    prepare(jobs, store, 1, lambda line: None)
    return compare(jobs, store, 1)


def test_single_operators_are_exact_on_both_families(programs, store):
    verdicts = verdicts_of(
        store, [(programs[name], configuration_for(name, target)) for target in TARGETS for name in PROGRAMS]
    )
    rows = table.rows(verdicts)
    assert [item.name for item in verdicts if item.outcome not in (EXACT, VELA)] == []
    assert [(item.target, item.name) for item in verdicts if item.outcome == VELA] == [("ethos-u55-128", "equal-001")]
    assert rows["ethos-u55-128", "single-op"]["exact"] == 11
    assert rows["ethos-u85-256", "single-op"]["exact"] == 12
    assert all(item.calls == 2 for item in verdicts if item.outcome == EXACT)


def test_a_wrong_reference_is_a_difference_that_nothing_explains(programs, store):
    program, configuration = programs["add-002"], default("ethos-u85-256")
    prepare([(program, configuration)], store, 1, lambda line: None)
    key = reference_key(program)
    right = store.load(key, Reference)
    output = right.calls[0].outputs[0].array.copy()
    output.flat[-1] += 1
    call = msgspec.structs.replace(right.calls[0], outputs=(stored(output),))
    store.save(key, Reference((call, *right.calls[1:])))
    [verdict] = compare([(program, configuration)], store, 1)
    store.save(key, right)
    place = list(np.unravel_index(output.size - 1, output.shape))
    assert verdict.outcome == DIFFERENT
    assert f"1 of {output.size} differ (by up to 1), first at {[int(axis) for axis in place]}" in verdict.detail
    assert table.unexplained([verdict]) == [verdict]


def test_a_defect_of_the_compiler_is_different_and_explained(programs, store):
    [verdict] = verdicts_of(store, [(programs[MISPLACED], default("ethos-u55-128"))])
    assert (verdict.outcome, verdict.explained) == (DIFFERENT, "batched-pointwise-activation")
    assert table.unexplained([verdict]) == []


def test_what_vela_refuses_is_counted_with_its_reason(programs, store):
    [verdict] = verdicts_of(store, [(programs["reduce-product-000"], default("ethos-u85-256"))])
    assert verdict.outcome == VELA
    assert "ReduceProduct: - Unsupported operation" in verdict.detail
    assert "reduce-product: 0 of 1 accepted; 1 refused" in "\n".join(table.lines([verdict]))


def test_what_the_reference_model_refuses_does_not_count(programs, store):
    program, configuration = programs["add-002"], default("ethos-u55-128")
    prepare([(program, configuration)], store, 1, lambda line: None)
    right = store.load(reference_key(program), Reference)
    store.save(
        reference_key(program),
        Reference(tuple(msgspec.structs.replace(call, refused="TOSA_UNPREDICTABLE") for call in right.calls)),
    )
    [verdict] = compare([(program, configuration)], store, 1)
    store.save(reference_key(program), right)
    assert (verdict.outcome, verdict.detail) == (REFERENCE, "TOSA_UNPREDICTABLE")
    assert table.row([verdict])["compared"] == 0


def test_a_dump_holds_the_program_and_all_three_results(programs, store, tmp_path):
    program, configuration = programs["add-002"], default("ethos-u85-256")
    prepare([(program, configuration)], store, 1, lambda line: None)
    dumping.dump(program, configuration, store, tmp_path)
    folder = tmp_path / "add-002-ethos-u85-256"
    call = np.load(folder / "call1.npz")
    assert (folder / "program.tosa").read_bytes() == program.tosa
    assert np.array_equal(call["model0"].reshape(-1), call["reference0"].reshape(-1))
    assert call["input0"].shape == program.inputs[0].shape
    assert set(np.load(folder / "payload.npz").files) == set(
        store.load(compiled_key(program, configuration), Compiled).arrays
    )


def test_a_native_death_costs_one_piece_only():
    def work(number):
        if number == 2:
            os.kill(os.getpid(), signal.SIGSEGV)
        return number * number

    assert dict(spread(5, work, 2)) == {0: 0, 1: 1, 2: Death("SIGSEGV"), 3: 9, 4: 16}


def test_the_command_fails_only_for_what_is_not_explained(tmp_path):
    options = ["--source", "single", "--targets", "ethos-u55-128", "--only", f"{MISPLACED},clz-000"]
    run = subprocess.run(
        [sys.executable, "-m", "tests.exactness", *options, "--json", str(tmp_path / "all.json")],
        capture_output=True,
        text=True,
        check=False,
    )
    data = json.loads((tmp_path / "all.json").read_text())
    assert run.returncode == 0, run.stderr
    assert "1 batched-pointwise-activation (Vela)" in run.stdout
    assert [item["outcome"] for item in data["verdicts"]] == ["different", "exact"]
