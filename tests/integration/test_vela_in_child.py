"""Vela in a child of the process that asks for it, with a stand-in for Vela."""

import os
import signal
import sys
from types import SimpleNamespace

import pytest

from harness.compat.vela_in_child import VelaDied, vela_in_child


def test_a_death_of_vela_is_an_exception_and_every_other_end_its_own(monkeypatch):
    calls = []

    def main(word):
        if word == "dies":
            os.kill(os.getpid(), signal.SIGSEGV)
        if word == "raises":
            raise ZeroDivisionError
        calls.append(word)
        return word

    vela = SimpleNamespace(main=main)
    monkeypatch.setitem(sys.modules, "ethosu.vela", SimpleNamespace(vela=vela))
    with vela_in_child():
        assert vela.main("compiles") == "compiles"
        with pytest.raises(VelaDied, match="SIGSEGV"):
            vela.main("dies")
        with pytest.raises(ZeroDivisionError):
            vela.main("raises")
    assert (vela.main, calls) == (main, ["compiles"])
