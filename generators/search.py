"""Hypothesis' own search over cases: shrink a graph that a campaign drew, and remember small ones in a database.

A campaign draws its graphs with Hypothesis and runs them elsewhere. To shrink one, the short Hypothesis run that
drew it is made again (the same seed gives the same examples), now with a test that fails on that graph: with the
exception class of its bucket, so that Hypothesis keeps buckets apart. It shrinks the choices that were drawn, and
so finds what no cut of a finished graph can reach (another operator in the same place, say).

What a *database* holds are such shrunk choices. ``stored`` returns the cases that they stand for today, to be run
before any new graph. Databases are Hypothesis': a folder, a Redis server, or a folder that is only read (a CI
artifact); several can be joined. One key serves all campaigns, so machines share what they found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from unittest import SkipTest

import hypothesis
from hypothesis import HealthCheck, Phase
from hypothesis.database import DirectoryBasedExampleDatabase, ExampleDatabase, MultiplexedDatabase, ReadOnlyDatabase

from generators.cases import RUN, cases, draw_block, graph_digest, run_seed
from generators.graphs import graphs
from harness.case.case import Case
from harness.case.errors import BadInput
from harness.case.target import DEFAULT_TARGETS
from harness.triage.buckets import BucketFailure, bucket_exception

READ_ONLY = "ro:"
_REDIS = "redis://"
_MOST_STORED = 200
"""Stored examples that a campaign begins with, at most."""

_ANY = (DEFAULT_TARGETS[0],)
"""Targets for draws of which only the graphs count."""


class OutOfTime(BaseException):
    """Raised by a judge whose time is over; no ``Exception``, which Hypothesis would take for a failure."""


Drawn = tuple[Case, ...]
"""A graph's cases, one a target."""


def database_at(places: Sequence[str]) -> ExampleDatabase:
    """A database from its places: ``DIR``, ``ro:DIR`` (only read) or ``redis://HOST:PORT/N``, joined.

    :raises BadInput: a folder to read from does not exist, or the client for Redis is not installed.
    """
    found = [_database_at(place) for place in places]
    return found[0] if len(found) == 1 else MultiplexedDatabase(*found)


def _database_at(place: str) -> ExampleDatabase:
    if place.startswith(READ_ONLY):
        folder = Path(place.removeprefix(READ_ONLY))
        if not folder.is_dir():
            raise BadInput(f"--database {place}", "is no folder", "unpack the artifact there, or leave it out")
        return ReadOnlyDatabase(DirectoryBasedExampleDatabase(folder))
    if place.startswith(_REDIS):
        try:
            from hypothesis.extra.redis import RedisExampleDatabase
            from redis import Redis
            from redis.exceptions import RedisError
        except ImportError:
            raise BadInput(f"--database {place}", "needs the package redis", "'pip install redis'") from None
        try:
            server = Redis.from_url(place, socket_connect_timeout=5)
            server.ping()
        except (RedisError, ValueError) as error:
            raise BadInput(f"--database {place}", f"does not answer ({error})", "start the server there") from None
        return RedisExampleDatabase(server)
    if (folder := Path(place)).exists() and not folder.is_dir():
        raise BadInput(f"--database {place}", "is a file", "give a folder; it is made if it is not there")
    return DirectoryBasedExampleDatabase(place)


def stored(database: ExampleDatabase, targets: Sequence[str]) -> list[Drawn]:
    """The cases that the database's examples stand for, no graph twice; the database is only read."""
    found: dict[str, Drawn] = {}

    def visit(drawn: Drawn) -> None:
        found.setdefault(graph_digest(drawn[0].graph), drawn)

    _search(visit, targets, ReadOnlyDatabase(database), [Phase.reuse], seed=0, examples=_MOST_STORED)
    return list(found.values())


def seed_of_run(graph: str, seed: int, blocks: int, count: int) -> int | None:
    """The seed of the Hypothesis run that drew a graph of a campaign, or None.

    :param graph: ``graph_digest`` of the graph.
    :param seed: the campaign's; ``blocks`` says how many blocks of ``count`` graphs it drew.
    """
    for block in range(blocks):
        if graph not in _digests(seed, block, count):
            continue
        for run in range(count + 1):
            found: list[Drawn] = []
            own = run_seed(seed, block, run)
            _search(found.append, _ANY, None, [Phase.generate], seed=own, examples=RUN)
            if any(graph_digest(drawn[0].graph) == graph for drawn in found):
                return own
    return None


@cache
def _digests(seed: int, block: int, count: int) -> frozenset[str]:
    """The graphs of a block, drawn once for all buckets of a campaign."""
    return frozenset(graph_digest(drawn[0].graph) for drawn in draw_block(seed, block, count, _ANY))


def shrunk(
    graph: str,
    seed: int,
    targets: Sequence[str],
    judge: Callable[[Drawn], str | None],
    database: ExampleDatabase | None = None,
) -> Drawn | None:
    """Let Hypothesis shrink a graph of a campaign; None if it does not show again.

    :param graph: ``graph_digest`` of the graph.
    :param seed: that of the run that drew it (``seed_of_run``).
    :param judge: the bucket that a graph's cases show, or None. It may raise ``OutOfTime``.
    :param database: where the smallest one is remembered.
    """
    reached = False
    verdicts: dict[str, str | None] = {}
    smallest: list[Drawn] = []

    def visit(drawn: Drawn) -> None:
        nonlocal reached
        digest = graph_digest(drawn[0].graph)
        reached = reached or digest == graph
        if not reached:
            return  # what the run drew before the graph is no part of the search
        key = "".join(str(case) for case in drawn)
        if key not in verdicts:  # Hypothesis asks again
            verdicts[key] = judge(drawn)
        bucket = verdicts[key]
        if bucket is not None:
            smallest[:] = [drawn]
            raise bucket_exception(bucket)(bucket)

    with suppress(BucketFailure, OutOfTime):  # Hypothesis runs the smallest one once more at the end
        _search(visit, targets, database, [Phase.generate, Phase.shrink], seed=seed, examples=RUN)
    return smallest[0] if smallest else None


def _search(
    visit: Callable[[Drawn], None],
    targets: Sequence[str],
    database: ExampleDatabase | None,
    phases: Sequence[Phase],
    *,
    seed: int,
    examples: int,
) -> None:
    """One Hypothesis run. The test is the same function for all, because its source is the database's key."""

    @hypothesis.settings(
        database=database,
        derandomize=False,  # the profile for CI machines has it, and then there is no database
        phases=phases,
        deadline=None,
        max_examples=examples,
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        print_blob=False,
        verbosity=hypothesis.Verbosity.quiet,
    )
    @hypothesis.seed(seed)  # below the settings: it takes the database out of those that it finds
    @hypothesis.given(cases(tuple(targets), graphs()))
    def case_search(drawn: Drawn) -> None:
        visit(drawn)

    with suppress(SkipTest):  # nothing was stored
        case_search()
