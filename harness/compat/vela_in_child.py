"""Run Vela in a forked child first, so that where it dies it is an exception and not the end of this process.

Seen in executorch 1.5.1: ``backends.arm.arm_vela`` calls ``ethosu.vela.vela.main`` with the command line's words.
"""

from __future__ import annotations

import faulthandler
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch


class VelaDied(RuntimeError):
    """Vela ended its process."""


@contextmanager
def vela_in_child() -> Iterator[None]:
    """While this is open, a call of Vela that ends a process raises :class:`VelaDied`; every other is made twice."""
    from ethosu.vela import vela

    main = vela.main

    def guarded(*words: Any) -> Any:
        pid = os.fork()
        if pid == 0:
            try:
                faulthandler.disable()  # a death here is what is asked for
                main(*words)
            finally:
                os._exit(0)
        _, status = os.waitpid(pid, 0)
        if os.WIFSIGNALED(status):
            raise VelaDied(f"Vela ended with {signal.Signals(os.WTERMSIG(status)).name}")
        return main(*words)

    with patch.object(vela, "main", guarded):
        yield
