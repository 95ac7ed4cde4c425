"""The fingerprint of a bug: what its smallest program says, in words that do not depend on the program it came from.

::

    values: x0 int8 [n, 1]; v0 = SLICE(x0) off the front; v1 = REDUCE_MAX(v0) axis 1

*Which finding* comes first: wrong values and what a stream reads or leaves unwritten are one (``values``). Then the
program, an operator a part: what it reads (``c`` is a constant), and what is left of its attributes. A reduction makes
everything plain that does not matter, so what is not plain matters: a stride, padding before or behind, an axis of one
or of several elements. Numbers are told as words, generalised by trying:

========== ===================================================================================
``1``      the axis has one element
``n``      it has more; so many more that a multiple of 16 is one do as well
``n%16``   it has more, and no multiple of 16 does
``>16``    it has more than this power of two, and fewer do not do
``=5``     this very number
========== ===================================================================================

Where chance decides whether it shows, as with bytes that nothing wrote, one trial says nothing of a size: each that is
no one is ``n``. Leading axes of one element are left out up to rank four. ``generalisations`` are the programs to be
tried, ``worded`` makes the text of what they show; nothing here judges anything.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from harness.artifacts.tosa import grows_unlike
from harness.tosa.cutting import PLAIN, entries
from harness.tosa.judging import BY_CHANCE
from harness.tosa.program import DATA, SHAPE, Attribute, Operator, Program, Tensor
from harness.tosa.resizing import resized
from harness.triage.findings import Finding
from harness.triage.known import shown_kind

_SMALL = 8
"""A size that needs no threshold."""
_REMAINDER = 16
_RANK = 4
Axis = tuple[str, int]


def generalisations(program: Program, finding: Finding) -> dict[tuple[Axis, str], Program]:
    """Programs that tell what the size of an axis of an input or a constant has to be: (tensor and axis, ``multiple``
    or ``more``) -> the program in which it is the next multiple of 16, or one more. None if they could not tell.
    """
    if finding.oracle == BY_CHANCE:
        return {}
    found: dict[tuple[Axis, str], Program] = {}
    for item in program.tensors:
        if item.name in program.producers or item.dtype == SHAPE or item.elements == 1:
            continue
        for axis, size in enumerate(item.shape):
            if size == 1:
                continue
            for word, other in (("multiple", size // _REMAINDER * _REMAINDER + _REMAINDER), ("more", size + 1)):
                shape = (*item.shape[:axis], other, *item.shape[axis + 1 :])
                made = resized(program, shapes={item.name: shape})
                if made is not None:
                    found[(item.name, axis), word] = made
    return found


def worded(program: Program, finding: Finding, shown: Mapping[tuple[Axis, str], bool]) -> str:
    """The fingerprint.

    :param program: the smallest one, in canonical form.
    :param shown: which of the generalisations show the finding.
    """
    sizes = {
        (item.name, axis): _size(
            size, shown.get(((item.name, axis), "multiple")), shown.get(((item.name, axis), "more"))
        )
        for item in program.tensors
        for axis, size in enumerate(item.shape)
    }
    parts = [
        f"{name} {program.by_name[name].dtype.lower()} {_shape(program.by_name[name], sizes)}"
        for name in program.inputs
    ]
    parts += [
        f"{', '.join(step.outputs)} = {step.op}({', '.join(_operands(program, step, sizes))})"
        + "".join(f" {term}" for term in _terms(program, step))
        for step in program.operators
    ]
    if program.outputs != tuple(name for step in program.operators[-1:] for name in step.outputs):
        parts.append(f"out {', '.join(program.outputs)}")
    return f"{shown_kind(finding)}: {'; '.join(parts)}"


def _size(size: int, multiple: bool | None, more: bool | None) -> str:
    if size == 1:
        return "1"
    if multiple is None and more is None:  # a result's, which follows
        return "n"
    if not multiple:
        return f"n%{_REMAINDER}" if more else f"={size}"
    return "n" if size <= _SMALL else f">{1 << (size - 1).bit_length() - 1}"


def _shape(item: Tensor, sizes: Mapping[Axis, str]) -> str:
    words = [sizes[item.name, axis] for axis in range(len(item.shape))]
    if len(words) <= _RANK:
        while words and words[0] == "1":
            words.pop(0)
    return f"[{', '.join(words or ['1'])}]"


def _operands(program: Program, step: Operator, sizes: Mapping[Axis, str]) -> Iterator[str]:
    """Names of what is computed, ``c`` for constants of some size; zero points, factors and shapes are terms."""
    for place, name in enumerate(step.inputs):
        item = program.by_name[name]
        if not item.constant:
            yield name
        elif item.dtype != SHAPE and place < DATA.get(step.op, 9):
            yield "c" if item.elements == 1 else f"c{_shape(item, sizes)}"


def _terms(program: Program, step: Operator) -> Iterator[str]:
    """What is not plain of an operator."""
    table = program.by_name
    before, after = table[step.inputs[0]], table[step.outputs[0]]
    if before.dtype != after.dtype:
        yield f"to {after.dtype.lower()}"
    for name, value in sorted(step.attributes.items()):
        yield from _attribute(name, value, before)
    if step.op == "RESCALE":
        yield from _factor(table[step.inputs[1]], table[step.inputs[2]])
    if step.op == "PAD":
        yield from _sides([int(item) for item in table[step.inputs[1]].values()])
    if step.op == "SLICE" and any(int(item) for item in table[step.inputs[1]].values()):
        yield "off the front"
    if step.op == "RESHAPE":
        yield from _reshaped(before, after)
    if step.op == "RESIZE" and grows_unlike(table[step.inputs[1]].values()):
        yield "by unlike factors"


def _attribute(name: str, value: Attribute, operand: Tensor) -> Iterator[str]:
    if name == "Axis":
        axis = entries(value)[0]
        yield f"along {'1' if operand.shape[axis] == 1 else 'n'}"
    elif name in ("Pad", "OutPad"):
        yield from _sides(entries(value))
    elif name == "Kernel" or name in PLAIN:
        most = max(entries(value))
        if most > PLAIN.get(name, 1):
            yield f"{name.lower()} > 1"
    elif name == "Perms":
        order = [axis for axis in entries(value) if operand.shape[axis] > 1]
        yield "moves" if order != sorted(order) else "moves ones"
    elif name == "PerChannel" and value:
        yield "a channel"


def _sides(numbers: Sequence[int]) -> Iterator[str]:
    """Padding before and behind."""
    if any(numbers[0::2]):
        yield "pad before"
    if any(numbers[1::2]):
        yield "pad behind"


def _factor(multiplier: Tensor, shift: Tensor) -> Iterator[str]:
    pairs = zip(multiplier.values().ravel(), shift.values().ravel(), strict=True)
    factors = {int(one) / 2.0 ** int(two) for one, two in pairs}
    if len(factors) > 1:
        yield "by several"
        return
    [factor] = factors
    mantissa, _ = math.frexp(factor)
    if factor != 1:
        yield f"by {'2^' if mantissa == 0.5 else ''}{'up' if factor > 1 else 'down'}"


def _reshaped(before: Tensor, after: Tensor) -> Iterator[str]:
    """Only ones come and go, or elements do."""
    same = [size for size in before.shape if size > 1] == [size for size in after.shape if size > 1]
    yield "by ones" if same else "of elements"
    if max(len(before.shape), len(after.shape)) > _RANK:
        yield f"from rank {len(before.shape)} to {len(after.shape)}"
