"""The pytest plugin: fuzz beside a project's tests, replay a corpus, check models in tests.

``pytest -n auto --armdiff-time 10m``
    adds one test a worker, each of which fuzzes a shard of its own for so long; new findings fail it. The tests
    are put where xdist's distribution starts them at once, each on another worker.
``pytest corpus/``
    replays corpus entries, one test each. A bug that is still there is an expected failure, with its title and
    the upstream issue as the reason; one that is gone, or another one, fails.
``def test_mine(armdiff_check): armdiff_check(model, calibration)``
    runs every leg and oracle on a model and fails on whatever is found, a known bug included. Whoever asks for it
    (``allow_known=True``, or ``--armdiff-allow-known`` for all tests) lets known bugs pass.

A test that passes although outputs could not be judged warns of it (``UnjudgedWarning``).
Neither torch nor executorch is imported in pytest's own process until ``armdiff_check`` is called; campaigns and
replays happen in armdiff's worker processes, which are started when a test first needs them.
"""

from __future__ import annotations

import datetime
import os
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from harness.triage.corpus import Entry
    from harness.triage.unjudged.counting import UnjudgedTally
    from harness.workers.pool import Pool

_POOL = pytest.StashKey["Pool"]()
DIST = "armdiff_dist"
"""Under this name xdist's workers are told how tests are distributed."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("armdiff", "fuzzing ExecuTorch's Arm backend")
    group.addoption("--armdiff-time", metavar="DURATION", help="Fuzz for so long on every worker, e.g. 10m.")
    group.addoption("--armdiff-max-examples", type=int, metavar="N", help="Graphs to draw, all workers together.")
    group.addoption("--armdiff-seed", type=int, default=0, metavar="S", help="Same seed, same graphs. Default: 0.")
    group.addoption("--armdiff-target", action="append", default=[], metavar="TARGET", help="Target, repeatable.")
    group.addoption("--armdiff-known", action="append", default=[], metavar="PATH", help="Known bugs, repeatable.")
    group.addoption(
        "--armdiff-allow-known", action="store_true", help="Let armdiff_check pass where every finding is a known bug."
    )
    group.addoption("--armdiff-out", default="armdiff-out/pytest", metavar="DIR", help="Folder for runs.")


# ---- campaigns ------------------------------------------------------------------------------------------------------


class _Shards(pytest.Collector):
    """Holds a shard's test; xdist keeps the tests of one collector together, so each shard has its own."""

    def collect(self) -> Iterable[pytest.Item]:
        return ()


class ShardItem(pytest.Item):
    """Fuzzes one shard."""

    def __init__(self, *, shard: tuple[int, int], **words: Any) -> None:
        super().__init__(**words)
        self.shard = shard
        self.add_marker("armdiff")

    def runtest(self) -> None:
        from harness.campaign.campaign import Options, run_campaign
        from harness.campaign.holding import hold
        from harness.campaign.run_folder import set_aside
        from harness.case.target import DEFAULT_TARGETS, parse_target
        from harness.case.wording import counted_as
        from harness.cli.options import read_seconds
        from harness.reports.listing import listing, verdict
        from harness.workers.pool import Pool

        option = self.config.option
        targets = tuple(dict.fromkeys(option.armdiff_target)) or DEFAULT_TARGETS
        for target in targets:
            parse_target(target, "--armdiff-target")
        index, count = self.shard
        options = Options(
            targets,
            option.armdiff_max_examples,
            read_seconds(None, None, option.armdiff_time),  # type: ignore[arg-type]
            option.armdiff_seed,
            shard=self.shard,
            out=Path(self.config.rootpath / option.armdiff_out) / f"{index}-of-{count}",
            steer=option.armdiff_max_examples is None,
        )
        hold(options.out)
        set_aside(options.out)
        corpus = _known(self.config)
        tally = run_campaign(options, corpus, lambda *_: None, workers=Pool)
        if tally.interrupted:
            raise KeyboardInterrupt
        lines = listing(tally)
        head = f"{counted_as(tally.graphs, 'graph')}, {counted_as(tally.cases, 'case')}"
        self.add_report_section("call", "armdiff", "\n".join([head, *lines]))
        if tally.stopped:
            pytest.fail(tally.stopped, pytrace=False)
        if tally.new:
            pytest.fail("\n".join([verdict(tally), *lines, f"everything is in {options.out}"]), pytrace=False)
        _warn_of(tally.unjudged)

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.config.rootpath, None, self.name


class EnvironmentItem(pytest.Item):
    """Passes if armdiff can run here.

    xdist gives a worker the next group of tests when it has two left or fewer, so a group whose first test takes
    minutes must have two behind it: otherwise the next shard would wait for this one.
    """

    def runtest(self) -> None:
        """The setup has looked."""


class CorpusItem(pytest.Item):
    """Passes if what is known can be read."""

    def runtest(self) -> None:
        _known(self.config)


def _known(config: pytest.Config) -> list[Entry]:
    from harness.triage.corpus import corpus_folders
    from harness.triage.given import known_entries

    return known_entries(corpus_folders(), [Path(item) for item in config.option.armdiff_known])


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell an xdist worker how its controller distributes."""
    node.workerinput[DIST] = node.config.option.dist


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.option.armdiff_time is None and config.option.armdiff_max_examples is None:
        return
    given = getattr(config, "workerinput", {})
    count, dist = int(given.get("workercount", 1)), str(given.get(DIST, "no"))
    shards = [_items_of(session, (index, count), dist) for index in range(1, count + 1)]
    total = len(items) + count
    step = {"load": max(total // count // 4, 2) if total >= 2 * count else 1, "worksteal": max(total // count, 1)}
    apart = step.get(dist, len(shards[0]))
    for place, found in enumerate(shards):
        items[place * apart : place * apart] = found


def _items_of(session: pytest.Session, shard: tuple[int, int], dist: str) -> list[pytest.Item]:
    """A shard's tests; where xdist distributes groups, they are one."""
    name = f"armdiff-{shard[0]}-of-{shard[1]}"
    group = f"@{name}" if dist == "loadgroup" else ""
    parent = _Shards.from_parent(session, name=name, nodeid=name)
    found: list[pytest.Item] = [ShardItem.from_parent(parent, name=f"fuzz{group}", shard=shard)]
    if dist in ("loadscope", "loadfile", "loadgroup"):
        found.append(EnvironmentItem.from_parent(parent, name=f"environment{group}"))
        found.append(CorpusItem.from_parent(parent, name=f"corpus{group}"))
    return found


# ---- the corpus -----------------------------------------------------------------------------------------------------


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.name == "status.toml" and (file_path.parent / "case.json").exists():
        return EntryFile.from_parent(parent, path=file_path)
    return None


class EntryFile(pytest.File):
    """A corpus entry's ``status.toml``."""

    def collect(self) -> Iterable[pytest.Item]:
        yield EntryItem.from_parent(self, name=self.path.parent.name)


class EntryItem(pytest.Item):
    """Replays one entry."""

    def runtest(self) -> None:
        from harness.campaign.replaying import held_against_status
        from harness.triage.corpus import read_entry
        from harness.triage.unjudged.counting import UnjudgedTally
        from harness.workers.protocol import Task

        entry = read_entry(self.path.parent)
        result = _pool(self.config).run_one(Task(case=str(entry.folder / "case.json")))
        row = held_against_status(entry, result, datetime.date.today())
        reason = ", ".join((f"{row.outcome}: {entry.status.title}", *entry.status.reports[:1]))
        unjudged = UnjudgedTally()
        unjudged.add(result.unjudged)
        if row.counts:
            pytest.fail(f"{row.outcome}, expected {row.expected} ({entry.status.title}): {row.what}", pytrace=False)
        if row.outcome in ("reproduces", "hidden"):
            pytest.xfail(reason)
        _warn_of(unjudged)

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, f"corpus entry {self.name}"


# ---- models ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def armdiff_check(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., None]:
    """``armdiff_check(model, calibration, inputs=None, target=…, recipe="a8w8", allow_known=False)``.

    Fails on whatever is found. ``calibration`` and ``inputs`` are lists of input tuples; ``target`` is one target or
    several. With ``allow_known`` findings that are proved to be known bugs pass.
    """

    def check(
        model: Any,
        calibration: Any,
        inputs: Any = None,
        *,
        target: str | Iterable[str] = "TOSA-1.0+INT",
        recipe: str = "a8w8",
        allow_known: bool = False,
    ) -> None:
        from harness.campaign.summary import Tally
        from harness.case.call_sites import read_call_sites
        from harness.case.errors import ArmdiffError
        from harness.case.memory import is_large
        from harness.case.reading import read_case
        from harness.case.target import parse_target
        from harness.reports.answer import Answer
        from harness.reports.linting import Subject
        from harness.triage.corpus import bugs_of
        from harness.workers.capture import capture_model
        from harness.workers.protocol import Task

        tally, subject, profiles = Tally(_known(request.config)), Subject(request.node.nodeid), {}
        targets = (target,) if isinstance(target, str) else tuple(target)
        for name in targets:
            spelled = recipe if parse_target(name).quantized else "float"
            names = {"model": model, "calibration": calibration, "inputs": inputs}
            try:
                captured = capture_model(names, "armdiff_check", tmp_path / name, name, spelled)
            except ArmdiffError as error:
                pytest.fail(str(error), pytrace=False)
            path = Path(captured.case)
            case = read_case(path)
            task = Task(case=captured.case, known=bugs_of(tally.corpus), apart=is_large(case), profile=True)
            result = _pool(request.config).run_one(task)
            tally.add(result)
            profiles[name] = result.profile
            subject = Subject(request.node.nodeid, case.graph, read_call_sites(path))
        trouble = [*tally.problems, *(f"the model {item.invalid}" for item in tally.invalid)]
        if trouble:
            pytest.fail(trouble[0], pytrace=False)
        allowed = allow_known or request.config.option.armdiff_allow_known
        answer = Answer(tally, subject, targets, profiles, allow_known=allowed)
        request.node.add_report_section("call", "armdiff", "\n".join(answer.lines("full")))
        if answer.fails:
            pytest.fail("\n".join(answer.lines("quiet")), pytrace=False)
        _warn_of(tally.unjudged)

    return check


class UnjudgedWarning(pytest.PytestWarning):
    """A test found nothing new, and could not judge everything."""


def _warn_of(unjudged: UnjudgedTally) -> None:
    """Say what was not judged, and why; nothing if all was."""
    from harness.triage.unjudged.counting import lines

    if phrase := unjudged.total.phrase:
        warnings.warn(UnjudgedWarning("\n".join([f"armdiff: nothing new; {phrase}", *lines(unjudged)])), stacklevel=2)


def _pool(config: pytest.Config) -> Pool:
    """The workers of this process, started when first asked for."""
    from harness.workers.pool import Pool

    if _POOL not in config.stash:
        pool = Pool(1).__enter__()
        config.stash[_POOL] = pool
        config.add_cleanup(lambda: pool.__exit__(None, None, None))
    return config.stash[_POOL]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "armdiff: a shard of an armdiff campaign")
    # Hypothesis would put its folder where pytest was started
    os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(config.rootpath / ".hypothesis"))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Say in one line what keeps armdiff's own tests from running."""
    if isinstance(item, (ShardItem, EnvironmentItem, CorpusItem, EntryItem)):
        from harness.case.errors import ArmdiffError
        from harness.cli.environment import need_environment

        try:
            need_environment()
        except ArmdiffError as error:
            pytest.fail(str(error), pytrace=False)
