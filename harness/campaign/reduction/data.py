"""Cuts of what a graph is fed with and how it is quantized: calibration, constants, recipe, samples, seeds."""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec

from harness.campaign.reduction.structure import Cut, valid
from harness.case.case import Attributes, Case, Constant, Distribution
from harness.case.constants import LITERAL_LIMIT
from harness.case.editing import UNIFORM

_POSITIVE = Distribution(kind="uniform", parameters={"low": 0.0, "high": 1.0})
_PLAIN_CONSTANTS: tuple[tuple[str, Attributes], ...] = (
    ("full", {"value": 1.0}),
    ("ramp", {"start": -1.0, "stop": 1.0, "dim": 0}),
    ("random", {"seed": 0, "low": -1.0, "high": 1.0}),
)


def data_cuts(case: Case) -> Iterator[Cut]:
    """Valid cases with plainer data or a plainer recipe."""
    yield from valid(case, _cuts(case))


def _cuts(case: Case) -> Iterator[Cut]:
    words = case.recipe.split(",")
    for place in range(1, len(words)):
        rest = ",".join((*words[:place], *words[place + 1 :]))
        yield Cut(msgspec.structs.replace(case, recipe=rest), f"recipe {rest} in place of {case.recipe}")
    if words[0] not in ("a8w8", "float"):
        plain = ",".join(("a8w8", *words[1:]))
        yield Cut(msgspec.structs.replace(case, recipe=plain), f"recipe {plain} in place of {case.recipe}")
    if case.samples > 1:
        yield Cut(msgspec.structs.replace(case, samples=1), f"1 calibration sample in place of {case.samples}")
    yield from _calibrations(case)
    for place, constant in enumerate(case.graph.constants):
        for other in _plainer(constant):
            constants = (*case.graph.constants[:place], other, *case.graph.constants[place + 1 :])
            graph = msgspec.structs.replace(case.graph, constants=constants)
            words_ = f"constant {constant.name} {other.kind} {other.parameters or ''}".rstrip()
            yield Cut(msgspec.structs.replace(case, graph=graph), f"{words_} in place of {constant.kind}")
    for name in ("weights", "calibration", "evaluation"):
        if getattr(case.seeds, name):
            seeds = msgspec.structs.replace(case.seeds, **{name: 0})
            yield Cut(msgspec.structs.replace(case, seeds=seeds), f"seed 0 of {name}")


def _calibrations(case: Case) -> Iterator[Cut]:
    if len(case.calibration) > 1:
        for plain in (UNIFORM, _POSITIVE):
            same = dict.fromkeys(case.calibration, plain)
            yield Cut(msgspec.structs.replace(case, calibration=same), f"every input {_words(plain)}")
    for name, distribution in case.calibration.items():
        for plain in (UNIFORM, _POSITIVE, *_rounded(distribution)):
            changed = {**case.calibration, name: plain}
            what = f"input {name} {_words(plain)} in place of {_words(distribution)}"
            yield Cut(msgspec.structs.replace(case, calibration=changed), what)


def _words(distribution: Distribution) -> str:
    values = ", ".join(f"{key} {value}" for key, value in distribution.parameters.items())
    return f"{distribution.kind} ({values})" if values else distribution.kind


def _rounded(distribution: Distribution) -> Iterator[Distribution]:
    """The same kind with one number rounded to a whole one."""
    for key, value in distribution.parameters.items():
        if isinstance(value, float) and value != (whole := float(math.trunc(value))):
            parameters = {**distribution.parameters, key: whole}
            yield msgspec.structs.replace(distribution, parameters=parameters)


def _plainer(constant: Constant) -> Iterator[Constant]:
    """Plainer kinds of a float constant; a stored one may become a seeded one."""
    if constant.dtype != "float32":
        return
    for kind, parameters in _PLAIN_CONSTANTS:
        if kind == constant.kind:
            return  # what follows is not plainer
        if kind == "ramp" and (not constant.shape or math.prod(constant.shape) > LITERAL_LIMIT):
            continue
        yield msgspec.structs.replace(constant, kind=kind, parameters=parameters)
