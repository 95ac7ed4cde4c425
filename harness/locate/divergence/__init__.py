"""Compare a compiled delegate with the TOSA graph it was compiled from, and find where they part.

``compare_delegate`` runs a payload on the functional model of the Ethos-U and the flatbuffer on the
TOSA reference model, on the same *draws* of inputs, and compares bit for bit. On a difference it
names the first operation of the command stream whose result is not what the TOSA graph says. It
needs numpy and tosa-tools; neither torch nor executorch.
"""

from harness.locate.divergence.comparing import DelegateComparison, WrongOutput, compare_delegate, tensors_of_steps
from harness.locate.divergence.difference import Difference
from harness.locate.divergence.draws import Draw, random_draws
from harness.locate.divergence.examining import examined
from harness.locate.divergence.origin import Origin

__all__ = [
    "DelegateComparison",
    "Difference",
    "Draw",
    "Origin",
    "WrongOutput",
    "compare_delegate",
    "examined",
    "random_draws",
    "tensors_of_steps",
]
