"""The tricks that make the toolchain fast without changing what it produces, each under a name.

A *trick* is something that a worker does once before its first case. The artifacts are those of the plain
sequence, byte for byte (``tests/integration/test_warm.py``; payloads for Ethos-U85, which Vela itself does not
repeat, as the NPU takes them). ``--no-warm`` leaves all out, ``armdiff bench --tricks`` leaves out one at a time and
measures what it had gained.

``TRICKS`` is the one list; a worker is told by name what to leave out (``--without=NAME``), and applies the rest
in order. A trick's *gain* is the processor time without it over that with all of them: 4 drawn graphs on the three
default targets (``armdiff bench --tricks --graphs 4 --seed 7``, executorch 1.5.1, 2026-11-23, beside another job;
single pairs scatter by 0.1). Without any of them it is 4.30. Those of ``code-compiled-once``,
``flattened-without-garbage``, ``kernels-remembered`` and ``decomposed-once`` are the processor time that they save in
four graphs, nine, or a campaign of 25, timed inside (2026-11-26). That of ``operands-walked-plainly`` is of
the cases of 147 corpus entries; that of ``code-unwritten`` is 1.08 for Arm's passes times 1.18 for all others
(docs/benchmark.md).

This module imports neither torch nor executorch until a trick is applied, and a trick cannot be undone in a process.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial

from harness.case.errors import BadInput


@dataclass(frozen=True)
class Trick:
    """One thing that is done once instead of for every graph.

    :param what: what is done, and why it changes nothing.
    :param gain: what was measured: times the processor time.
    :param apply: does it, for the whole process.
    """

    name: str
    what: str
    gain: str
    apply: Callable[[], None]


def warm_up(without: Collection[str] = ()) -> None:
    """Apply every trick but those that are named; torch and executorch must have been imported."""
    for trick in TRICKS:
        if trick.name not in without:
            trick.apply()


def names(words: Sequence[str], where: str = "--without") -> tuple[str, ...]:
    """Tricks to leave out; ``all`` stands for every one.

    :raises BadInput: no trick has that name.
    """
    known = [trick.name for trick in TRICKS]
    for word in words:
        if word not in known and word != "all":
            raise BadInput(where, f"unknown trick {word!r}", f"use all, {', '.join(known)}")
    return tuple(known) if "all" in words else tuple(dict.fromkeys(words))


def _pause_collection() -> None:
    gc.collect()
    gc.freeze()
    gc.disable()


def _load_operators_once() -> None:
    from harness.compat.warm.sharing import load_operators_once

    load_operators_once()


def _share_node_histories() -> None:
    from harness.compat.warm.sharing import share_node_histories

    share_node_histories()


def _search_fast() -> None:
    from harness.compat.warm.histogram import use_fast_search

    use_fast_search()


def _leave_patterns_untraced() -> None:
    from harness.compat.warm.patterns import untraced_without_root

    untraced_without_root()


def _leave_out_annotations() -> None:
    from harness.compat.warm.sharing import leave_out_annotations

    leave_out_annotations()


def _override_once() -> None:
    from harness.compat.warm.kernels import override_once

    override_once()


def _write_code_when_called() -> None:
    from harness.compat.warm.codegen import write_code_when_called

    write_code_when_called()


def _compile_code_once() -> None:
    from harness.compat.warm.codegen import compile_code_once

    compile_code_once()


def _flatten_without_garbage() -> None:
    from harness.compat.warm.sharing import flatten_without_garbage

    flatten_without_garbage()


def _share_interpreter() -> None:
    from harness.compat.warm.evaluating import share_interpreter

    share_interpreter()


def _evaluate_once() -> None:
    from harness.compat.warm.evaluating import evaluate_once

    evaluate_once()


def _walk_operands_plainly() -> None:
    from harness.compat.warm.retracing import walk_operands_plainly

    walk_operands_plainly()


def _decompose_what_is_there() -> None:
    from harness.compat.warm.decomposing import decompose_what_is_there

    decompose_what_is_there()


def _cache(stage: str) -> None:
    from harness.compat.warm.stage_cache import enable

    enable(stage)


TRICKS: tuple[Trick, ...] = (
    Trick(
        "operators-once",
        "torch looks up every operator of the dispatcher whenever a program is decomposed; here before the first case",
        "1.20",
        _load_operators_once,
    ),
    Trick(
        "histories-shared",
        "the history of a graph node is deep-copied into every node made from it; nothing changes it, so all share it",
        "1.20",
        _share_node_histories,
    ),
    Trick(
        "histogram-search",
        "torchao's search for a histogram's range goes from one step that moves something to the next",
        "1.15",
        _search_fast,
    ),
    Trick(
        "patterns-untraced",
        "torchao exports 96 patterns of quantization-aware training for each graph that keeps a batch_norm; here for "
        "those only that could match one",
        "1.0; 80 where it helps",
        _leave_patterns_untraced,
    ),
    Trick(
        "annotations-out",
        "torch evaluates the annotations of an inner function at each of 12,000 calls; they are compiled out",
        "1.07",
        _leave_out_annotations,
    ),
    Trick(
        "kernels-remembered",
        "torch registers up to 20 kernels for each of 558 operators whenever a program is decomposed; here they are "
        "taken from memory",
        "1.05",
        _override_once,
    ),
    Trick(
        "code-unwritten",
        "the Python code of a graph that a pass leaves is written when somebody looks; hardly anybody does",
        "1.27",
        _write_code_when_called,
    ),
    Trick(
        "code-compiled-once",
        "of ten texts of code that torch.fx compiles it had nine for the same graph; their code is named anew",
        "1.05",
        _compile_code_once,
    ),
    Trick(
        "flattened-without-garbage",
        "every tree that torch flattens leaves an inner function that refers to itself, two fifths of all garbage",
        "1.04",
        _flatten_without_garbage,
    ),
    Trick(
        "interpreter-shared",
        "each of the 160 passes of a delegate has an interpreter of an empty module; all take one, which has no state, "
        "and a tracer, which is made when somebody looks",
        "1.07",
        _share_interpreter,
    ),
    Trick(
        "evaluated-once",
        "each pass evaluates all nodes with fake tensors, delegates included; the same operator with the very same "
        "operands is remembered",
        "1.08",
        _evaluate_once,
    ),
    Trick(
        "operands-walked-plainly",
        "each pass makes every node anew, and looks six times at each operand of it, in ways that serve any tree; here "
        "three times",
        "1.04",
        _walk_operands_plainly,
    ),
    Trick(
        "decomposed-once",
        "a program is traced three times for its decompositions; here not again when there is nothing to decompose",
        "1.10",
        _decompose_what_is_there,
    ),
    Trick(
        "quantized-cached",
        "a target whose prepared graph has the fingerprint of the last one's takes a copy of what became of that",
        "1.76",
        partial(_cache, "quantized-cached"),
    ),
    Trick(
        "edge-cached",
        "a target that got the quantized graph of the last one and whose partitioner answers alike takes a copy of "
        "the edge program; so do further lowerings for a certificate",
        "1.74",
        partial(_cache, "edge-cached"),
    ),
    Trick(
        "collection-paused",
        "two million imported objects are frozen, and garbage is collected between cases instead of inside them",
        "1.17",
        _pause_collection,
    ),
)
