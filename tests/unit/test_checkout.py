"""Patches for a checkout of upstream's repository, whose code may have moved on. No torch."""

import shutil

import pytest
from click.testing import CliRunner

from harness.cli.command import main
from harness.compat.sources import file_of
from harness.corrections import find_correction
from harness.corrections.checkout import applied_to, in_words
from harness.corrections.patch import diff_of, repository_path

NEG = find_correction("neg-rescaled")
MODULE = "executorch.backends.arm._passes.insert_rescales_pass"


@pytest.fixture
def checkout(tmp_path):
    """The installed file of the correction, as the repository has it."""
    file = tmp_path / repository_path(MODULE)
    file.parent.mkdir(parents=True)
    shutil.copyfile(file_of(MODULE), file)
    return tmp_path


def test_the_installed_release_s_code_gets_the_installed_release_s_patch(checkout):
    found = applied_to(checkout, NEG)
    assert found.diff == diff_of([NEG])
    assert in_words(found, "abc of 2026-01-01") == "It applies to abc of 2026-01-01."


def test_a_place_that_changed_around_the_edits_is_named(checkout):
    file = checkout / repository_path(MODULE)
    text = file.read_text()
    head = "    def _get_output_qparams("
    assert text.count(head) == 1
    body = text.index('"""', text.index(head)) if '"""' in text[text.index(head) :] else len(text)
    file.write_text(text[:body] + '"""Another word. ' + text[body + 3 :])
    found = applied_to(checkout, NEG)
    assert found.diff
    assert f"look at {repository_path(MODULE)}: InsertRescaleInt32Pass." in in_words(found, "x")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda file: file.unlink(), "is not there"),
        (lambda file: file.write_text("x = 1\n"), "has no InsertRescaleInt32Pass.included_targets"),
        (
            lambda file: file.write_text(file.read_text().replace("exir_ops.edge.aten.abs.default", "gone")),
            "is other code",
        ),
    ],
)
def test_code_that_is_gone_is_told_and_nothing_is_guessed(checkout, change, why):
    change(checkout / repository_path(MODULE))
    found = applied_to(checkout, NEG)
    assert not found.diff
    assert why in found.why
    assert "see whether the bug is gone" in found.why or why != "is other code"


@pytest.mark.parametrize("verb", ["certify", "upstream"])
def test_a_folder_that_is_no_checkout_is_one_line(tmp_path, verb):
    result = CliRunner().invoke(main, [verb, "--source", str(tmp_path)])
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "give a checkout of the executorch repository" in result.stderr
