"""What a script did in its process, and what the command streams that it left return. No torch."""

import io

import numpy as np

from harness.reports.bugs.executing import executed
from harness.reports.bugs.verifying import NEEDS_ENGINE, Verified, readable
from tests.unit.artifacts import block, value
from tests.unit.bugs import ETHOS
from tests.unit.ethosu.assembling import STOP, U55, feature_map, kernel, ofm, operation, payload


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def vela_output(commands):
    """What Vela writes for a graph that takes and returns int8 [1, 2, 2], with a pickle in it as Vela has."""
    made = payload(U55, commands)
    arrays = {"cmd_data": np.frombuffer(made.commands, np.uint8), "weight_data": np.zeros(1, np.uint8)}
    arrays |= {"scratch_shape": np.array([128]), "scratch_fast_shape": np.array([0])}
    for side, offset in (("input", 0), ("output", 64)):
        arrays |= {f"{side}_shape": np.array([[1, 1, 1, 1, 2, 2]]), f"{side}_elem_size": np.array([1])}
        arrays |= {f"{side}_offset": np.array([offset]), f"{side}_region": np.array([1])}
    return npz(**arrays, input_quantization=np.array([{"scale": 1}], dtype=object))


def streamed(monkeypatch, commands):
    """A script's files where the reference model returns 1, 2, 3, 5 for 1, 2, 3, 4."""
    graph = block(["x"], ["y"], [("CLAMP", ("x",), ("y",), {})], [value("x", (1, 2, 2)), value("y", (1, 2, 2))])
    monkeypatch.setattr("harness.artifacts.payload_io._block", lambda _: graph)
    given = {"in_0": np.array([[[1, 2], [3, 4]]], np.int8), "out_0": np.array([[[1, 2], [3, 5]]], np.int8)}
    return Verified(
        NEEDS_ENGINE, files={"m_io.npz": npz(**given), "m.tosa": b""}, programs={"m": vela_output(commands)}
    )


def test_wrong_values_of_a_stream_are_told_beside_the_right_ones(monkeypatch):
    shape = (1, 2, 2)
    copy = {**feature_map("IFM", shape, 0), "IFM_DEPTH_M1": 1, **ofm(U55, shape, 64), **kernel()}
    verified = streamed(monkeypatch, [*operation(U55, "OP_POOL", 1, copy), STOP])
    said = executed(verified, ETHOS)
    assert said.startswith("m, output 0 [1, 2, 2]: 1 of 4 elements is wrong, by up to 1\n")
    assert [line.split() for line in said.splitlines()[1:]] == [
        ["index", "[0,1,1]"],
        ["expected", "5"],
        ["actual", "4"],
    ]


def test_a_stream_that_cannot_be_executed_is_told_with_its_reason(monkeypatch):
    beyond = {**ofm(U55, (1, 2, 2), 126), **feature_map("IFM", (1, 2, 2), 0), "IFM_DEPTH_M1": 1, **kernel()}
    verified = streamed(monkeypatch, [*operation(U55, "OP_POOL", 1, beyond), STOP])
    assert executed(verified, ETHOS).startswith("m: the stream cannot be executed: ")
    assert executed(Verified(NEEDS_ENGINE, files=verified.files), ETHOS) == ""


def test_output_is_told_without_paths_of_this_machine():
    said = 'File "/opt/it/lib/python3.11/site-packages/torch/fx/graph.py", line 3\n/srv/r/repro.py: UserWarning: no\n'
    assert readable(said) == 'File "torch/fx/graph.py", line 3'


def test_what_gdb_says_of_itself_is_left_out():
    said = 'FATAL ERROR\nwarning: File "/usr/x-gdb.py" auto-loading has been declined\nTo enable\n\tadd\n'
    said += (
        'Using host libthread_db library "/lib/x/libthread_db.so.1".\n0x00007f25 in wait4 ()\n#1  main ()\nThe end.\n'
    )
    assert readable(said) == "FATAL ERROR\nThe end."


def test_an_error_is_told_once():
    said = "KeyError: k\nwhile doing something\nactual:   KeyError: k\nwhile doing something\nThe bug shows.\n"
    assert readable(said).splitlines() == [
        "KeyError: k",
        "while doing something",
        "actual:   KeyError: k",
        "The bug shows.",
    ]
