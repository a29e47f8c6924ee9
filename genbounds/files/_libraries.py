"""Libraries that one format needs, none of which may run code."""

from __future__ import annotations

import re
from typing import Any

from genbounds._text import display
from genbounds.validation import InputError, how_to_install

# From these versions on, reading weights cannot run code: torch by CVE-2025-32434 and
# CVE-2026-24747, sentence-transformers by running files of the model's folder, timm by asking
# torch for everything in a pickle. The lower bounds in pyproject.toml are the same.
SAFE: dict[str, tuple[int, ...]] = {
    "torch": (2, 10),
    "sentence_transformers": (6, 0),
    "timm": (1, 0, 26),
    "open_clip": (3, 0),
}


def check_safe(module: Any, needed_for: str) -> Any:
    """Return a library; refuse a version of it whose reading of weights can run code."""
    name = module.__name__
    found = str(getattr(module, "__version__", ""))
    numbers = tuple(int(number) for number in re.findall(r"\d+", found.partition("+")[0]))
    if name in SAFE and numbers < SAFE[name]:
        least = ".".join(map(str, SAFE[name]))
        raise InputError(
            f"{needed_for} needs {name} {least} or newer, and {display(found, limit=40)} is "
            "installed, with which a file of weights can run code: upgrade it."
        )
    return module


def optional_library(module: str, extra: str, title: str, shown: str) -> Any:
    """Import a library that only this format needs."""
    import importlib

    try:
        return check_safe(importlib.import_module(module), shown)
    except ImportError as error:
        raise InputError(
            f"{shown}: reading it needs {title}: {how_to_install(extra)}, "
            "or save the features as .npy."
        ) from error
