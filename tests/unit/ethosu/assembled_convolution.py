"""One convolution on Ethos-U55 by hand, with weights and scale records, for tests of what reads them."""

from __future__ import annotations

from typing import Any

from harness.artifacts.vela import VelaPayload
from harness.ethosu.weights import WeightGeometry
from tests.unit.ethosu.assembling import STOP, U55, Commands, feature_map, io, kernel, ofm, operation, payload
from tests.unit.ethosu.weight_streams import plain, stream_order

GEOMETRY = WeightGeometry(2, 3, 1, 2, 1, 1, 1, 1, False, False, 8, 8)
PLACES = stream_order(GEOMETRY, U55, 0, 8)
WEIGHTS = plain([0 if place is None else 5 - 10 * place[0] for place in PLACES])
"""5 for the first channel, -5 for the second, 0 for the six that fill the block."""
SCALES = bytes(32)
BLOCK = {"OFM_BLK_HEIGHT_M1": 3, "OFM_BLK_WIDTH_M1": 1, "OFM_BLK_DEPTH_M1": 7, "BLOCKDEP": 2}


def convolution(**changes: Any) -> Commands:
    """1x2, 3 channels to 2, padded left; the OFM is 4x5x2 at 0x40."""
    shape = ofm(U55, (4, 5, 2), 64)
    settings = {
        **feature_map("IFM", (4, 5, 3), 0),
        "IFM_ZERO_POINT": -128,
        "IFM_DEPTH_M1": 2,
        **shape,
        "OFM_PRECISION": {**shape["OFM_PRECISION"], "scale_mode": 0},
        **kernel(1, 2, (0, 1, 0, 0)),
        "ACTIVATION": {"function": 18},
        "WEIGHT_REGION": 0,
        "WEIGHT_BASE": len(SCALES),
        "WEIGHT_LENGTH": len(WEIGHTS),
        "SCALE_REGION": 0,
        "SCALE_BASE": 0,
        "SCALE_LENGTH": len(SCALES),
        "ACC_FORMAT": 0,
        **BLOCK,
        **changes,
    }
    return operation(U55, "OP_CONV", None, {name: value for name, value in settings.items() if value is not None})


def convolution_payload(commands: Commands, weights: bytes = SCALES + WEIGHTS) -> VelaPayload:
    """A payload whose region 0 holds the records, then the weights."""
    inputs, outputs = [io((4, 5, 3), 0)], [io((4, 5, 2), 64)]
    return payload(U55, [*commands, STOP], inputs, outputs, weights=weights, scratch=128)
