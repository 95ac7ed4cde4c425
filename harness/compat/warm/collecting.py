"""When garbage is collected in a worker that pauses collections."""

from __future__ import annotations

import gc


def between_cases(done: bool = True) -> None:
    """What is due after a case where collections are paused: one, and what is left then are caches to keep.

    :param done: nothing that is left will be garbage later.
    """
    if not gc.isenabled():
        gc.collect()
        if done:
            gc.freeze()
