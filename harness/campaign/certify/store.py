"""Comparisons that were made already, so that an interrupted certification goes on where it was.

One line of JSON a comparison, appended at once. The key says everything that the result depends on:
the case, its target, the digests of the variant's corrections, and how comparisons are made; the file is
the release line's.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

from harness.case.errors import MALFORMED, CannotRun
from harness.compat.releases import installed
from harness.corrections import chosen
from harness.workers.protocol import Comparison

METHOD = 3
"""To be increased when comparisons are made, or their findings judged, in another way: older ones are made again."""


class _Line(msgspec.Struct, frozen=True):
    key: str
    comparison: Comparison


class Store:
    """Comparisons in a file. Lines that were cut off are ignored; the comparison is made again.

    :param file: created with its folder when the first comparison is put in.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._known: dict[str, Comparison] = {}
        if file.exists():
            decoder: msgspec.json.Decoder[_Line] = msgspec.json.Decoder(_Line)
            for text in file.read_bytes().splitlines():
                try:
                    line = decoder.decode(text)
                except MALFORMED:
                    continue
                self._known[line.key] = line.comparison

    def get(self, digest: str, target: str, variant: tuple[str, ...]) -> Comparison | None:
        """The comparison of a case (by its digest), if it was made."""
        return self._known.get(key_of(digest, target, variant))

    def put(self, digest: str, target: str, comparison: Comparison) -> None:
        """Keep a comparison.

        :raises CannotRun: the file cannot be written.
        """
        key = key_of(digest, target, comparison.variant)
        self._known[key] = comparison
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with self._file.open("ab") as file:
                file.write(msgspec.json.encode(_Line(key, comparison)) + b"\n")
        except OSError as error:
            raise CannotRun(f"{self._file}: cannot be written ({error.strerror}); give another --out") from None


def key_of(digest: str, target: str, variant: tuple[str, ...]) -> str:
    release = installed().get("executorch", "")
    text = " ".join(
        [str(METHOD), digest, target, *sorted(f"{item.name}:{item.digest(release)}" for item in chosen(variant))]
    )
    return hashlib.sha256(text.encode()).hexdigest()[:20]
