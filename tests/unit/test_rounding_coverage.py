"""Every operator that the Arm quantizer annotates has a rule of rounding, or is excused by name."""

from harness.evidence.rounding.rules import RULES
from tests.annotated import ANNOTATED

EXCUSED = {
    "aten.full": "takes no activation: the walk evaluates it",
    "aten.ones": "takes no activation: the walk evaluates it",
    "aten.zeros": "takes no activation: the walk evaluates it",
    "aten.scalar_tensor": "takes no activation: the walk evaluates it",
    "higher_order.cond": "the walk does not enter the graphs of a branch: unjudged",
    "higher_order.while_loop": "the walk does not enter the graphs of a loop: unjudged",
}


def test_every_annotated_operator_has_a_rule_or_an_excuse():
    assert [name for name in ANNOTATED if name not in RULES and name not in EXCUSED] == []


def test_an_excuse_is_needed():
    assert [name for name in EXCUSED if name in RULES or name not in ANNOTATED] == []
