"""Versions of everything that the digits of a result depend on."""

from __future__ import annotations

from importlib import import_module

# Beside the kind of processor, which no version tells.
_NUMERICS = ("genbounds", "numpy", "scipy")


def versions() -> dict[str, str]:
    """Version by package."""
    # By name: the root of the package imports every layer above this one.
    return {name: str(import_module(name).__version__) for name in _NUMERICS}
