"""Attributes that several tests give to nodes."""

CONV_3X3 = {
    "out_channels": 4,
    "kernel": [3, 3],
    "stride": [1, 1],
    "padding": [1, 1],
    "dilation": [1, 1],
    "groups": 1,
    "bias": True,
}
