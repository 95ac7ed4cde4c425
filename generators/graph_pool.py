"""The graph while it is being drawn: its values, their types, and how to add to it.

``GraphPool`` is what operator strategies see (``harness.case.operators.Pool``) and what motifs build
with. It infers the type of everything it adds, so a finished graph is valid by construction.

Words: a *loose* value may lie in memory in another order than its dimensions say (a permuted or
expanded one, and whatever is computed from it); operators tagged "dense" do not get one.

Invariants: a constant is made for a node that uses it at once; ``finish`` drops inputs without a
user and makes every other value without one an output, except some results of an operator that
has several.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from hypothesis import strategies as st

from generators.rules import Shape
from generators.sizes import draw_any_shape, draw_shape, one_in, pick
from harness.case.aten import referenced
from harness.case.case import Constant, Graph, Input, Node, TensorType
from harness.case.editing import renamed
from harness.case.operators import Draw, Operator
from harness.case.registry import operators

MOST_INPUTS = 3
LITERAL_MOST = 16
INDICES_MOST = 64
_NEW_INPUT, _NEW_CONSTANT = "?input", "?constant"

NUMBERS = st.sampled_from([0.0, 1.0, 0.5, -1.0, 2.0, -0.25, 0.1, 6.0, -3.0])
RANGES = st.sampled_from([(-1.0, 1.0), (0.0, 1.0), (-0.1, 0.1), (-4.0, 2.0), (0.5, 0.6), (-20.0, 20.0)])


def result_names(node: str, count: int) -> tuple[str, ...]:
    """Names of a node's results: the node's own, or ``node.0``, ``node.1``… if there are several."""
    return (node,) if count == 1 else tuple(f"{node}.{place}" for place in range(count))


class GraphPool:
    """A graph under construction. ``draw`` is Hypothesis' draw function."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.inputs: list[Input] = []
        self.constants: list[Constant] = []
        self.nodes: list[Node] = []
        self.types: dict[str, TensorType] = {}
        self.results: dict[str, tuple[str, ...]] = {}
        self.used: set[str] = set()
        self.loose: set[str] = set()

    def type_of(self, name: str) -> TensorType:
        return self.types[name]

    def shape(self, name: str) -> Shape:
        return self.types[name].shape

    def input(self, shape: Sequence[int], dtype: str = "float32") -> str:
        """A new input."""
        name = f"x{len(self.inputs)}"
        self.inputs.append(Input(name=name, shape=tuple(shape), dtype=dtype))
        self.types[name] = TensorType(tuple(shape), dtype)
        return name

    def any_input(self) -> str:
        """A new input: an image or another float value as a rule, integers or truth values now and then."""
        if one_in(self.draw, 16):
            dtype = self.draw(st.sampled_from(("int64", "int32", "int64", "int8", "bool")))
            return self.input(draw_shape(self.draw, self.draw(st.sampled_from((1, 2, 2, 3, 4)))), dtype)
        return self.input(draw_any_shape(self.draw))

    def constant(self, kind: str, shape: Sequence[int], *, dtype: str = "float32", **parameters: Any) -> str:
        """A new constant."""
        name = f"c{len(self.constants)}"
        self.constants.append(Constant(name=name, shape=tuple(shape), dtype=dtype, kind=kind, parameters=parameters))
        self.types[name] = TensorType(tuple(shape), dtype)
        if kind == "ramp":
            self.loose.add(name)
        return name

    def add_all(self, operator: str, *inputs: str, **attributes: Any) -> tuple[str, ...]:
        """Add a node; the names of its results."""
        entry = operators()[operator]
        node = Node(name=f"n{len(self.nodes)}", operator=operator, inputs=inputs, attributes=attributes)
        types = entry.infer([self.types[name] for name in inputs], attributes)
        return self._append(node, types, strided="strided" in entry.tags)

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add a node that has one result; its name."""
        (name,) = self.add_all(operator, *inputs, **attributes)
        return name

    def call(self, operator: str, result: TensorType, *args: Any) -> str:
        """Add an ATen overload that has one result of this type; its name. A word among ``args`` is a value's name."""
        given = [{"value": item} if isinstance(item, str) else item for item in args]
        node = Node(
            name=f"n{len(self.nodes)}",
            operator=operator,
            inputs=tuple(referenced(given)),
            attributes={"args": given, "kwargs": {}},
            types=(result,),
        )
        (name,) = self._append(node, (result,))
        return name

    def _append(self, node: Node, types: Sequence[TensorType], *, strided: bool = False) -> tuple[str, ...]:
        names = result_names(node.name, len(types))
        self.nodes.append(node)
        self.results[node.name] = names
        self.types.update(zip(names, types, strict=True))
        self.used.update(node.inputs)
        if strided or self.loose.intersection(node.inputs):
            self.loose.update(names)
        return names

    def buffer(self, shape: Shape) -> str:
        """A new constant that the module registers as a buffer, so that operators may write into it."""
        low, high = self.draw(RANGES)
        return self.constant("random", shape, seed=self.draw(st.integers(0, 99)), low=low, high=high)

    def operand(self, wanted: TensorType, *, constants: bool = True) -> str:
        """A value of exactly this type: an existing one, a new input or a new constant."""
        same = [name for name, type_ in self.types.items() if type_ == wanted]
        options = list(dict.fromkeys(same[:1] + same[-3:]))
        constants = constants and (wanted.dtype == "float32" or wanted.elements <= LITERAL_MOST)
        if len(self.inputs) < MOST_INPUTS or not (options or constants):
            options += [_NEW_INPUT, _NEW_INPUT]
        if constants:
            options += [_NEW_CONSTANT, _NEW_CONSTANT]
        chosen: str = self.draw(st.sampled_from(options))
        if chosen == _NEW_INPUT:
            return self.input(wanted.shape, wanted.dtype)
        if chosen != _NEW_CONSTANT:
            return chosen
        if wanted.dtype == "bool":
            values = [self.draw(st.booleans()) for _ in range(wanted.elements)]
            return self.constant("literal", wanted.shape, dtype="bool", values=values)
        return self.draw_constant(wanted.shape)

    def indices(self, wanted: TensorType, below: int) -> str:
        """Integers of this type from 0 to below a bound: an input, or a new constant.

        Inputs are kept below the bounds of all that reads them (``generators.adversarial``); what is
        computed is never an index.
        """
        options = [item.name for item in self.inputs if self.types[item.name] == wanted][:1]
        if len(self.inputs) < MOST_INPUTS or wanted.elements > INDICES_MOST:
            options += [_NEW_INPUT]
        if wanted.elements <= INDICES_MOST:
            options += [_NEW_CONSTANT]
        chosen: str = self.draw(st.sampled_from(options))
        if chosen == _NEW_INPUT:
            return self.input(wanted.shape, wanted.dtype)
        if chosen != _NEW_CONSTANT:
            return chosen
        values = [self.draw(st.integers(0, below - 1)) for _ in range(wanted.elements)]
        return self.constant("literal", wanted.shape, dtype=wanted.dtype, values=values)

    def draw_constant(self, shape: Shape) -> str:
        """A new constant of any kind that this shape allows."""
        kinds = ["full", "zeros", "ones", "random", "random"]
        if len(shape) == 1:
            kinds += ["arange"] * 10
        if shape and max(shape) > 1:
            kinds += ["ramp", "ramp"]
        elements = TensorType(shape).elements
        if elements <= LITERAL_MOST:
            kinds += ["literal"] * 3
        draw, kind = self.draw, self.draw(st.sampled_from(kinds))
        match kind:
            case "full":
                return self.constant(kind, shape, value=draw(NUMBERS))
            case "arange":
                start, step = draw(st.sampled_from([(0.0, 1.0), (-1.0, 0.25), (1.0, -0.5), (0.5, 0.1)]))
                return self.constant(kind, shape, start=start, step=step)
            case "ramp":
                low, high = draw(RANGES)
                axes = [axis for axis, size in enumerate(shape) if size > 1]
                return self.constant(kind, shape, start=low, stop=high, dim=draw(st.sampled_from(axes)))
            case "random":
                return self.buffer(shape)
            case "literal":
                return self.constant(kind, shape, values=[draw(NUMBERS) for _ in range(elements)])
        return self.constant(kind, shape)

    def any_constant(self) -> str:
        """A new constant of any shape: a float one as a rule, a few integers now and then."""
        if one_in(self.draw, 8):
            dtype = self.draw(st.sampled_from(("int64", "int32")))
            values = [self.draw(st.integers(-8, 8)) for _ in range(self.draw(st.sampled_from((1, 4, 3, 2))))]
            return self.constant("literal", (len(values),), dtype=dtype, values=values)
        return self.draw_constant(draw_any_shape(self.draw))

    def source(self) -> str:
        """Where the next node starts: an unused value as a rule, any value, or a new input."""
        known = self._values()
        unused = [name for name in reversed(known) if name not in self.used]
        if one_in(self.draw, 12) and len(self.inputs) < MOST_INPUTS:
            return self.any_input()
        anywhere = one_in(self.draw, 8)
        return pick(self.draw, unused if unused and not anywhere else known)

    def free_node(self) -> None:
        """Add any operator that fits some value; now and then one that is folded, as it starts from a constant."""
        source = self.any_constant() if one_in(self.draw, 16) else self.source()
        entry = pick(self.draw, self.fitting(source))
        choice = entry.draw(self.draw, self, source)
        self.add_all(entry.name, *choice.inputs, **choice.attributes)

    def node_of(self, names: Sequence[str]) -> None:
        """Add one of these operators to a value that it fits, a new input if need be; nothing if none is found.

        The last values are the likeliest: what is asked for one after the other should be connected.
        """
        if not operators().keys() & set(names):  # the word of a constant: operands draw those
            return
        for _ in range(4):
            known = reversed(self._values())
            options = [(name, entry) for name in known for entry in self.fitting(name) if entry.name in names]
            if options:
                source, entry = options[0] if not one_in(self.draw, 4) else pick(self.draw, options)
                choice = entry.draw(self.draw, self, source)
                self.add_all(entry.name, *choice.inputs, **choice.attributes)
                return
            self.input(draw_any_shape(self.draw))

    def _values(self) -> list[str]:
        """What a node may start from: no constant that another node reads, and nothing without elements, which a slice
        may leave where sizes were changed.
        """
        constants = {item.name for item in self.constants}
        return [name for name, type_ in self.types.items() if name not in constants and type_.elements]

    def fitting(self, source: str) -> list[Operator]:
        """Operators that can start from this value, each as often as it should be drawn."""
        return [
            entry
            for entry in operators().values()
            if entry.accepts(self.types[source])
            and not ("dense" in entry.tags and source in self.loose)
            and not ("index" in entry.tags and source not in {item.name for item in self.inputs})
            for _ in range(_weight(entry))
        ]

    def finish(self) -> Graph:
        """The graph, with every value that nothing uses as an output."""
        outputs = []
        for names in self.results.values():
            free = [name for name in names if name not in self.used]
            if len(free) < len(names) and len(names) > 1 and not one_in(self.draw, 3):
                continue  # some results of a split simply go nowhere
            outputs += free
        # an input that nothing uses goes, and the others are numbered anew
        used = [item for item in self.inputs if item.name in self.used]
        anew = {item.name: f"x{place}" for place, item in enumerate(used)}
        inputs = [msgspec.structs.replace(item, name=anew[item.name]) for item in used]
        graph = Graph(inputs=tuple(inputs), constants=tuple(self.constants), nodes=tuple(self.nodes), outputs=())
        wanted = tuple(outputs + self._extra_outputs(outputs))
        return msgspec.structs.replace(renamed(graph, anew), outputs=wanted)

    def _extra_outputs(self, outputs: Sequence[str]) -> list[str]:
        """Sometimes a value that is used inside is returned, too, or an output twice."""
        inner = [name for names in self.results.values() for name in names if name in self.used]
        if inner and one_in(self.draw, 10):
            return [self.draw(st.sampled_from(inner))]
        if outputs and one_in(self.draw, 40):
            return [outputs[0]]
        return []


def _weight(entry: Operator) -> int:
    """How often an operator is drawn: what the seeds are made of often, reductions and such seldom.

    "narrow" operators fit few values (one rank or dtype only), so they are likelier where they do. Of those that
    are lowered alike ("kin") there are many.
    """
    if "kin" in entry.tags:
        return 2
    if "rare" in entry.tags:
        return 3
    return 13 if "seed" in entry.tags else 14 if "narrow" in entry.tags else 4
