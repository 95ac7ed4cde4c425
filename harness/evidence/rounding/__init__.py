"""What rounding leaves free: envelopes around a quantized graph, derived node by node.

Two correct implementations of one quantized graph may differ: a RESCALE may round a tie the
other way, an addition goes through int32 at a finite resolution, a 16-bit TABLE interpolates.
This package walks the graph that PT2E produced in float64 and carries, for every element, the
lowest and highest value that a correct implementation may hold. There is no tolerance to tune:
an element whose exact value is not near a rounding border has an envelope of width zero.

Three questions use the same walk (``policy``):

* ``rounding``: what may the compiled program return? Quantize nodes round; freedom comes from
  ties, float32 evaluation and the fixed-point forms listed in ``freedom``. The ``numeric`` oracle
  compares the compiled program with this.
* ``saturation``: the same, if codes below a quantize node's qmin (-127, -32767) but inside the
  integer type were allowed. It tells a lost qmin from every other mismatch.
* ``quantization``: which float function does the quantized graph stand for? Quantize nodes pass
  values on, constants are what they were before they were quantized (``originals``); nothing is
  free but float32 error. The ``quality`` oracle compares float eager with this.

Words: an *envelope* or ``Interval`` is the pair (low, high) of one value; *slack* is float32
evaluation error; *freedom* is what TOSA's integer forms add; *step* is a scale.

Invariants: low <= high; the exact float64 value of the graph lies inside; widening a value never
narrows a result. A rule that cannot bound its operator returns an infinite envelope and the
operator's name is reported as unjudged with every output that depends on it: no claim is better
than a wrong one.

Imports torch; a probe, run in worker processes only. ``interval`` has the values, ``freedom``
the facts about TOSA's integer forms, ``skipped`` where upstream requantizes less than the graph
says, ``rules`` one entry an operator (by family in ``arithmetic``, ``moving``, ``truth`` and
``tables``; ``call`` is what a rule is given), ``walk`` the interpreter.
"""
