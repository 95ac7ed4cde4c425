"""One rule an operator: from operand intervals to the result's interval.

To add an operator: put its name into the fitting family of ``arithmetic``, ``moving``, ``truth``
or ``tables``, or write a function there and enter it in that module's ``RULES``.
``tests/unit/test_rounding.py`` samples inside the operands' intervals and checks that results
stay inside the rule's. An operator without a rule is unjudged.
"""

from harness.evidence.rounding import arithmetic, moving, tables, truth
from harness.evidence.rounding.call import Call, Rule, base_name

__all__ = ["RULES", "Call", "Rule", "base_name"]

RULES: dict[str, Rule] = {**arithmetic.RULES, **moving.RULES, **truth.RULES, **tables.RULES}
