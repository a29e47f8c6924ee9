"""Limits of a share of rows: Clopper and Pearson's, also of a number of rows that is not whole."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from genbounds.core.estimate import student_quantile
from genbounds.validation import Float


def share_limit(hits: Any, n: float, delta: float) -> Float:
    """Clopper-Pearson upper limit of a share; `hits` and `n` need not be whole."""
    from scipy.special import betaincinv

    hits = np.asarray(hits, dtype=np.float64)
    rest = np.maximum(n - hits, 1e-9)
    found: Float = np.where(hits >= n, 1.0, betaincinv(hits + 1.0, rest, 1.0 - delta))
    return found


@dataclass(frozen=True, slots=True)
class ShareInterval:
    """The two-sided limits of a share at a level.

    Source: E. Korn and B. Graubard, Survey Methodology 24, 1998.

    Attributes
    ----------
    share : float
    rows : float
        Independent rows that would show it with this variance.
    degrees : float
        Degrees of freedom of that variance; as many rows fewer are counted as widens limits as
        Student's quantile does. Infinite: `rows` is known.
    """

    share: float
    rows: float
    degrees: float = math.inf

    def __call__(self, level: float) -> tuple[float, float]:
        """Return both limits at `level`."""
        plain, wide = (student_quantile(level, free) for free in (math.inf, self.degrees))
        counted = self.rows * (plain / wide) ** 2
        tail = (1.0 - level) / 2.0
        hits = (self.share * counted, (1.0 - self.share) * counted)
        most, rest = (float(share_limit(k, counted, tail)) for k in hits)
        return 1.0 - rest, most
