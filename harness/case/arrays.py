"""``Array``: a NumPy array of any dtype and shape, as inputs, constants and outputs are held everywhere."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]
