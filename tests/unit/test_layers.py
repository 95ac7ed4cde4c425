"""The rooms of ``harness``: which there are, in which order they may know each other, and that nothing goes in circles.

Every import counts: at a module's top, inside a function, and for the type checker alone.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import harness
from harness.evidence.observation import oracles

ROOT = Path(harness.__file__).parent
OUTSIDE = ("generators", "oracles")
ORDER = (
    *("case", "compat", "corrections", "artifacts", "ethosu", "evidence", "pipeline", "locate", "triage"),
    *("oracles", "tosa", "workers", "generators", "campaign", "reports", "cli"),
)
"""A room imports from itself and from those before it. Oracles judge for workers, generators draw for campaigns."""
UPSTREAM = {"executorch", "torchao", "tosa", "tosa_reference_model", "ethosu"}
"""Packages that ``harness.compat`` alone imports."""

Imports = Mapping[str, frozenset[str]]


def name_of(file: Path) -> str:
    words = file.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(words[:-1] if words[-1] == "__init__" else words)


def imported(nodes: Sequence[ast.AST] | Iterator[ast.AST], modules: Mapping[str, Path]) -> frozenset[str]:
    """The modules that nodes of a syntax tree import; a package stands for what it defines itself."""
    found: set[str] = set()
    for node in nodes:
        match node:
            case ast.ImportFrom(module=str(name), names=names, level=0):
                found |= {full if (full := f"{name}.{item.name}") in modules else name for item in names}
            case ast.ImportFrom():
                raise AssertionError(f"line {node.lineno}: imports here name their module in full")
            case ast.Import(names=names):
                found |= {item.name for item in names}
    return frozenset(found)


@pytest.fixture(scope="module")
def modules() -> dict[str, Path]:
    """Every module of the engine, of the generators and of the oracles."""
    folders = (ROOT, *(ROOT.parent / name for name in OUTSIDE))
    found = {name_of(file): file for folder in folders for file in folder.rglob("*.py")}
    assert len(found) > 350
    return found


@pytest.fixture(scope="module")
def imports(modules: dict[str, Path]) -> Imports:
    return {name: imported(ast.walk(ast.parse(file.read_text())), modules) for name, file in modules.items()}


def room(module: str) -> str | None:
    """The room that a module is in; None for everything else, ``harness`` itself included."""
    words = module.split(".")
    return words[0] if words[0] in OUTSIDE else words[1] if words[0] == "harness" and len(words) > 1 else None


def climbing(imports: Imports) -> list[tuple[str, str]]:
    """Imports from a room that comes later."""
    rank = {name: number for number, name in enumerate(ORDER)}
    pairs = [(name, other) for name, others in imports.items() for other in others if room(name) and room(other)]
    return [(name, other) for name, other in pairs if rank[room(other)] > rank[room(name)]]


def circle(imports: Imports) -> list[str]:
    """Modules that import each other in a circle; empty if none do."""
    try:
        TopologicalSorter({name: others - {name} for name, others in imports.items()}).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def importing_upstream(imports: Imports) -> list[tuple[str, str]]:
    """Imports of upstream's packages outside ``harness.compat``."""
    pairs = [(name, other) for name, others in imports.items() for other in others]
    return [(name, other) for name, other in pairs if other.split(".")[0] in UPSTREAM and room(name) != "compat"]


def test_the_engine_is_rooms_and_nothing_beside_them():
    found = {path.name for path in ROOT.iterdir() if path.name != "__pycache__"}
    assert found - {"__init__.py", "__main__.py"} == set(ORDER) - set(OUTSIDE)
    assert all((ROOT / name / "__init__.py").exists() for name in found if not name.endswith(".py"))


def test_a_room_knows_only_rooms_before_it(imports):
    assert climbing(imports) == []


def test_no_module_is_in_a_circle(imports):
    assert circle(imports) == []


def test_compat_alone_imports_upstream_s_packages(imports):
    assert importing_upstream(imports) == []
    assert any(UPSTREAM & {other.split(".")[0] for other in others} for others in imports.values())


PLANTED = """
from __future__ import annotations
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from {} import Leg

def f():
    from {} import convert
"""


@pytest.mark.parametrize(
    ("module", "above"),
    [
        ("harness.case.case", "harness.cli.options"),
        ("harness.evidence.observation", "harness.pipeline.legs"),
        ("harness.workers.worker", "generators.cases"),
    ],
)
def test_an_import_for_types_and_one_inside_a_function_are_seen(module, above):
    modules = {module: Path(), above: Path()}
    tree = {module: imported(ast.walk(ast.parse(PLANTED.format(above, "tosa.TosaGraph"))), modules)}
    assert climbing(tree) == [(module, above)]
    assert importing_upstream(tree) == [(module, "tosa.TosaGraph")]
    assert importing_upstream({"harness.compat.tosa": tree[module]}) == []
    assert climbing({above: frozenset({module})}) == []
    assert circle({**tree, above: frozenset({"harness.case.place"})}) == []
    assert {module, above} <= set(circle({**tree, above: frozenset({module})}))


def test_a_submodule_is_told_from_a_name_of_its_package():
    tree = ast.parse("from harness.pipeline import legs, other")
    assert imported(tree.body, {"harness.pipeline.legs": Path()}) == {"harness.pipeline.legs", "harness.pipeline"}


def test_the_harness_imports_generators_and_oracles_only_where_it_uses_them(modules, imports):
    def outer(found: frozenset[str]) -> set[str]:
        return {name for name in found if name.split(".")[0] in OUTSIDE}

    inside = {name: file for name, file in modules.items() if room(name) not in OUTSIDE}
    assert outer(imports["harness.campaign.campaign"])
    at_the_top = {name: outer(imported(ast.parse(file.read_text()).body, modules)) for name, file in inside.items()}
    assert {name: found for name, found in at_the_top.items() if found} == {}


def oracles_named(node: ast.AST) -> set[object]:
    """Names of oracles that a finding's oracle is held against, that a table of oracles is asked for, or in a list."""
    match node:
        case ast.Compare(left=left, comparators=others) if any(
            ast.unparse(item).endswith((".oracle", "['oracle']")) for item in (left, *others)
        ):
            parts: list[ast.AST | None] = [*ast.walk(node)]
        case ast.Subscript(value=ast.Call(func=ast.Name(id="oracles"))):
            parts = [node.slice]
        case (
            ast.Tuple(elts=[_, _, *_] as parts) | ast.List(elts=[_, _, *_] as parts) | ast.Set(elts=[_, _, *_] as parts)
        ):
            pass
        case ast.Dict(keys=[_, _, *_] as parts):
            pass
        case _:
            return set()
    found = {item.value for item in parts if isinstance(item, ast.Constant)}
    listed = not isinstance(node, (ast.Compare, ast.Subscript))
    return set() if listed and not found <= set(oracles()) else found & set(oracles())


@pytest.mark.parametrize(
    ("code", "named"),
    [
        ('finding.oracle == "numeric"', {"numeric"}),
        ('item["oracle"] in ("crash", "quality")', {"crash", "quality"}),
        ('oracles()["stream"].judge(seen)', {"stream"}),
        ('RANKS = ("numeric", "stream", "outputs")', {"numeric", "stream", "outputs"}),
        ('BLOCKS = ("inputs", "outputs")', set()),
    ],
)
def test_where_code_names_an_oracle(code: str, named: set[str]) -> None:
    assert set().union(*(oracles_named(node) for node in ast.walk(ast.parse(code)))) == named


def test_nothing_but_an_oracle_s_own_file_names_it(modules: dict[str, Path]) -> None:
    """What the engine must know of an oracle is a field of its entry, never its name in a list."""
    found = {
        module: named
        for module, file in modules.items()
        if module.startswith("harness.")
        and (named := set().union(*(oracles_named(node) for node in ast.walk(ast.parse(file.read_text())))))
    }
    # a worker tries whether ``numeric`` sees a planted error
    assert found == {"harness.workers.case_run": {"numeric"}}
