"""Certificates: four corrections that are wrong on purpose are refused, each for its own reason; a right one is not."""

from pathlib import Path

import pytest

from harness.campaign.certify.certifying import Certifier
from harness.campaign.certify.rows import Plan
from harness.compat.releases import installed
from harness.corrections import find_correction
from harness.triage.corpus import default_corpus, entries
from harness.workers.pool import Pool
from tests.forked import forked_workers

WRONG = Path(__file__).parent / "wrong"
pytestmark = pytest.mark.skipif(installed().get("executorch") != "1.5.1", reason="written for executorch 1.5.1")


TARGETS = ("TOSA-1.0+INT", "ethos-u55-128")


@pytest.fixture(scope="module")
def pool(first_cases):
    """Workers; what is refused here is so on one target of each kind, and a third one costs as much."""
    with pytest.MonkeyPatch.context() as fewer, forked_workers(), Pool(2) as workers:
        for module in ("certifying", "rows"):
            fewer.setattr(f"harness.campaign.certify.{module}.DEFAULT_TARGETS", TARGETS)
        yield workers


def certificate(word, pool, folder, *, graphs=5, seed=0, also=()):
    correction = find_correction(word)
    names = (*correction.entries, *also)
    corpus = [entry for entry in entries([default_corpus()]) if entry.name in names]
    plan = Plan((correction,), corpus, graphs, seed, folder)
    [made] = Certifier(plan, pool, lambda line: None).certificates()
    return made


def refused(name, pool, folder, **words):
    made = certificate(str(WRONG / f"{name}.py"), pool, folder, **words)
    assert made.verdict == "refused", made.why
    assert any(row.bug for row in made.shown)
    return made


def kinds(findings):
    return {"/".join(bucket.split("/")[1:3]) for bucket in findings}


def test_dropping_the_clamp_is_refused_on_the_bug_s_own_case(pool, tmp_path):
    made = refused("drops_clamp", pool, tmp_path)
    assert made.why.startswith("corrected: ")
    assert {"numeric/outside-rounding", "qparams/clamp-lost"} <= kinds(made.shown[0].corrected)


def test_widening_the_dtype_without_telling_the_parent_is_refused(pool, tmp_path):
    made = refused("widens_dtype", pool, tmp_path)
    assert made.why.startswith("corrected: ")
    assert "buffers/output-dtype-differs" in kinds(made.shown[0].corrected)


@pytest.mark.parametrize(("name", "seed", "graphs"), [("skips_dequantizing", 2, 5), ("swaps_list_order", 12, 12)])
def test_what_mends_its_own_case_and_breaks_others_is_refused_with_a_small_counterexample(
    name, seed, graphs, pool, tmp_path
):
    """Seeds of which so many graphs are enough."""
    made = refused(name, pool, tmp_path, seed=seed, graphs=graphs)
    assert made.why.startswith(("nothing else moved: ", "all corrections together: "))
    assert kinds(made.shown[0].corrected) == set()
    found = made.counterexample
    assert found is not None
    assert set(found.corrected) - set(found.stock), "what is counted against it is what stock does not show"
    assert found.nodes <= 3
    assert Path(found.case).exists()
