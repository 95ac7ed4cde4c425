"""One case, stock and with each variant of corrections: what moved, and what do the oracles say of it?

Artifacts are the quantized graph, the operators left on the CPU, and per delegate its TOSA
flatbuffer, its payload (Ethos-U: as the NPU takes it) and what the program passes and expects.
Where they are the same, or both lowerings fail alike, nothing moved; nor where the stock compile never
reaches code that a variant changes (``harness.corrections.touching``), or only in steps that leave the
same with the variant (``harness.campaign.certify.single_steps``). Elsewhere the case runs on all
legs and oracles both ways; ``harness.campaign.certify.deciding`` says what that means.

The quantized graph, and the edge program ahead of partitioning, are shared with the stock compile where
that made them before it came to code that a variant changes.

Imports torch and executorch; runs in worker processes only.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch

from harness.campaign.certify.single_steps import Trial
from harness.case.building import load_tensors
from harness.case.case import Case
from harness.case.reading import file_of, read_case
from harness.case.recipe import parse_recipe
from harness.case.target import parse_target
from harness.compat.sources import Place
from harness.compat.stack import stack_for
from harness.compat.steps import steps_run_by
from harness.compat.vela_in_child import vela_in_child
from harness.compat.warm.sharing import SharedEdge, shared_edge
from harness.corrections import chosen, find_correction
from harness.corrections.applying import applied, function_at
from harness.corrections.touching import Reach, changed_places, first_reader, touched
from harness.ethosu.equivalence import payload_difference
from harness.evidence.observation import Observation, headline
from harness.pipeline.lowering import StageClock
from harness.pipeline.probes.graphs import differences
from harness.triage.findings import Finding, finding_of
from harness.workers.observing import Compiled, InvalidCase, Options, compile_case, execute, judge
from harness.workers.protocol import QUANTIZED_GRAPH, Compared, CompareTask, Comparison, Variant


def compare(task: CompareTask, announce: Callable[[str], None]) -> Compared:
    """Compare a case's stock compile with that of each variant."""
    path = Path(task.case)
    case = read_case(path)
    options = Options(tensors=load_tensors(case, file_of(path).parent))
    with vela_in_child() if task.guarded else nullcontext(), shared_edge() as edge:
        scene = _Scene(task.case, case, StageClock(announce), options, edge)
        try:
            scene.compile_stock(task.variants)
            rows = tuple(scene.comparison(words) for words in task.variants)
        except InvalidCase as error:
            return Compared(case=task.case, target=case.target, invalid=str(error))
    return Compared(case=task.case, target=case.target, comparisons=rows, seconds=dict(scene.clock.seconds))


class _Scene:
    """A case with what was computed of its stock run so far."""

    def __init__(self, path: str, case: Case, clock: StageClock, options: Options, edge: SharedEdge) -> None:
        self.path, self.case, self.clock, self.options, self.edge = path, case, clock, options, edge
        self._stock: Compiled | None = None
        self._unmoved: frozenset[Variant] = frozenset()
        self._reached: frozenset[Place] = frozenset()
        self._marks: list[frozenset[Place]] = []  # what was reached before the edge program was made, and after
        self._judged: tuple[Observation, tuple[Finding, ...]] | None = None

    def compile_stock(self, variants: Sequence[Variant]) -> None:
        """Compile the case as the installed packages do, and find the variants that this is a compile of, too."""
        unique = {item.name: item for words in variants for item in chosen(words)}
        with touched(tuple(unique.values())) as places:
            self.edge.making = lambda: self._marks.append(frozenset(places))
            trial = Trial(variants, places, self._partitioner)
            with steps_run_by(trial.run_step):
                self._stock = self._compiled(None)
        self._unmoved = trial.unmoved()
        self._reached = frozenset(places | trial.reached)

    def comparison(self, words: Variant) -> Comparison:
        return msgspec.structs.replace(self._compared(words), reached=self._comes_to(words))

    def _comes_to(self, words: Variant) -> bool:
        """Did the stock compile come to what the variant's last correction changes?

        There is no telling who reads an assignment, so functions decide where there are any.
        """
        own = changed_places((find_correction(words[-1]),))
        functions = {place for place in own if function_at(import_module(place[0]), place[1]) is not None}
        return bool((functions or own) & self._reached)

    def _compared(self, words: Variant) -> Comparison:
        corrections = chosen(words)
        assert self._stock is not None
        if words in self._unmoved:
            return Comparison(variant=words, same=True)
        reach = {self._reach(module, place) for module, place in changed_places(corrections)}
        self.edge.enabled = reach == {"backend"}
        with applied(corrections):
            corrected = self._compiled(None if "quantization" in reach else self._stock)
            what = _difference(self._stock, corrected)
            if not what:
                return Comparison(variant=words, same=True)
            observation, after = self._executed(corrected)
        self.edge.enabled = True
        if self._judged is None:
            self._judged = self._executed(self._stock)
        stock, before = self._judged
        apart = _outputs_apart(stock, observation)
        return Comparison(variant=words, what=what, stock=before, corrected=after, apart=apart)

    def _reach(self, module: str, place: str) -> Reach:
        """The first part of the stock compile that came to a changed place. Partitioners are made for every compile."""
        if function_at(import_module(module), place) is None:
            return first_reader(module)
        if len(self._marks) < 2 or place.endswith("Partitioner.__init__"):
            return "quantization" if len(self._marks) < 2 else "backend"
        before, after = self._marks
        return "quantization" if (module, place) in before else "edge" if (module, place) in after else "backend"

    def _compiled(self, like: Compiled | None) -> Compiled:
        """Compile the case, from the quantized graph of an earlier compile if that is given."""
        torch.compiler.reset()
        if like is None or like.quantized is None or like.record.mutated:  # its module is no longer the user's
            return compile_case(self.case, self.clock, self.options)
        fresh = replace(  # lowering works in place, and a partitioner keeps what it saw
            like.quantized, exported=copy.deepcopy(like.quantized.exported), partitioner=self._partitioner()
        )
        return compile_case(self.case, self.clock, replace(self.options, model=like.model), quantized=fresh)

    def _partitioner(self) -> Any:
        return stack_for(parse_target(self.case.target), parse_recipe(self.case.recipe)).partitioner

    def _executed(self, compiled: Compiled) -> tuple[Observation, tuple[Finding, ...]]:
        observation = execute(compiled, self.clock, self.options)
        counted = [item for item in judge(observation) if not item.information]
        return observation, tuple(finding_of(item, self.case, self.path) for item in counted)


def _difference(one: Compiled, other: Compiled) -> str:
    """The first thing that two compiles do not have in common; empty if there is none."""
    first, second = one.record, other.record
    if first.mutated != second.mutated:
        return f"changes {_words(first.mutated)} of the user's module, and then {_words(second.mutated)}"
    if one.failure or other.failure:
        return "" if _ends(one) == _ends(other) else f"{_ends(one)}, and then {_ends(other)}"
    if found := differences(first.reference, second.reference):
        return f"{QUANTIZED_GRAPH}: {found[0]}"
    if first.fallback != second.fallback:
        return f"on the CPU: {_words(first.fallback)} and then {_words(second.fallback)}"
    if len(first.delegates) != len(second.delegates):
        return f"{len(first.delegates)} and then {len(second.delegates)} delegates"
    for before, after in zip(first.delegates, second.delegates, strict=True):
        for name in ("inputs", "arguments", "results", "operators"):
            if getattr(before, name) != getattr(after, name):
                return f"{before.name}: other {name}"
        if before.tosa != after.tosa:
            return f"{before.name}: other TOSA"
        if before.backend == "EthosUBackend" and (what := payload_difference(before.payload, after.payload)):
            return f"{before.name}: {what}"
    exact = all(
        before.payload == after.payload for before, after in zip(first.delegates, second.delegates, strict=True)
    )
    return "other .pte" if exact and first.program != second.program else ""


def _ends(compiled: Compiled) -> str:
    failure = compiled.failure
    return f"raises {failure.type} in {failure.stage}: {headline(failure.message)}" if failure else "compiles"


def _words(names: Sequence[str]) -> str:
    return ", ".join(names) or "nothing"


def _outputs_apart(one: Observation, other: Observation) -> str:
    """Where a leg that ran both times does not return the same bits; empty if none."""
    for name, leg in one.legs.items():
        twin = other.legs.get(name)
        if twin is None or not (leg.ran and twin.ran):
            continue
        for place, (before, after) in enumerate(zip(leg.outputs or (), twin.outputs or (), strict=True)):
            for index, (first, second) in enumerate(zip(before, after, strict=True)):
                if first.dtype != second.dtype or not np.array_equal(first, second, equal_nan=first.dtype.kind == "f"):
                    return f"{name} returns other values: output {index} of evaluation input {place}"
    return ""
