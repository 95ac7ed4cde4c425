"""Quantization recipes and their one spelling: ``a8w8,per-tensor,qmin=-127,io=fixed``.

The first word is the widths (activations, weights) or ``float`` (no quantization at all, the
only recipe of a target without an integer profile). The other words may come in any order when
read and come in one order when written; what has its default value is not written.

===============  ========================================================  ===============
word             meaning                                                   default
===============  ========================================================  ===============
per-tensor       one weight scale a tensor instead of one a channel        per channel
qmin=N           lowest activation code, -127 or -128 (8 bit only)         -128
wmin=N           lowest 8-bit weight code, -127 or -128                    -127
act=fixed        activations use fixed qparams, scale 1/127, zero point 0  observed
io=same          inputs and outputs annotated with the same configuration  not annotated
io=fixed         inputs and outputs use the fixed qparams                  not annotated
io=uint8         inputs and outputs are uint8                              not annotated
observer=minmax  a min-max observer instead of the stock histogram         histogram
float=a|b        these nodes (submodules) are left unquantized             none
edited=cat       by hand: results of this operator change their domain     nothing
===============  ========================================================  ===============

``observer=minmax`` and ``act=fixed`` are configurations that a user builds by hand; everything
else is what the stock ``get_symmetric_*`` functions return. ``edited`` alters the quantized graph
itself (``harness.pipeline.edited_domains``): no quantizer makes such a graph, and a finding says so by its recipe.
"""

from __future__ import annotations

import msgspec

from harness.case.errors import BadInput

WIDTHS = ("a8w8", "a16w8", "a8w4", "float")
IO_CHOICES = ("same", "fixed", "uint8")


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """The choices that a recipe makes (see the module's table)."""

    widths: str = "a8w8"
    per_channel: bool = True
    qmin: int = -128
    weight_qmin: int = -127
    fixed_activations: bool = False
    io: str | None = None
    min_max_observer: bool = False
    float_nodes: tuple[str, ...] = ()
    edited: str = ""

    @property
    def activation_bits(self) -> int:
        return 16 if self.widths == "a16w8" else 8

    def __str__(self) -> str:
        words = [self.widths]
        if not self.per_channel:
            words.append("per-tensor")
        if self.qmin != -128:
            words.append(f"qmin={self.qmin}")
        if self.weight_qmin != -127:
            words.append(f"wmin={self.weight_qmin}")
        if self.fixed_activations:
            words.append("act=fixed")
        if self.io is not None:
            words.append(f"io={self.io}")
        if self.min_max_observer:
            words.append("observer=minmax")
        if self.float_nodes:
            words.append("float=" + "|".join(self.float_nodes))
        if self.edited:
            words.append(f"edited={self.edited}")
        return ",".join(words)


def parse_recipe(text: str, where: str = "recipe") -> Recipe:
    """Read a recipe's spelling.

    :raises BadInput: naming the word that is not understood.
    """
    words = [word.strip() for word in text.split(",")]
    if words[0] not in WIDTHS:
        raise BadInput(where, f"{text!r} does not begin with a width", "begin it with " + ", ".join(WIDTHS))
    recipe = Recipe(widths=words[0])
    for word in words[1:]:
        recipe = msgspec.structs.replace(recipe, **_field_of(word, text, where))
    if recipe.widths == "float" and str(recipe) != "float":
        raise BadInput(where, f"{text!r} configures a quantizer that 'float' switches off", "write just 'float'")
    if recipe.widths == "a16w8" and recipe.qmin != -128:
        raise BadInput(
            where,
            f"{text!r} sets an 8-bit qmin for 16-bit activations",
            "drop the qmin word: int16 is symmetric, -32767 to 32767",
        )
    return recipe


def _field_of(word: str, text: str, where: str) -> dict[str, object]:
    key, _, value = word.partition("=")
    match key, value:
        case "per-tensor", "":
            return {"per_channel": False}
        case "per-channel", "":
            return {"per_channel": True}
        case "qmin", "-127" | "-128":
            return {"qmin": int(value)}
        case "wmin", "-127" | "-128":
            return {"weight_qmin": int(value)}
        case "act", "fixed":
            return {"fixed_activations": True}
        case "io", _ if value in IO_CHOICES:
            return {"io": value}
        case "observer", "minmax":
            return {"min_max_observer": True}
        case "float", _ if value:
            return {"float_nodes": tuple(value.split("|"))}
        case "edited", _ if value:
            return {"edited": value}
    raise BadInput(
        where,
        f"word {word!r} of recipe {text!r} is not understood",
        "see the table in harness/case/recipe.py, for example 'a8w8,per-tensor,qmin=-127'",
    )
