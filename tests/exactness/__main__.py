"""``python -m tests.exactness --cache DIR``: print how exact the Ethos-U model is, run it from the repository's root.

Programs of single operators are built and compiled here; delegates of generated graphs and of the
corpus are lowered once into the cache (``--delegates N``, minutes) and found there afterwards. ``--source conformance``
takes the programs that Arm's conformance generator builds.
Exit status 1 if anything is not exact that ``explained`` does not explain.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from tests.children import Death, spread
from tests.exactness import conformance, dumping, table
from tests.exactness.comparing import RAISED, Verdict, judge
from tests.exactness.configurations import TARGETS, configuration_for
from tests.exactness.preparing import Job, compiled_key, opened, prepare, reference_key
from tests.exactness.program import Program
from tests.exactness.programs import single_programs
from tests.exactness.store import Compiled, Reference, Store


def main() -> int:
    """Parse, prepare, compare, print."""
    options = _options()
    with opened(options.cache) as store:
        jobs = _jobs(options, store)
        prepare(jobs, store, options.jobs, announce)
        if options.dump is not None:
            for program, configuration in jobs:
                dumping.dump(program, configuration, store, options.dump)
        verdicts = compare(jobs, store, options.jobs)
    sys.stdout.write("\n".join(table.lines(verdicts, operators=not options.only)) + "\n")
    if options.json:
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(table.data(verdicts)), indent=1))
    return 1 if table.unexplained(verdicts) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.exactness", description=__doc__)
    parser.add_argument("--targets", default="ethos-u55-128,ethos-u85-256", help="comma-separated, or 'all'")
    parser.add_argument("--source", choices=("single", "delegates", "all", "conformance"), default="all")
    parser.add_argument("--limit", type=int, help="at most this many programs a target and group, spread over all")
    parser.add_argument("--delegates", type=int, default=0, help="lower graphs until there are N a family and width")
    parser.add_argument("--operators", default="", help="of --source conformance: the generator's --filter")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="programs whose names match a pattern, or one of several with commas between")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--cache", type=Path, help="folder for compiled programs and reference results, kept")
    parser.add_argument("--dump", type=Path, help="write .tosa, .npz, inputs and outputs of every program to DIR/NAME")
    parser.add_argument("--json", type=Path, help="write every verdict to this file")
    options = parser.parse_args()
    options.targets = list(TARGETS) if options.targets == "all" else options.targets.split(",")
    unknown = set(options.targets) - set(TARGETS)
    if unknown:
        parser.error(f"unknown target {sorted(unknown)}; use some of {', '.join(TARGETS)}")
    return options


def _jobs(options: argparse.Namespace, store: Store) -> list[Job]:
    jobs: list[Job] = []
    common = _common(options, store)
    for target in options.targets:
        for programs in (*common, *_delegates(options, store, target)):
            chosen = [item for item in programs if _wanted(item.name, options.only)]
            jobs += [(item, configuration_for(item.name, target)) for item in _limited(chosen, options.limit)]
    return jobs


def _common(options: argparse.Namespace, store: Store) -> list[list[Program]]:
    """Groups of programs that are the same for every target."""
    if options.source == "conformance":
        found: dict[str, list[Program]] = defaultdict(list)
        for program in conformance.programs(store.folder, announce, options.operators):
            found[program.group].append(program)
        return [found[group] for group in sorted(found)]
    return [list(single_programs(options.seed))] if options.source != "delegates" else []


def _delegates(options: argparse.Namespace, store: Store, target: str) -> list[list[Program]]:
    if options.source not in ("delegates", "all"):
        return []
    from tests.exactness import delegates

    return delegates.programs(store, target, options.delegates, options.seed, options.jobs, announce)


def _wanted(name: str, patterns: str | None) -> bool:
    return patterns is None or any(fnmatchcase(name, pattern) for pattern in patterns.split(","))


def _limited(programs: list[Program], limit: int | None) -> list[Program]:
    if limit is None or len(programs) <= limit:
        return programs
    return [programs[index * len(programs) // limit] for index in range(limit)]


def compare(jobs: list[Job], store: Store, workers: int) -> list[Verdict]:
    """Verdicts of prepared jobs, in order."""

    def work(number: int) -> object:
        return msgspec.to_builtins(_judged(jobs[number], store))

    answers: dict[int, Verdict] = {}
    started = time.monotonic()
    for number, answer in spread(len(jobs), work, workers):
        program, configuration = jobs[number]
        if isinstance(answer, Death):
            target = configuration.accelerator
            died = f"the model's process ended: {answer.how}"
            answers[number] = Verdict(
                program.name, program.group, target, str(configuration), program.operators, RAISED, died
            )
        else:
            answers[number] = msgspec.convert(answer, Verdict)
        if len(answers) % 500 == 0 or len(answers) == len(jobs):
            announce(f"{len(answers)} of {len(jobs)} compared, {time.monotonic() - started:.0f} s")
    return [answers[number] for number in range(len(jobs))]


def _judged(job: Job, store: Store) -> Verdict:
    program, configuration = job
    compiled = store.load(compiled_key(program, configuration), Compiled)
    reference = store.load(reference_key(program), Reference)
    assert compiled is not None
    assert reference is not None
    return judge(program, str(configuration), configuration.accelerator, compiled, reference)


def announce(line: str) -> None:
    """Progress goes to standard error."""
    sys.stderr.write(line + "\n")


if __name__ == "__main__":
    sys.exit(main())
