"""Every planted fault: known classes of bugs put back by patching the installed packages.

Each names the upstream issue it stands for, the oracle that must see it, what must be blamed and
the case on which it shows; the clean twin is the same case without it. One module an oracle:
``values`` (crash, quality, model-unchanged), ``quality``, ``qparams`` (with numeric), ``constants``,
``buffers`` (with outputs), ``streams``, ``programs`` (the ``executorch`` leg), ``plant_probes``.
"""

from __future__ import annotations

from dataclasses import replace

from tests.faults import buffers, constants, plant_probes, programs, qparams, quality, streams, values
from tests.faults.fault import Fault

FAULTS: tuple[Fault, ...] = (
    *values.FAULTS,
    *quality.FAULTS,
    *qparams.FAULTS,
    *constants.FAULTS,
    *buffers.FAULTS,
    *streams.FAULTS,
    *programs.FAULTS,
    *(replace(fault, probes="all") for fault in plant_probes.PROBE_FAULTS),
)
