"""Torchvision where it is missing, or built for another PyTorch than the one that is installed.

timm, open_clip, pytorch-fid and the peers of the benchmarks import torchvision. The statistics of
the peers need nothing of it; the networks need its Python, but none of its compiled operators (for
boxes in images), whose build must fit that of PyTorch: the package index has torchvision for CUDA
only, which a PyTorch for the processor alone cannot load.
"""

from __future__ import annotations

import sys
import types
from functools import cache
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

STUBBED = (
    "torchvision",
    "torchvision.datasets",
    "torchvision.models",
    "torchvision.models.inception",
    "torchvision.transforms",
    "torchvision.transforms.functional",
)

OPERATORS = (
    "nms", "qnms",
    "roi_align", "qroi_align", "_roi_align_backward",
    "roi_pool", "_roi_pool_backward",
    "ps_roi_align", "_ps_roi_align_backward",
    "ps_roi_pool", "_ps_roi_pool_backward",
    "deform_conv2d", "_deform_conv2d_backward",
)  # fmt: skip
"""What torchvision's Python gives shapes to when it is imported."""


class _Stub(types.ModuleType):
    __path__: ClassVar[list[str]] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def stub() -> None:
    """Put empty modules in the place of torchvision."""
    for name in STUBBED:
        module = _Stub(name)
        module.__spec__ = ModuleSpec(name, None)
        sys.modules[name] = module
    for name in STUBBED[1:]:
        parent, _, child = name.rpartition(".")
        setattr(sys.modules[parent], child, sys.modules[name])


@cache
def declare_operators() -> None:
    """Declare torchvision's operators, without code, where its own cannot be loaded.

    Whoever called one would be told that it has no code.
    """
    spec = find_spec("torchvision")
    if spec is None or spec.origin is None or find_spec("torch") is None:
        return
    if "torchvision" in sys.modules:
        return
    import torch

    for library in Path(spec.origin).parent.glob("_C*.so"):
        try:
            torch.ops.load_library(str(library))
        except OSError:
            for name in OPERATORS:
                torch.library.define(f"torchvision::{name}", "(...) -> Tensor")
            return


def make_importable() -> None:
    """Let `import torchvision` succeed, with as much behind it as there is."""
    if find_spec("torchvision") is None:
        stub()
    declare_operators()
