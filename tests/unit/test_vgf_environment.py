"""What target vgf needs: where each piece is looked for, and what is said of one that is missing. Nothing is run."""

import json
import os
import sys
from pathlib import Path

import pytest

from harness.case.errors import CannotRun
from harness.case.target import parse_target
from harness.cli.environment import need_engine
from harness.compat import vgf
from harness.pipeline.legs import legs


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """A machine that has nothing of it."""
    for name in ("MODEL_CONVERTER_PATH", "VK_DRIVER_FILES", "VK_ICD_FILENAMES", vgf.RUNTIME_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(vgf, "_DRIVERS", (str(tmp_path / "icd.d"),))
    monkeypatch.setattr(vgf, "_manifests", lambda: None)
    monkeypatch.setattr(vgf, "installed", lambda: {"executorch": "1.5.1"})
    return tmp_path


def executable(file):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("")
    file.chmod(0o755)
    return file


def test_everything_that_is_missing_is_named_with_its_command(bare):
    remedies = [lack.remedy for lack in vgf.lacking()]
    commands = (
        "pip install ai-ml-sdk-model-converter==0.9.0",
        "pip install --no-deps ai-ml-emulation-layer",
        "apt-get",
    )
    assert len(remedies) == 4
    assert all(remedy.startswith(command) for remedy, command in zip(remedies, commands, strict=False))
    assert f"--target {bare / 'executorch-1.4.1'} executorch==1.4.1" in remedies[3]
    assert (
        legs()["vgf"].skip(parse_target("vgf")).startswith("Arm's model converter is not installed ('armdiff doctor'")
    )
    assert legs()["vgf"].skip(parse_target("TOSA-1.0+INT")) == "TOSA-1.0+INT has no VGF payload"


def test_lowering_needs_the_converter_and_only_for_vgf(bare, monkeypatch):
    need_engine("default", ["TOSA-1.0+INT"])
    with pytest.raises(CannotRun, match="target vgf: Arm's model converter is not installed; pip install"):
        need_engine("default", ["TOSA-1.0+INT", "vgf"])
    file = executable(bare / "elsewhere" / "model-converter")
    monkeypatch.setenv("MODEL_CONVERTER_PATH", str(file))
    need_engine("default", ["vgf"])
    assert vgf.converter() == str(file)


def test_a_converter_beside_the_interpreter_is_found(bare):
    file = executable(bare / "model-converter")
    assert vgf.converter() == str(file)


def test_the_runtime_is_a_folder_or_the_installed_release(bare, monkeypatch):
    assert vgf.runtime_folder() is None
    (bare / "executorch-1.4.1" / "executorch").mkdir(parents=True)
    assert vgf.runtime_folder() == bare / "executorch-1.4.1"
    (bare / "mine" / "executorch").mkdir(parents=True)
    monkeypatch.setenv(vgf.RUNTIME_VARIABLE, str(bare / "mine"))
    assert vgf.runtime_folder() == bare / "mine"
    monkeypatch.setattr(vgf, "installed", lambda: {"executorch": "1.4.1"})
    assert len(list(vgf.lacking())) == 3


def test_each_layer_has_a_folder_of_its_own_with_the_graph_above(bare, monkeypatch):
    manifests = bare / "deploy" / "share" / "vulkan" / "explicit_layer.d"
    manifests.mkdir(parents=True)
    for name in ("Graph", "Tensor"):
        layer = {"name": f"VK_LAYER_ML_{name}_Emulation", "library_path": f"libVkLayer_{name}.so"}
        (manifests / f"VkLayer_{name}.json").write_text(json.dumps({"layer": layer}))
    monkeypatch.setattr(vgf, "_manifests", lambda: manifests)
    (bare / "icd.d").mkdir()
    (bare / "icd.d" / "lvp_icd.x86_64.json").write_text("{}")
    vgf._stacked.cache_clear()
    found = vgf.environment()
    vgf._stacked.cache_clear()
    folders = [Path(item) for item in found["VK_LAYER_PATH"].split(os.pathsep)]
    libraries = [json.loads(next(folder.glob("*.json")).read_text())["layer"]["library_path"] for folder in folders]
    assert libraries == [str(bare / "deploy" / "lib" / f"libVkLayer_{name}.so") for name in ("Graph", "Tensor")]
    assert found["VK_INSTANCE_LAYERS"] == "VK_LAYER_ML_Graph_Emulation:VK_LAYER_ML_Tensor_Emulation"
    assert found["VK_DRIVER_FILES"] == found["VK_ICD_FILENAMES"] == str(bare / "icd.d" / "lvp_icd.x86_64.json")
