"""Let torchvision be imported beside a torch that its kernels were not built for.

PyPI's torchvision has kernels for the CUDA build of torch, which the CPU build cannot load. Then the import fails with
``operator torchvision::nms does not exist`` (seen in 0.28.0 and 0.29.1 beside torch 2.13.0+cpu), since it describes
what ``nms`` and ``qnms`` return whether or not they are there. Models need neither: they are declared without a kernel,
and the import is tried again. A torchvision that can be imported is left alone.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import torch

NAME = "torchvision"
_MISSING = "operator torchvision::nms does not exist"
_DECLARED = ("nms", "qnms")
_SCHEMA = "{}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
_kept: list[Any] = []
"""A declaration is gone as soon as its library is."""


def spare_missing_kernels() -> None:
    """From now on an import of torchvision in this process does without its kernels, if it must."""
    if NAME not in sys.modules and not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != NAME:
            return None
        sys.meta_path.remove(self)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            sys.meta_path.insert(0, self)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(Loader):
    def __init__(self, own: Loader) -> None:
        self.own = own

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.own.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        try:
            self.own.exec_module(module)
        except RuntimeError as error:
            if _MISSING not in str(error):
                raise
            for name in [item for item in sys.modules if item.startswith(f"{NAME}.")]:
                del sys.modules[name]
            _declare()
            self.own.exec_module(module)


def _declare() -> None:
    library = torch.library.Library(NAME, "DEF")
    for name in _DECLARED:
        library.define(_SCHEMA.format(name))
    _kept.append(library)
