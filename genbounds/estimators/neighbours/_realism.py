"""Realism of single rows: how deep each lies in the neighbourhoods of real ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from genbounds.estimators.neighbours._pairs import BLOCK_MIB, Neighbours, framing, squared_distances
from genbounds.origins import check_same_encoder, origin_of
from genbounds.samples import features_of
from genbounds.validation import (
    Float,
    InputError,
    check_count,
    check_features,
    check_finite,
    check_same_dimension,
)


def realism(fake: Any, real: Any, *, k: int = 3) -> Float:
    """Realism of each generated row, to sort or to look at them: no score of a model.

    Parameters
    ----------
    fake : array_like of shape (m, d) or Sample
        Generated features.
    real : array_like of shape (n, d) or Sample
        Features of real rows.
    k : int
        Neighbours.

    Returns
    -------
    ndarray of shape (m,)
        1 or more: within the neighbourhood of a real row. Infinite for a copy of one.

    Raises
    ------
    InputError
        If a shape, a type or a value is not legal, or no real row has a smaller neighbourhood than
        the median.

    Notes
    -----
    The largest ratio d_k(x) / ‖y - x‖ over real rows x, with d_k the distance to the k-th nearest
    other real row; only rows x with a d_k below the median count [1]_.

    References
    ----------
    .. [1] T. Kynkäänniemi et al., "Improved precision and recall metric for assessing generative
       models", NeurIPS 2019, section 5.

    Examples
    --------
    >>> import numpy as np, genbounds as gb
    >>> rng = np.random.default_rng(0)
    >>> real = rng.normal(size=(500, 4))
    >>> found = gb.realism([[0.0, 0.0, 0.0, 0.0], [9.0, 9.0, 9.0, 9.0]], real)
    >>> bool(found[0] > 1.0 > found[1])
    True
    """
    from sklearn.metrics import pairwise_distances_chunked

    k = check_count("k", k)
    check_same_encoder({"`fake`": origin_of(fake), "`real`": origin_of(real)})
    rows = check_features("real", features_of(real), minimum=k + 1)
    queries = check_features("fake", features_of(fake), minimum=1)
    check_same_dimension("fake", queries.shape[1], "real", rows.shape[1])
    for name, x in (("real", rows), ("fake", queries)):
        check_finite(name, x)
    framed = framing(rows)
    rows, queries = framed(rows), framed(queries)
    radii = Neighbours.of(rows, k).squares[:, -1]
    small = radii < np.median(radii)
    if not small.any():
        raise InputError(
            "has no neighbourhood below the median: all rows are alike, or equally far apart.",
            argument="real",
        )
    centres, radii = rows[small], radii[small]

    def deepest(block: Float, start: int) -> Float:
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = radii / block
        ratio[block == 0.0] = np.inf
        at = ratio.argmax(axis=1)
        squares = squared_distances(queries, start + np.arange(len(block)), centres, at)
        found = np.full(len(block), np.inf)
        np.divide(radii[at], squares, out=found, where=squares > 0.0)
        return found

    chunks = pairwise_distances_chunked(
        queries,
        centres,
        metric="euclidean",
        squared=True,
        working_memory=BLOCK_MIB,
        reduce_func=deepest,
    )
    return np.asarray(np.sqrt(np.concatenate(list(chunks))))
