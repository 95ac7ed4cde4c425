"""Numbers in words: what the messages of all layers share."""

from __future__ import annotations


def counted_as(number: float | str, noun: str) -> str:
    """``1 finding``, ``3 findings``, ``0 entries``, ``0.5 steps``.

    :param number: or its digits, where they are to be rounded.
    """
    text = f"{number:g}" if isinstance(number, float) else str(number)
    if text == "1":
        return f"{text} {noun}"
    return f"{text} {noun.removesuffix('y')}ies" if noun.endswith("y") else f"{text} {noun}s"
