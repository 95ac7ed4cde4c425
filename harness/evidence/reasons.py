"""Reasons and how often: sentences that differ in their numbers only are one reason."""

from __future__ import annotations

import re
from collections.abc import Mapping

_NUMBERS = re.compile(r"-?(?:0x[0-9a-f]+|\d+(?:\.\d+)?(?:e[+-]?\d+)?)")


def kind_of(text: str) -> str:
    """A sentence without its numbers, those of nodes included: what is said of two cases often differs in no more."""
    return _NUMBERS.sub("N", text)


def by_kind(reasons: Mapping[str, int]) -> list[tuple[str, int]]:
    """Reasons and how often: what differs in numbers only is one, told in the words of the commonest; that first."""
    kinds: dict[str, tuple[str, int]] = {}
    for text, count in sorted(reasons.items(), key=lambda item: -item[1]):
        kind = kind_of(text)
        first, before = kinds.get(kind, (text, 0))
        kinds[kind] = (first, before + count)
    return sorted(kinds.values(), key=lambda item: -item[1])
