"""Imports point one way (``harness/__init__.py``), so that every module can be imported first."""

import ast
import subprocess
import sys
from pathlib import Path

import harness

ROOT = Path(harness.__file__).parent
OUTER = {ROOT / "pytest_plugin.py"}
"""Faces of armdiff beside the command line: they read options as it does."""


def imported(nodes):
    """The modules that nodes of a syntax tree import."""
    for node in nodes:
        match node:
            case ast.ImportFrom(module=str(name)):
                yield name
            case ast.Import(names=names):
                yield from (item.name for item in names)


def everywhere(file):
    return imported(ast.walk(ast.parse(file.read_text())))


def when_imported(file):
    """Those at a file's top: not the ones inside its functions, nor those for the type checker."""
    return imported(ast.parse(file.read_text()).body)


def within(names, packages):
    return {name for name in names if any(f"{name}.".startswith(f"{package}.") for package in packages)}


def test_nothing_but_the_plugin_imports_the_command_line():
    below = [file for file in ROOT.rglob("*.py") if ROOT / "cli" not in file.parents and file not in OUTER]
    assert len(below) > 100
    assert {file: found for file in below if (found := within(everywhere(file), ["harness.cli"]))} == {}


def test_the_harness_imports_generators_and_oracles_only_where_it_uses_them():
    outer = ["generators", "oracles"]
    assert within(everywhere(ROOT / "campaign.py"), outer)
    files = ROOT.rglob("*.py")
    assert {file: found for file in files if (found := within(when_imported(file), outer))} == {}


def test_the_benchmark_can_be_imported_first():
    subprocess.run([sys.executable, "-c", "import harness.cli.benchmark.contestant"], check=True)
