"""What follows from pairs of arms of which one is proven better; for one run or for many at once.

A matrix (..., K, K) is true where the arm of its row beats the arm of its column.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from genbounds.validation import Float

Bools = NDArray[np.bool_]


def transitive(direct: Bools) -> Bools:
    """Return who beats whom directly or through a chain of beaten arms (Warshall)."""
    beats = direct.copy()
    links = direct.any(axis=-1) & direct.any(axis=-2)  # others are in the middle of no chain
    for arm in np.flatnonzero(links.reshape(-1, direct.shape[-1]).any(axis=0)):
        beats |= beats[..., :, arm, None] & beats[..., arm, None, :]
    diagonal = np.arange(direct.shape[-1])
    beats[..., diagonal, diagonal] = False
    return beats


def undecided(beats: Bools, *, top: int, arms: int) -> Bools:
    """Return which of `arms` live arms are neither proven among the best `top` nor proven out."""
    open_: Bools = (beats.sum(axis=-2) < top) & (beats.sum(axis=-1) < arms - top)
    return open_


def leaders(proven: Bools, loss: Float, *, top: int) -> tuple[Bools, Bools]:
    """Return the `top` arms with the most wins, and whether they win against all others.

    Among equals those with the smallest `loss`, of shape (..., K); NaN is the largest.
    """
    order = np.lexsort((np.where(np.isnan(loss), np.inf, loss), -proven.sum(axis=-1)), axis=-1)
    chosen = np.zeros(loss.shape, dtype=bool)
    np.put_along_axis(chosen, order[..., :top], True, axis=-1)
    across = chosen[..., :, None] & ~chosen[..., None, :]
    return chosen, np.asarray((proven | ~across).all(axis=(-2, -1)))
