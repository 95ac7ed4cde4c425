"""Hypothesis strategies: operators, graphs, calibration, recipes and targets.

``ops`` has one declarative entry an operator; ``graphs`` strings them together, valid by
construction; ``calibration`` and ``recipes`` choose what moves zero points; ``cases`` puts all
of it into one graph with its cases. No torch here: drawing a case takes milliseconds.
"""
