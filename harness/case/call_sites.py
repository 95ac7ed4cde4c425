"""Where in a user's files the nodes of a captured case are called: ``call_sites.json`` beside ``case.json``.

A case stays what it is: a graph that runs anywhere. Lines of a user's file are no part of it (they change while the
graph stays the same, and the case's digest with them), so they lie beside it, as its tensors do. A case without the
file, drawn or captured earlier, has no call sites, and everything else works.

A node is looked up by its name in the case's graph, or by ``FILE:LINE`` where a run used the user's own module.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from harness.case.reading import file_of

FILE = "call_sites.json"


class CallSite(msgspec.Struct, frozen=True, kw_only=True):
    """Where a node is called.

    :param module: path of the submodule that calls it (``encoder.conv1``), or the class of the model itself.
    :param file: as messages show it: relative to the working directory, where it lies inside.
    :param path: the same, as Python calls it.
    :param line: 0 if none of the user's own lines calls it (the layers of an ``nn.Sequential``).
    """

    module: str
    file: str
    path: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


CallSites = Mapping[str, CallSite]


def write_call_sites(folder: Path, sites: CallSites) -> None:
    """Write the file of a case that lies in ``folder``."""
    (folder / FILE).write_bytes(msgspec.json.format(msgspec.json.encode(sites)) + b"\n")


def read_call_sites(case: Path) -> dict[str, CallSite]:
    """Call sites of a case file's nodes, by name; empty where none can be read: they are a courtesy."""
    try:
        return msgspec.json.decode((file_of(case).parent / FILE).read_bytes(), type=dict[str, CallSite])
    except (OSError, ValueError):
        return {}


def node_called(call: str, sites: CallSites) -> str:
    """The node of the case's graph that a run speaks of.

    :param call: its name, or ``FILE:LINE`` of a user's own module (``NodeState.call``); the first node there.
    """
    return next((name for name, item in sites.items() if item.line and f"{item.path}:{item.line}" == call), call)
