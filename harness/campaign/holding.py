"""One run at a time in a folder: a lock that the kernel releases when the process ends, however it ends.

Two runs in one folder would write their lines between each other's, and move each other's files aside. The lock's
file says who holds it: process, since when, and its command. It stays behind, and means nothing without a holder.
Nobody removes it: whoever waits for a file that another process unlinks would hold a lock that nobody else sees.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import IO

import msgspec

from harness.campaign.run_folder import cannot_write
from harness.case.errors import BadInput
from harness.case.interrupts import command

LOCK = ".lock"


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """Contents of the lock's file.

    :param since: local time, with the zone.
    """

    pid: int
    since: str
    command: str


_held: dict[str, IO[bytes]] = {}
"""Of this process, by the folder's real path: a lock lives as long as its file is open."""


def hold(*folders: Path) -> None:
    """Take folders for this process, until its end. They are made if they are not there.

    :raises BadInput: another run holds one: which, and what to do.
    :raises CannotRun: a folder cannot be written.
    """
    for folder in folders:
        where = os.path.realpath(folder)
        if where not in _held:
            _held[where] = _locked(folder)


def _locked(folder: Path) -> IO[bytes]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / LOCK).open("a+b", buffering=0)  # what another run wrote must stay
    except OSError as error:
        raise cannot_write(folder, error) from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        with file:
            raise _in_use(folder, file) from None
    except OSError:
        pass  # a file system without locks
    own = Holder(pid=os.getpid(), since=datetime.now().astimezone().isoformat(" ", "seconds"), command=command())
    try:
        file.truncate(0)
        file.write(msgspec.json.encode(own) + b"\n")
    except OSError as error:
        file.close()
        raise cannot_write(folder, error) from None
    return file


def _in_use(folder: Path, file: IO[bytes]) -> BadInput:
    told, end = "another run works in it", ""
    with suppress(OSError, msgspec.MsgspecError):
        file.seek(0)
        holder: Holder = msgspec.json.decode(file.read(), type=Holder)
        told += f" (process {holder.pid} since {holder.since}: {holder.command})"
        end = f"end it with 'kill {holder.pid}', "
    return BadInput(str(folder), told, f"wait for it, {end}or give another --out")
