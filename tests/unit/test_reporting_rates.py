"""How often operators and pairs fail: in the graphs whose findings depend on them, new ones apart."""

import pytest

from harness.reports.reporting import make_report
from harness.reports.reporting.failure_rates import at_least
from tests.unit.reporting_runs import TARGETS, chain_case, entry, finding, join_case, make_run


def rates(folder, cases, corpus=()):
    return make_report(make_run(folder, cases, targets=TARGETS[:1]), corpus, None).coverage.failures


def test_an_operator_fails_where_the_wrong_output_depends_on_it(tmp_path):
    wrong = finding(chain=("split", "cat"))
    cases = [(join_case(), {"findings": [wrong]}), (chain_case("relu", "tanh"), {}), (chain_case("relu"), {})]
    found = rates(tmp_path, cases)
    assert (found.graphs, found.failing, found.clean) == (3, 1, 2)  # tanh stands beside the wrong output
    assert [(rate.name, rate.failing, rate.graphs) for rate in found.operators] == [("cat", 1, 1), ("split", 1, 1)]
    assert [(rate.name, rate.share) for rate in found.pairs] == [("split → cat", 1.0)]
    assert found.clean_pairs == 1


def test_known_findings_fail_and_are_not_new(tmp_path):
    known = finding(chain=("relu",))
    cases = [(chain_case("relu"), {"findings": [known]}), (chain_case("relu", "abs"), {"findings": [finding("crash")]})]
    (rate,) = rates(tmp_path, cases, [entry("e", known)]).operators
    assert (rate.failing, rate.new, rate.graphs) == (2, 1, 2)


def test_graphs_that_are_no_test_do_not_count(tmp_path):
    assert rates(tmp_path, [(chain_case("relu"), {"invalid": "no", "findings": []})]).graphs == 0


def test_one_of_one_says_less_than_thirty_of_forty(tmp_path):
    assert at_least(1, 1) < at_least(30, 40) < 30 / 40
    assert at_least(0, 5) == 0.0
    assert at_least(2, 2) == pytest.approx(0.342, abs=0.001)
