"""The vocabulary of shape rules: reading attributes, naming dimensions, broadcasting.

A shape rule (``Operator.infer``) sees what somebody may have typed into a JSON file, so every
attribute is read through one of these functions, which refuse a wrong kind of value in words.
That is also what makes ``repr(attribute)`` safe as source text.

Words: a *dim* is what torch takes, -rank to rank - 1; an *axis* is the same thing counted from 0.
All functions raise ``ShapeError`` and accept exactly what torch accepts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from harness.case.case import Attributes, TensorType
from harness.case.operators import ShapeError, Types, require

Shape = tuple[int, ...]
MOST_RANK = 5
"""Largest rank that is drawn."""


def is_float(type_: TensorType) -> bool:
    return type_.dtype == "float32"


def typed_as(*dtypes: str) -> Callable[[TensorType], bool]:
    """Accepts operands of these dtypes."""
    return lambda type_: type_.dtype in dtypes


def ranked(least: int, most: int = MOST_RANK) -> Callable[[TensorType], bool]:
    """Accepts float operands of these ranks."""
    return lambda type_: is_float(type_) and least <= type_.rank <= most


def written(text: str) -> Callable[[Sequence[str], Attributes, Types], str]:
    """A call of one operand: source text with ``{0}`` for it and ``{key}`` for an attribute."""
    return lambda operands, attributes, types: text.format(operands[0], **attributes)


def floats(types: Types, count: int) -> tuple[Shape, ...]:
    """Shapes of exactly ``count`` float operands."""
    require(len(types) == count, f"takes {count} operand{'s' * (count != 1)}, not {len(types)}")
    return some_floats(types)


def some_floats(types: Types) -> tuple[Shape, ...]:
    """Shapes of one or more float operands."""
    require(len(types) > 0, "takes at least one operand")
    for type_ in types:
        require(is_float(type_), f"takes float32, not {type_.dtype}")
    return tuple(type_.shape for type_ in types)


def typed(types: Types, *kinds: str | tuple[str, ...]) -> tuple[Shape, ...]:
    """Shapes of operands of these dtypes, a kind (a dtype, or several) for each."""
    require(len(types) == len(kinds), f"takes {len(kinds)} operand{'s' * (len(kinds) != 1)}, not {len(types)}")
    for type_, kind in zip(types, kinds, strict=True):
        allowed = (kind,) if isinstance(kind, str) else kind
        require(type_.dtype in allowed, f"takes {' or '.join(allowed)}, not {type_.dtype}")
    return tuple(type_.shape for type_ in types)


def integer(attributes: Attributes, key: str) -> int:
    value = attributes[key]
    if not isinstance(value, int) or isinstance(value, bool):
        raise ShapeError(f"{key} is {value!r}, not an integer")
    return value


def integers(attributes: Attributes, key: str, count: int | None = None) -> Shape:
    """A list of integers, of length ``count`` if that is given."""
    value = attributes[key]
    if not isinstance(value, (list, tuple)) or not all(
        isinstance(item, int) and not isinstance(item, bool) for item in value
    ):
        raise ShapeError(f"{key} is {value!r}, not a list of integers")
    require(count is None or len(value) == count, f"{key} has {len(value)} numbers, not {count}")
    return tuple(value)


def at_least(values: Sequence[int], least: int, key: str) -> None:
    require(all(value >= least for value in values), f"{key} {list(values)} holds a number below {least}")


def number(attributes: Attributes, key: str) -> float:
    value = attributes[key]
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise ShapeError(f"{key} is {value!r}, not a number")
    return value


def flag(attributes: Attributes, key: str) -> bool:
    value = attributes[key]
    if not isinstance(value, bool):
        raise ShapeError(f"{key} is {value!r}, not true or false")
    return value


def axis_of(dim: int, rank: int) -> int:
    """The axis that ``dim`` means in a value of ``rank`` (torch lets a scalar have dim 0 and -1)."""
    limit = max(rank, 1)
    require(-limit <= dim < limit, f"dim {dim} is outside rank {rank}")
    return dim % limit


def axes_of(dims: Sequence[int], rank: int) -> tuple[int, ...]:
    """The axes that several dims mean; naming one twice is an error."""
    axes = tuple(axis_of(dim, rank) for dim in dims)
    require(len(set(axes)) == len(axes), f"dims {list(dims)} name a dimension twice")
    return axes


def broadcast(*shapes: Shape) -> Shape:
    """The shape that torch broadcasts ``shapes`` to."""
    result: list[int] = []
    for place in range(1, max(len(shape) for shape in shapes) + 1):
        sizes = {shape[-place] for shape in shapes if len(shape) >= place} - {1}
        require(len(sizes) <= 1, f"shapes {', '.join(str(list(s)) for s in shapes)} do not broadcast")
        result.append(sizes.pop() if sizes else 1)
    return tuple(reversed(result))


def replaced(shape: Shape, axis: int, size: int) -> Shape:
    """``shape`` with another size along ``axis``."""
    return (*shape[:axis], size, *shape[axis + 1 :])


def one(shape: Iterable[int], *, dtype: str = "float32") -> tuple[TensorType, ...]:
    """The result types of an operator with one result."""
    return (TensorType(tuple(shape), dtype),)
