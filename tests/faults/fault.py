"""What a planted fault is, and how installed code is patched and put back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from types import FunctionType

from harness.case.case import Case
from harness.pipeline.probes import ProbeMode


@dataclass(frozen=True)
class Fault:
    """A bug put back on purpose; the clean twin is the same case without it.

    :param stands_for: the upstream issue, in a few words.
    :param oracle: the oracle that must see it.
    :param kind: what that oracle must call it.
    :param blame: the pass class to be blamed, or ``serializer``, ``Vela``, ``quantizer``;
        None where its oracle can name no place.
    :param planted: opens a context inside which the installed packages have the bug.
    :param probes: the probes that its oracle needs (``harness.pipeline.probes``).
    """

    name: str
    stands_for: str
    oracle: str
    kind: str
    blame: str | None
    case: Case
    planted: Callable[[], AbstractContextManager[None]]
    probes: ProbeMode = "none"


@contextmanager
def patched(owner: object, name: str, replacement: object) -> Iterator[None]:
    """Replace an attribute of a module or class and put back exactly what was there."""
    own = name in vars(owner)
    original = vars(owner).get(name)  # not getattr: a static method must be restored as one
    if isinstance(original, FunctionType) and isinstance(replacement, FunctionType):
        replacement.__wrapped__ = original  # corrections edit what a patch wraps
    setattr(owner, name, replacement)
    try:
        yield
    finally:
        if own:
            setattr(owner, name, original)
        else:
            delattr(owner, name)


@contextmanager
def together(*patches: AbstractContextManager[None]) -> Iterator[None]:
    """Several patches as one."""
    with ExitStack() as stack:
        for patch in patches:
            stack.enter_context(patch)
        yield
