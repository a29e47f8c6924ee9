"""What selection and simulation ask of a generative model: new samples on demand."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np


@runtime_checkable
class Arm(Protocol):
    """Anything that draws samples: a generator with its encoder, a distribution, a file."""

    def draw(self, n: int, rng: np.random.Generator) -> Any:
        """Return `n` new feature (or posterior) rows, an array of shape (n, d)."""
        ...
