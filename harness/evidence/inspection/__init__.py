"""Read a lowering's record: what PT2E decided, what each TOSA operator stands for, in which unit.

The ``qparams`` and ``constants`` oracles ask here. Everything is a pure function of a delegate's
pass trace and flatbuffer.

* ``decisions``: the quantization of every value in the start graph, as its Q/DQ nodes say.
* ``origins``: which start node a TOSA operator descends from.
* ``units``: dimensional analysis of a TOSA graph. Every integer tensor stands for real numbers,
  ``scale * (code - zero point)``; RESCALE divides the unit, MUL multiplies units, ADD needs equal
  ones. What the graph implies is compared with what was decided.
* ``lookup``: TABLE constants against the function they stand for.
* ``folding``: the values of constant sub-expressions of the start graph.

No claim is made where a unit, an origin or a decision is unknown.
"""
