"""The plug-in scores of all arms of a run, within a limit of memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from genbounds.estimators import Running

CACHE_BYTES = 128 * 2**20
"""Memory for the running scores of all arms of a run together; the least recently used go first.

20 arms with 250 samples of 2,048 features each need 82 MB."""


class RunningScores:
    """The running score of every arm, within a limit of memory.

    Parameters
    ----------
    make : callable
        Of the number of columns: a score of no rows yet.
    limit : int
        Bytes. A score that was dropped is made again from all rows when it is wanted.
    """

    def __init__(self, make: Callable[[int], Running], *, limit: int = CACHE_BYTES) -> None:
        self._make = make
        self._limit = limit
        self._kept: OrderedDict[int, Running] = OrderedDict()

    def of(self, arm: int, rows: NDArray[Any]) -> Running:
        """Return the score of all `rows` of `arm`, of which it may know the first ones already."""
        score = self._kept.pop(arm, None) or self._make(rows.shape[1])
        if score.n < rows.shape[0]:
            score.add(rows[score.n :])
        self._kept[arm] = score
        held = sum(kept.nbytes for kept in self._kept.values())
        while held > self._limit and len(self._kept) > 1:
            held -= self._kept.popitem(last=False)[1].nbytes
        return score
