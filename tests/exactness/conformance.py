"""Arm's own programs: what ``tosa_verif_build_tests`` of tosa-tools builds for TOSA's INT profile.

Every operator of the profile in every type that it has there, int16 among them, with two random shapes (two seeds) for
each choice of its attributes; some seven thousand programs a seed. A program brings its inputs, drawn so that TOSA
defines the result. Building takes minutes and happens once a folder.

The generator names a test ``conv2d_1x3_1x5x9x4_i8xi8_acci32_st11_…``; the program is ``conv2d-s0-conv2d_1x3_…``, and
its group says its type: ``conformance int8``.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from harness.artifacts.tosa import decode_tosa
from tests.exactness.program import Array, Program

SEEDS = (0, 1)
_OPTIONS = (
    "--profile=tosa-pro-int",
    "--extension=tosa-ext-int16",
    "--tosa-version=1.0.0",
    "--test-type=positive",
    "--no-special-tests",
    "--tensor-dim-range=1,12",
)
_LARGE = ("conv2d", "depthwise_conv2d", "transpose_conv2d", "conv3d", "pad", "rescale", "(avg|max)_pool2d")
_PIECES = (*(f"^{name}" for name in _LARGE), f"^(?!{'|'.join(_LARGE)})")
"""What is built at a time, as the generator's ``--filter``: a run that is stopped goes on where it was."""
_NOT_COMPUTED = ("CONST", "CONST_SHAPE")
_TYPE = re.compile(r"_(i4|i8|i16|i32|i48|b|shape)(?=x|_|$)")
_KERNEL = re.compile(r"_\d+(x\d+)+$")
_GROUPS = {"i4": "int4", "i8": "int8", "i16": "int16", "i32": "int32", "i48": "int48", "b": "bool", "shape": "shape"}


def programs(folder: Path, announce: Callable[[str], None], only: str = "") -> list[Program]:
    """All programs, built into a folder unless they are there.

    :param only: a regular expression for names of operators, as the generator's ``--filter``; instead of all.
    :raises RuntimeError: the generator failed; its last lines are the message.
    """
    pieces = (only,) if only else _PIECES
    places = [(seed, _built(folder, seed, piece, announce)) for seed in SEEDS for piece in pieces]
    return [program for seed, place in places for program in _read(place, seed)]


def _built(folder: Path, seed: int, piece: str, announce: Callable[[str], None]) -> Path:
    """The folder of one seed and piece; complete or absent, because it is renamed into place."""
    name = f"conformance-{seed}-{re.sub('[^a-z0-9]+', '_', piece).strip('_')}"
    place, unfinished = folder / name, folder / f"{name}.unfinished"
    if place.exists():
        return place
    shutil.rmtree(unfinished, ignore_errors=True)
    announce(f"building Arm's conformance programs, seed {seed}: {piece}")
    command = [
        sys.executable,
        "-m",
        "generator.tosa_verif_build_tests",
        *_OPTIONS,
        f"--seed={seed}",
        f"-o={unfinished}",
    ]
    done = subprocess.run([*command, f"--filter={piece}"], capture_output=True, text=True, check=False)
    if done.returncode or not unfinished.exists():
        raise RuntimeError(f"tosa_verif_build_tests failed for {piece}: {(done.stdout + done.stderr)[-400:]}")
    unfinished.rename(place)
    return place


def _read(folder: Path, seed: int) -> Iterator[Program]:
    for description in sorted(folder.glob("*/*/desc.json")):
        yield program_of(description, seed)


def program_of(description: Path, seed: int) -> Program:
    """One test of the generator: its folder has ``desc.json``, the flatbuffer, and a file for each input."""
    said, folder = json.loads(description.read_bytes()), description.parent
    tosa = (folder / said["tosa_file"]).read_bytes()
    block = decode_tosa(tosa).main
    files = dict(zip(said["ifm_name"], said["ifm_file"], strict=True))
    arrays: tuple[Array, ...] = tuple(np.load(folder / files[name]) for name in block.inputs)
    operators = tuple(item.op for item in block.operators if item.op not in _NOT_COMPUTED)
    name = f"{_KERNEL.sub('', folder.parent.name)}-s{seed}-{folder.name.replace('-', '_')}"
    return Program(name, group_of(folder.name), tosa, (), operators, (arrays,))


def group_of(test: str) -> str:
    """The group of a test, by the first type in its name."""
    found = _TYPE.search(test)
    return f"conformance {_GROUPS[found.group(1)]}" if found else "conformance"
