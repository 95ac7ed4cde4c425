"""What a sweep adds up, and which variants it hands to the full pipeline."""

from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from harness.campaign.breadth.choosing import CONFIRMED, Sweep
from harness.case.case import encode_case
from harness.cli.command import main
from harness.triage.findings import Finding
from harness.workers.protocol import CaseResult, Swept, SweptCase
from tests.integration.conftest import linear_case


def finding(bucket):
    return Finding(
        bucket=bucket, oracle="qparams", kind="k", target="TOSA-1.0+INT", stage="lower", message="m", case="c"
    )


def swept(*rows):
    """Rows are (path, buckets…)."""
    return Swept(
        cases=tuple(SweptCase(case=path, findings=tuple(map(finding, found))) for path, *found in rows), edge_programs=1
    )


def test_one_variant_a_bucket_and_graph_is_confirmed():
    sweep = Sweep()
    assert sweep.add(swept(("a",), ("b", "one"), ("c", "one", "two"), ("d", "two"))) == ("b", "c")
    assert sweep.suspected == {"one": 2, "two": 2}
    assert (sweep.graphs, sweep.variants, sweep.edge_programs) == (1, 4, 1)


def test_a_bucket_is_confirmed_on_few_graphs():
    sweep = Sweep()
    wanted = [sweep.add(swept((str(place), "one"))) for place in range(CONFIRMED + 2)]
    assert wanted == [(str(place),) for place in range(CONFIRMED)] + [(), ()]


def test_what_the_corpus_knows_is_counted_and_not_run():
    knows = SimpleNamespace(knows=lambda item: item.bucket == "one")
    sweep = Sweep([knows])
    assert sweep.add(swept(("a", "one"), ("b", "one", "two"))) == ("b",)
    assert (sweep.known, sweep.suspected) == ({"one": 2}, {"two": 1})


def test_what_the_full_pipeline_does_not_show_is_told():
    sweep = Sweep()
    sweep.add(swept(("a", "one", "two")))
    sweep.confirm(CaseResult(case="a", findings=(finding("two"), finding("three"))))
    assert (sweep.confirmed, sweep.refuted) == ({"two"}, ("one",))


def test_graphs_that_are_no_test_and_problems_are_kept_apart():
    sweep = Sweep()
    assert sweep.add(Swept(invalid="fails in float eager")) == ()
    assert sweep.add(Swept(problem="a.json: $.graph is missing; …")) == ()
    assert (sweep.graphs, sweep.invalid, sweep.problems) == (0, 1, ["a.json: $.graph is missing; …"])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--target", "ethos-u55-128"], "ethos-u55-128 is no TOSA target with quantization; use TOSA-1.0+INT"),
        (["--target", "TOSA-1.0+FP"], "is no TOSA target with quantization"),
        (["case.json"], "is for ethos-u55-128, not TOSA-1.0+INT"),
    ],
)
def test_what_cannot_be_swept_is_one_line(words, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("harness.cli.sweep.need_environment", lambda: None)
    (tmp_path / "case.json").write_bytes(encode_case(linear_case("ethos-u55-128")))
    result = CliRunner().invoke(main, ["sweep", *words])
    assert result.exit_code == 2
    assert told in result.output
