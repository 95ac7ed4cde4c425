"""Probes on real lowerings: clean cases pass (``tests/faults`` plants what each must see), the schedule is kept."""

from dataclasses import replace

import pytest
from executorch.backends.arm.ethosu import backend as ethosu_backend

from harness.pipeline.lowering import StageClock
from harness.pipeline.probes.results import Pieces, Repeated, Skipped, TwinRun
from harness.triage.unjudged import unjudged
from harness.workers.observing import Options, judge, observe
from tests.integration.conftest import node, sigmoid_case, uniform
from tests.integration.probe_cases import conv_case, deep_case, join_case, rows_case


def seen(case):
    return observe(case, StageClock(), Options(probes="all"))


@pytest.mark.parametrize(
    ("case", "relation"),
    [
        (join_case(), "order of cat"),
        (conv_case(), "channel rotation"),
        (conv_case(recipe="a8w8,per-tensor"), "channel rotation"),
        (conv_case(recipe="a16w8"), "channel rotation"),
        (rows_case("ethos-u85-256"), "batch split"),
    ],
)
def test_probes_of_a_clean_case_give_nothing(case, relation, monkeypatch):
    given, compiler = set(), ethosu_backend.vela_compile
    monkeypatch.setattr(
        ethosu_backend, "vela_compile", lambda tosa, *a, **k: given.add(tosa) or compiler(tosa, *a, **k)
    )
    found = seen(case)
    twin = found.probes["metamorphic"]
    assert isinstance(twin, TwinRun), twin
    assert twin.relation == relation
    assert len(twin.inputs) == len(twin.outputs) > 0
    assert isinstance(found.probes["deterministic"], Repeated)
    assert isinstance(found.probes["requantize"], Repeated)
    assert judge(found) == []
    assert len(given) == case.target.startswith("ethos-u"), "Vela compiles the case, and no twin of it"


@pytest.mark.parametrize("recipe", ["a8w8", "a8w8,qmin=-127"])
def test_a_deep_graph_is_judged_piece_by_piece(recipe):
    """Nothing of its output would be judged; a lost qmin is no matter of a piece."""
    found = observe(deep_case(recipe=recipe), StageClock(), Options(probes="judging"))
    pieces = found.probes["inside"]
    assert isinstance(pieces, Pieces), pieces
    assert {operator for _, operator in pieces.cuts} == {"aten.linear"}
    assert list(unjudged(replace(found, probes={}), ()))
    assert list(unjudged(found, ())) == []
    assert [item for item in judge(found) if item.oracle == "inside"] == []


def test_a_graph_whose_outputs_are_judged_is_not_lowered_again():
    clock = StageClock()
    found = observe(sigmoid_case(), clock, Options(probes="judging"))
    assert found.probes["inside"] == Skipped("the outputs are judged without it")
    assert "run" not in clock.seconds


def test_without_probes_only_the_free_look_up_is_there(observed):
    assert set(observed(sigmoid_case()).probes) == {"delegation"}


def test_what_the_recipe_leaves_float_is_no_information(observed):
    from harness.case.case import Case, Graph, Input

    case = Case(
        graph=Graph(
            inputs=(Input(name="x", shape=(1, 4)),),
            nodes=(node("n0", "sigmoid", "x"), node("n1", "tanh", "n0"), node("n2", "sigmoid", "n1")),
            outputs=("n2",),
        ),
        calibration={"x": uniform()},
        recipe="a8w8,float=n1",
    )
    found = observed(case)
    [fallen] = found.probes["delegation"]
    assert (fallen.operator, fallen.listed, fallen.float_by_recipe) == ("aten.tanh.default", "yes", True)
    assert fallen.reason
    assert not [item for item in judge(found) if item.oracle == "delegation"]


def test_a_release_without_tables_or_reasons_answers_unknown(monkeypatch):
    from types import SimpleNamespace

    from executorch.backends.arm.tosa import TosaSpecification

    from harness.compat import support

    u55, plain = (
        SimpleNamespace(tosa_spec=TosaSpecification.create_from_string(name))
        for name in ("TOSA-1.0+INT+u55", "TOSA-1.0+INT")
    )
    assert support.listed("aten.gt.Tensor", plain) == "yes"
    assert support.listed("aten.gt.Tensor", u55) == "no"
    assert support.listed("aten.sort.default", plain) == "no"
    assert support.listed("aten.relu.default", object()) == "unknown"
    monkeypatch.setattr(support, "_tables", {})
    monkeypatch.setattr(support, "_SUPPORT", "executorch.no_such_package")
    assert support.listed("aten.relu.default", plain) == "unknown"
