"""Whose fault is an exception: armdiff's own, or the toolchain's?"""

import pytest

from harness.case.errors import OwnFault, is_ours


def calling(name, inner=None):
    """A function of a module of that name; it calls ``inner`` or raises."""
    names = {"__name__": name, "inner": inner}
    exec("def f():\n    inner() if inner else [].index('a\\nb')", names)
    return names["f"]


def caught(function):
    with pytest.raises(ValueError, match=r"not in list|wrapped") as info:
        function()
    return info.value


@pytest.mark.parametrize(
    ("modules", "ours"),
    [
        (["harness.ethosu.pooling"], True),
        (["harness.ethosu.pooling", "numpy.lib"], True),
        (["executorch.backends.arm", "oracles.numeric"], True),
        (["harness.pipeline.lowering", "executorch.backends.arm", "torch.fx"], False),
        (["harness.pipeline.lowering", "ethosu.vela.vela"], False),
        (["toscanini"], False),
    ],
)
def test_the_innermost_package_of_the_two_is_to_blame(modules, ours):
    function = None
    for name in reversed(modules):
        function = calling(name, function)
    assert is_ours(caught(function)) == ours


@pytest.mark.parametrize(("inner", "outer"), [("executorch.passes", "harness.x"), ("harness.x", "executorch.passes")])
def test_what_wraps_an_exception_is_not_to_blame(inner, outer):
    names = {"__name__": outer, "inner": calling(inner)}
    exec("def f():\n try: inner()\n except ValueError as error: raise ValueError('wrapped') from error", names)
    assert is_ours(caught(names["f"])) == (inner == "harness.x")


def test_a_fault_is_told_in_one_line_with_its_place_and_the_remedy():
    error = caught(calling("harness.ethosu.pooling", calling("numpy.lib")))
    text = str(OwnFault(error, "on delegate lowered_module_0"))
    assert text == (
        "armdiff itself fails on delegate lowered_module_0: ValueError at harness.ethosu.pooling:2: "
        "'a\\nb' is not in list; report it to armdiff with this case: it says nothing about the toolchain"
    )
    assert "\n" not in str(OwnFault(ValueError("two\nlines"), "on it"))
