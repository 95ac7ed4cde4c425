"""What target ``vgf`` needs on this machine: Arm's model converter, its emulation layers, Mesa's CPU driver, a runtime.

Lowering needs the converter alone; running a payload needs the rest. Each piece is found where its package puts it,
or where a variable says; ``lacking`` names what is missing with the command that brings it.

Facts, tried on Debian 12 with glibc 2.36 in November 2026: the VGF runtime is compiled into executorch 1.4.1's wheel
and not into 1.5.1's, so it comes from a folder of its own, with the installed torch. It reads what converter 0.9.0
writes and not what 0.11.0 does ("Failed to create VGF header decoder"); 0.10.0 needs glibc 2.38. Emulation layers 0.9.0
and 0.11.0 both work. Debian's Vulkan loader (1.3.239) stacks layers in the order of folders, not of VK_INSTANCE_LAYERS,
and the Graph layer has to come above the Tensor layer: so each manifest is copied into a folder of its own.
"""

from __future__ import annotations

import atexit
import ctypes
import importlib.util
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from harness.compat.releases import installed

RUNTIME_VERSION = "1.4.1"
"""The executorch whose wheel has the VGF runtime."""
RUNTIME_VARIABLE = "ARMDIFF_VGF_RUNTIME"
READS = "ai-ml-sdk-model-converter==0.9.0"
"""The converter whose files that runtime reads."""
LAYERS = "ai-ml-emulation-layer-for-vulkan==0.11.0"
UNREADABLE = "Failed to create VGF header decoder"
"""What the runtime prints of a file of another format."""
UNFIT = "does not match IO allocation"
"""What it prints of a payload that takes or gives another number of bytes than the program."""
_DRIVERS = ("/usr/share/vulkan/icd.d", "/usr/local/share/vulkan/icd.d", "/etc/vulkan/icd.d")
_DRIVER_VARIABLES = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")
_ORDER = ("Graph", "Tensor")


@dataclass(frozen=True)
class Lack:
    """Something that is missing, and the command that brings it."""

    what: str
    remedy: str


def converter() -> str | None:
    """The model converter that upstream will call; None if there is none."""
    named = os.environ.get("MODEL_CONVERTER_PATH", "")
    if named and os.access(named, os.X_OK) and Path(named).is_file():
        return named
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    return shutil.which("model-converter", path=path) or shutil.which("model_converter", path=path)


def no_converter() -> Lack | None:
    """Why nothing can be lowered to VGF here, or None."""
    if converter() is not None:
        return None
    return Lack("Arm's model converter is not installed", f"pip install {READS}  (or set MODEL_CONVERTER_PATH)")


def lacking() -> Iterator[Lack]:
    """Everything that running a VGF payload lacks here."""
    if (lack := no_converter()) is not None:
        yield lack
    if _manifests() is None:
        yield Lack("Arm's ML emulation layers are not installed", f"pip install --no-deps {LAYERS}")
    if _driver() is None or not _has_loader():
        yield Lack(
            "there is no Vulkan loader with Mesa's CPU driver (lvp)",
            "apt-get install mesa-vulkan-drivers libvulkan1  (or set VK_DRIVER_FILES to its manifest)",
        )
    if runtime_folder() is None and not _has_runtime():
        yield Lack(
            f"no executorch with a VGF runtime ({RUNTIME_VERSION} has one)",
            f"pip install --no-deps --target {Path(sys.prefix) / _FOLDER} executorch=={RUNTIME_VERSION}  "
            f"(or set {RUNTIME_VARIABLE} to such a folder)",
        )


_FOLDER = f"executorch-{RUNTIME_VERSION}"


def runtime_folder() -> Path | None:
    """The folder that holds an executorch with a VGF runtime; None if the installed one has to do."""
    places = (os.environ.get(RUNTIME_VARIABLE), str(Path(sys.prefix) / _FOLDER))
    return next((Path(place) for place in places if place and Path(place, "executorch").is_dir()), None)


def environment() -> dict[str, str]:
    """Variables for a process that runs VGF payloads: the CPU driver, and the layers in their order."""
    driver = _driver()
    found = dict.fromkeys(_DRIVER_VARIABLES, driver) if driver is not None else {}
    return {
        **found,
        "VK_LAYER_PATH": os.pathsep.join(map(str, _stacked())),
        "VK_INSTANCE_LAYERS": os.pathsep.join(f"VK_LAYER_ML_{name}_Emulation" for name in _ORDER),
    }


def _has_runtime() -> bool:
    return installed().get("executorch", "") == RUNTIME_VERSION


def _driver() -> str | None:
    named = next((os.environ[name] for name in _DRIVER_VARIABLES if os.environ.get(name)), None)
    found = (str(file) for folder in _DRIVERS for file in sorted(Path(folder).glob("lvp_icd*.json")))
    return named or next(found, None)


@cache
def _has_loader() -> bool:
    with suppress(OSError):
        ctypes.CDLL("libvulkan.so.1")
        return True
    return False


def _manifests() -> Path | None:
    """The folder in which the package of the layers has their manifests."""
    try:
        spec = importlib.util.find_spec("emulation_layer")
    except (ImportError, ValueError):
        return None
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "deploy" / "share" / "vulkan" / "explicit_layer.d"
    return folder if all((folder / f"VkLayer_{name}.json").is_file() for name in _ORDER) else None


@cache
def _stacked() -> tuple[Path, ...]:
    """A folder for each layer, the upper one first, with its manifest and an absolute path to its library."""
    manifests = _manifests()
    if manifests is None:
        return ()
    above = Path(tempfile.mkdtemp(prefix="armdiff-vgf-"))
    atexit.register(shutil.rmtree, above, ignore_errors=True)
    folders = []
    for name in _ORDER:
        file = manifests / f"VkLayer_{name}.json"
        described = json.loads(file.read_text())
        library = manifests.parents[2] / "lib" / described["layer"]["library_path"]
        described["layer"]["library_path"] = str(library)
        folder = above / name.lower()
        folder.mkdir()
        (folder / file.name).write_text(json.dumps(described))
        folders.append(folder)
    return tuple(folders)
