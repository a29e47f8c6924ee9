"""Quasi-Monte Carlo: the two sides of Koksma–Hlawka.

Both are known exactly for a product of step functions, one of each coordinate, at points in
the unit cube of one dimension or a few. All inputs may carry leading batch axes.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from genbounds.bounds._assumptions import IN_CUBE
from genbounds.bounds._bound import Constants
from genbounds.bounds._inequalities import inequality
from genbounds.bounds._numbers import is_exact, share
from genbounds.validation import Float


def integral_error(points: Float, knots: Float, levels: Float) -> Float:
    """``|∫f − N⁻¹Σf(x_i)|``; f(x) = Π_k levels[k, j] where j of knots[k] are at most x_k."""
    ends = np.zeros((*knots.shape[:-1], 1), dtype=int)
    lengths = np.diff(np.concatenate([ends, knots, ends + 1], axis=-1), axis=-1)
    integral = (levels * lengths).sum(axis=-1).prod(axis=-1)
    passed = points[..., :, :, None] >= knots[..., None, :, :]
    step = np.take_along_axis(levels[..., None, :, :], passed.sum(axis=-1, keepdims=True), axis=-1)[
        ..., 0
    ]
    return np.asarray(np.abs(integral - step.prod(axis=-1).sum(axis=-1) / points.shape[-2]))


def star_discrepancy(points: Float) -> Float:
    """D*_N: the largest error of the share of `points`, (N, s), in a box that begins at 0.

    Boxes need to be tried only where a coordinate is that of a point, or 1: just short of the
    points there, and with them.
    """
    n, s = points.shape[-2:]
    ends = np.concatenate([points, np.ones((*points.shape[:-2], 1, s), dtype=int)], axis=-2)
    chosen = np.array(list(product(range(n + 1), repeat=s)))
    corners = np.stack([ends[..., chosen[:, k], k] for k in range(s)], axis=-1)[..., None, :]
    volume = corners[..., 0, :].prod(axis=-1)
    short = share((points[..., None, :, :] < corners).all(axis=-1), is_exact(points))
    with_them = share((points[..., None, :, :] <= corners).all(axis=-1), is_exact(points))
    return np.asarray(np.maximum(volume - short, with_them - volume).max(axis=-1))


def variation(levels: Float, faces: float = 1.0) -> Float:
    """Variation of Hardy and Krause of the product; without its `faces` at 1, that of Vitali."""
    jumps = np.abs(np.diff(levels, axis=-1)).sum(axis=-1)
    last = faces * np.abs(levels[..., -1])
    return np.asarray((jumps + last).prod(axis=-1) - last.prod(axis=-1))


def koksma_hlawka(c: Constants, points: Float, levels: Float) -> Float:
    """Evaluate factor V[f] D*_N."""
    return c["factor"] * variation(levels, c["faces"]) * star_discrepancy(points)


INTEGRAL = inequality("step-products", "integral-error", "|I − Î|", integral_error, IN_CUBE)
