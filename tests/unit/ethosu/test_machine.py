"""What the model reports and refuses: streams with one thing wrong each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harness.case.errors import BadInput
from harness.ethosu import run
from harness.ethosu.accelerator import accelerator_named
from harness.ethosu.limits import AN_OPERATION
from harness.ethosu.machine import Execution, execute
from harness.ethosu.records import StreamError, Unimplemented
from tests.unit.ethosu.assembling import (
    STOP,
    U55,
    U85,
    Commands,
    feature_map,
    io,
    kernel,
    ofm,
    operation,
    payload,
    registers,
)

ARRAY = np.array([1, 2, 3, 4], np.int8).reshape(1, 2, 2)


def _copy(**changes: Any) -> Commands:
    settings = {**feature_map("IFM", (1, 2, 2), 0), "IFM_DEPTH_M1": 1, **ofm(U55, (1, 2, 2), 64), **kernel(), **changes}
    return operation(U55, "OP_POOL", 1, {name: value for name, value in settings.items() if value is not None})


def _execute(commands: Commands, array: np.ndarray = ARRAY, scratch: int = 128) -> Execution:
    made = payload(U55, commands, [io((1, 2, 2), 0)], [io((1, 2, 2), 64)], scratch=scratch)
    return execute(made, [array], U55)


def _issues(execution: Execution) -> list[tuple[str, str]]:
    return [(issue.kind, issue.operation) for issue in execution.issues]


def test_a_right_stream_has_no_issues() -> None:
    execution = _execute([*_copy(), STOP])
    assert execution.issues == ()
    assert execution.outputs is not None
    assert execution.outputs[0].ravel().tolist() == [1, 2, 3, 4]
    [step] = execution.steps
    assert [str(item) for item in step.reads] == ["IFM scratch[0x0:0x4]"]
    assert [str(item) for item in step.writes] == ["OFM scratch[0x40:0x44]"]


def test_watch_sees_every_operation_and_what_it_stored() -> None:
    seen: list[tuple[str, Any]] = []
    made = payload(U55, [*_copy(), ("OP_KERNEL_WAIT", {"value": 0}), STOP], [io((1, 2, 2), 0)], [io((1, 2, 2), 64)])
    execute(made, [ARRAY], U55, watch=lambda step, values: seen.append((step.kind, values)))
    assert [kind for kind, _ in seen] == ["POOL", "KERNEL_WAIT"]
    assert seen[0][1].tolist() == ARRAY.tolist()
    assert seen[1][1] is None


def test_reading_what_nothing_wrote_is_an_issue() -> None:
    execution = _execute([*_copy(IFM_BASE0=2), STOP])
    assert _issues(execution) == [("unwritten-read", "POOL")]
    assert "reads 2 bytes of scratch that nothing has written, from 0x4 on" in execution.issues[0].message


def test_leaving_a_region_ends_the_run() -> None:
    execution = _execute([*_copy(OFM_BASE0=126), STOP])
    assert _issues(execution) == [("out-of-bounds", "POOL")]
    assert execution.outputs is None
    assert "bytes 0x7e to 0x82 of scratch, which has 128 bytes" in str(execution.stopped)
    assert execution.issues[0].seen == (("bricks", 0),)


def test_writing_constants_is_out_of_bounds() -> None:
    assert _issues(_execute([*_copy(OFM_REGION=0), STOP])) == [("out-of-bounds", "POOL")]


def test_a_register_that_nothing_wrote_is_named() -> None:
    execution = _execute([*_copy(OFM_SCALE=None), STOP])
    assert _issues(execution) == [("unset-register", "POOL")]
    assert "OFM_SCALE" in str(execution.stopped)


def test_an_output_that_nothing_wrote_is_an_issue() -> None:
    execution = _execute([*_copy(OFM_BASE0=66), STOP])
    assert _issues(execution) == [("unwritten-output", "")]
    assert "output 0 has 2 of 4 bytes" in execution.issues[0].message


def test_a_stream_without_stop_is_an_issue() -> None:
    assert _issues(_execute(_copy())) == [("no-stop", "")]


def test_nothing_after_stop_is_executed() -> None:
    execution = _execute([*_copy(), STOP, *_copy(OFM_BASE0=4000)])
    assert execution.issues == ()


def test_what_is_not_implemented_says_so_and_is_no_issue() -> None:
    execution = _execute([*_copy(ACTIVATION={"function": 3}), STOP])
    assert isinstance(execution.stopped, Unimplemented)
    assert "activation function 3 is not implemented" in str(execution.stopped)
    assert execution.issues == ()


def test_padding_beyond_the_kernel_is_refused() -> None:
    execution = _execute([*_copy(**kernel(1, 2, (0, 2, 0, 2))), STOP])
    assert "padding is larger than what the kernel covers" in str(execution.stopped)


def test_a_loop_that_never_ends_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.ethosu.machine.MOST_REPEATED", 50)
    made = payload(U85, [("OP_BRANCH", {"condition": 0, "target": 0})])
    assert "50 operations since the first branch" in str(execute(made, [], U85).stopped)


def test_more_operations_than_the_model_does_are_no_fault_of_the_stream() -> None:
    made = payload(U55, [*_copy(), *_copy(), STOP], [io((1, 2, 2), 0)], [io((1, 2, 2), 64)], scratch=128)
    most, enough = AN_OPERATION * 3 // 2, AN_OPERATION * 3
    assert execute(made, [ARRAY], U55, most_work=enough).stopped is None
    stopped = execute(made, [ARRAY], U55, most_work=most).stopped
    assert isinstance(stopped, Unimplemented)
    assert f"more work than {most} multiplications" in str(stopped)


def test_a_branch_into_a_command_is_refused() -> None:
    made = payload(U85, [*registers(U85, {"OP_SCALAR": 1}), ("OP_BRANCH", {"condition": 0, "target": 4})])
    assert "byte 0x4 of the stream, where no command begins" in str(execute(made, [], U85).stopped)


def test_a_branch_needs_a_single_result() -> None:
    made = payload(U85, [("OP_BRANCH", {"condition": 1, "target": 0})])
    assert "none has stored a single element" in str(execute(made, [], U85).stopped)


def test_tables_of_the_smallest_shram_do_not_outlive_an_operation() -> None:
    u55 = accelerator_named("ethos-u55-32")
    load = registers(
        u55,
        {
            "DMA0_SRC_REGION": {},
            "DMA0_SRC": 0,
            "DMA0_DST_REGION": {"region_mode": 1},
            "DMA0_DST": 14 * 1024,
            "DMA0_LEN": 256,
        },
    )
    use, plain = _copy(ACTIVATION={"function": 16}), _copy(ACTIVATION={"function": 0})
    commands = [*load, ("OP_DMA_START", {}), *use, *plain, *use, STOP]
    made = payload(u55, commands, [io((1, 2, 2), 0)], [io((1, 2, 2), 64)], weights=bytes(256))
    execution = execute(made, [ARRAY], u55)
    assert [(issue.kind, issue.step) for issue in execution.issues] == [("unwritten-read", 3)]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ([], "are 0, the payload has 1"),
        ([np.zeros(3, np.int8)], "has 3 elements"),
        ([np.zeros(4, np.int16)], "is int16, the payload holds 1 bytes an element"),
        ([np.zeros(4, np.float32)], "is float32"),
    ],
)
def test_inputs_that_do_not_fit_are_named(arrays: list[np.ndarray], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        execute(payload(U55, [STOP], [io((1, 2, 2), 0)]), arrays, U55)


def test_absurd_scratch_is_refused() -> None:
    with pytest.raises(BadInput, match="scratch memory"):
        execute(payload(U55, [STOP], scratch=1 << 31), [], U55)


def test_an_output_outside_scratch_is_refused() -> None:
    with pytest.raises(BadInput, match="output 0 at bytes 64 to 68 of region 1, which has 16"):
        execute(payload(U55, [STOP], outputs=[io((1, 2, 2), 64)], scratch=16), [], U55)


def _npz(commands: Commands) -> dict[str, np.ndarray]:
    made = payload(U55, commands, [io((1, 2, 2), 0)], [io((1, 2, 2), 64)])
    arrays = {
        "cmd_data": np.frombuffer(made.commands, np.uint8),
        "weight_data": np.zeros(1, np.uint8),
        "scratch_shape": np.array([128]),
        "scratch_fast_shape": np.array([0]),
    }
    for name, [entry] in (("input", made.inputs), ("output", made.outputs)):
        arrays |= {
            f"{name}_shape": np.array([entry.shape]),
            f"{name}_elem_size": np.array([entry.element_size]),
            f"{name}_offset": np.array([entry.offset]),
            f"{name}_region": np.array([entry.region]),
        }
    return arrays


def test_run_takes_what_vela_writes_and_keeps_the_rank_of_inputs() -> None:
    [output] = run(_npz([*_copy(), STOP]), [ARRAY], "ethos-u55-128")
    assert output.shape == (1, 2, 2)
    assert output.tolist() == ARRAY.tolist()


def test_run_raises_what_ended_the_stream() -> None:
    with pytest.raises(StreamError, match="which has 128 bytes"):
        run(_npz([*_copy(OFM_BASE0=126), STOP]), [ARRAY], "ethos-u55-128")
    with pytest.raises(BadInput, match="unknown 'ethos-u55-99'"):
        run(_npz([STOP]), [ARRAY], "ethos-u55-99")
    with pytest.raises(StreamError, match="ethos-u55-256"):
        run(_npz([STOP]), [ARRAY], "ethos-u55-256")
