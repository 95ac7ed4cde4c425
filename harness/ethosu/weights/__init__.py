"""Weights and scales as the NPU reads them: from the bytes of a stream to arrays by channel.

``decode_weights`` reads the compressed or fast stream of one CONV or DEPTHWISE and undoes the order
of the microblocks; ``decode_scales`` reads the records of bias, scale and shift. A stream that is
no stream raises ``StreamError``; one that holds too little, too much or something where padding
should be is decoded, and has *issues*: pairs of a kind and a message.
"""

from harness.ethosu.weights.decoding import decode_weights
from harness.ethosu.weights.geometry import WeightGeometry, Weights, WeightStatistics
from harness.ethosu.weights.scales import ScaleRecords, decode_scales

__all__ = ["ScaleRecords", "WeightGeometry", "WeightStatistics", "Weights", "decode_scales", "decode_weights"]
