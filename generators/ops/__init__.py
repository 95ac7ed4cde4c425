"""Operator entries, one module a family; ``harness.case.registry.operators()`` finds them all.

To add an operator: write an ``Operator`` entry in the fitting module (or a new one) and append it
to that module's ``OPERATORS`` tuple. ``tests/unit/test_operators.py`` draws examples of every entry
and compares its shape rule with torch; it needs no new line.

Tags say what others may count on:

==============  ==================================================================================
tag             meaning
==============  ==================================================================================
seed            the seed bugs are made of it: drawn more often
rare            drawn less often (it makes tensors small, or is a detail)
kin             one of many that are lowered alike: drawn seldom
narrow          fits values of one rank or dtype only: drawn more often where it fits
join            has several operands whose ranges meet
shared          upstream gives all its operands one quantization domain
layout, divide  moves elements without arithmetic: an input's range passes through unchanged
strided         the result may lie in memory in another order than its dimensions say
dense           needs an operand that lies in memory in the order of its dimensions
index           reads integers as indices, so that its first operand must be an input
elementwise, activation, arithmetic, table, factory, convolution, product, pooling, reduction,
comparison, logic, bitwise, cast, normalization, resizing
                the family
==============  ==================================================================================
"""
