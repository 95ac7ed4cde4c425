"""``ceil-pool-crops-input``: every small window that a pool moves over an axis."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from harness.campaign.certify.whole import Domain, Judge

MOST_SIZE, MOST_KERNEL, MOST_STRIDE = 24, 8, 9

Point = tuple[str, int, int, int, int, bool]
"""Which pool, and its axis: size, kernel, stride, padding on both sides, ceil_mode."""


def points() -> Iterator[Point]:
    for pool in ("max_pool2d", "avg_pool2d"):
        for size in range(1, MOST_SIZE + 1):
            for kernel in range(1, MOST_KERNEL + 1):
                for padding in range(kernel // 2 + 1):
                    if size + 2 * padding >= kernel:
                        for stride in range(1, MOST_STRIDE + 1):
                            yield pool, size, kernel, stride, padding, False
                            yield pool, size, kernel, stride, padding, True


def judge() -> Judge:
    """Does the cropped input, padded as the backend does it, give TOSA the windows that ATen has?"""
    module: Any = import_module("executorch.backends.arm._passes.size_adjust_input_pass")

    def judged(point: Point) -> bool | None:
        _, size, kernel, stride, padding, ceil_mode = point
        node = _node(module, point)
        cuts = [cut for cut in module.get_slices(node) if cut[0] == 2] if module.is_valid_operator(node) else []
        left = size
        for _, first, last in cuts:
            if first != 0:
                return False
            left = last
        behind = module.adjust_pooling_pad_if_needed(left, kernel, stride, padding, ceil_mode)
        windows = _windows(size, kernel, stride, padding, ceil_mode)
        read = min(size, (windows - 1) * stride - padding + kernel)
        fits = (left + padding + behind - kernel) % stride == 0
        count = (left + padding + behind - kernel) // stride + 1
        right = behind >= 0 and fits and count == windows and read <= left
        return None if right and not cuts else right

    return judged


def _windows(size: int, kernel: int, stride: int, padding: int, ceil_mode: bool) -> int:
    """How many windows ATen has: those that begin inside of the input or the padding in front of it."""
    span = size + 2 * padding - kernel
    if not ceil_mode:
        return span // stride + 1
    return sum(1 for first in range(0, span + stride, stride) if first < size + padding)


def _node(module: Any, point: Point) -> Any:
    """A node as the pass sees it; an average that counts no padding, which the pass looks at alone."""
    pool, size, kernel, stride, padding, ceil_mode = point
    source = SimpleNamespace(meta={"val": SimpleNamespace(shape=(1, 1, size, size))})
    args: tuple[Any, ...] = (source, [kernel, kernel], [stride, stride], [padding, padding])
    if pool == "max_pool2d":
        return SimpleNamespace(target=module.max_pooling_op, args=(*args, [1, 1], ceil_mode))
    return SimpleNamespace(target=module.avg_pooling_op, args=(*args, ceil_mode, False))


DOMAIN = Domain(
    name="ceil-pool-crops-input",
    says=(
        f"every max_pool2d and avg_pool2d over an axis of up to {MOST_SIZE} elements with kernels up to {MOST_KERNEL}, "
        f"strides up to {MOST_STRIDE} and any padding that ATen takes, with ceil_mode and without; windows and padding "
        "are compared with ATen's"
    ),
    points=points,
    judge=judge,
)
