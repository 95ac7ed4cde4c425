"""The table of real networks, and torchvision beside a torch that its kernels were not built for."""

import sys

import pytest

from harness.compat import torchvision_kernels
from tests.networks.__main__ import lines

FINDING = {"bucket": "v1/a", "target": "ethos-u55-128", "entry": "", "message": "", "case": ""}
ROW = {
    "network": "vit",
    "seconds": 31,
    "memory": 900,
    "problem": "",
    "findings": [],
    "unjudged": {"aten.exp": {"outputs": 2, "cases": 1, "why": "no rule"}},
    "profiles": {"TOSA-1.0+INT": None, "ethos-u55-128": {"operators": [79, 1]}},
    "cases": 3,
}


def test_a_network_s_row():
    *_, row = lines([ROW])
    assert row == "| vit | 79/80 | 31 s | 900 MiB | - | - | - | aten.exp: 2 of 1 cases |"


def test_a_known_bug_counts_once_and_a_new_one_for_each_bucket():
    known = [{**FINDING, "state": "known", "entry": "one", "bucket": name} for name in ("v1/a", "v1/b")]
    new = [{**FINDING, "state": "new", "bucket": name} for name in ("v1/c", "v1/d")]
    *_, row = lines([{**ROW, "findings": [*known, *new], "unjudged": {}}])
    assert row == "| vit | 79/80 | 31 s | 900 MiB | 2 | - | 1 | - |"


def test_what_could_not_be_checked_says_why():
    *_, row = lines([{**ROW, "problem": "armdiff: torchvision is not installed", "profiles": {}}])
    assert row.endswith("| armdiff: torchvision is not installed |")


HEALTHY = "from torchvision import parts\nvalue = 1\n"
PARTS = """
import torch
@torch.library.register_fake('torchvision::nms')
def described(dets, scores, iou_threshold):
    pass
"""


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """A package called torchvision that imports only if its operator is declared; gone afterwards."""

    def make(text):
        package = tmp_path / "torchvision"
        package.mkdir()
        (package / "__init__.py").write_text(HEALTHY)
        (package / "parts.py").write_text(text)
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
        torchvision_kernels.spare_missing_kernels()

    before = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "torchvision"}
    for name in before:
        monkeypatch.delitem(sys.modules, name)
    yield make
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
        del sys.modules[name]
    sys.modules.update(before)
    torchvision_kernels._kept.clear()


def test_torchvision_is_imported_without_its_kernels(stand_in):
    stand_in(PARTS)
    import torchvision

    assert torchvision.value == 1
    assert torchvision_kernels._kept


def test_a_torchvision_that_imports_is_left_alone(stand_in):
    stand_in("")
    import torchvision

    assert torchvision.value == 1
    assert not torchvision_kernels._kept


def test_another_error_of_torchvision_stays_what_it_is(stand_in):
    stand_in("raise RuntimeError('broken')")
    with pytest.raises(RuntimeError, match="broken"):
        import torchvision  # noqa: F401
