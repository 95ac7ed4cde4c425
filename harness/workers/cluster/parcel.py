"""What a campaign and the nodes of a cluster send each other: msgpack bytes, and nothing that is executed.

A *parcel* is a task with the files that it is about, because a node sees none of the campaign's. What comes back
is the case's result with the campaign's own paths in it, as if it had been run here, or *unable*: the node cannot
run anything. An *identity* is what two machines must share for their results to be the same: armdiff to the
letter of its sources, and the releases.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import msgspec

from harness import __version__
from harness.case.errors import CannotRun
from harness.case.reading import decode_case, file_of
from harness.compat.releases import installed
from harness.workers.protocol import CaseResult, Task

PACKAGES = ("harness", "generators", "oracles")


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """What a machine runs cases with.

    :param armdiff: version, and a digest of the sources: a checkout changes under the same version.
    :param releases: package -> version.
    """

    armdiff: str
    releases: dict[str, str]


class Parcel(msgspec.Struct, frozen=True, kw_only=True):
    """A case that travels.

    :param campaign: whose case it is; a node keeps workers apart by it.
    :param task: as the campaign knows it; ``task.case`` is a path on the campaign's machine.
    :param case: the bytes of the case file.
    :param tensors: name and bytes of the tensor file beside it, if the case has one.
    :param worker: the module that runs as a worker (``python -m``).
    :param seconds: time that the case may take.
    """

    campaign: str
    task: Task
    case: bytes
    tensors: tuple[str, bytes] | None = None
    worker: str = "harness.workers.worker"
    seconds: float = 300.0


class Unable(msgspec.Struct, frozen=True, tag="unable"):
    """Why a node cannot run anything, in one line."""

    problem: str


Reply = CaseResult | Unable

_parcels: msgspec.msgpack.Decoder[Parcel] = msgspec.msgpack.Decoder(Parcel)
_replies: msgspec.msgpack.Decoder[Reply] = msgspec.msgpack.Decoder(Reply)
_identities: msgspec.msgpack.Decoder[Identity] = msgspec.msgpack.Decoder(Identity)


@cache
def own_identity() -> Identity:
    """What this machine runs cases with."""
    root, digest = Path(__file__).parents[3], hashlib.sha256()
    for package in PACKAGES:
        for file in sorted((root / package).rglob("*.py")):
            digest.update(f"{file.relative_to(root)}\0".encode() + file.read_bytes() + b"\0")
    return Identity(armdiff=f"{__version__} (sources {digest.hexdigest()[:12]})", releases=dict(installed()))


def difference(wanted: Identity, found: Identity) -> str | None:
    """The first thing in which a node is not what the campaign is, or None."""
    here, there = ({"armdiff": item.armdiff, **item.releases} for item in (wanted, found))
    for name in dict.fromkeys((*here, *there)):
        if here.get(name) != there.get(name):
            return f"{name} is {there.get(name, 'not installed')} there and {here.get(name, 'not installed')} here"
    return None


def pack(task: Task, campaign: str, worker: str, seconds: float) -> bytes:
    """A task with its files.

    :raises CannotRun: a file is gone.
    """
    file = file_of(Path(task.case))
    tensors = None
    try:
        case = file.read_bytes()
        if (name := decode_case(case, str(file)).tensors) is not None:
            tensors = (name, (file.parent / name).read_bytes())
    except OSError as error:
        raise CannotRun(f"{error.filename}: cannot be read ({error.strerror}); restore the file") from None
    parcel = Parcel(campaign=campaign, task=task, case=case, tensors=tensors, worker=worker, seconds=seconds)
    return msgspec.msgpack.encode(parcel)


def unpack(data: bytes) -> Parcel:
    """The parcel that arrived at a node."""
    return _parcels.decode(data)


def laid_out(parcel: Parcel, folder: Path) -> Task:
    """Write a parcel's files into a folder, and make its task about them."""
    file = folder / Path(parcel.task.case).with_suffix(".json").name
    file.write_bytes(parcel.case)
    if parcel.tensors is not None:
        name, data = parcel.tensors
        (folder / Path(name).name).write_bytes(data)
    return msgspec.structs.replace(parcel.task, case=str(file))


def packed_reply(reply: Reply, path: str, original: str) -> bytes:
    """A reply with the path of the case on the node replaced by the campaign's, wherever it occurs."""

    def replaced(value: object) -> object:
        if isinstance(value, str):
            return value.replace(path, original)
        if isinstance(value, dict):
            return {replaced(key): replaced(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [replaced(item) for item in value]
        return value

    return msgspec.msgpack.encode(replaced(msgspec.to_builtins(reply)))


def unpacked_reply(data: bytes) -> Reply:
    """What a node answered."""
    return _replies.decode(data)


def packed_identity() -> bytes:
    """This machine's identity as bytes: what a node is asked for before it gets cases."""
    return msgspec.msgpack.encode(own_identity())


def unpacked_identity(data: bytes) -> Identity:
    """What a node said it is."""
    return _identities.decode(data)
