"""Conditions: what a corpus entry says of the place of its bug, declared in ``status.toml``.

::

    [[conditions]]
    path = ["SLICE", "CONV2D|DEPTHWISE_CONV2D: batch > 1, pad > 0"]

A condition holds at a place if operators of it lie on one line of data flow in the order of ``path``, each with an
operator's name and the terms behind the colon, and the wrong operator (``here``) lies on that line. Between two of
them only operators of ``through`` may stand, which Vela fuses or passes over; the line may go on with such operators
at both ends. Where names of a path begin with ``*``, only those operators may be the wrong one, and what is gone
through behind them.

A *term* is a fact of the operator (``harness.evidence.inspection.surroundings``), a comparison (``==``, ``!=``, ``<``,
``<=``, ``>``, ``>=``, or ``in`` with words joined by ``|``) and a number or word. ``at`` has terms about what was seen
at the place (``operation``, ``share``, ``issue``, …; the oracles put it there). An operator of the path may also ask
for a neighbour: ``beside X`` is another reader of what it reads, ``with X`` something else that it reads, ``first X``
what its first operand is made of.
Where nothing tells which tensor is wrong first (``told`` is 0), the place is only the output's: a condition without
``at`` does not hold there, since any bug before the output would do.

A condition with ``whole`` speaks of the smallest program that shows a finding: besides the operators of its path, of
``through`` and of ``rest`` the program has none. Nothing can be cut from it, so they are the cause, whatever their
sizes. The wrong one may be any of them, unless names begin with ``*``.

A fact that an operator does not have never satisfies a term. ``siblings`` makes the places on which a condition must
not hold: in each, one thing that it asks for is otherwise.
"""

from __future__ import annotations

import operator as compare
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import msgspec

from harness.case.place import INPUT, Fact, GraphKind, Place, PlacedOperator

THROUGH = "RESCALE|RESHAPE|TRANSPOSE|IDENTITY|CAST"
ANY = "*"
"""In place of names: every operator may be gone through. What a bug of the memory's size destroys may be anywhere."""
MOST_SKIPPED = 6
"""Operators of ``through`` between two of the path, at the most."""
_TERM = re.compile(r"^(\w+) (==|!=|<=|>=|<|>|in) (\S+)$")
_OFF_THE_LINE = re.compile(r"^(beside|with|first) ([A-Z0-9_|a-z]+)$")
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": compare.eq,
    "!=": compare.ne,
    "<": compare.lt,
    "<=": compare.le,
    ">": compare.gt,
    ">=": compare.ge,
}


class Term(msgspec.Struct, frozen=True):
    """One comparison of a fact."""

    fact: str
    comparison: str
    value: str

    def holds(self, facts: dict[str, Fact]) -> bool:
        """Does it hold of these facts?"""
        seen = facts.get(self.fact)
        if seen is None:
            return False
        if self.comparison == "in":
            return str(seen) in self.value.split("|")
        wanted: Fact = self.value if isinstance(seen, str) else float(self.value)
        return _COMPARISONS[self.comparison](seen, wanted)


class Element(msgspec.Struct, frozen=True):
    """One operator of a path.

    :param ops: its possible names.
    :param off: (``beside``, ``with`` or ``first``, possible names) of neighbours.
    :param wrong: may this operator be the wrong one?
    """

    ops: frozenset[str]
    terms: tuple[Term, ...] = ()
    off: tuple[tuple[str, frozenset[str]], ...] = ()
    wrong: bool = False


class Condition(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What must be so at a finding's place for it to be an entry's bug.

    :param path: operators on one line of data flow, as ``element`` reads them.
    :param at: terms about the facts of the place itself.
    :param through: names of the operators that may stand between those of the path, joined by ``|``, or ``*``.
    :param shows: the findings that it speaks of, as ``oracle/kind`` or ``oracle``; none: see ``Known``.
    :param graph: which kind of graph it speaks of.
    :param whole: the place is a smallest program, and nothing else is in it (``KnownBug.proof`` asks for the former).
    :param rest: of ``whole``: names of operators, or ``*``, that may be in the program besides, anywhere but between.
    :param families: target families (``ethos-u85``) whose findings it proves, where an entry's families do not show its
        bug at the same places; none: all of the entry's.
    """

    path: tuple[str, ...] = ()
    at: tuple[str, ...] = ()
    through: str = THROUGH
    shows: tuple[str, ...] = ()
    graph: GraphKind = "tosa"
    families: tuple[str, ...] = ()
    whole: bool = False
    rest: str = ""

    def holds(self, place: Place) -> bool:
        """Does it hold at this place?"""
        if place.graph != self.graph or not all(term(text).holds(place.facts) for text in self.at):
            return False
        if place.facts.get("told") == 0 and not self.at and not self.whole:
            return False
        if not self.path:
            return True
        search = _Search(place, tuple(element(text) for text in self.path), frozenset(self.through.split("|")))
        return search.found(whole=self.whole, rest=frozenset(self.rest.split("|")))

    @property
    def asks(self) -> int:
        """How much it asks for: operators, terms and neighbours."""
        return len(self.at) + sum(1 + len(item.terms) + len(item.off) for item in map(element, self.path))

    def __str__(self) -> str:
        return "; ".join(filter(None, [" -> ".join(self.path), ", ".join(self.at)]))

    def check(self) -> None:
        """Read every term.

        :raises ValueError: naming what cannot be read.
        """
        for text in self.path:
            element(text)
        for text in self.at:
            term(text)
        if self.rest and not self.whole:
            raise ValueError("a condition with rest says what else a smallest program has; write whole = true as well")
        if self.whole and not self.path:
            raise ValueError("a condition with whole says what a smallest program consists of; give it a path")
        if not self.path and not self.at:
            raise ValueError("a condition without path and at holds everywhere; give it one of them")


@cache
def term(text: str) -> Term:
    """Read ``batch > 1``.

    :raises ValueError: it is none.
    """
    found = _TERM.match(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no term; write 'batch > 1' or 'dtype in int8|int16'")
    made = Term(*found.groups())
    if made.comparison in ("<", "<=", ">", ">="):
        float(made.value)
    return made


@cache
def element(text: str) -> Element:
    """Read ``*CONV2D|DEPTHWISE_CONV2D: batch > 1, beside RESHAPE``.

    :raises ValueError: it is none.
    """
    names, _, rest = text.removeprefix("*").partition(":")
    terms, off = [], []
    for word in filter(None, (item.strip() for item in rest.split(","))):
        found = _OFF_THE_LINE.match(word)
        if found:
            off.append((found[1], frozenset(found[2].split("|"))))
        else:
            terms.append(term(word))
    ops = frozenset(name.strip() for name in names.split("|"))
    if not all(ops):
        raise ValueError(f"{text!r} names no operator; write 'CONV2D: batch > 1'")
    return Element(ops, tuple(terms), tuple(off), text.startswith("*"))


class _Search:
    """The search for a line through a place."""

    def __init__(self, place: Place, path: Sequence[Element], through: frozenset[str]) -> None:
        self.place, self.path, self.through = place, path, through
        self.readers = place.readers

    def found(self, *, whole: bool, rest: frozenset[str]) -> bool:
        starts = (index for index in range(len(self.place.operators)) if self._fits(index, self.path[0]))
        lines = (line for start in starts for line in self._lines(((start,),)))
        if whole:
            anywhere = not any(item.wrong for item in self.path)
            return any(self._covers(line, rest) and (anywhere or self._passes_here(line)) for line in lines)
        return any(self._passes_here(line) for line in lines)

    def _covers(self, parts: tuple[tuple[int, ...], ...], rest: frozenset[str]) -> bool:
        """Is everything on the line, but for inputs, what is gone through, and the rest?"""
        line = {index for part in parts for index in part}
        beside = (item.op for index, item in enumerate(self.place.operators) if index not in line)
        return all(op == INPUT or self._goes_through(op) or op in rest or ANY in rest for op in beside)

    def _goes_through(self, op: str) -> bool:
        return op in self.through or ANY in self.through

    def _lines(self, parts: tuple[tuple[int, ...], ...]) -> Iterator[tuple[tuple[int, ...], ...]]:
        """Lines that begin with these parts: an operator of the path each, after what is gone through before it."""
        if len(parts) == len(self.path):
            yield parts
            return
        for reached in self._beyond(parts[-1][-1]):
            if self._fits(reached[-1], self.path[len(parts)]):
                yield from self._lines((*parts, reached))

    def _beyond(self, index: int) -> Iterator[tuple[int, ...]]:
        """Operators that read this one, at once or through others, with those in between."""
        waiting: list[tuple[int, ...]] = [(reader,) for reader in self.readers[index]]
        while waiting:
            way = waiting.pop()
            yield way
            if self._goes_through(self.place.operators[way[-1]].op) and len(way) <= MOST_SKIPPED:
                waiting += [(*way, reader) for reader in self.readers[way[-1]]]

    def _passes_here(self, parts: tuple[tuple[int, ...], ...]) -> bool:
        wanted = set(self.place.here)
        behind = {index for way in self._beyond(parts[-1][-1]) for index in way if self._all_through(way)}
        if any(item.wrong for item in self.path):
            after = [*(part[:-1] for part in parts[1:]), tuple(behind)]
            starred = zip(self.path, parts, after, strict=True)
            return any(wanted & {part[-1], *rest} for item, part, rest in starred if item.wrong)
        return bool(wanted & ({index for part in parts for index in part} | behind | self._before(parts[0][0])))

    def _all_through(self, way: tuple[int, ...]) -> bool:
        return all(self._goes_through(self.place.operators[index].op) for index in way)

    def _before(self, index: int) -> set[int]:
        found: set[int] = set()
        waiting = [*self.place.operators[index].reads]
        while waiting:
            source = waiting.pop()
            if self._goes_through(self.place.operators[source].op) and source not in found:
                found.add(source)
                waiting += self.place.operators[source].reads
        return found

    def _fits(self, index: int, wanted: Element) -> bool:
        item = self.place.operators[index]
        if item.op not in wanted.ops or not all(one.holds(item.facts) for one in wanted.terms):
            return False
        return all(self._has(index, item, relation, ops) for relation, ops in wanted.off)

    def _has(self, index: int, item: PlacedOperator, relation: str, ops: frozenset[str]) -> bool:
        if relation == "first":
            around = self._sources(item.reads[:1])
        elif relation == "with":
            around = self._sources(item.reads)
        else:
            around = {reader for source in item.reads for reader in self._users(source)} - {index}
        return any(self.place.operators[other].op in ops for other in around)

    def _sources(self, reads: Sequence[int]) -> set[int]:
        """What these are, or are made of by operators of ``through``."""
        return set(reads) | {index for source in reads for index in self._made_of(source)}

    def _made_of(self, index: int) -> set[int]:
        if not self._goes_through(self.place.operators[index].op):
            return set()
        reads = self.place.operators[index].reads
        return set(reads) | {other for source in reads for other in self._made_of(source)}

    def _users(self, index: int) -> set[int]:
        return {other for way in self._beyond(index) for other in way}


def siblings(condition: Condition, place: Place) -> list[tuple[str, Place]]:
    """Places like this one in which one thing that the condition asks for is otherwise, each with what that is.

    Every operator of the place that satisfies a term no longer does; every operator with a name of the path has
    another; an operator of the path is passed over. The condition must hold at none of them.
    """
    found: list[tuple[str, Place]] = []
    for text in condition.at:
        wanted = term(text)
        value = place.facts.get(wanted.fact)
        if value is not None:
            facts = {**place.facts, wanted.fact: _otherwise(wanted, value)}
            found.append((f"not {text}", msgspec.structs.replace(place, facts=facts)))
    for text in condition.path:
        wanted_element = element(text)
        for one in wanted_element.terms:
            found.append(
                (
                    f"not {text.partition(':')[0]}: {one.fact} {one.comparison} {one.value}",
                    _without(place, wanted_element, one),
                )
            )
        found.append((f"no {text.partition(':')[0]}", _renamed(place, wanted_element.ops)))
        for _, ops in wanted_element.off:
            found.append((f"no {'|'.join(sorted(ops))} at {text.partition(':')[0]}", _renamed(place, ops)))
    return found


def _otherwise(wanted: Term, value: Fact) -> Fact:
    """A value of the same type that does not satisfy a term."""
    if isinstance(value, str):
        return f"not-{value}" if wanted.comparison in ("==", "in") else wanted.value
    if wanted.comparison == "in":
        return -12345
    number = float(wanted.value)
    return {"==": number + 1, "!=": number, "<": number, "<=": number + 1, ">": number, ">=": number - 1}[
        wanted.comparison
    ]


def _without(place: Place, wanted: Element, one: Term) -> Place:
    """The place with every operator of the element's names changed so that it does not satisfy the term."""
    operators = tuple(
        msgspec.structs.replace(item, facts={**item.facts, one.fact: _otherwise(one, item.facts[one.fact])})
        if item.op in wanted.ops and one.fact in item.facts and one.holds(item.facts)
        else item
        for item in place.operators
    )
    return msgspec.structs.replace(place, operators=operators)


def _renamed(place: Place, ops: frozenset[str]) -> Place:
    """The place with other operators where these stood."""
    operators = tuple(
        msgspec.structs.replace(item, op="SOMETHING_ELSE") if item.op in ops else item for item in place.operators
    )
    return msgspec.structs.replace(place, operators=operators)
