"""Whole domains: the corrected function is right at every point, and a wrong answer is seen."""

import pytest

from harness.campaign.certify.whole import Domain, ceil_pools, domains, nearest_resizes, unit_slices
from harness.campaign.certify.whole.going import compared, go_through
from harness.compat.releases import installed
from harness.corrections import corrections
from harness.workers.protocol import WholeTask

pytestmark = pytest.mark.skipif(installed().get("executorch") != "1.5.1", reason="uses corrections for 1.5.1")


NAMES = ("ceil-pool-crops-input", "nearest-resize-doubles-by-size", "unit-slice-keeps-order")


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Bounds within which a domain is gone through in a moment."""
    for module, bounds in (
        (ceil_pools, {"MOST_SIZE": 7, "MOST_KERNEL": 3, "MOST_STRIDE": 4}),
        (nearest_resizes, {"MOST_SIZE": 3, "MOST_FACTOR": 3, "MOST_PARTS": 4}),
        (unit_slices, {"MOST_AXES": 3, "MOST_ELEMENTS": 12}),
    ):
        for name, most in bounds.items():
            monkeypatch.setattr(module, name, most)


def test_every_domain_is_of_a_correction():
    assert {*domains()} == {*NAMES} <= {*corrections()}


@pytest.mark.parametrize("name", NAMES)
def test_the_installed_function_is_wrong_somewhere_and_the_corrected_one_nowhere(name):
    found = go_through(WholeTask(correction=name), lambda stage: None)
    assert found.points > 200
    assert found.wrong > 0
    assert (found.corrected_wrong, found.lost, found.first) == (0, 0, "")


def test_a_point_that_is_wrong_or_lost_speaks_against_the_correction():
    domain = Domain("c", "all of it", lambda: ["a", "b", "c", "d"], lambda: lambda point: None)
    left, right, wrong = b"\0\1\2"
    found = compared(domain, bytes([wrong, left, right, right]), bytes([right, wrong, left, right]))
    assert (found.points, found.wrong, found.corrected_wrong, found.lost, found.first) == (4, 1, 1, 1, "b")
    assert compared(domain, bytes([wrong, left, right, right]), bytes([left, left, right, right])).first == ""
