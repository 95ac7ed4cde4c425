"""The list of annotated operators is the installed release's, and every operator that it lists is drawn.

One graph with a node of every entry of ``generators.ops`` is exported, as a case of it would be, and taken to the edge
dialect. The Arm quantizer annotates the first form, and the lists of the operator support are about the second. What a
list has and no entry makes is excused here by name; an operator that a release adds makes a test fail.
"""

import importlib
import inspect
import re
from collections.abc import Sequence
from functools import cache

import hypothesis
import torch
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st

from generators.adversarial import index_bounds
from generators.graph_pool import GraphPool
from harness.case.building import module_of
from harness.case.case import Case, Distribution, Graph
from harness.case.registry import operators
from harness.case.sampling import evaluation_inputs
from harness.compat.states import operator_name
from tests.annotated import ANNOTATED

PROGRAMS = 8
"""So many that Hypothesis has enough bytes for the entries of each."""
_SHAPES = ((1, 4, 6, 6), (2, 4, 6), (2, 2, 4), (4, 4), (4,), (1, 4, 3, 6, 6))

CONSTANT = (
    "makes a constant, and constants of a graph are full, zeros, ones, arange, ramp (linspace) and stored tensors"
)
FORM = "another form of an operator that is drawn, which no plain source makes"
IN_PLACE = "the form in place, which no drawn module writes: captured ones do"
QUANTIZED = "part of quantization, not of a model"
ANNOTATED_EXCUSES = {
    "aten.scalar_tensor": CONSTANT,
    **dict.fromkeys(("aten._unsafe_view", "aten.concat", "aten.concatenate", "aten.moveaxis"), FORM),
    **dict.fromkeys(("aten.alias", "aten.view_as", "aten.mm"), FORM),
    **dict.fromkeys(
        (f"aten.{name}_copy" for name in ("expand", "permute", "select", "slice", "split", "squeeze", "t")), FORM
    ),
    **dict.fromkeys((f"aten.{name}_copy" for name in ("transpose", "unsqueeze", "view")), FORM),
    **dict.fromkeys(
        (f"aten.{name}_" for name in ("dropout", "fill", "hardswish", "hardtanh", "index_put", "leaky_relu")),
        IN_PLACE,
    ),
    **dict.fromkeys((f"aten.{name}_" for name in ("relu", "silu", "squeeze")), IN_PLACE),
    "aten.grid_sampler": "only VGF lowers it, and drawn graphs are for every target",
    "higher_order.cond": "control flow: no case has it",
    "higher_order.while_loop": "control flow: no case has it",
}
SUPPORTED_EXCUSES = {
    "aten.eye": CONSTANT,
    "aten.split_copy": FORM,
    "aten.floor_divide": "of floats div with rounding_mode, which is drawn; of integers no drawn module divides",
    **dict.fromkeys(
        (
            f"quantized_decomposed.{verb}_{by}"
            for verb in ("quantize", "dequantize")
            for by in ("per_tensor", "per_channel")
        ),
        QUANTIZED,
    ),
}


def test_the_list_of_annotated_operators_is_the_installed_one():
    from executorch.backends.arm.quantizer import quantization_annotator

    code = (line.split("#")[0] for line in inspect.getsource(quantization_annotator).splitlines())
    assert sorted(set(re.findall(r"torch\.ops\.([a-z_]+\.\w+)", "\n".join(code)))) == list(ANNOTATED)


def test_every_annotated_operator_is_drawn_or_excused():
    drawn = {_base(name) for name in _exported_operators()}
    assert sorted(set(ANNOTATED) - drawn - ANNOTATED_EXCUSES.keys()) == []
    assert sorted(name for name in ANNOTATED_EXCUSES if name in drawn or name not in ANNOTATED) == []


def test_every_operator_of_the_support_lists_is_drawn_or_excused():
    listed, drawn = _supported(), {_base(name) for name in _exported_operators() | _edge_operators()}
    assert sorted(listed - drawn - SUPPORTED_EXCUSES.keys()) == []
    assert sorted(name for name in SUPPORTED_EXCUSES if name in drawn or name not in listed) == []


def _base(name: str) -> str:
    return name.rpartition(".")[0] or name


@cache
def _exported() -> list[torch.export.ExportedProgram]:
    names = sorted(operators())
    return [_exported_with(names[place::PROGRAMS]) for place in range(PROGRAMS)]


def _exported_with(names: Sequence[str]) -> torch.export.ExportedProgram:
    graph = _graph_of(names)
    bounds = index_bounds(graph)
    uniform = Distribution(kind="uniform", parameters={"low": -1.0, "high": 1.0})
    calibration = {
        item.name: Distribution(kind="indices", parameters={"below": bounds.get(item.name, 8)})
        if item.dtype.startswith("int")
        else uniform
        for item in graph.inputs
    }
    case = Case(graph=graph, calibration=calibration)
    sample = tuple(torch.from_numpy(array) for array in evaluation_inputs(case)[0].arrays)
    return torch.export.export(module_of(case), sample)


def _graph_of(names: Sequence[str]) -> Graph:
    """A graph with some nodes of every entry, each of a value that it fits."""

    @st.composite
    def graphs(draw):
        pool = GraphPool(draw)
        sources = [pool.input(shape) for shape in _SHAPES]
        sources += [pool.input((2, 4), dtype) for dtype in ("bool", "int32", "int64")]
        for entry in map(operators().__getitem__, names):
            fitting = [name for name in sources if entry.accepts(pool.types[name])]
            forms = set()
            for _ in range(32 if entry.attributes else 1):
                choice = entry.draw(draw, pool, draw(st.sampled_from(fitting)))
                form = tuple((name, _form(value)) for name, value in choice.attributes.items())
                if form not in forms:
                    forms.add(form)
                    pool.add_all(entry.name, *choice.inputs, **choice.attributes)
        return pool.finish()

    found: list[Graph] = []

    @hypothesis.seed(1)
    @hypothesis.settings(
        database=None, phases=[Phase.generate], deadline=None, max_examples=3, suppress_health_check=list(HealthCheck)
    )
    @hypothesis.given(graphs())
    def collect(graph: Graph) -> None:
        found.append(graph)

    collect()
    return found[-1]


def _form(value: object) -> object:
    """What of an attribute can make another operator of a node: a number's value does not, unless it is a bool."""
    return value if isinstance(value, str | bool) else type(value)


def _called(program: torch.export.ExportedProgram) -> set[str]:
    return {operator_name(node.target) for node in program.graph.nodes if node.op == "call_function"}


@cache
def _exported_operators() -> frozenset[str]:
    return frozenset().union(*map(_called, _exported()))


@cache
def _edge_operators() -> frozenset[str]:
    from executorch.exir import EdgeCompileConfig, to_edge

    config = EdgeCompileConfig(_check_ir_validity=False)
    return frozenset().union(
        *(_called(to_edge(program, compile_config=config).exported_program()) for program in _exported())
    )


def _supported() -> set[str]:
    from executorch.backends.arm.tosa.specification import TosaSpecification

    package = "executorch.backends.arm.operator_support"
    lists = importlib.import_module(f"{package}.tosa_profile_supported_op_lists")
    checks = importlib.import_module(f"{package}.tosa_supported_operators")
    targets = [target for name in vars(lists) if name.endswith("SupportList") for target in getattr(lists, name)]
    for text in ("TOSA-1.0+INT", "TOSA-1.0+FP"):
        specification = TosaSpecification.create_from_string(text)
        targets += [
            target for item in checks.get_registered_tosa_support_checks(specification) for target in item.targets
        ]
    return {_base(operator_name(target)) for target in targets}
