"""Operator entries, one module a family; ``harness.registry.operators()`` finds them all.

To add an operator: write an ``Operator`` entry in the fitting module (or a new one), append it
to that module's ``OPERATORS`` tuple, and give it an example in ``tests/unit/test_operators.py``.
"""
