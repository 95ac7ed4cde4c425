"""The corpus on the installed release line: as recorded, and its bugs with all corrections and with each by itself.

Every case runs each way once, one after the other in a fork of this process, as in a worker; another fork goes on
behind what ends it. The tests below share the results. A certificate shows its correction by itself and with the
others, and is of the correction as it is (``tests/unit``); here the first entry of each shows that they still go
together, and each without a certificate is shown by itself. Any other bug of Vela is shown by its smallest program
alone; the nightly replays the whole corpus. No entry's bug is told by a probe, so none runs.
"""

import datetime
import json
import shutil
from functools import partial
from pathlib import Path

import msgspec
import pytest

from harness.campaign.replaying import held_against_status
from harness.campaign.summary import counted
from harness.case.reading import read_case
from harness.compat.releases import installed, release_line
from harness.compat.warm.collecting import between_cases
from harness.compat.warm.stage_cache import GraphCache, WorkerCache
from harness.corrections import chosen, corrections
from harness.corrections.applying import applied
from harness.reports.bugs.smallest import TOSA
from harness.tosa.engine import Plan, run
from harness.tosa.translating import from_flatbuffer
from harness.triage.corpus import beside_entry, default_corpus, entries, with_corrections
from harness.triage.known import shown_kind
from harness.workers.case_run import run_task
from harness.workers.protocol import CaseResult, Task
from harness.workers.reached import watched
from tests.forked import Forked, in_forks

RELEASE = installed().get("executorch", "")
NEEDED = [name for name, item in corrections().items() if item.for_release(RELEASE)]
CERTIFIED = {file.stem for file in (default_corpus() or Path()).glob(f"certificates/{release_line()}/*.json")}
STOCK, ALL = (), ("all",)

pytestmark = pytest.mark.skipif(release_line() is None, reason="no release line of the table is installed")


def corpus():
    """Entries whose cases are lowered here."""
    return [entry for entry in entries([default_corpus()]) if corrected(entry) or not entry.status.fingerprints]


def programs():
    """The others, of which the smallest TOSA program is compiled."""
    lowered = {entry.name for entry in corpus()}
    return [entry for entry in entries([default_corpus()]) if entry.name not in lowered]


def task(entry, names):
    """One run: a finding that does not show again has no second run that would forgive it."""
    return Task(case=str(entry.folder / "case.json"), corrections=names, confirm=False, probes="none")


@pytest.fixture(scope="module")
def replayed(first_cases):
    """(entry, corrections) -> result."""
    pairs = [(entry, names) for entry in corpus() for names in (STOCK, *corrected(entry))]
    for names in dict.fromkeys(names for _, names in pairs):  # what is compiled of a correction would be with each
        with applied(chosen(names)):
            pass
    answers = zip(corpus(), in_forks([partial(each_way, entry) for entry in corpus()]), strict=True)
    made = {(entry.name, names): result for entry, answer in answers for names, result in read(entry, answer)}
    with Forked() as pool:  # what died
        left = [(entry, names) for entry, names in pairs if (entry.name, names) not in made]
        results = pool.run([task(*pair) for pair in left])
        return made | {(entry.name, names): result for (entry, names), result in zip(left, results, strict=True)}


def each_way(entry):
    """Encoded results. Corrected runs take the stages of the stock run that come before what they change."""
    cache, results = GraphCache(), []
    with watched(cache) as reached:
        results.append(run_task(task(entry, STOCK), nobody, Stages(cache)))
    for names in corrected(entry):
        with applied(chosen(names)):
            results.append(run_task(task(entry, names), nobody, Stages(reached.stages(names))))
    between_cases()
    return msgspec.json.encode(results)


def read(entry, answer):
    """Pairs of corrections and result; none if the fork ended."""
    results = msgspec.json.decode(answer, type=list[CaseResult]) if answer else []
    return zip([STOCK, *corrected(entry)], results, strict=True) if results else ()


class Stages(WorkerCache):
    """Has one run's stages."""

    def __init__(self, stages):
        self.of_run = stages

    def stages(self, case, takes, corrections=()):
        return self.of_run


def nobody(_):
    """Nobody is told of stages."""


def corrected(entry):
    """How an entry runs besides stock."""
    mended = [name for name in NEEDED if entry.name in corrections()[name].entries]
    first = [ALL] if entry.name in firsts() else []
    beside = [names] if (names := beside_entry(entry.folder)) else []
    return [*first, *((name,) for name in mended if name not in CERTIFIED), *beside]


def firsts():
    """The first entry of each correction."""
    return {corrections()[name].entries[0] for name in NEEDED}


def told(entry, result):
    """What a replay says of an entry."""
    result = msgspec.structs.replace(result, findings=tuple(counted(result.findings, strict=False)))
    return held_against_status(entry, result, datetime.date.today())


@pytest.mark.parametrize("names", [STOCK, pytest.param(ALL, marks=pytest.mark.skipif(not NEEDED, reason="none"))])
def test_every_entry_does_what_its_status_says(names, replayed):
    known = with_corrections(corpus(), chosen(names))
    rows = [told(entry, replayed[entry.name, names]) for entry in known if (entry.name, names) in replayed]
    assert [(row.entry, row.outcome, row.what) for row in rows if row.counts] == []
    assert {row.entry for row in rows} >= firsts()
    assert len(firsts()) > 40
    assert {row.entry for row in rows if row.outcome == "fixed"} >= (firsts() if names else set())


@pytest.mark.skipif(release_line() != "default", reason="the programs are of the default release line's Vela")
@pytest.mark.parametrize("entry", programs(), ids=lambda entry: entry.name)
def test_the_smallest_program_of_a_bug_of_vela_shows_it(entry):
    assert entry.status.package == "ethos-u-vela"
    kind = entry.status.fingerprints[0].partition(":")[0]
    program = from_flatbuffer((entry.folder / TOSA).read_bytes())
    accelerator = read_case(entry.folder).target
    results = run(Plan(lambda _: (accelerator, [program]), most=1))
    assert kind in {shown_kind(item) for result in results for item in result.findings}


@pytest.mark.parametrize("name", [name for name in NEEDED if name not in CERTIFIED])
def test_a_correction_by_itself_removes_its_bug(name, replayed):
    known = with_corrections(corpus(), (corrections()[name],))
    for entry in known:
        if entry.name not in corrections()[name].entries:
            continue
        result = replayed[entry.name, (name,)]
        assert (result.problem, result.invalid) == (None, None)
        found = [
            item
            for item in result.findings
            if not item.information and item.bucket not in entry.status.lines["default"].other
        ]
        assert [item.message for item in found if not any(other.knows(item) for other in known)] == []


@pytest.mark.skipif(RELEASE != "1.5.1", reason="they are of executorch 1.5.1")
@pytest.mark.parametrize("entry", [item for item in corpus() if beside_entry(item.folder)], ids=lambda item: item.name)
def test_a_correction_beside_an_entry_ends_its_bug(entry, replayed):
    own = {entry.expected.bucket, *entry.expected.also}
    for names, shows in ((STOCK, True), (beside_entry(entry.folder), False)):
        result = replayed[entry.name, names]
        assert (result.problem, result.invalid) == (None, None)
        assert bool(own & {item.bucket for item in result.findings}) is shows


@pytest.mark.skipif(release_line() != "default", reason="the bug is of the default release line")
def test_the_verb_replays_entries_stock_and_corrected(tmp_path, armdiff_here):
    folders = default_corpus() / "seeds" / "001-conv-relu-cat", default_corpus() / "found" / "neg-ignores-scale"
    for words, outcome in (((), "reproduces"), (("--correction", "all"), "fixed")):
        result = armdiff_here("replay", *folders, "--jobs", "1", *words, "--json", "replay.json", cwd=tmp_path)
        rows = json.loads((tmp_path / "replay.json").read_text())["entries"]
        assert [(row["entry"], row["outcome"], row["counts"]) for row in rows] == [
            (folder.name, outcome, False) for folder in folders
        ]
        assert result.exit_code == 0
        assert "2 entries on release line default" in result.stdout


@pytest.mark.skipif(release_line() != "default", reason="the bug is of the default release line")
def test_a_case_shows_its_known_bug_and_nothing_once_that_is_corrected(tmp_path, armdiff_here):
    file = shutil.copy(default_corpus() / "found" / "neg-ignores-scale" / "case.json", tmp_path / "colleague.json")
    stock = armdiff_here("replay", file, "-v", "--jobs", "1", "--json", "stock.json", cwd=tmp_path)
    assert stock.exit_code == 0, stock.output
    assert "known: corpus entry neg-ignores-scale; correction neg-rescaled alone takes it away\n" in stock.stdout
    assert f"        replay: armdiff replay {file}\n" in stock.stdout
    data = json.loads((tmp_path / "stock.json").read_text())
    assert {item["known"] for item in data["findings"] if item["oracle"] == "numeric"} == {True}
    corrected = armdiff_here("replay", file, "--jobs", "1", "--correction", "neg-rescaled", "--json", "-", cwd=tmp_path)
    data = json.loads(corrected.stdout)
    assert (corrected.exit_code, data["findings"], data["cases"]) == (0, [], 1)
