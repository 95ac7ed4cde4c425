"""``python -m tests.networks``: real networks, each judged on each target by every leg and oracle.

Each network is checked by an ``armdiff check`` of its own, so that its memory can be told, and a network that ends its
process costs nobody else anything. The JSON of each is kept in ``--out``; a network that has one there is not checked
again. The table says what became of each: exit status 1 if anything is new, or a network could not be judged at all.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness.case.memory import most_held
from harness.case.target import DEFAULT_TARGETS
from tests.networks.zoo import NETWORKS

ROOT = Path(__file__).parents[2]
FILE = """\
from tests.networks.zoo import built

model, calibration = built({name!r})
"""
POLL = 0.2
"""Seconds between two looks at a network's processes."""
STATES = ("new", "resembling", "known")
FINDING = ("state", "bucket", "target", "entry", "message", "case")
COLUMNS = ("network", "operators", "seconds", "memory", *STATES, "what was not judged")


def main() -> int:
    """Check, and print a table."""
    options = _options()
    options.out.mkdir(parents=True, exist_ok=True)
    rows = []
    for name in options.networks or NETWORKS:
        told = options.out / f"{name}.json"
        if not told.exists():
            told.write_text(json.dumps(_checked(name, options)))
        rows.append(json.loads(told.read_text()))
        sys.stderr.write(f"{' | '.join(_cells(rows[-1]))}\n")
        sys.stderr.flush()
    sys.stdout.write("\n".join(lines(rows)) + "\n")
    return int(any(row["problem"] or _states(row).keys() & {"new", "resembling"} for row in rows))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.networks", description=__doc__)
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help=f"of {', '.join(NETWORKS)}; default: all")
    parser.add_argument("--target", action="append", help="repeatable; default: the three default targets")
    parser.add_argument("--recipe", default="a8w8")
    parser.add_argument("--out", type=Path, default=Path("armdiff-out/networks"))
    options = parser.parse_args()
    for name in options.networks:
        if name not in NETWORKS:
            parser.error(f"unknown network {name!r}; use one of {', '.join(NETWORKS)}")
    return options


def _checked(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """What ``armdiff check`` says of a network, with what it cost."""
    file, result = options.out / f"{name}.py", options.out / f"{name}-check.json"
    file.write_text(FILE.format(name=name))
    words = ["check", str(file), "--recipe", options.recipe, "--jobs", "1", "--probes", "default", "--allow-known"]
    words += ["--out", str(options.out), "--json", str(result)]
    for target in options.target or DEFAULT_TARGETS:
        words += ["--target", target]
    paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    started = time.monotonic()
    command = [sys.executable, "-m", "harness.cli.__main__", *words]
    log = options.out / f"{name}.log"
    with log.open("w") as stream:
        environment = {**os.environ, "PYTHONPATH": paths}
        process = subprocess.Popen(command, env=environment, stdout=stream, stderr=subprocess.STDOUT)
    memory = _peak_of(process)
    said = log.read_text()
    told = json.loads(result.read_text()) if result.exists() else {}
    problem = "" if told and process.returncode in (0, 1) else said.strip().splitlines()[-1]
    return {
        "network": name,
        "seconds": round(time.monotonic() - started),
        "memory": memory,
        "problem": problem,
        "findings": [
            {key: item.get(key) for key in FINDING} for item in told.get("findings", ()) if not item["information"]
        ],
        "unjudged": told.get("unjudged", {}),
        "profiles": told.get("profiles", {}),
        "cases": told.get("cases", 0),
    }


def _peak_of(process: subprocess.Popen[bytes]) -> int:
    """Wait for the process: the most memory that it, a worker or a worker's fork ever held, in MiB.

    What the kernel says of children leaves out a fork that nobody waited for.
    """
    most = 0
    while process.poll() is None:
        most = max(most, *map(most_held, _family(process.pid)))
        time.sleep(POLL)
    return most >> 20


def _family(pid: int) -> list[int]:
    """A process and all that it started, directly or not."""
    found = [pid]
    for member in found:
        with suppress(OSError):  # it is gone
            for task in Path(f"/proc/{member}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
    return found


def _states(row: Mapping[str, Any]) -> Counter[str]:
    """Bugs of a network by their state: of known ones each entry once, of others each bucket."""
    return Counter(state for state, _ in {(item["state"], item["entry"] or item["bucket"]) for item in row["findings"]})


def _cells(row: Mapping[str, Any]) -> list[str]:
    states = _states(row)
    operators = next(
        (
            "/".join(map(str, (item["operators"][0], sum(item["operators"]))))
            for item in row["profiles"].values()
            if item
        ),
        "-",
    )
    gaps = row["problem"] or "; ".join(_gaps(row["unjudged"])) or "-"
    memory = f"{row['memory']} MiB"
    return [
        row["network"],
        operators,
        f"{row['seconds']} s",
        memory,
        *(str(states[name] or "-") for name in STATES),
        gaps,
    ]


def _gaps(unjudged: Mapping[str, Any]) -> Iterator[str]:
    for name, item in unjudged.items():
        yield f"{name}: {item['outputs']} of {item['cases']} cases"


def lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The table, in Markdown."""
    cells = [COLUMNS, tuple("---" for _ in COLUMNS), *map(_cells, rows)]
    return [f"| {' | '.join(row)} |" for row in cells]


if __name__ == "__main__":
    sys.exit(main())
