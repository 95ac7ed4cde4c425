"""Shared lowerings: each case is observed once a test process, whoever asks. A test process is as warm as a worker."""

import functools
import gc
import io
import threading
from unittest import mock

import pytest

from harness.case.case import Case, Constant, Distribution, Graph, Input, Node, Seeds
from harness.workers.pool import Pool
from tests.attributes import CONV_3X3
from tests.forked import forked_workers


def uniform(low=-1.0, high=1.0):
    return Distribution(kind="uniform", parameters={"low": low, "high": high})


def node(name, operator, *inputs, **attributes):
    return Node(name=name, operator=operator, inputs=inputs, attributes=attributes)


def sigmoid_case(target="TOSA-1.0+INT", recipe="a8w8"):
    """relu then sigmoid: two operators that are right in every release."""
    return Case(
        graph=Graph(
            inputs=(Input(name="x", shape=(1, 4)),),
            nodes=(node("n0", "relu", "x"), node("n1", "sigmoid", "n0")),
            outputs=("n1",),
        ),
        calibration={"x": uniform()},
        target=target,
        recipe=recipe,
    )


def two_outputs_case(target="TOSA-1.0+INT"):
    """Two outputs of one shape with different values."""
    return Case(
        graph=Graph(
            inputs=(Input(name="x", shape=(1, 4)), Input(name="y", shape=(1, 4))),
            nodes=(node("n0", "sigmoid", "x"), node("n1", "tanh", "y")),
            outputs=("n0", "n1"),
        ),
        calibration={"x": uniform(), "y": uniform(-2.0, 2.0)},
        seeds=Seeds(calibration=3),
        target=target,
    )


def relu_join_case(target="TOSA-1.0+INT"):
    """Seed 001's pattern: conv -> relu -> cat with a sibling that is shifted below zero."""
    return Case(
        graph=Graph(
            inputs=(Input(name="x", shape=(1, 4, 8, 8)), Input(name="y", shape=(1, 4, 8, 8))),
            nodes=(
                node("n0", "conv2d", "x", **CONV_3X3),
                node("n1", "relu", "n0"),
                node("n2", "cat", "n1", "y", dim=1),
            ),
            outputs=("n2",),
        ),
        calibration={"x": uniform(), "y": uniform(-0.5, 0.5)},
        recipe="a8w8,qmin=-127",
        target=target,
    )


def linear_case(target="TOSA-1.0+INT", recipe="a8w8"):
    """A linear layer on its own."""
    return Case(
        graph=Graph(
            inputs=(Input(name="x", shape=(2, 6)),),
            nodes=(node("n0", "linear", "x", out_features=4, bias=True),),
            outputs=("n0",),
        ),
        calibration={"x": uniform()},
        recipe=recipe,
        target=target,
    )


def constant_join_case(target="TOSA-1.0+INT"):
    """Seed 000's pattern: full -> cat with an activation."""
    return Case(
        graph=Graph(
            inputs=(Input(name="x", shape=(1, 2, 4)),),
            constants=(Constant(name="k0", shape=(1, 2, 4), kind="full", parameters={"value": 0.5}),),
            nodes=(node("n0", "cat", "k0", "x", dim=1),),
            outputs=("n0",),
        ),
        calibration={"x": uniform()},
        target=target,
    )


@pytest.fixture(scope="session", autouse=True)
def warm():
    """Get this process ready as a worker gets, which makes a lowering two to three times as fast."""
    _get_ready()


@pytest.fixture(autouse=True)
def same_random_numbers(warm):
    """A test draws what it draws alone, whatever ran in its process before: models here calibrate on torch.rand."""
    import torch

    torch.manual_seed(0)


@functools.cache
def _get_ready():
    """Once a process, though two folders have the fixture.

    Garbage is collected while tests run, since there is no moment between cases; more rarely than Python would, since
    a lowering makes many objects that stay.
    """
    from harness.workers.worker import WITHOUT, get_ready

    get_ready([f"{WITHOUT}collection-paused"])
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture(scope="session")
def first_cases(warm, tmp_path_factory):
    """This process has run a case on each default target and come to corrections: its forks need not be the first."""
    from harness.campaign.campaign import write_case
    from harness.case.target import DEFAULT_TARGETS
    from harness.compat.warm.stage_cache import GraphCache
    from harness.corrections import chosen
    from harness.corrections.applying import applied
    from harness.workers.case_run import run_task
    from harness.workers.protocol import Task
    from harness.workers.reached import watched

    for target in DEFAULT_TARGETS:
        run_task(Task(case=str(write_case(sigmoid_case(target), tmp_path_factory.mktemp("first")))), lambda _: None)
    with applied(chosen(("all",))):  # what is compiled of them, and of what watches them
        pass
    with watched(GraphCache()):
        pass


class PoolHere(Pool):
    """A pool whose only worker is this process, for cases that no native code dies of. Threads wait for their turn."""

    turn = threading.Lock()

    def _ask_once(self, task):
        from harness.triage.proving import Remembered
        from harness.workers import worker

        # the time limit of a capture would end this process
        with PoolHere.turn, mock.patch("faulthandler.dump_traceback_later"):
            return worker._serve(task, worker._Announced(io.BytesIO()), None, Remembered())


@pytest.fixture
def asking_here(monkeypatch, warm):
    """Every pool asks this process where it would start a worker; nothing else about it is different."""
    monkeypatch.setattr(Pool, "_ask_once", PoolHere._ask_once)


@pytest.fixture
def workers_forked(first_cases):
    """Every pool's workers are forks of this process; nothing else about it is different."""
    with forked_workers():
        yield


@pytest.fixture
def command_here(monkeypatch):
    """``command_here(word…, cwd=folder)``: a command in this process, with its exit status and what it printed."""
    from click.testing import CliRunner

    from harness.campaign import holding
    from harness.cli.command import main

    def run(*words, cwd):
        with monkeypatch.context() as moved:
            moved.chdir(cwd)
            try:
                return CliRunner().invoke(main, [str(word) for word in words])
            finally:
                while holding._held:  # a command's locks end with its process
                    holding._held.popitem()[1].close()

    return run


@pytest.fixture
def armdiff_here(asking_here, command_here):
    """The same, with this process for a worker."""
    return command_here


@functools.cache
def _observed(data):
    from harness.case.reading import decode_case
    from harness.pipeline.lowering import StageClock
    from harness.workers.observing import observe

    return observe(decode_case(data), StageClock())


@pytest.fixture(scope="session")
def observed():
    """``observed(case)``: the observation of a case, computed once."""
    from harness.case.case import encode_case

    return lambda case: _observed(encode_case(case))
