"""Upstream's own tests as subjects: their modules, inputs, targets and recipes, and nothing of them runs."""

import pytest
import torch

from harness.case.errors import BadInput
from harness.compat.suite import Missed, collect
from harness.compat.suite_files import upstream_tests


@pytest.fixture(scope="module")
def taken():
    words = ("test_split_tensor_", "test_split_a16w8_", "test_sigmoid_16a8w_tosa_INT", "test_reduce_all_tosa_FP[rank1")
    found = []
    paths = ["ops/test_split.py", "ops/test_sigmoid.py", "ops/test_all.py"]
    missed = collect(paths, found.append, wanted=lambda test: any(word in test for word in words))
    return found, missed


def meant(found, word):
    return {(subject.target, subject.recipe) for subject in found if word in subject.test}


def test_every_pipeline_of_a_test_file_is_taken_with_what_the_test_means(taken):
    found, _ = taken
    assert meant(found, "split_tensor_tosa_FP") == {("TOSA-1.0+FP", "float")}
    assert meant(found, "split_tensor_tosa_INT") == {("TOSA-1.0+INT", "a8w8")}
    assert meant(found, "split_tensor_u85_INT") == {("ethos-u85-128", "a8w8")}
    assert meant(found, "split_a16w8_u55") == {("ethos-u55-128", "a16w8")}
    assert meant(found, "sigmoid_16a8w") == {("TOSA-1.0+INT", "a16w8,per-tensor")}
    assert meant(found, "split_tensor_vgf_no_quant") == {("TOSA-1.0+FP+bf16", "float")}
    assert all(isinstance(subject.model, torch.nn.Module) for subject in found)
    assert all(isinstance(subject.inputs[0], torch.Tensor) for subject in found)


def test_a_missing_fvp_is_no_expected_failure(taken):
    assert {subject.expected for subject in taken[0] if "u85" in subject.test} == {None}


def test_a_test_without_a_pipeline_is_told(taken):
    assert taken[1] == [Missed("ops/test_all.py::test_reduce_all_tosa_FP[rank1_dim0]", "it runs no pipeline")]


def test_a_path_that_is_none_is_refused_in_one_line():
    with pytest.raises(BadInput, match="cannot be collected by pytest"):
        collect(["ops/test_nothing.py"], lambda subject: None)
    assert (upstream_tests() / "ops").is_dir()
