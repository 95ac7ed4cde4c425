"""Upstream modules as corrections make them: the installed text with all edits, after a check of its digests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from harness.case.errors import CannotRun
from harness.compat.releases import installed
from harness.compat.sources import digest_of, source_of, span_of, text_of
from harness.corrections.correction import Change, Correction, Edit


@dataclass(frozen=True)
class Edited:
    """An upstream module with corrections.

    :param places: the places that changed, each once.
    """

    module: str
    before: str
    after: str
    places: tuple[str, ...]


def edited_modules(corrections: Sequence[Correction]) -> tuple[Edited, ...]:
    """Every module that corrections change on the installed release, with all their edits, in order.

    :raises CannotRun: the code is not what a correction was written for, or two exclude each other.
    """
    return _edited_modules(tuple(corrections), installed().get("executorch", ""))


@cache
def _edited_modules(corrections: tuple[Correction, ...], release: str) -> tuple[Edited, ...]:
    """Parsing and editing the files takes half a second for all corrections, and every task asks for it."""
    parts = [(correction, change) for correction in corrections for change in correction.for_release(release)]
    texts = {change.module: text_of(change.module) for _, change in parts}
    for correction, change in parts:
        _check_digest(correction, change, texts[change.module], release)
    made = dict(texts)
    for correction, change in parts:
        made[change.module] = _edited(correction, change, made[change.module])
    return tuple(
        Edited(
            module, text, made[module], tuple(dict.fromkeys(item.place for _, item in parts if item.module == module))
        )
        for module, text in texts.items()
    )


def _check_digest(correction: Correction, change: Change, text: str, release: str) -> None:
    source = source_of(text, change.place)
    seen = "is missing" if source is None else f"has digest {digest_of(source)}"
    if source is None or digest_of(source) != change.digests[release]:
        raise CannotRun(
            f"correction {correction.name}: {change.module}:{change.place} {seen}, and the correction was "
            f"written for {change.digests[release]} of executorch {release}; install that release unmodified, "
            "or renew the correction"
        )


class NotOnce(ValueError):
    """An edit's text does not stand once in its place.

    :ivar edit: which; ``times``: how often it does.
    """

    def __init__(self, edit: Edit, times: int) -> None:
        super().__init__(edit.old)
        self.edit, self.times = edit, times


def edited(change: Change, text: str) -> str:
    """A file's text with the edits of a change.

    :raises NotOnce: the text of one of them does not stand once in the place.
    """
    for edit in change.edits:
        span = span_of(text, change.place)
        lines = text.splitlines(keepends=True)
        source = "" if span is None else "".join(lines[span.first : span.last])
        if span is None or source.count(edit.old) != 1:
            raise NotOnce(edit, source.count(edit.old))
        lines[span.first : span.last] = [source.replace(edit.old, edit.new)]
        text = "".join(lines)
    return text


def _edited(correction: Correction, change: Change, text: str) -> str:
    try:
        return edited(change, text)
    except NotOnce as error:
        raise CannotRun(
            f"correction {correction.name}: {change.module}:{change.place} has its text "
            f"{error.edit.old.strip()[:60]!r} {error.times} times, not once; apply it without the corrections that "
            "change this place, or give the edit more context"
        ) from None
