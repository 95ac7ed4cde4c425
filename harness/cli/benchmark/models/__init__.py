"""Models as a user would hand them to ``armdiff check``: each file defines ``model`` and ``calibration``.

Small enough to lower in seconds, of the four kinds that products are made of. Weights are random with a fixed
seed; the batch norms have seen their inputs, so that nothing saturates or dies.
"""
