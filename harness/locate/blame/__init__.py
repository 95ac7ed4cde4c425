"""Which pass changed the values: evaluate a delegate's graph as it stood after each pass.

``interpreter`` runs one such graph on the very codes that the program hands to the delegate: Q/DQ
nodes as they are; after qparams went into metadata, dequantize, operator, quantize by the node's
qparams; operators of the TOSA dialect in integer arithmetic (``dialect``). ``bracket`` asks for
each graph whether the program's outputs are where rounding allows, and names the first pass
after which they are not.

The interpreter reads what the passes *say*, not what upstream's kernels do; what it cannot
evaluate makes the bracket wider, never wrong. So does a graph that is wrong in another way than
the flatbuffer: it may be one that the interpreter reads wrongly. How often the right pass is
named on planted faults: ``python -m tests.faults.blame_survey``.
"""
