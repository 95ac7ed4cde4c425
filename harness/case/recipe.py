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
a16w8=a|b        these nodes (submodules) have widths of their own: 16     none
                 bit activations, or ``a8w8=``, ``a8w4=`` (mixed
                 precision); several such words may stand in one recipe
edited=cat       by hand: results of this operator change their domain     nothing
===============  ========================================================  ===============

``observer=minmax`` and ``act=fixed`` are configurations that a user builds by hand; everything
else is what the stock ``get_symmetric_*`` functions return. ``edited`` alters the quantized graph
itself (``harness.pipeline.edited_domains``): no quantizer makes such a graph, and a finding says so by its recipe.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from harness.case.errors import BadInput

QUANTIZED_WIDTHS = ("a8w8", "a16w8", "a8w4")
WIDTHS = (*QUANTIZED_WIDTHS, "float")
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
    mixed: tuple[tuple[str, tuple[str, ...]], ...] = ()
    edited: str = ""

    @property
    def all_widths(self) -> tuple[str, ...]:
        """Those of the recipe, and those that some nodes have of their own."""
        return (self.widths, *(widths for widths, _ in self.mixed))

    @property
    def activation_bits(self) -> int:
        """Of the widest activations."""
        return 16 if "a16w8" in self.all_widths else 8

    @property
    def set_apart(self) -> tuple[str, ...]:
        """The nodes that are not quantized like the rest: each needs a submodule of its own."""
        return (*self.float_nodes, *(name for _, nodes in self.mixed for name in nodes))

    def keeping(self, names: Collection[str]) -> Recipe:
        """The recipe without what it says of other nodes than these."""
        mixed = ((widths, tuple(name for name in nodes if name in names)) for widths, nodes in self.mixed)
        return msgspec.structs.replace(
            self,
            float_nodes=tuple(name for name in self.float_nodes if name in names),
            mixed=tuple((widths, nodes) for widths, nodes in mixed if nodes),
        )

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
        words += [f"{widths}={'|'.join(nodes)}" for widths, nodes in self.mixed]
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
    mixed: dict[str, tuple[str, ...]] = {}
    for word in words[1:]:
        widths, _, nodes = word.partition("=")
        if widths in QUANTIZED_WIDTHS and nodes:
            mixed[widths] = tuple(nodes.split("|"))
        else:
            recipe = msgspec.structs.replace(recipe, **_field_of(word, text, where))
    recipe = msgspec.structs.replace(recipe, mixed=tuple((item, mixed[item]) for item in WIDTHS if item in mixed))
    if recipe.widths == "float" and str(recipe) != "float":
        raise BadInput(where, f"{text!r} configures a quantizer that 'float' switches off", "write just 'float'")
    if recipe.widths == "a16w8" and recipe.qmin != -128:
        raise BadInput(
            where,
            f"{text!r} sets an 8-bit qmin for 16-bit activations",
            "drop the qmin word: int16 is symmetric, -32767 to 32767",
        )
    if recipe.widths in mixed:
        raise BadInput(where, f"{text!r} says {recipe.widths} twice", f"drop the word {recipe.widths}=")
    if len(set(recipe.set_apart)) < len(recipe.set_apart):
        raise BadInput(where, f"{text!r} says two things of one node", "name each node once")
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
