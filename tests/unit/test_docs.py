"""README and docs: commands that parse, environments and files that exist, tables that are complete. Nothing is run.

A command of a fenced ``sh`` or ``console`` block is one that this file knows how to check (armdiff, tox, pytest, a
module or a script of the checkout), or one whose comment says what it needs. One that takes hours says so, too.
"""

from __future__ import annotations

import configparser
import re
import shlex
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from harness.cli.command import VERBS, main
from harness.evidence.observation import oracles
from harness.pipeline.legs import legs

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
PAGES = sorted([README, *(ROOT / "docs").glob("*.md")])
TREE = ("harness", "generators", "oracles", "corpus", "docs", "tests", ".ci", ".github")
PLAIN = {"export", "pip", "python3", "rm"}
"""Commands that need nothing of the checkout."""
YOURS = {"my_fix.py": "harness/corrections/neg_rescaled.py", "my_model.py": "docs/examples/seed001.py"}
"""What stands here for the reader's own files."""
MARK = re.compile(r"\b(minutes|hours?|needs)\b")


class Command(NamedTuple):
    """One command of a page: its words, and the comment behind it."""

    page: str
    words: tuple[str, ...]
    comment: str

    def __str__(self) -> str:
        return f"{self.page}: {' '.join(self.words)}"


def fences(text):
    """(language, lines) of every fenced block."""
    return [(kind, body.splitlines()) for kind, body in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S)]


def read_commands(page, text):
    """The commands of a page's shell blocks, in order. ``&&`` separates commands, assignments in front are left out."""
    found = []
    for kind, lines in fences(text):
        prompted = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        for line in {"sh": lines, "console": prompted}.get(kind, []):
            words, comment = shlex.split(line, comments=True), line.partition(" #")[2]
            while words:
                end = words.index("&&") if "&&" in words else len(words)
                one, words = words[:end], words[end + 1 :]
                while one and re.match(r"[A-Z_]+=", one[0]):
                    one.pop(0)
                found.append(Command(page, tuple(one), comment))
    return found


COMMANDS = [command for page in PAGES for command in read_commands(page.name, page.read_text())]


def environments():
    """Environments in ``.tox/``: name -> their packages. The README's first command makes ``bootstrap``."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(ROOT / "tox.ini")
    return {"bootstrap": ""} | {
        section.removeprefix("testenv:"): " ".join(parser[section].get(key, "") for key in ("deps", "extras"))
        for section in parser.sections()
        if section.startswith("testenv:")
    }


def trouble(command, getoption):
    """What is wrong with a command, in a few words; None if nothing is.

    :param getoption: raises ValueError for an option that pytest does not have.
    """
    program, *rest = (YOURS.get(word, word) for word in command.words)
    absent = [word for word in rest if word.split("/")[0] in TREE and not (ROOT / word).exists()]
    if absent:
        return f"{absent[0]} does not exist"
    *environment, program = re.sub(r"^\.tox/(\w+)/bin/", r"\1 ", program).split()
    if not environments().keys() >= {*environment}:
        return f"tox.ini has no environment {environment[0]}"
    packages = " ".join(environments()[name] for name in environment or ["fuzz"])
    match program:
        case "armdiff":
            return armdiff_trouble(rest, packages)
        case "tox":
            return tox_trouble(rest)
        case "pytest":
            return pytest_trouble(rest, packages, getoption)
        case "python":
            return module_trouble(rest)
        case name if name in PLAIN or (ROOT / name).is_file():
            return None
        case _ if "needs" in command.comment:
            return None
    return "nobody checks it; say in a comment what it needs"


def armdiff_trouble(words, packages):
    if not words or words[0] not in VERBS:
        return f"armdiff has no verb {' '.join(words[:1])!r}"
    mutates = "--from suite" in " ".join(words)
    if (mutates or words[0] in ("bench", "suite")) and not has(packages, "pytest|dev"):
        return f"{words[0]} needs pytest, which this environment does not have"
    try:
        main.get_command(None, words[0]).make_context(words[0], words[1:])
    except click.ClickException as error:
        return error.format_message()
    return None


def tox_trouble(words):
    if words[:2] != ["run", "-e"] and words[:3] != ["run-parallel", "-o", "-e"]:
        return "write: tox run -e NAME, or tox run-parallel -o -e NAME,NAME"
    names = words[words.index("-e") + 1].split(",")
    absent = [name for name in names if name not in environments()]
    return f"tox.ini has no environment {absent[0]}" if absent else None


def has(packages, names):
    """Is one of these, separated by ``|``, among the packages and extras of an environment?"""
    return re.search(rf"\b({names})\b", packages)


def pytest_trouble(words, packages, getoption):
    if not has(packages, "dev"):
        return "pytest is in environments with the extra dev only"
    for word in words:
        if word.startswith("--"):
            try:
                getoption(word)
            except ValueError:
                return f"pytest has no option {word}"
    return None


def module_trouble(words):
    place = ROOT.joinpath(*words[1].split(".")) if words[:1] == ["-m"] else None
    if place is None:
        return "write: python -m MODULE"
    return None if place.with_suffix(".py").is_file() or (place / "__main__.py").is_file() else f"no module {words[1]}"


@pytest.mark.parametrize("command", COMMANDS, ids=str)
def test_a_command_can_be_given_as_it_stands(command, pytestconfig, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert trouble(command, pytestconfig.getoption) is None


@pytest.mark.parametrize("command", COMMANDS, ids=str)
def test_a_command_that_takes_hours_says_so(command):
    words = " ".join(command.words)
    if re.search(r"--time \d+h|--cluster|--make|bench --(tricks|same)", words):
        assert MARK.search(command.comment)


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("armdiff fuzzz", "no verb 'fuzzz'"),
        ("armdiff", "no verb ''"),
        ("armdiff fuzz --tmie 8h", "--tmie"),
        (".tox/et141/bin/armdiff bench", "needs pytest"),
        (".tox/et141/bin/armdiff fuzz --from suite", "needs pytest"),
        (".tox/gone/bin/armdiff doctor", "no environment gone"),
        ("X=1 tox run -e gone", "no environment gone"),
        ("tox run-parallel -o -e lint,gone", "no environment gone"),
        ("tox -e tests", "write: tox run"),
        ("pytest corpus/", "extra dev"),
        (".tox/fuzz/bin/pytest corpus/", "extra dev"),
        (".tox/tests/bin/pytest --armdiff-tmie 8h", "no option --armdiff-tmie"),
        (".tox/tests/bin/pytest corpus/gone", "corpus/gone does not exist"),
        ("armdiff check docs/examples/gone.py", "docs/examples/gone.py does not exist"),
        (".tox/fuzz/bin/python -m harness.gone", "no module harness.gone"),
        ("true && .ci/gone", "nobody checks it"),
        ("dask scheduler # on one of them", "nobody checks it"),
    ],
)
def test_a_command_that_would_fail_is_seen(line, part, pytestconfig):
    *_, command = read_commands("page", f"```sh\n{line}\n```\n")
    assert part in trouble(command, pytestconfig.getoption)


def test_commands_are_found_in_shell_blocks_only():
    text = "```python\nprint()\n```\n```console\n$ a b # note\nc\n```\n```sh\nX=1 d && e  # hours\n```\n"
    assert read_commands("p", text) == [
        Command("p", ("a", "b"), " note"),
        Command("p", ("d",), " hours"),
        Command("p", ("e",), " hours"),
    ]
    assert {command.page for command in COMMANDS} >= {"README.md", "campaigns.md", "benchmark.md", "releases.md"}


# ---- links, files, tables -------------------------------------------------------------------------------------------


def anchors(text):
    """The names by which a page's headings can be linked to."""
    bare = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    heads = re.findall(r"^#+ (.+)$", bare, re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_links_to_exists(page):
    links = re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)", page.read_text())
    for file, anchor in links:
        there = (page.parent / file).resolve() if file else page
        assert there.exists(), file
        assert not anchor or anchor in anchors(there.read_text()), f"{file}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_of_the_checkout_that_a_page_names_exist(page):
    named = re.findall(rf"`((?:{'|'.join(map(re.escape, TREE))})/[\w./-]*)`", page.read_text())
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("page", [page for page in PAGES if page != README], ids=lambda page: page.name)
def test_the_readme_links_to_every_page(page):
    assert f"(docs/{page.name})" in README.read_text()


def test_the_readme_is_short():
    assert len(README.read_text().splitlines()) <= 150


@pytest.mark.parametrize(("head", "names"), [("verb", VERBS), ("leg", legs()), ("oracle", oracles())])
def test_a_table_of_the_readme_has_every_row(head, names):
    [table] = re.findall(rf"^\| {head} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", README.read_text(), re.M)
    assert sorted(re.findall(r"^\| `([\w-]+)` \|", table, re.M)) == sorted(names)


def texts():
    """Every text file of the checkout that a reader may meet."""
    files = [file for file in ROOT.iterdir() if file.is_file()]
    files += [file for folder in TREE for file in (ROOT / folder).rglob("*") if file.is_file()]
    suffixes = {".py", ".md", ".toml", ".ini", ".yml", ".html", ".css", ".txt", ""}
    return [file for file in files if file.suffix in suffixes and "__pycache__" not in file.parts]


def test_no_file_cites_a_page_that_is_not_here():
    absent = re.compile("|".join(rf"\b{name}\.md\b" for name in ("DESIGN", "UPSTREAM")))
    read = {file: file.read_text(errors="replace") for file in texts()}
    assert len(read) > 500
    assert [str(file.relative_to(ROOT)) for file, text in read.items() if absent.search(text)] == []
