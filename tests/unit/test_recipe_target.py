"""Recipes and targets: one spelling each, and one line for what is not understood."""

import pytest

from harness.case.errors import BadInput
from harness.case.recipe import Recipe, parse_recipe
from harness.case.target import DEFAULT_TARGETS, parse_target

SPELLINGS = [
    "a8w8",
    "a16w8,per-tensor",
    "a8w4",
    "float",
    "a8w8,per-tensor,qmin=-127,io=fixed",
    "a8w8,qmin=-127,wmin=-128,act=fixed,io=same,observer=minmax,float=n0|n2",
    "a8w8,io=uint8",
    "a8w8,edited=cat",
    "a8w8,float=n0,a16w8=n1|n2,a8w4=n3",
    "a16w8,a8w8=n1",
]


@pytest.mark.parametrize("text", SPELLINGS)
def test_a_recipe_is_written_as_it_is_read(text):
    assert str(parse_recipe(text)) == text


def test_word_order_and_defaults_do_not_matter():
    assert parse_recipe("a8w8,io=same,per-channel,per-tensor, qmin=-127") == Recipe(
        per_channel=False, qmin=-127, io="same"
    )
    assert str(parse_recipe("a8w8,qmin=-128,per-channel")) == "a8w8"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("w8a8", "'w8a8'"),
        ("a8w8,qmin=0", "'qmin=0'"),
        ("a8w8,io=int4", "'io=int4'"),
        ("a8w8,float=", "'float='"),
        ("a8w8,edited=", "'edited='"),
        ("float,per-tensor", "just 'float'"),
        ("float,a16w8=n1", "just 'float'"),
        ("a8w8,a8w8=n1", "a8w8 twice"),
        ("a8w8,a16w8=", "'a16w8='"),
        ("a8w8,float=n1,a16w8=n1", "two things"),
        ("a16w8,qmin=-127", "int16 is symmetric"),
        ("", "width"),
    ],
)
def test_what_is_not_understood_is_named(text, part):
    with pytest.raises(BadInput, match="recipe") as caught:
        parse_recipe(text)
    assert part in str(caught.value)


@pytest.mark.parametrize(
    ("name", "family", "quantized"),
    [
        ("TOSA-1.0+INT", "tosa-int", True),
        ("TOSA-1.0+INT+FP", "tosa-int-fp", True),
        ("TOSA-1.0+FP", "tosa-fp", False),
        ("TOSA-1.0+INT+int16", "tosa-int", True),
        ("ethos-u55-128", "ethos-u55", True),
        ("ethos-u85-2048", "ethos-u85", True),
        ("vgf", "vgf", True),
        ("vgf+INT", "vgf", True),
        ("vgf+INT+FP", "vgf", True),
        ("vgf+FP", "vgf-fp", False),
    ],
)
def test_targets(name, family, quantized):
    target = parse_target(name)
    assert (target.family, target.quantized, target.ethos_u) == (family, quantized, name.startswith("ethos"))
    assert target.vgf == name.startswith("vgf")


def test_default_targets_are_targets():
    assert [parse_target(name).name for name in DEFAULT_TARGETS] == list(DEFAULT_TARGETS)


@pytest.mark.parametrize(
    "name", ["ethos-u55-512", "ethos-u99-1", "TOSA-1.0", "TOSA-2.0+INT", "TOSA-1.0+INT+x", "vgf+int16", "vgf2", ""]
)
def test_an_unknown_target_is_refused_with_a_remedy(name):
    with pytest.raises(BadInput, match=r"target.*use"):
        parse_target(name)


def test_a_recipe_forgets_the_nodes_that_are_gone():
    recipe = parse_recipe("a8w8,float=n0|n5,a16w8=n1|n2,a8w4=n3")
    assert recipe.set_apart == ("n0", "n5", "n1", "n2", "n3")
    assert str(recipe.keeping({"n0", "n2", "n4"})) == "a8w8,float=n0,a16w8=n2"


def test_widths_of_single_nodes_add_what_they_need():
    plain = parse_target("TOSA-1.0+INT")
    assert plain.tosa_specification(parse_recipe("a8w8,a16w8=n1")) == "TOSA-1.0+INT+int16"
    assert plain.tosa_specification(parse_recipe("a8w4")) == "TOSA-1.0+INT+int4"
    assert plain.tosa_specification(parse_recipe("a8w4,a16w8=n1")) == "TOSA-1.0+INT+int16+int4"
    assert parse_target("TOSA-1.0+INT+int4").tosa_specification(parse_recipe("a8w4")) == "TOSA-1.0+INT+int4"
    assert parse_recipe("a8w8,a16w8=n1").activation_bits == 16


def test_a16w8_adds_the_extension_once():
    wide = parse_recipe("a16w8")
    assert parse_target("TOSA-1.0+INT").tosa_specification(wide) == "TOSA-1.0+INT+int16"
    assert parse_target("TOSA-1.0+INT+int16").tosa_specification(wide) == "TOSA-1.0+INT+int16"
    assert parse_target("TOSA-1.0+INT").tosa_specification(parse_recipe("a8w8")) == "TOSA-1.0+INT"


def test_vgf_names_its_profiles_or_has_upstream_s_own():
    wide, plain = parse_recipe("a16w8"), parse_recipe("a8w8")
    assert parse_target("vgf").tosa_specification(wide) == "TOSA-1.0+FP+INT+int4+int16"
    assert parse_target("vgf+INT").tosa_specification(plain) == "TOSA-1.0+INT"
    assert parse_target("vgf+INT").tosa_specification(wide) == "TOSA-1.0+INT+int16"
    assert parse_target("vgf+FP").tosa_specification(parse_recipe("float")) == "TOSA-1.0+FP"
