"""Every condition of the corpus holds at the places that are recorded for it, and at none of their siblings."""

import pytest

from harness.reports.bugs.places import read
from harness.triage.conditions import siblings
from harness.triage.corpus import default_corpus, entries
from harness.triage.known import KnownBug

ENTRIES = {entry.name: entry for entry in entries([default_corpus()]) if entry.status.conditions}
CONDITIONS = [(name, number) for name, entry in ENTRIES.items() for number in range(len(entry.status.conditions))]


@pytest.mark.parametrize(("name", "number"), CONDITIONS)
def test_a_condition_holds_at_a_recorded_place(name, number):
    condition = ENTRIES[name].status.conditions[number]
    assert any(condition.holds(place) for place in read(ENTRIES[name].folder))


@pytest.mark.parametrize(("name", "number"), CONDITIONS)
def test_a_condition_holds_at_no_sibling_of_its_places(name, number):
    condition = ENTRIES[name].status.conditions[number]
    places = [place for place in read(ENTRIES[name].folder) if condition.holds(place)]
    made = [(what, sibling) for place in places for what, sibling in siblings(condition, place)]
    assert made
    assert [what for what, sibling in made if condition.holds(sibling)] == []


@pytest.mark.parametrize("name", ENTRIES)
def test_every_recorded_place_is_explained(name):
    places = read(ENTRIES[name].folder)
    assert places
    assert [str(item) for item in places if not any(one.holds(item) for one in ENTRIES[name].status.conditions)] == []


def test_every_bug_can_be_proved():
    """An entry that neither a condition nor a correction can prove would stay resembling for ever."""
    bugs = [bug for entry in entries([default_corpus()]) if (bug := entry.bug) is not None]
    assert all(isinstance(bug, KnownBug) for bug in bugs)
    assert [bug.entry for bug in bugs if not bug.conditions and not bug.corrections] == []
