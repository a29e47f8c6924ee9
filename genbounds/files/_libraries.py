"""Libraries that a format or an encoder needs, none of which may run code."""

from __future__ import annotations

import importlib
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

AS_NPY = ", or save the features as .npy"


def library(module: str, *, extra: str, needed_for: str, instead: str = "") -> Any:
    """Import an optional library, or say how to get it, or what to do `instead`.

    A version whose reading of weights can run code is refused.
    """
    name = module.partition(".")[0]
    try:
        found = importlib.import_module(module)
    except (OSError, RuntimeError) as error:  # compiled parts that another PyTorch was built for
        raise InputError(
            f"{needed_for} needs {name}, whose import fails ({display(error, limit=120)}): "
            "torchvision and torch must come from one build: install them together, from one index."
        ) from error
    except ImportError as error:
        raise InputError(
            f"{needed_for} needs {name}, which cannot be imported ({display(error, limit=120)}): "
            f"{how_to_install(extra)}{instead}."
        ) from error
    version = str(getattr(found, "__version__", ""))
    if name in SAFE and tuple(map(int, re.findall(r"\d+", version.partition("+")[0]))) < SAFE[name]:
        raise InputError(
            f"{needed_for} needs {name} {'.'.join(map(str, SAFE[name]))} or newer, and "
            f"{display(version, limit=40)} is installed, with which a file of weights can run "
            "code: upgrade it."
        )
    return found
