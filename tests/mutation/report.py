"""The score as a table for people: kind of mutation against verdict, totals, an example of each reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from tests.mutation.explain import EQUIVALENT, NOT_EXERCISED, ROUNDING, UNJUDGED, UNSEEN
from tests.mutation.score import DIED, FAILED, NUMERIC, OUT_OF_RANGE, OUTPUTS, REJECTED, SEEN, Score, Verdict

_SHORT = {
    NUMERIC: "numeric",
    OUT_OF_RANGE: "out-rng",
    OUTPUTS: "outputs",
    REJECTED: "reject",
    FAILED: "fails",
    DIED: "died",
    ROUNDING: "ROUNDING",
    UNJUDGED: "UNJUDGED",
    NOT_EXERCISED: "NOT-EXER",
    EQUIVALENT: "EQUIV",
}


def lines(score: Score) -> Iterator[str]:
    """Table, totals, reasons with examples."""
    verdicts = score.verdicts
    yield "graphs drawn: " + ", ".join(f"{name} {count}" for name, count in score.drawn.most_common())
    yield ""
    yield "seen by (small letters), unseen because (capitals)"
    yield _row("kind", [*(_SHORT[name] for name in (*SEEN, *UNSEEN)), "all", "seen %"])
    for kind in sorted({item.mutation.kind for item in verdicts}):
        yield _counts(kind, [item for item in verdicts if item.mutation.kind == kind])
    yield _counts("all", verdicts)
    yield ""
    yield from _totals(verdicts)
    yield ""
    for name in (*SEEN, *UNSEEN):
        chosen = [item for item in verdicts if item.verdict == name]
        if chosen:
            yield f"{name}: {len(chosen)}"
            yield from (f"  {line}" for line in _reasons(chosen))


def _row(name: str, cells: Sequence[object]) -> str:
    return f"{name:<26}" + "".join(f"{cell!s:>9}" for cell in cells)


def _counts(name: str, verdicts: Sequence[Verdict]) -> str:
    counts = Counter(item.verdict for item in verdicts)
    return _row(name, [*(counts[key] or "." for key in (*SEEN, *UNSEEN)), len(verdicts), _share(verdicts)])


def _share(verdicts: Sequence[Verdict]) -> str:
    return f"{100 * sum(item.seen for item in verdicts) / max(len(verdicts), 1):.0f}"


def _totals(verdicts: Sequence[Verdict]) -> Iterator[str]:
    seen = [item for item in verdicts if item.seen]
    valid = [item for item in verdicts if item.verdict not in (REJECTED, FAILED, DIED)]
    changed = [item for item in valid if item.seen or item.verdict in (ROUNDING, UNJUDGED)]
    real = [item for item in valid if item.verdict != EQUIVALENT]
    yield f"seen {len(seen)} of {len(verdicts)} mutants ({_share(verdicts)} %)"
    for what, chosen in (
        ("that ran", valid),
        ("that ran and are not equivalent", real),
        ("that change an output on an evaluation input", changed),
    ):
        yield f"  of those {what}: {sum(item.seen for item in chosen)} of {len(chosen)} ({_share(chosen)} %)"


def _reasons(chosen: Sequence[Verdict]) -> Iterator[str]:
    """Sub-reasons with their counts, and one example each."""
    groups: dict[str, list[Verdict]] = {}
    for item in chosen:
        groups.setdefault(_reason(item), []).append(item)
    for reason, items in sorted(groups.items(), key=lambda pair: -len(pair[1])):
        kinds = Counter(item.mutation.kind for item in items).most_common(4)
        yield f"{len(items)} {reason} ({', '.join(f'{kind} {count}' for kind, count in kinds)})"
        yield f"    e.g. {_example(items[0])}"


def _reason(item: Verdict) -> str:
    facts = item.facts
    further = "; seen on further in-range inputs" if facts.get("seen_on_further") else ""
    if item.verdict == ROUNDING:
        return f"envelope {_bucket(facts['width'])} wide, change {_bucket(facts['steps'])}{further}"
    if item.verdict in (NOT_EXERCISED, EQUIVALENT):
        own = "the altered operator returns the same"
        if facts["own"]:
            own = f"the difference is lost in {', '.join(facts['lost_in'])}"
        if item.verdict == EQUIVALENT:
            return own
        where = "an in-range further input" if facts["differs_on_further"] else "full-range random delegate input only"
        return f"on evaluation inputs {own}; shows on {where}{further}"
    if item.verdict == DIED:
        return str(facts["how"])
    return "seen" if item.seen else "infinite or unsound envelope"


def _bucket(steps: float) -> str:
    for limit in (0, 1, 2, 4, 16):
        if steps <= limit + 0.01:
            return f"{limit} step{'s' * (limit != 1)}" if limit < 2 else f"up to {limit} steps"
    return "over 16 steps"


def _example(item: Verdict) -> str:
    mutation, facts = item.mutation, item.facts
    numbers = ", ".join(
        f"{key} {facts[key]}"
        for key in ("distance", "steps", "width", "bound", "elements")
        if facts.get(key) is not None
    )
    return (
        f"graph {item.graph} ({item.operators}; {facts['recipe']}): {mutation.kind}, operator {mutation.operator} "
        f"{mutation.op}, {mutation.what}, {mutation.before} -> {mutation.after}" + (f"; {numbers}" if numbers else "")
    )
