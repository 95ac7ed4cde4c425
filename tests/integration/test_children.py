"""Pieces of work in forked children: deaths, hangs and faults of the work itself."""

import os
import signal

import pytest

from tests.children import Death, isolated


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
