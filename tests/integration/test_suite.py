"""Upstream's own tests as subjects: their modules, inputs, targets and recipes, and nothing of them runs."""

import json
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from harness.campaign.run_folder import read_run
from harness.case.errors import BadInput
from harness.cli.command import main
from harness.compat.suite import Subject, _in_a_folder_of_its_own, _uncollected, collect
from harness.compat.suite_files import upstream_tests

NOTHING = "it runs no pipeline and exports no module"


@pytest.fixture(scope="module")
def taken():
    words = ("test_split_tensor_", "test_split_a16w8_", "test_sigmoid_16a8w_tosa_INT")
    found = []
    collect(
        ["ops/test_split.py", "ops/test_sigmoid.py"],
        found.append,
        wanted=lambda test: any(word in test for word in words),
    )
    return found


def meant(found, word):
    return {(subject.target, subject.recipe) for subject in found if word in subject.test}


def test_every_pipeline_of_a_test_file_is_taken_with_what_the_test_means(taken):
    assert meant(taken, "split_tensor_tosa_FP") == {("TOSA-1.0+FP", "float")}
    assert meant(taken, "split_tensor_tosa_INT") == {("TOSA-1.0+INT", "a8w8")}
    assert meant(taken, "split_tensor_u85_INT") == {("ethos-u85-128", "a8w8")}
    assert meant(taken, "split_a16w8_u55") == {("ethos-u55-128", "a16w8")}
    assert meant(taken, "sigmoid_16a8w") == {("TOSA-1.0+INT", "a16w8,per-tensor")}
    assert meant(taken, "split_tensor_vgf_no_quant") == {("TOSA-1.0+FP+bf16", "float")}
    assert all(isinstance(subject.model, torch.nn.Module) for subject in taken)
    assert all(isinstance(subject.inputs[0], torch.Tensor) for subject in taken)


def test_a_missing_fvp_is_no_expected_failure(taken):
    assert {subject.expected for subject in taken if "u85" in subject.test} == {None}


def test_tests_run_in_a_folder_of_their_own_and_their_subjects_are_taken_in_the_users(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    seen: list[Path] = []
    collect(["ops/test_t_copy.py"], lambda subject: seen.append(Path.cwd()), wanted=lambda test: "INT[ones]" in test)
    assert {*seen} == {tmp_path}
    with _in_a_folder_of_its_own():
        Path("dumped").touch()
        assert Path.cwd() != tmp_path
    assert [*tmp_path.iterdir()] == []


def test_a_test_without_a_module_is_told():
    missed = collect(["misc/test_compile_spec.py"], lambda subject: None, wanted=lambda test: "u55_INT" in test)
    assert {item.why for item in missed} == {NOTHING}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("...\nE   ModuleNotFoundError: No module named 'transformers'", "needs the Python module transformers"),
        ("E   SyntaxError: invalid syntax", "cannot be collected: SyntaxError: invalid syntax"),
    ],
)
def test_a_file_that_cannot_be_collected_says_what_it_needs(said, told):
    assert told in _uncollected(said)


def test_a_test_without_a_pipeline_gives_the_module_that_it_exports_and_the_quantizer_that_it_annotates_with():
    found: list[Subject] = []
    wanted = ("qat", "linear", "int64_tosa_INT[fp32_in+int64_buffer]")  # the last by a stage of upstream's tester
    files = ["misc/test_qat_training_loop.py", "passes/test_decompose_linear_pass.py", "misc/test_int64.py"]
    missed = collect(files, found.append, wanted=lambda test: any(word in test for word in wanted))
    assert missed == []
    told = [(subject.target, subject.recipe, type(subject.model).__name__) for subject in found]
    assert told == [
        ("TOSA-1.0+INT", "a8w8", "MLP"),
        ("TOSA-1.0+FP", "float", "Linear"),
        ("TOSA-1.0+INT", "a8w8", "BufferAdd"),
    ]
    assert [subject.inputs[0].shape[-1] for subject in found] == [1, 16, 10]


def test_what_goes_wrong_in_taking_a_subject_is_told():
    def visit(subject):
        raise KeyError("lost")

    missed = collect(["ops/test_t_copy.py"], visit, wanted=lambda test: "tosa_INT[ones]" in test)
    assert ["taking its module" in item.why and "lost" in item.why for item in missed] == [True]


def test_a_path_that_is_none_is_refused_in_one_line():
    with pytest.raises(BadInput, match="cannot be collected by pytest"):
        collect(["ops/test_nothing.py"], lambda subject: None)
    assert (upstream_tests() / "ops").is_dir()


def test_the_verb_judges_what_the_tests_are_about_and_says_what_it_could_not_take(tmp_path, workers_forked):
    files = ["ops/test_abs.py", "ops/test_t_copy.py", "misc/test_compile_spec.py"]
    tests = [
        "abs_tosa_INT[zeros]",
        "abs_u55_INT[zeros]",
        "_INT[randn_1d]",
        "t_tosa_INT[ones]",
        "abs_tosa_FP[zeros]",
        "compile_spec",
    ]
    words = [word for test in tests for word in ("-k", test)]
    asked = ["suite", *files, *words, "--out", str(tmp_path / "run"), "--jobs", "1", "--target", "TOSA-1.0+INT"]
    ended = CliRunner().invoke(main, [*asked, "--probes", "none", "--json", str(tmp_path / "run.json")])
    assert ended.exit_code == 0, ended.output
    data = json.loads((tmp_path / "run.json").read_text())
    first, second, third = data["files"]
    assert (first["file"], first["cases"], first["judged"]) == ("ops/test_abs.py", 2, 2)
    assert second["cases"] == second["judged"] > 0
    assert {"no chosen target takes its recipe, float"} == {*first["refused"]}
    assert {*third["refused"]} == {NOTHING}
    assert data["problems"] == []
    by_test = {test["test"]: test["cases"] for test in first["tests"]}
    assert by_test["ops/test_abs.py::test_abs_tosa_INT[zeros]"] == by_test["ops/test_abs.py::test_abs_u55_INT[zeros]"]

    run = read_run(tmp_path / "run")
    assert len(run.done) == data["cases"]
    assert CliRunner().invoke(main, ["report", str(tmp_path / "run")]).exit_code == 0
    (tmp_path / "run" / "results.jsonl").write_text("")
    taken = (tmp_path / "run" / "suite.jsonl").read_bytes()
    assert CliRunner().invoke(main, [*asked, "--resume"]).exit_code == 0
    assert (tmp_path / "run" / "suite.jsonl").read_bytes() == taken
    assert [item.number for item in read_run(tmp_path / "run").done] == [item.number for item in run.done]
