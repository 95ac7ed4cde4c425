"""Legs: the ways to execute a case, one module each with a module-level ``LEG``.

A leg takes a ``Lowered`` and the evaluation inputs and returns, for every input, the program's
outputs as numpy arrays in user order. It raises whatever goes wrong; the runner turns that into
a failure with the stage ``leg:<name>``. ``skip`` says why a leg cannot run for a case or on this
machine: such a leg is counted and explained, never silently green. What only shows while it runs
(a kernel that an engine was built without) is raised as ``NotRunnable``, with the same effect.

Modules here import torch lazily, inside ``run``, so that ``doctor`` can list legs quickly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from harness.case.arrays import Array
from harness.case.registry import entries
from harness.case.sampling import EvaluationInput
from harness.case.target import DEFAULT_TARGETS, Target

if TYPE_CHECKING:
    from harness.pipeline.lowering import Lowered

Outputs = tuple[tuple[Array, ...], ...]


class NotRunnable(Exception):
    """A leg cannot run this program here, for a reason (one line) that is no finding of its own.

    It lies in the machine and not in the program, or an oracle reports it as what it is.
    """


@dataclass(frozen=True)
class Leg:
    """One way to execute a case.

    :param order: legs run in this order.
    :param needs: what it needs, for ``doctor`` and the README's table.
    :param skip: the reason why it does not run for this target here, or None.
    :param run: execute on every evaluation input. (The runner runs ``eager`` itself, before the
        lowering, which may change the module.)
    :param examples: targets on which it runs where nothing is missing, for ``doctor``.
    """

    name: str
    order: int
    needs: str
    skip: Callable[[Target], str | None]
    run: Callable[[Lowered, Sequence[EvaluationInput]], Outputs]
    examples: tuple[str, ...] = DEFAULT_TARGETS


@cache
def legs() -> Mapping[str, Leg]:
    """Every leg of ``harness.pipeline.legs``, by name, in the order in which they run."""
    table = entries("leg", "harness.pipeline.legs", "LEG")
    return dict(sorted(table.items(), key=lambda item: item[1].order))


def always(target: Target) -> str | None:
    """For legs that run everywhere."""
    return None


def arrays_of(result: object) -> tuple[Array, ...]:
    """Flatten a module's result to numpy arrays, in user order: copies, since a result may be the module's state."""
    import numpy as np
    import torch

    leaves, _ = torch.utils._pytree.tree_flatten(result)
    return tuple(
        np.array(leaf.detach().numpy(), order="C") if isinstance(leaf, torch.Tensor) else _scalar(leaf)
        for leaf in leaves
    )


def _scalar(leaf: object) -> Array:
    import numpy as np

    return np.asarray(leaf)
