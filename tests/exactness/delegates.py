"""Delegates of generated graphs and of the corpus, lowered by ExecuTorch once for each family.

Ethos-U55 and U65 share what is lowered for ``ethos-u55-128``, Ethos-U85 what is lowered for
``ethos-u85-256``; every target compiles these flatbuffers anew. Graphs are the campaign's own
(``generators.cases``); for int8 their recipe, for int16 the same graphs as a16w8. A delegate is run on
what it is called with on the calibration samples, and on draws of its whole input range.

Lowering takes seconds a graph, so the store keeps an index of delegates for each family, width and
seed; it grows when more are asked for. Imports torch only when it has to lower.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from harness.artifacts.tosa import decode_tosa
from harness.case.case import Case, encode_case
from harness.case.reading import decode_case
from harness.case.recipe import Recipe, parse_recipe
from tests.children import Death, spread
from tests.exactness.preparing import Announce
from tests.exactness.program import InputSpec, Program, limits
from tests.exactness.store import Store, StoredArray, key_of, stored

LOWERED_FOR = {"u55": "ethos-u55-128", "u65": "ethos-u55-128", "u85": "ethos-u85-256"}
GROUPS = ("int8", "int16")
BLOCK = 20
BATCH = 40
MOST_CALLS = 2
CORPUS = Path("corpus")


class Delegate(msgspec.Struct, frozen=True):
    """One delegate: its flatbuffer and arrays that it was called with, in the order of TOSA's inputs."""

    name: str
    tosa: bytes
    calls: tuple[tuple[StoredArray, ...], ...]


class Lowered(msgspec.Struct, frozen=True):
    """What one case gave; ``refused`` says why nothing."""

    delegates: tuple[Delegate, ...] = ()
    refused: str = ""


class Index(msgspec.Struct, frozen=True):
    """Names and keys of lowered cases, in order; ``drawn`` graphs were tried."""

    cases: tuple[tuple[str, str], ...] = ()
    drawn: int = 0
    delegates: int = 0


def programs(
    store: Store, target: str, wanted: int, seed: int, workers: int, announce: Announce
) -> list[list[Program]]:
    """The stored delegates for a target, by width; more are lowered first if fewer than ``wanted``."""
    family = LOWERED_FOR[target.split("-")[1]]
    return [_group(store, family, group, wanted, seed, workers, announce) for group in GROUPS]


def _group(
    store: Store, family: str, group: str, wanted: int, seed: int, workers: int, announce: Announce
) -> list[Program]:
    key = key_of("index", b"", family, group, seed)
    index = store.load(key, Index) or Index()
    if index.delegates < wanted:
        work = _worker(store)
        if not index.cases:
            index = _extended(store, index, list(_corpus(family, group)), workers, work)
        while index.delegates < wanted:
            started = time.monotonic()
            batch = [(f"{index.drawn + offset:04d}", case) for offset, case in _cases(family, group, seed, index.drawn)]
            index = msgspec.structs.replace(
                _extended(store, index, batch, workers, work), drawn=index.drawn + len(batch)
            )
            store.save(key, index)
            announce(
                f"{family} {group}: {index.delegates} delegates of {index.drawn} graphs, "
                f"{time.monotonic() - started:.0f} s for the last {len(batch)}"
            )
    return list(_loaded(store, index, f"{family.split('-')[1]}-{group}", group))


def _cases(family: str, group: str, seed: int, first: int) -> Iterator[tuple[int, Case]]:
    """The next cases of the campaign's sequence, their place in this batch in front."""
    from generators.cases import draw_block

    for block in range(first // BLOCK, (first + BATCH) // BLOCK):
        for place, (case,) in enumerate(draw_block(seed, block, BLOCK, (family,))):
            yield block * BLOCK + place - first, _with_width(case, group)


def _with_width(case: Case, group: str) -> Case:
    """The case in a width; with min-max observers, because the histogram's search costs most of a lowering."""
    recipe = parse_recipe(case.recipe)
    if group == "int16":
        recipe = Recipe(widths="a16w8", per_channel=recipe.per_channel, float_nodes=recipe.float_nodes)
    elif recipe.widths == "a16w8":
        recipe = Recipe(float_nodes=recipe.float_nodes)
    return _changed(case, recipe=str(msgspec.structs.replace(recipe, min_max_observer=not recipe.fixed_activations)))


def _corpus(family: str, group: str) -> Iterator[tuple[str, Case]]:
    """Corpus entries of one width, for this family."""
    for file in sorted(CORPUS.glob("*/*/case.json")):
        case = decode_case(file.read_bytes())
        widths = "" if case.recipe == "float" else parse_recipe(case.recipe).widths
        if widths and (widths == "a16w8") == (group == "int16"):
            yield f"corpus-{file.parent.name}", _changed(case, target=family)


def _changed(case: Case, **changes: str) -> Case:
    return msgspec.structs.replace(case, **changes)


def _extended(
    store: Store, index: Index, cases: list[tuple[str, Case]], workers: int, work: Callable[[Case], Lowered]
) -> Index:
    keys = [key_of("lowered", encode_case(case)) for _, case in cases]
    missing = [place for place, key in enumerate(keys) if key not in store]

    def lower(number: int) -> None:
        gc.disable()  # as harness.workers.worker: a lowering makes so much garbage that collections would run often
        place = missing[number]
        store.save(keys[place], work(cases[place][1]))
        gc.collect()

    for number, answer in spread(len(missing), lower, workers):
        if isinstance(answer, Death):
            store.save(keys[missing[number]], Lowered(refused=f"the lowering died: {answer.how}"))
    found = sum(len(_delegates_of(store, key)) for key in keys)
    named = [(name, key) for (name, _), key in zip(cases, keys, strict=True)]
    return Index((*index.cases, *named), index.drawn, index.delegates + found)


def _delegates_of(store: Store, key: str) -> tuple[Delegate, ...]:
    lowered = store.load(key, Lowered)
    return lowered.delegates if lowered else ()


def _loaded(store: Store, index: Index, prefix: str, group: str) -> Iterator[Program]:
    """Every delegate once: equal flatbuffers count as one."""
    seen = set()
    for name, key in index.cases:
        for delegate in _delegates_of(store, key):
            if delegate.tosa not in seen:
                seen.add(delegate.tosa)
                yield _program(f"{prefix}-{name}-{delegate.name}", group, delegate)


def _program(name: str, group: str, delegate: Delegate) -> Program:
    block = decode_tosa(delegate.tosa).main
    calls = tuple(tuple(item.array for item in call) for call in delegate.calls)
    inputs = []
    for place, tensor in enumerate(block.tensors[item] for item in block.inputs):
        low, high = limits(tensor.dtype)
        if tensor.dtype in ("INT32", "INT48") and calls:  # indices, most likely
            values = np.concatenate([call[place].astype(np.int64).reshape(-1) for call in calls])
            low, high = int(values.min()), int(values.max())
        inputs.append(InputSpec(tensor.shape, tensor.dtype, low, high))
    operators = tuple(item.op for item in block.operators if item.op not in ("CONST", "CONST_SHAPE"))
    return Program(name, group, delegate.tosa, tuple(inputs), operators, calls)


def _worker(store: Store) -> Callable[[Case], Lowered]:
    """Import torch and upstream once in this process; the children inherit it."""
    import logging
    import warnings

    warnings.filterwarnings("ignore")
    import torch

    from harness.workers import observing

    torch.set_num_threads(1)
    assert observing
    logging.disable(logging.WARNING)
    gc.collect()
    gc.freeze()  # as harness.workers.worker: what the imports leave never dies, and children share its pages
    return _lowered


def _lowered(case: Case) -> Lowered:
    import torch

    from harness.case.errors import ArmdiffError
    from harness.case.sampling import EvaluationInput, calibration_samples
    from harness.pipeline.legs.delegates import run_program
    from harness.pipeline.legs.tosa_reference import ReferenceModelError, run_flatbuffer
    from harness.pipeline.lowering import LoweringFailed, StageClock, compile_program, quantize

    torch.compiler.reset()
    try:
        lowered = compile_program(quantize(case, StageClock()), StageClock())
    except (LoweringFailed, ArmdiffError, RuntimeError, ValueError, AssertionError, KeyError, TypeError) as error:
        return Lowered(refused=f"{type(error).__name__}: {error.__cause__ or error}"[:300])
    except Exception as error:  # noqa: BLE001 - upstream raises whatever it likes; the campaign reports those
        return Lowered(refused=f"{type(error).__name__}: {error}"[:300])
    calls: dict[str, list[tuple[StoredArray, ...]]] = {item.name: [] for item in lowered.record.delegates}

    def noting(record: Any, arrays: list[Any]) -> list[Any]:
        calls[record.name].append(tuple(stored(array) for array in arrays))
        return run_flatbuffer(record.tosa, arrays)

    inputs = [EvaluationInput("calibration", arrays, True) for arrays in calibration_samples(case)[:MOST_CALLS]]
    refused = ""
    try:
        run_program(lowered, inputs, noting, ReferenceModelError)
    except Exception as error:  # noqa: BLE001 - the campaign reports these; draws are left
        refused = f"{type(error).__name__}: {error}"[:300]
    return Lowered(
        tuple(
            Delegate(item.name, item.tosa, tuple(calls[item.name]))
            for item in lowered.record.delegates
            if item.tosa is not None
        ),
        refused,
    )
