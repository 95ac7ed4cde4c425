"""Arrays as source text: the expression that draws them if it gives the same bits, literals otherwise.

A repro script has to calibrate with the very samples of its case, or scales would differ. ``DRAWING`` is
the text of the functions that its expressions call; here the same text is executed to see what an
expression gives, so that a script cannot differ from its case. What is too large to be read goes into a
file beside the script (``VALUES``, numpy's npz), and is named there.

No torch here: expressions are numpy's.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from harness.case.arrays import Array
from harness.case.case import Case, Input
from harness.case.sampling import CALIBRATION, ENDPOINTS, FRESH, EvaluationInput, calibration_samples
from harness.reports.bugs.verifying import VALUES

MOST_LITERALS = 64
"""Elements of an array that are still written out."""

DRAWING = {
    "draw": '''\
def draw(name, index, seed=0):
    """The random generator of one sample of one input."""
    return np.random.default_rng([seed, zlib.crc32(name.encode()), index])
''',
    "ends": '''\
def ends(name, low, high, shape, seed=0):
    """Values at both ends of a range."""
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    return np.where(rng.integers(0, 2, math.prod(shape)) == 0, low, high).reshape(shape)
''',
}

_SAMPLES: Mapping[str, str] = {
    "uniform": "{rng}.uniform({low}, {high}, {shape})",
    "normal": "{rng}.normal({mean}, {std}, {shape})",
    "shifted": "{rng}.uniform({low}, {high}, {shape}) + {offset}",
    "one_sided": "{rng}.uniform(0.0, 1.0, {shape}) * {bound}",
    "constant": "np.full({shape}, {value})",
    "zero": "np.zeros({shape})",
    "tiny_range": "{center} + {rng}.uniform(-0.5, 0.5, {shape}) * {width}",
    "huge_range": "{rng}.uniform(-1.0, 1.0, {shape}) * {bound}",
    "ramp": "np.linspace({low}, {high}, {size}).reshape({shape})",
    "disjoint": "{index} * {gap} + {rng}.uniform(0.0, {width}, {shape})",
}


@dataclass
class Values:
    """Writes the tensors of one case as text.

    :ivar stored: arrays that went into the file beside the script, by name.
    """

    case: Case
    tensors: Mapping[str, Array]
    stored: dict[str, Array] = field(default_factory=dict)

    def samples(self) -> str:
        """The calibration samples: a list of tuples of tensors."""
        samples = calibration_samples(self.case, self.tensors)
        drawn = [self._drawn(item, "i") for item in self.case.graph.inputs]
        if self.case.graph.inputs and all(
            text is not None and all(_gives(text, sample[place], i) for i, sample in enumerate(samples))
            for place, text in enumerate(drawn)
        ):
            row = tuple_text([_tensor(text) for text in drawn if text is not None])
            return f"[{row} for i in range({len(samples)})]" if len(row) < 80 else _comprehension(row, len(samples))
        rows = [
            tuple_text([self.tensor(array, f"sample.{i}.{item.name}") for item, array in self._with_inputs(sample)])
            for i, sample in enumerate(samples)
        ]
        return "[\n" + "".join(f"    {row},\n" for row in rows) + "]"

    def evaluation(self, item: EvaluationInput, place: int) -> str:
        """One tuple of inputs. ``place`` is its number among the evaluation inputs."""
        if item.origin == CALIBRATION:
            return f"CALIBRATION[{place}]"
        texts = []
        for given, array in self._with_inputs(item.arrays):
            expression = None
            if item.origin == FRESH:
                expression = self._drawn(given, "0", self.case.seeds.evaluation + 1_000_003)
            elif item.origin in (ENDPOINTS, "saturating"):
                expression = self._ends(given, array)
            exact = expression is not None and _gives(expression, array)
            if exact and expression is not None and array.size > 8:
                texts.append(_tensor(expression))
            else:
                texts.append(self.tensor(array, f"input.{place}.{given.name}"))
        return tuple_text(texts)

    def tensor(self, array: Array, name: str) -> str:
        """A tensor of any values: literals, or a reference to the file beside the script."""
        if array.size <= MOST_LITERALS:
            values = ", ".join(_number(value) for value in array.reshape(-1))
            flat = f"torch.tensor([{values}], dtype=torch.{array.dtype})"
            return flat if array.ndim == 1 else f"{flat}.reshape({tuple(array.shape)})"
        self.stored[name] = array
        return f"torch.from_numpy(VALUES[{name!r}])"

    def write(self, folder: Path) -> None:
        """Write the file beside the script, or remove one that no script needs."""
        if self.stored:
            np.savez(folder / VALUES, **self.stored)
        else:
            (folder / VALUES).unlink(missing_ok=True)

    def _with_inputs(self, arrays: tuple[Array, ...]) -> list[tuple[Input, Array]]:
        return list(zip(self.case.graph.inputs, arrays, strict=True))

    def _drawn(self, item: Input, index: str, seed: int | None = None) -> str | None:
        distribution = self.case.calibration[item.name]
        form = _SAMPLES.get(distribution.kind)
        if form is None or item.dtype != "float32":
            return None
        seed = self.case.seeds.calibration if seed is None else seed
        rng = f"draw({item.name!r}, {index}{f', seed={seed}' if seed else ''})"
        size = math.prod(item.shape)
        text = form.format(rng=rng, index=index, shape=item.shape, size=size, **distribution.parameters)
        return f"({text})" if " + " in text or " * " in text else text

    def _ends(self, item: Input, array: Array) -> str | None:
        """Text for an array that holds two values; the halves of the range are told apart by the draw."""
        if item.dtype != "float32" or not array.size:
            return None
        seed = f", seed={self.case.seeds.evaluation}" if self.case.seeds.evaluation else ""
        low, high = _number(array.min()), _number(array.max())
        return f"ends({item.name!r}, {low}, {high}, {item.shape}{seed})"


def _comprehension(row: str, count: int) -> str:
    return f"[\n    {row}\n    for i in range({count})\n]"


def tuple_text(texts: list[str]) -> str:
    """A tuple inside a list that is indented by four: on one line if that is short enough."""
    text = "(" + ", ".join(texts) + ("," if len(texts) == 1 else "") + ")"
    return text if len(text) < 100 else "(\n" + "".join(f"        {item},\n" for item in texts) + "    )"


def _tensor(expression: str) -> str:
    return f"torch.from_numpy({expression}.astype(np.float32))"


def _number(value: object) -> str:
    """The shortest text of an element that reads back as the same bits."""
    if isinstance(value, np.floating):
        return str(value) if np.isfinite(value) else f'float("{value}")'
    return str(value)


def _gives(expression: str, wanted: Array, i: int = 0) -> bool:
    """Does the text of an expression give the very bits of an array?"""
    scope: dict[str, object] = {"np": np, "math": math, "zlib": zlib, "i": i}
    for text in DRAWING.values():
        exec(text, scope)
    got = np.asarray(eval(expression, scope)).astype(np.float32)
    return got.shape == wanted.shape and got.tobytes() == wanted.tobytes()
