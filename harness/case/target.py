"""Compile targets in upstream's own spelling, and what each implies.

``TOSA-1.0+INT``, ``TOSA-1.0+INT+FP``, ``TOSA-1.0+FP`` stop at the TOSA flatbuffer;
``ethos-u55-128`` and its like go on through Vela; ``vgf`` through Arm's model converter to a payload for Vulkan, with
the profiles of upstream's own compile specification, or those that are named: ``vgf+INT``, ``vgf+FP``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from harness.case.errors import BadInput
from harness.case.recipe import Recipe

DEFAULT_TARGETS = ("TOSA-1.0+INT", "ethos-u55-128", "ethos-u85-256")
FLOAT_TARGET = "TOSA-1.0+FP"
"""Where models that nothing quantizes are compiled for, unless it is said otherwise."""

_ETHOS = {
    "ethos-u55": (32, 64, 128, 256),
    "ethos-u65": (256, 512),
    "ethos-u85": (128, 256, 512, 1024, 2048),
}
_VGF = re.compile(r"vgf((?:\+(?:INT|FP|int16|int4))*)\Z")
_VGF_PROFILES = "+FP+INT+int4+int16"
"""What ``VgfCompileSpec()`` of executorch 1.5.1 has."""
_TOSA = re.compile(r"TOSA-1\.0((?:\+(?:INT|FP|int16|int4|u55|cf|bf16))+)\Z")

_EXTENSIONS = {"a16w8": "int16", "a8w4": "int4"}
"""What the widths of a recipe need; an Ethos-U's specification has both."""


@dataclass(frozen=True)
class Target:
    """A compile target.

    :param name: upstream's spelling.
    :param family: ``tosa-int``, ``tosa-int-fp``, ``tosa-fp``, ``ethos-u55``, ``ethos-u65``, ``ethos-u85``, ``vgf`` or
        ``vgf-fp``.
    """

    name: str
    family: str

    @property
    def quantized(self) -> bool:
        """False where there is no integer profile: float eager is then the reference."""
        return is_quantized(self.family)

    @property
    def ethos_u(self) -> bool:
        return self.family.startswith("ethos-u")

    @property
    def vgf(self) -> bool:
        return self.family.startswith("vgf")

    def tosa_specification(self, recipe: Recipe) -> str:
        """The TOSA specification string, with the extensions that the recipe needs."""
        name = self.name
        if self.vgf:
            name = f"TOSA-1.0{name.removeprefix('vgf') or _VGF_PROFILES}"
        if self.quantized:
            for widths, extension in _EXTENSIONS.items():
                if widths in recipe.all_widths and extension not in name.split("+"):
                    name = f"{name}+{extension}"
        return name


def is_quantized(family: str) -> bool:
    """Does a family have an integer profile?"""
    return not family.endswith("-fp") or family == "tosa-int-fp"


def parse_target(text: str, where: str = "target") -> Target:
    """Read a target's name.

    :raises BadInput: naming the targets that exist.
    """
    if match := _TOSA.match(text):
        profiles = match.group(1).split("+")
        integer, floating = "INT" in profiles, "FP" in profiles
        if integer or floating:
            family = "tosa-int-fp" if integer and floating else "tosa-int" if integer else "tosa-fp"
            return Target(text, family)
    family, _, macs = text.rpartition("-")
    if family in _ETHOS and macs.isdigit() and int(macs) in _ETHOS[family]:
        return Target(text, family)
    if match := _VGF.match(text):
        profiles = match.group(1).split("+")
        if text == "vgf" or {"INT", "FP"} & set(profiles):
            return Target(text, "vgf" if text == "vgf" or "INT" in profiles else "vgf-fp")
    names = ["TOSA-1.0+INT", "TOSA-1.0+INT+FP", "TOSA-1.0+FP"]
    names += [f"{name}-{'|'.join(map(str, sizes))}" for name, sizes in _ETHOS.items()]
    names += ["vgf", "vgf+INT", "vgf+FP"]
    raise BadInput(where, f"unknown target {text!r}", "use one of " + ", ".join(names))
