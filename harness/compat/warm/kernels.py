"""``override_once``: the kernels of composite operators are overridden from memory (an entry of ``tricks``).

Whenever a program is decomposed, ``torch.export.exported_program._override_composite_implicit_decomp`` gives each
composite operator that a user could keep (558 of them) up to 20 kernels, one registration each, and takes them away
behind it. They are the same every time: here each operator's table is kept as it was left by the first registration,
for what the operator had before and for the decomposition that it gets.

Imports torch: only worker processes import this module.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch._subclasses import fake_impls
from torch.export import exported_program

_NAME = "_override_composite_implicit_decomp"


@dataclass(frozen=True)
class _Overridden:
    """What an override makes of an operator.

    :param before: its kernels without the override.
    :param fake: how fake tensors run it while that lasts; None if the override found a rule of torch's own, which it
        lets be, and takes away with its own.
    """

    before: Mapping[Any, Any]
    kernels: Mapping[Any, Any]
    fake: Callable[..., Any] | None


def override_once() -> None:
    """Have an override registered once, and taken from memory after that."""
    original = getattr(exported_program, _NAME, None)
    if original is None or not hasattr(fake_impls, "op_implementations_dict"):
        return
    kept: dict[tuple[Any, Hashable], _Overridden] = {}

    @contextmanager
    def override(decompositions: Mapping[Any, Callable[..., Any]]) -> Iterator[None]:
        known, new, names = {}, {}, {op: _name(how) for op, how in decompositions.items()}
        fakes = fake_impls.op_implementations_dict
        for op, how in decompositions.items():
            item = kept.get((op, names[op]))
            if item is not None and item.before == op.py_kernels and (item.fake is not None or op in fakes):
                known[op] = item
            else:
                new[op] = how
        before = {op: dict(op.py_kernels) for op in new}
        ruled = {op for op in new if op in fakes}
        try:
            for op, item in known.items():
                _exchange(op, item.kernels)
                fakes.setdefault(op, item.fake)
            with original(new):
                for op in new:
                    fake = None if op in ruled else fakes.get(op)
                    kept[op, names[op]] = _Overridden(before[op], dict(op.py_kernels), fake)
                yield
        finally:
            for op, item in known.items():
                _exchange(op, item.before)
                fake_impls._deregister_op_impl(op)

    setattr(exported_program, _NAME, override)


def _name(decomposition: Callable[..., Any]) -> Hashable:
    """What two functions have in common that do the same.

    torch makes ``partial(inner function, kernel=operator)`` anew for each decomposition of a program.
    """
    if not isinstance(decomposition, partial) or getattr(decomposition.func, "__closure__", None):
        return decomposition
    code = getattr(decomposition.func, "__code__", decomposition.func)
    return code, decomposition.args, tuple(decomposition.keywords.items())


def _exchange(op: Any, kernels: Mapping[Any, Any]) -> None:
    op.py_kernels.clear()
    op.py_kernels.update(kernels)
    op._dispatch_cache.clear()
