"""What a correction is: edits of installed upstream functions, with the evidence that asks for them.

A *change* is one function (or one assignment of a class) of one upstream module, and the edits
that correct its source text. It names the digest of the source that it was written for, release by
release; installed code with another digest is refused, never guessed at. Because a change is text,
``applied()`` (``harness.corrections.applying``) and the exported patch (``harness.corrections.patch``)
are the same edits by construction.

A *workaround* is a correction of something that is not ExecuTorch's fault: it keeps a pattern away
from a tool that gets it wrong.

Pure data: nothing here imports torch or executorch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from harness.compat.velas import PACKAGE as VELA


@dataclass(frozen=True)
class Edit:
    """One replacement inside a change's source.

    :param old: text that occurs exactly once in the place's source (after the edits before it).
    :param new: what stands there instead. It may go on behind the place: new module-level functions
        and classes are taken over as well.
    """

    old: str
    new: str


@dataclass(frozen=True)
class Change:
    """A place in an upstream module and what changes there.

    :param module: dotted name, ``executorch.backends.arm._passes.insert_rescales_pass``.
    :param place: qualified name of a function, or ``Class.attribute`` of an assignment.
    :param digests: executorch version -> digest of the place's source (``harness.compat.sources``).
    """

    module: str
    place: str
    digests: Mapping[str, str] = field(hash=False)
    edits: tuple[Edit, ...]


@dataclass(frozen=True)
class Correction:
    """A corrected upstream pass or step.

    :param name: the word for ``--correction``.
    :param entries: corpus entries whose bug it removes.
    :param upstream: upstream's issue and fix, if there are any.
    :param cause: the root cause, in two sentences.
    :param change: what it changes, in one or two sentences.
    :param changes: where; a release needs the correction if a change has a digest for it.
    :param patterns: operator patterns (as in ``status.toml``) of graphs that it may touch.
    :param workaround: is the defect outside ExecuTorch?
    :param needs: corrections of bugs that this one leads to; ``chosen`` takes them along.
    """

    name: str
    entries: tuple[str, ...]
    cause: str
    change: str
    changes: tuple[Change, ...]
    patterns: tuple[tuple[str, ...], ...]
    upstream: tuple[str, ...] = ()
    workaround: bool = False
    needs: tuple[str, ...] = ()
    origin: str = field(default="", compare=False)

    @property
    def word(self) -> str:
        """What ``--correction`` calls it: its name, or the file that defines it."""
        return self.origin or self.name

    def works_around(self, package: str) -> bool:
        """Does it only keep a bug of this package from showing? It edits ExecuTorch or torchao, never Vela."""
        return self.workaround or package == VELA

    @property
    def rejects(self) -> bool:
        """Does it only keep a pattern away from Ethos-U? Then it takes away whatever is wrong with the pattern."""
        return self.workaround and any(
            "operator_support" in change.module or "partitioner" in change.module for change in self.changes
        )

    @property
    def releases(self) -> tuple[str, ...]:
        """The executorch versions that need it, oldest first."""
        return tuple(sorted({release for change in self.changes for release in change.digests}, key=_version))

    def for_release(self, executorch: str) -> tuple[Change, ...]:
        """The changes that an executorch version needs; empty if it needs none."""
        return tuple(change for change in self.changes if executorch in change.digests)

    def digest(self, executorch: str) -> str:
        """Twelve hex digits of everything that the correction does to an executorch version."""
        edits = [(change.module, change.place, change.edits) for change in self.for_release(executorch)]
        return hashlib.sha256(msgspec.json.encode(edits)).hexdigest()[:12]


def _version(release: str) -> tuple[int, ...]:
    return tuple(int(word) for word in release.split(".") if word.isdigit())
