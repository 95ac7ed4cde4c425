"""A case's graph as a picture: inputs, constants, operators and outputs from top to bottom.

Kinds of boxes differ by shape as well as by colour: inputs are rounded, constants dashed, operators plain;
outputs are marks below what they return. An operator shows its attributes and the type of its result; operands
enter from left to right in their order. What does not lead to the wrong output is faint, and an operator
that the recipe leaves float, or gives widths of its own, says so.

Text is set in a fixed-width font, so that widths are known without a browser. The description lists the
graph in words, a line a value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

from harness.case.case import Case, Constant, Distribution, Graph, Node, TensorType, maker_of
from harness.case.checking import value_types
from harness.case.constants import CONSTANT_KINDS
from harness.case.recipe import Recipe, parse_recipe
from harness.case.registry import calibration_kinds, operators
from harness.reports.reporting.layout import Box, Edge, laid_out
from harness.reports.reporting.svg import element, figure, text
from harness.reports.reporting.words import operator_name

MOST = 60
"""Boxes beyond which a picture tells nothing."""
CHARACTER = 6.7
LINE = 15.0
INSIDE = 9.0
EDGE = 4.0
LONGEST = 26
MOST_LINES = 6


@dataclass(frozen=True)
class _Drawn:
    """A box of the picture: its lines, the first of which is its name, and its look."""

    name: str
    lines: tuple[str, ...]
    look: str


def picture(case: Case, name: str, needed: frozenset[str] | None = None) -> Markup | None:
    """The graph of a checked case, or None if it is too large to draw.

    :param name: unique on the page.
    :param needed: values that the wrong output depends on; the others are faint. None: all are.
    """
    graph = case.graph
    if len(graph.inputs) + len(graph.constants) + len(graph.nodes) + len(graph.outputs) > MOST:
        return None
    types = value_types(graph)
    drawn = list(_boxes(case, types))
    boxes = [Box(item.name, _wide(item), LINE * len(item.lines) + INSIDE) for item in drawn]
    edges = _edges(graph, types)
    layout = laid_out(boxes, edges)
    faint = {item.name for item in drawn if needed is not None and item.name.split(":")[0] not in needed}
    parts: list[Markup] = []
    for edge, route in zip(edges, layout.routes, strict=True):
        look = "g-edge g-faint" if {edge.source, edge.target} & faint else "g-edge"
        parts += [element("path", d=_path(route), class_=look), _head(route[-1], look)]
    for item, box in zip(drawn, boxes, strict=True):
        parts.append(_box(item, box, layout.corners[item.name], item.name in faint))
    return figure(
        name,
        " → ".join(node.operator for node in graph.nodes) or "a graph without operators",
        "\n".join(described(case, types)),
        layout.wide + 2 * EDGE,
        layout.high + 2 * EDGE,
        element("g", *parts, transform=f"translate({EDGE:g} {EDGE:g})"),
        class_="graph",
    )


def needed_for(graph: Graph, output: object) -> frozenset[str]:
    """Names of the values that an output depends on; of all outputs if it is no output's number."""
    chosen = isinstance(output, int) and not isinstance(output, bool) and 0 <= output < len(graph.outputs)
    outputs = (graph.outputs[output],) if chosen and isinstance(output, int) else graph.outputs
    wanted = {maker_of(name) for name in outputs}
    for node in reversed(graph.nodes):
        if node.name in wanted:
            wanted |= {maker_of(name) for name in node.inputs}
    return frozenset(wanted)


def described(case: Case, types: Mapping[str, TensorType]) -> Iterator[str]:
    """The graph in words, a line a value."""
    for item in case.graph.inputs:
        calibration = case.calibration.get(item.name)
        said = f", calibrated {distribution_text(calibration)}" if calibration else ""
        yield f"{item.name}: input {type_text(types[item.name])}{said}"
    for constant in case.graph.constants:
        yield f"{constant.name}: constant {_constant_text(constant)} {type_text(types[constant.name])}"
    for node in case.graph.nodes:
        attributes = _attributes(node)
        said = f", {attributes}" if attributes else ""
        results = ", ".join(type_text(types[name]) for name in _results(node.name, types))
        yield f"{node.name}: {node.operator}({', '.join(node.inputs)}{said}) gives {results}"
    yield f"outputs: {', '.join(case.graph.outputs)}"


def type_text(type_: TensorType) -> str:
    """``1×4×8×8``, with the dtype unless it is float32."""
    shape = "×".join(map(str, type_.shape)) or "scalar"
    return shape if type_.dtype == "float32" else f"{shape} {type_.dtype}"


def distribution_text(distribution: Distribution) -> str:
    """``uniform low=-1 high=1``."""
    kind = calibration_kinds().get(distribution.kind)
    return " ".join((distribution.kind, *_words(distribution.parameters, kind.parameters if kind else ())))


def _boxes(case: Case, types: Mapping[str, TensorType]) -> Iterator[_Drawn]:
    graph, apart = case.graph, _set_apart(parse_recipe(case.recipe))
    for item in graph.inputs:
        calibration = case.calibration.get(item.name)
        said = _wrapped(distribution_text(calibration)) if calibration else ()
        yield _Drawn(item.name, (item.name, type_text(types[item.name]), *said), "g-input")
    for constant in graph.constants:
        said = _wrapped(_constant_text(constant))
        yield _Drawn(constant.name, (constant.name, *said, type_text(types[constant.name])), "g-constant")
    for node in graph.nodes:
        results = _results(node.name, types)
        kinds = dict.fromkeys(type_text(types[name]) for name in results)
        shape = ", ".join(kinds) if len(results) == 1 else f"{len(results)} × {', '.join(kinds)}"
        lines = (
            operator_name(node.operator),
            *_wrapped(_attributes(node)),
            *apart.get(node.name, ()),
            *_wrapped(shape, 1),
        )
        yield _Drawn(node.name, lines, "g-operator")
    for place, name in enumerate(graph.outputs):
        yield _Drawn(f"{maker_of(name)}:{place}", (f"output {place}",), "g-output")


def _set_apart(recipe: Recipe) -> Mapping[str, tuple[str]]:
    """What a recipe says of single nodes."""
    mixed = {name: (widths,) for widths, nodes in recipe.mixed for name in nodes}
    return {**mixed, **dict.fromkeys(recipe.float_nodes, ("left float",))}


def _edges(graph: Graph, types: Mapping[str, TensorType]) -> list[Edge]:
    edges = []
    for node in graph.nodes:
        count = len(node.inputs)
        for place, name in enumerate(node.inputs):
            edges.append(Edge(maker_of(name), node.name, _leaves(name, types), _share(place, count)))
    for place, name in enumerate(graph.outputs):
        edges.append(Edge(maker_of(name), f"{maker_of(name)}:{place}", _leaves(name, types)))
    return edges


def _leaves(value: str, types: Mapping[str, TensorType]) -> float:
    maker, _, number = value.partition(".")
    return _share(int(number), len(_results(maker, types))) if number else 0.5


def _share(place: int, count: int) -> float:
    """Where one of ``count`` ports lies, as a share of the side."""
    return (place + 1) / (count + 1)


def _results(node: str, types: Mapping[str, TensorType]) -> list[str]:
    """Names of a node's results, in order."""
    if node in types:
        return [node]
    found: list[str] = []
    while f"{node}.{len(found)}" in types:
        found.append(f"{node}.{len(found)}")
    return found


def _constant_text(constant: Constant) -> str:
    kind = CONSTANT_KINDS.get(constant.kind)
    return " ".join((constant.kind, *_words(constant.parameters, kind.parameters if kind else ())))


def _attributes(node: Node) -> str:
    if set(node.attributes) == {"args", "kwargs"}:  # a captured node: what is no value
        args = node.attributes["args"]
        rest = [_value(item) for item in args if not (isinstance(item, dict) and "value" in item)]
        return " ".join((*rest, *(f"{key}={_value(item)}" for key, item in node.attributes["kwargs"].items())))
    operator = operators().get(node.operator)
    return " ".join(_words(node.attributes, operator.attributes if operator else ()))


def _words(held: Mapping[str, object], order: Iterable[str]) -> Iterator[str]:
    """``key=value`` for each that is not None, in the order of the entry that they belong to (a case file sorts)."""
    for key in dict.fromkeys((*(key for key in order if key in held), *held)):
        if held[key] is not None:
            yield f"{key}={_value(held[key])}"


def _value(value: object) -> str:
    if isinstance(value, (list, tuple)):
        few = ",".join(map(_value, value[:6]))
        return f"[{few},…]" if len(value) > 6 else f"[{few}]"
    if isinstance(value, dict):
        return ",".join(_value(item) for item in value.values())
    return f"{value:g}" if isinstance(value, float) else str(value)


def _wrapped(words: str, most: int = MOST_LINES) -> tuple[str, ...]:
    """Words in lines of at most ``LONGEST`` characters; what does not fit is cut with a mark."""
    lines: list[str] = []
    for word in words.split():
        if lines and len(lines[-1]) + 1 + len(word) <= LONGEST:
            lines[-1] += f" {word}"
        else:
            lines.append(word if len(word) <= LONGEST else f"{word[: LONGEST - 1]}…")
    return tuple(lines) if len(lines) <= most else (*lines[: most - 1], f"{lines[most - 1][: LONGEST - 2]} …")


def _wide(item: _Drawn) -> float:
    name = len(item.lines[0]) + (len(item.name) + 1 if item.look == "g-operator" else 0)
    return max(40.0, CHARACTER * max(name, *(len(line) for line in item.lines)) + 2 * INSIDE)


def _box(item: _Drawn, box: Box, corner: tuple[float, float], faint: bool) -> Markup:
    x, y = corner
    middle = x + box.wide / 2
    round_ = {"g-input": 12, "g-output": 9, "g-constant": 2}.get(item.look, 4)
    frame = element("rect", x=x, y=y, width=box.wide, height=box.high, rx=round_)
    rows = []
    for number, line in enumerate(item.lines):
        at = y + LINE * (number + 1) - 1 + INSIDE / 4
        if number:
            rows.append(text(line, middle, at, anchor="middle"))
        elif item.look == "g-operator":
            own = element("tspan", f" {item.name}", class_="g-own")
            words = Markup("").join((Markup.escape(line), own))
            rows.append(element("text", words, x=middle, y=at, class_="g-name", text_anchor="middle"))
        else:
            rows.append(text(line, middle, at, "g-name", "middle"))
    return element("g", frame, *rows, class_=f"{item.look} g-faint" if faint else item.look)


def _path(route: Sequence[tuple[float, float]]) -> str:
    x, y = route[0]
    words = [f"M{x:.1f} {y:.1f}"]
    for number, ((x0, y0), (x1, y1)) in enumerate(pairwise(route)):
        if number % 2:
            words.append(f"L{x1:.1f} {y1:.1f}")
        else:
            middle = (y0 + y1) / 2
            words.append(f"C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1:.1f}")
    return "".join(words)


def _head(tip: tuple[float, float], look: str) -> Markup:
    x, y = tip
    return element(
        "path", d=f"M{x - 3.5:.1f} {y - 6:.1f}L{x:.1f} {y:.1f}L{x + 3.5:.1f} {y - 6:.1f}Z", class_=f"{look} g-head"
    )
