"""What upstream itself says an Arm target supports, and why its partitioner refused a node.

Read from ``executorch.backends.arm.operator_support``: the profile lists
(``tosa_profile_supported_op_lists``: ``TOSA_PRO_INT_SupportList``, ``TOSA_PRO_FP_SupportList``,
and ``TOSA_PRO_MIXED_INT_SupportList`` on releases that have it), the targets of the registered
checks (``get_registered_tosa_support_checks``), and what ``EthosU55NotSupported`` takes away.
Reasons come from ``WhyNoPartitionReporter.report_reject``, wrapped for the length of one lowering.
Whatever a release lacks makes the answer ``unknown`` or the reason empty, never an error.

A listed operator may still be refused for its shape, its dtype or for being float: being listed
is a claim about the operator, the reason is about the node.

Imports executorch: only worker processes import this module.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

from harness.compat.states import operator_name

_SUPPORT = "executorch.backends.arm.operator_support"
_LISTS = {
    "int": ("TOSA_PRO_INT_SupportList",),
    "fp": ("TOSA_PRO_FP_SupportList",),
    "both": ("TOSA_PRO_MIXED_INT_SupportList", "TOSA_PRO_INT_SupportList", "TOSA_PRO_FP_SupportList"),
}


def listed(operator: str, partitioner: Any) -> Literal["yes", "no", "unknown"]:
    """Do the tables for a partitioner's TOSA specification name an operator (``aten.relu.default``)?"""
    try:
        specification = partitioner.tosa_spec
    except AttributeError:  # another form of partitioner
        return "unknown"
    key = str(specification)  # specifications that differ in an extension may compare as equal
    if key not in _tables:
        _tables[key] = _names(specification)
    names = _tables[key]
    if names is None:
        return "unknown"
    return "yes" if operator in names else "no"


@contextmanager
def rejection_reasons() -> Iterator[dict[str, str]]:
    """Collect the first reason that any partitioner reports for a node, by the node's name."""
    reasons: dict[str, str] = {}
    try:
        reporter = importlib.import_module("executorch.exir.backend.utils").WhyNoPartitionReporter
        original = reporter.report_reject
    except (ImportError, AttributeError):
        yield reasons
        return

    def report_reject(self: Any, node: Any, reason: str, *args: Any, **kwargs: Any) -> Any:
        reasons.setdefault(node.name, " ".join(str(reason).split()))
        return original(self, node, reason, *args, **kwargs)

    reporter.report_reject = report_reject
    try:
        yield reasons
    finally:
        reporter.report_reject = original


_tables: dict[str, frozenset[str] | None] = {}


def _names(specification: Any) -> frozenset[str] | None:
    """Every operator that the tables name for a specification; None if the release has no tables."""
    try:
        lists = importlib.import_module(f"{_SUPPORT}.tosa_profile_supported_op_lists")
        checks = importlib.import_module(f"{_SUPPORT}.tosa_supported_operators")
        integer, floating = specification.support_integer(), specification.support_float()
    except (ImportError, AttributeError):
        return None
    profile = "both" if integer and floating else "int" if integer else "fp"
    found = [target for name in _LISTS[profile] for target in getattr(lists, name, ())]
    if not found:
        return None
    found += _registered(checks, specification)
    names = {operator_name(target) for target in found}
    if getattr(specification, "is_U55_subset", False):
        names -= {operator_name(target) for target in _refused_by_u55()}
    return frozenset(names)


def _registered(checks: Any, specification: Any) -> Iterable[Any]:
    try:
        classes = checks.get_registered_tosa_support_checks(specification)
        return [target for item in classes for target in item.targets]
    except (AttributeError, RuntimeError, TypeError):
        return []


def _refused_by_u55() -> Iterable[Any]:
    try:
        module = importlib.import_module(f"{_SUPPORT}.ethos_u55_support")
        return list(module.EthosU55NotSupported.unsupported_ops)
    except (ImportError, AttributeError):
        return []
