"""Pieces of work in forked children: deaths, hangs and faults of the work itself."""

import os
import signal

import numpy as np
import pytest

from harness.compat.tosa import without_debugger
from harness.pipeline.legs.tosa_reference import run_flatbuffer
from harness.tosa.program import Operator, Program, Tensor
from harness.tosa.translating import to_flatbuffer
from tests.children import Death, isolated
from tests.integration.nightly_scripts import executable


def test_a_native_death_costs_one_piece_of_work():
    def work(number):
        if number == 1:
            os.kill(os.getpid(), signal.SIGSEGV)
        return number * 10

    assert isolated(4, work) == [0, Death("SIGSEGV"), 20, 30]


def test_a_hang_is_ended():
    def work(number):
        if number == 0:
            signal.pause()
        return number

    assert isolated(2, work, patience=0.2) == [Death("hang"), 1]


def test_a_fault_of_the_work_itself_is_raised():
    def work(number):
        raise KeyError("mine")

    with pytest.raises(RuntimeError, match="KeyError: 'mine'"):
        isolated(1, work)


WRONG_SHAPE = Program(
    tensors=(Tensor("x", (2, 3), "INT32"), Tensor("y", (2, 3), "INT32")),
    operators=(Operator("REDUCE_SUM", ("x",), ("y",), {"Axis": 0}),),
    inputs=("x",),
    outputs=("y",),
)


def test_no_debugger_is_asked_when_the_reference_model_refuses_a_graph(tmp_path):
    executable(tmp_path / "gdb", f"#!/bin/sh\necho asked >> {tmp_path}/asked\n")

    def refused(number):
        os.environ["PATH"] = f"{tmp_path}:/bin" if number == 0 else without_debugger(f"{tmp_path}:/bin")
        with pytest.raises(ValueError, match="Invalid TOSA graph"):
            run_flatbuffer(to_flatbuffer(WRONG_SHAPE), [np.zeros((2, 3), np.int32)])

    isolated(1, lambda _: refused(1))
    assert not (tmp_path / "asked").exists()
    isolated(1, lambda _: refused(0))
    assert (tmp_path / "asked").exists(), "the reference model asks none any more: leave out the one that does nothing"
