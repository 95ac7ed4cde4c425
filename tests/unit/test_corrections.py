"""Corrections: edits of source text, exact restoration, refusals; no torch, no upstream package is imported."""

import ast
import subprocess
import textwrap
from operator import attrgetter
from pathlib import Path

import pytest

from harness.case.constants import CONSTANT_KINDS
from harness.case.errors import BadInput, CannotRun
from harness.case.registry import operators
from harness.compat.releases import installed
from harness.compat.sources import alone, digest_of, node_at, source_of, tree_of
from harness.corrections import Change, Correction, Edit, chosen, corrections, find_correction
from harness.corrections.applying import applied, code_of
from harness.corrections.patch import diff_of
from harness.corrections.source import edited_modules
from harness.triage.corpus import default_corpus, entries
from tests.unit.upstream import installed_module

SOURCE = textwrap.dedent(
    '''
    """A module."""

    LIMIT = 3


    def double(value):
        return value * 2


    class Base:
        def size(self):
            return 1


    class Pass(Base):
        targets = ["abs"]

        @staticmethod
        def fixed(value):
            return value + 1

        @classmethod
        def made(cls, value):
            return (cls.__name__, value)

        def size(self):
            return super().size() + 1

        @property
        def width(self):
            return 8
    '''
).lstrip()


@pytest.fixture
def upstream(tmp_path, monkeypatch):
    return installed_module(SOURCE, tmp_path, monkeypatch)


def change(place, *edits, digest=None):
    source = source_of(SOURCE, place)
    digest = digest or digest_of(source or "")
    return Change("executorch_like.passes", place, {"9.9.9": digest}, tuple(Edit(*edit) for edit in edits))


def correction(*changes, name="mended"):
    return Correction(name, (), "cause", "change", changes, ((),))


def test_every_kind_of_place_is_corrected_and_put_back(upstream):
    mended = correction(
        change("double", ("value * 2", "value * 3")),
        change("Pass.targets", ('"abs"', '"abs", "neg"')),
        change("Pass.fixed", ("value + 1", "value + 10")),
        change("Pass.made", ("(cls.__name__, value)", "(cls.__name__, -value)")),
        change("Pass.size", ("+ 1", "+ 100")),
        change("Pass.width", ("8", "16")),
    )
    before, code = dict(vars(upstream.Pass)), upstream.double.__code__
    imported_earlier = upstream.double
    with applied((mended,)):
        assert imported_earlier(2) == 6
        assert upstream.Pass.targets == ["abs", "neg"]
        assert upstream.Pass.fixed(1) == 11
        assert upstream.Pass.made(1) == ("Pass", -1)
        assert upstream.Pass().size() == 101
        assert upstream.Pass().width == 16
    assert dict(vars(upstream.Pass)) == before
    assert upstream.double.__code__ is code
    assert (upstream.double(2), upstream.Pass.fixed(1), upstream.Pass().size()) == (4, 2, 2)


def test_an_exception_inside_restores_too(upstream):
    mended = correction(change("double", ("value * 2", "value * 3")))
    seen = []

    def fails():
        with applied((mended,)):
            seen.append(upstream.double(2))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert seen == [6]
    assert upstream.double(2) == 4


def test_nested_corrections_add_up_even_in_one_function(upstream):
    outer = correction(change("double", ("return value", "return 1 + value")), name="outer")
    inner = correction(change("double", ("* 2", "* 5")), name="inner")
    with applied((outer,)):
        assert upstream.double(2) == 5
        with applied((inner,)):
            assert upstream.double(2) == 11
        assert upstream.double(2) == 5
        with applied((outer,)):  # the same once more changes nothing
            assert upstream.double(2) == 5
    assert upstream.double(2) == 4


NEW = """

class Helper:
    factor = 7


def helped(value):
    return value * Helper.factor
"""


def test_new_functions_and_classes_exist_only_while_applied(upstream):
    mended = correction(change("double", ("    return value * 2\n", f"    return helped(value)\n{NEW}")))
    with applied((mended,)):
        assert upstream.double(2) == 14
        assert upstream.Helper.factor == 7
    assert not hasattr(upstream, "Helper")
    assert not hasattr(upstream, "helped")


def test_other_code_than_it_was_written_for_is_refused_before_anything_changes(upstream):
    mended = correction(
        change("Pass.targets", ('"abs"', '"neg"')), change("double", ("* 2", "* 3"), digest="0123456789ab")
    )
    with pytest.raises(
        CannotRun, match=r"double has digest .* written for 0123456789ab of executorch 9\.9\.9; install"
    ):
        applied((mended,)).__enter__()
    assert upstream.Pass.targets == ["abs"]


def test_a_missing_place_is_named(upstream):
    with pytest.raises(CannotRun, match=r"passes:Pass\.gone is missing"):
        applied((correction(change("Pass.gone", ("a", "b"))),)).__enter__()


def test_an_edit_whose_text_is_not_there_once_is_refused(upstream):
    for old, count in (("cls", 2), ("nowhere", 0)):
        with pytest.raises(CannotRun, match=rf"{count} times, not once"):
            applied((correction(change("Pass.made", (old, "x"))),)).__enter__()


def test_a_changed_signature_is_refused(upstream):
    mended = correction(change("double", ("def double(value)", "def double(value, factor)")))
    with pytest.raises(CannotRun, match="leave its signature as it is"):
        applied((mended,)).__enter__()
    assert upstream.double(2) == 4


def test_a_function_that_somebody_else_changed_in_memory_is_not_put_right(upstream, monkeypatch):
    """A correction would undo a fault that is planted there, and so prove it to be the correction's bug."""
    monkeypatch.setattr(upstream.double, "__code__", (lambda value: value * 7).__code__)
    with pytest.raises(CannotRun, match=r"passes:double was changed in memory"):
        applied([correction(change("double", ("value * 2", "value * 3")))]).__enter__()
    assert upstream.double(1) == 7


def test_a_release_that_needs_nothing_is_left_alone(upstream):
    other = Correction("old", (), "c", "c", (Change("executorch_like.passes", "double", {"1.0.0": "0"}, ()),), ((),))
    assert edited_modules((other,)) == ()
    with applied((other,)):
        assert upstream.double(2) == 4


# ---- the registered ones --------------------------------------------------------------------------------------------

NAMES = list(corrections())
RELEASES = {"1.1.0", "1.2.0", "1.3.1", "1.4.1", "1.5.1"}


@pytest.mark.parametrize("name", NAMES)
def test_a_correction_says_what_its_reader_needs(name):
    item = corrections()[name]
    bugs = {entry.name for entry in entries([default_corpus()])}
    assert item.entries, "which corpus bug does it remove?"
    assert set(item.entries) <= bugs
    assert set(item.releases) <= RELEASES
    assert set(item.needs) <= {*NAMES} - {name}
    assert item.cause.endswith(".")
    assert item.change.endswith(".")
    assert all(change.edits and change.digests for change in item.changes)


@pytest.mark.parametrize("name", NAMES)
def test_its_patterns_can_be_drawn(name):
    assert corrections()[name].patterns
    known = set(operators()) | set(CONSTANT_KINDS)
    for pattern in corrections()[name].patterns:
        for word in pattern:
            assert known & set(word.split("|")), f"{word}: no operator entry or kind of constant of that name"


def definitions(tree, prefix=""):
    """Functions, classes and methods of a module, by their qualified names."""
    found = set()
    for item in tree.body:
        if isinstance(item, ast.ClassDef | ast.FunctionDef):
            found.add(prefix + item.name)
        if isinstance(item, ast.ClassDef):
            found |= definitions(item, f"{prefix}{item.name}.")
    return found


@pytest.mark.skipif("executorch" not in installed(), reason="no executorch is installed")
@pytest.mark.parametrize(
    "name", [name for name in NAMES if corrections()[name].for_release(installed().get("executorch", ""))]
)
def test_the_edited_files_and_the_diff_are_well_formed(name):
    item = corrections()[name]
    for module in edited_modules((item,)):
        assert module.before != module.after
        # A function that an edit adds behind a method ends the class: it can only follow the last one.
        assert definitions(ast.parse(module.before)) <= definitions(ast.parse(module.after))
    diff = diff_of((item,))
    assert diff.startswith("diff --git a/")
    assert "a/executorch/" not in diff


@pytest.mark.skipif("executorch" not in installed(), reason="no executorch is installed")
def test_all_corrections_fit_together():
    for module in edited_modules(chosen(("all",))):
        ast.parse(module.after)


def test_the_words_of_the_option(tmp_path):
    with pytest.raises(BadInput, match="unknown name 'typo'; use all"):
        find_correction("typo")
    file = tmp_path / "mine.py"
    file.write_text("x = 1 / 0")
    with pytest.raises(BadInput, match=r"mine\.py: ZeroDivisionError"):
        find_correction(str(file))
    file = tmp_path / "empty.py"
    file.write_text("")
    with pytest.raises(BadInput, match="defines no CORRECTION"):
        find_correction(str(file))


def test_what_a_correction_needs_is_taken_along(monkeypatch):
    monkeypatch.setattr("harness.corrections.installed", lambda: {"executorch": "1.5.1"})
    assert [item.name for item in chosen(("vela-reduction-of-slice-rejected",))] == [
        "delegate-output-dtype",
        "unused-inputs-kept",
        "constant-keeps-quantized-dtype",
        "avg-pool-zero-point-literal",
        "vela-reduction-of-slice-rejected",
    ]
    assert len(chosen(("all",))) == len(chosen(("all", "vela-reduction-of-slice-rejected")))
    assert [item.name for item in chosen(("written-state-not-folded",))] == [
        "qmin-clamped",
        "inplace-arithmetic-writes-back",
        "written-state-not-folded",
    ]


@pytest.mark.parametrize("place", ["Popen.communicate", "Popen.__init__", "run"])
def test_a_place_alone_compiles_to_the_code_that_it_has_in_its_module(place):
    text = Path(subprocess.__file__).read_text()
    whole, apart = (compile(tree, "f", "exec") for tree in (tree_of(text), alone(tree_of(text), place)))
    assert code_of(whole, place) == code_of(apart, place)
    assert len(apart.co_code) < len(whole.co_code)


def test_another_statement_at_a_place_leaves_the_tree_as_it_was():
    before = ast.dump(tree_of(SOURCE))
    other = alone(tree_of(SOURCE), "Pass.size", ast.parse("def size(self): return 7").body[0])
    assert ast.unparse(node_at(other, "Pass.size")) == "def size(self):\n    return 7"
    assert ast.dump(tree_of(SOURCE)) == before


@pytest.mark.parametrize(
    "entry",
    [item for item in entries([default_corpus()]) if item.status.package == "ethos-u-vela"],
    ids=attrgetter("name"),
)
def test_a_bug_of_vela_s_has_a_workaround_or_says_why_there_can_be_none(entry):
    kept_away = any(entry.name in item.entries for item in corrections().values())
    assert kept_away != bool(entry.status.unavoidable)
