"""What is known of a release's runtime without starting it: is there one, and which kernels are wrong. No torch."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress

from harness.compat.releases import installed

_PER_CHANNEL = "quantized_decomposed::dequantize_per_channel."


def missing() -> str | None:
    """Why the installed executorch has no runtime, or None. Imports nothing of it."""
    for name in ("_C", "_portable_lib"):
        with suppress(ModuleNotFoundError):
            if importlib.util.find_spec(f"executorch.extension.pybindings.{name}") is not None:
                return None
    return "executorch is not installed, or was built without its runtime's Python binding"


def misreads(calls: Iterable[tuple[str, Sequence[str]]], version: str = "") -> str | None:
    """Why the kernels of a release return something else than the program says, or None.

    Up to executorch 1.4.1 ``dequantize_per_channel`` reads zero points as int64, whatever they are; the Arm quantizer's
    biases have int32 ones. Right in 1.5.1.

    :param calls: name and the dtypes of the arguments of each kernel that the program calls.
    :param version: of executorch; that of the installed one if empty.
    """
    version = version or installed().get("executorch", "")
    if tuple(map(int, re.findall(r"\d+", version)[:2])) >= (1, 5):
        return None
    if any(name.startswith(_PER_CHANNEL) and len(types) > 2 and types[2] == "int32" for name, types in calls):
        return f"executorch {version} reads int32 zero points of dequantize_per_channel as int64 (right from 1.5.0 on)"
    return None
