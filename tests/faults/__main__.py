"""``python -m tests.faults [name…]``: print the kill table; exit status 1 if a fault is missed."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.table import Table

from tests.faults.kill_table import Row, row
from tests.faults.plant import FAULTS


def main(names: list[str]) -> int:
    """Compute the rows of all faults, or of those named, and print them."""
    progress, console = Console(stderr=True), Console(width=None if sys.stdout.isatty() else 240)
    unknown = sorted(set(names) - {fault.name for fault in FAULTS})
    if unknown:
        progress.print(f"no such fault: {', '.join(unknown)}; known: {', '.join(fault.name for fault in FAULTS)}")
        return 2
    rows = []
    for fault in FAULTS:
        if not names or fault.name in names:
            rows.append(row(fault))
            progress.print(f"{fault.name}: {rows[-1].verdict}", highlight=False)
    console.print(_table(rows), highlight=False)
    console.print(_totals(rows), highlight=False)
    return 0 if all(item.own for item in rows) else 1


def _table(rows: list[Row]) -> Table:
    table = Table("fault", "stands for", "own oracle: kind", "fired", "blamed", "to be blamed", "verdict")
    for item in rows:
        fault = item.fault
        table.add_row(
            fault.name,
            fault.stands_for,
            f"{fault.oracle}: {fault.kind}",
            item.fired or "nothing",
            item.blamed or "-",
            fault.blame or "-",
            item.verdict,
        )
    return table


def _totals(rows: list[Row]) -> str:
    caught = sum(item.own is not None for item in rows)
    blamed = [item.blame_right for item in rows if item.fault.blame]
    twins = [item for item in rows if item.clean]
    lines = [
        f"caught by their own oracle: {caught}/{len(rows)}",
        f"blame right: {sum(blamed)}/{len(blamed)}",
        f"clean twins with findings: {len(twins)}",
    ]
    lines += [
        f"  {item.fault.name}: " + "; ".join(f"{found.oracle}: {found.kind}" for found in item.clean) for item in twins
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
