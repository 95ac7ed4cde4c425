"""The kinds of constant that a case may hold, each as Python source text.

A constant's recipe is its meaning: a factory call inside ``forward`` reaches the exporter as
``aten.full`` and friends (seed 000), a ramp as ``linspace().view().expand()`` (seed 002), and a
buffer or parameter as a lifted tensor (a parameter is what passes that fold weights look for).
``source`` gives the expression; ``place`` says whether it belongs into ``forward`` or is made
once, in ``__init__``.

Text is made from checked numbers only; a literal holds at most ``LITERAL_LIMIT`` elements so
that a repro script stays readable (larger tensors live in the safetensors file).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from harness.case.case import Attributes, Constant
from harness.case.operators import ShapeError, require

LITERAL_LIMIT = 4096


@dataclass(frozen=True)
class ConstantKind:
    """One kind of constant.

    :param source: expression of the value, given the constant.
    :param check: raises ``ShapeError`` where parameters and shape do not fit.
    :param place: ``forward``, or what it is registered as in ``__init__``.
    :param stored: True if the value comes from the safetensors file beside the case.
    """

    name: str
    source: Callable[[Constant], str]
    check: Callable[[Constant], None]
    place: Literal["forward", "buffer", "parameter"] = "forward"
    stored: bool = False
    parameters: Mapping[str, str] = field(default_factory=dict)


def _number(parameters: Attributes, key: str) -> float:
    value = parameters[key]
    require(isinstance(value, (int, float)) and not isinstance(value, bool), f"{key} is {value!r}, not a number")
    return float(value)


def _no_check(constant: Constant) -> None:
    require(constant.dtype == "float32", f"{constant.kind} makes float32, not {constant.dtype}")


def _check_numbers(*keys: str) -> Callable[[Constant], None]:
    def check(constant: Constant) -> None:
        _no_check(constant)
        for key in keys:
            _number(constant.parameters, key)

    return check


def _check_arange(constant: Constant) -> None:
    _no_check(constant)
    require(len(constant.shape) == 1, f"arange has rank 1, not {len(constant.shape)}")
    _number(constant.parameters, "start")
    require(_number(constant.parameters, "step") != 0, "arange's step is zero")


def _check_ramp(constant: Constant) -> None:
    _no_check(constant)
    dim = constant.parameters["dim"]
    require(
        isinstance(dim, int) and 0 <= dim < len(constant.shape),
        f"ramp's dim {dim!r} is outside rank {len(constant.shape)}",
    )
    _number(constant.parameters, "start")
    _number(constant.parameters, "stop")


def _check_random(constant: Constant) -> None:
    _no_check(constant)
    seed = constant.parameters["seed"]
    require(isinstance(seed, int) and seed >= 0, f"random's seed {seed!r} is not a natural number")
    low, high = _number(constant.parameters, "low"), _number(constant.parameters, "high")
    require(low < high, f"random's range {low} to {high} is empty")


def _check_literal(constant: Constant) -> None:
    values = constant.parameters["values"]
    wanted = 1
    for size in constant.shape:
        wanted *= size
    require(
        isinstance(values, list) and len(values) == wanted,
        f"literal needs {wanted} values for shape {list(constant.shape)}",
    )
    require(wanted <= LITERAL_LIMIT, f"literal has {wanted} values, more than {LITERAL_LIMIT}")
    kinds = {"float32": (int, float), "bool": (bool,)}.get(constant.dtype, (int,))
    require(all(isinstance(value, kinds) for value in values), f"literal holds values that are not {constant.dtype}")


def _check_stored(constant: Constant) -> None:
    key = constant.parameters["key"]
    require(isinstance(key, str) and bool(key), "the key of a stored tensor is empty")


def _shape(constant: Constant) -> str:
    return repr(tuple(constant.shape))


def _arange(constant: Constant) -> str:
    start, step = (_number(constant.parameters, key) for key in ("start", "step"))
    count = constant.shape[0]
    # count is spelled out by the end, half a step beyond the last element
    return f"torch.arange({start!r}, {start + step * (count - 0.5)!r}, {step!r})"


def _ramp(constant: Constant) -> str:
    start, stop = (_number(constant.parameters, key) for key in ("start", "stop"))
    dim: int = constant.parameters["dim"]
    steps = constant.shape[dim]
    view = tuple(steps if axis == dim else 1 for axis in range(len(constant.shape)))
    text = f"torch.linspace({start!r}, {stop!r}, {steps})"
    if len(view) > 1:
        text += f".view{view!r}"
    return text if view == constant.shape else f"{text}.expand{constant.shape!r}"


def _random(constant: Constant) -> str:
    p = constant.parameters
    return (
        f"torch.from_numpy(np.random.default_rng({p['seed']}).uniform({float(p['low'])!r}, "
        f"{float(p['high'])!r}, {_shape(constant)}).astype(np.float32))"
    )


def _literal(constant: Constant) -> str:
    values = ", ".join(repr(value) for value in constant.parameters["values"])
    return f"torch.tensor([{values}], dtype=torch.{constant.dtype}).reshape({_shape(constant)})"


def _zeros(constant: Constant) -> str:
    """A place of the right type for a stored tensor."""
    return f"torch.zeros({_shape(constant)}, dtype=torch.{constant.dtype})"


_KEY = {"key": "name in the safetensors file beside the case"}

CONSTANT_KINDS: Mapping[str, ConstantKind] = {
    kind.name: kind
    for kind in (
        ConstantKind(
            "full",
            lambda c: f"torch.full({_shape(c)}, {float(c.parameters['value'])!r})",
            _check_numbers("value"),
            parameters={"value": "the value of every element"},
        ),
        ConstantKind("zeros", lambda c: f"torch.zeros({_shape(c)})", _no_check),
        ConstantKind("ones", lambda c: f"torch.ones({_shape(c)})", _no_check),
        ConstantKind(
            "arange", _arange, _check_arange, parameters={"start": "first element", "step": "difference of neighbours"}
        ),
        ConstantKind(
            "ramp",
            _ramp,
            _check_ramp,
            parameters={
                "start": "first value along dim",
                "stop": "last value along dim",
                "dim": "the axis along which it rises",
            },
        ),
        ConstantKind(
            "random",
            _random,
            _check_random,
            place="buffer",
            parameters={"seed": "numpy seed", "low": "lower end", "high": "upper end"},
        ),
        ConstantKind(
            "literal", _literal, _check_literal, place="buffer", parameters={"values": "row-major list of the elements"}
        ),
        ConstantKind("tensor", _zeros, _check_stored, place="buffer", stored=True, parameters=_KEY),
        ConstantKind("parameter", _zeros, _check_stored, place="parameter", stored=True, parameters=_KEY),
    )
}


def check_constant(constant: Constant) -> None:
    """Raise ``ShapeError`` unless the constant's kind, parameters and shape fit."""
    kind = CONSTANT_KINDS.get(constant.kind)
    if kind is None:
        raise ShapeError(f"unknown kind {constant.kind!r}; known are {', '.join(CONSTANT_KINDS)}")
    if set(constant.parameters) != set(kind.parameters):
        raise ShapeError(
            f"{constant.kind} takes the parameters {sorted(kind.parameters)}, not {sorted(constant.parameters)}"
        )
    kind.check(constant)
