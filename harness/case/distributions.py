"""What a calibration distribution is, and the calibration samples that come from it.

A distribution describes one input over all calibration samples, because some kinds are about
the samples' relation (disjoint batches). Entries live in ``generators.calibration``; this module
only fixes their form.

Units: values are float32 in the module's own domain (before quantization). Sampling uses numpy's
PCG64 seeded from the case's calibration seed and the input's name, so that adding an input does
not change the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from harness.case.arrays import Array
from harness.case.case import Attributes
from harness.case.operators import Draw


@dataclass(frozen=True)
class CalibrationKind:
    """One named distribution.

    :param name: the word in ``Distribution.kind``.
    :param parameters: every parameter that it takes, with a word on its meaning.
    :param draw: ``draw(draw)`` chooses parameters (shrinks towards the plainest).
    :param sample: ``sample(rng, shape, parameters, index, count)`` gives sample ``index`` of
        ``count`` as float32.
    """

    name: str
    parameters: Mapping[str, str]
    draw: Callable[[Draw], Attributes]
    sample: Callable[[np.random.Generator, tuple[int, ...], Attributes, int, int], Array]
    tags: frozenset[str] = field(default_factory=frozenset)
