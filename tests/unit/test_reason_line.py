"""What a dead worker's output is reduced to."""

import pytest

from harness.workers.deaths import reason_line

STACK = "#0 main\n#1 start\n[Inferior 1 (process 9) detached]"


@pytest.mark.parametrize(
    ("log", "line"),
    [
        ("", "no native output"),
        ("one\ntwo\n", "two"),
        (
            f"FATAL ERROR AT x.cpp:784\n[Internal] OpTable input out of range\n{STACK}",
            "[Internal] OpTable input out of range",
        ),
        ("Network summary for out\nNeural network macs   8 MACs/batch\n\n", "no native output"),
        ("Info: Changing const_mem_area from Sram to OnChipFlash.\n", "no native output"),
        ("WARNING: Different TOSA spec in flatbuffer and serializer versions detected.\n" * 9, "no native output"),
        ("Neural network macs   8 MACs/batch\nAssertion x failed\n", "Assertion x failed"),
        (f"terminate called\n  what():  bad index\n{STACK}", "what():  bad index"),
    ],
)
def test_the_line_that_says_why_is_found_above_the_stack_trace(log, line):
    assert reason_line(log) == line
