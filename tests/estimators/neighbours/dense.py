"""Precision and its like as in the papers and tools, from whole matrices of distances."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist


def radii(rows, k):
    return np.sort(cdist(rows, rows), axis=1)[:, k]  # the first is the row itself


def four(fake, real, k):
    between = cdist(real, fake)
    in_real = between <= radii(real, k)[:, None]
    in_fake = between <= radii(fake, k)[None, :]
    return [
        in_real.any(axis=0).mean(),
        in_fake.any(axis=1).mean(),
        in_real.sum() / (k * len(fake)),
        in_real.any(axis=1).mean(),
    ]


def scores(fake, real, k):
    precision, recall, *others = four(fake, real, k)
    return [precision, recall, *others, 2 * precision * recall / max(1e-5, precision + recall)]


def left_out(real, groups, k):
    """Precision of every group of rows against the rows of all others."""
    held = np.empty(len(real), dtype=bool)
    for group in np.unique(groups):
        rest, own = real[groups != group], real[groups == group]
        held[groups == group] = (cdist(rest, own) <= radii(rest, k)[:, None]).any(axis=0)
    return held.mean()
