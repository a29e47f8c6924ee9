"""The printed inequality of quasi-Monte Carlo: Koksma–Hlawka.

Both sides are known exactly for a product of step functions, one of each coordinate, at points in
the unit cube of one dimension or a few. All inputs may carry leading batch axes.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from genbounds.bounds._bound import Assumption, Bound, Constants, Facts, Quantity
from genbounds.validation import Float


def integral_error(points: Float, knots: Float, levels: Float) -> Float:
    """``|∫f − N⁻¹Σf(x_i)|``; f(x) = Π_k levels[k, j] where j of knots[k] are at most x_k."""
    ends = np.zeros((*knots.shape[:-1], 1))
    lengths = np.diff(np.concatenate([ends, knots, ends + 1.0], axis=-1), axis=-1)
    integral = (levels * lengths).sum(axis=-1).prod(axis=-1)
    passed = points[..., :, :, None] >= knots[..., None, :, :]
    step = np.take_along_axis(levels[..., None, :, :], passed.sum(axis=-1, keepdims=True), axis=-1)[
        ..., 0
    ]
    return np.asarray(np.abs(integral - step.prod(axis=-1).mean(axis=-1)))


def star_discrepancy(points: Float) -> Float:
    """D*_N: the largest error of the share of `points`, (N, s), in a box that begins at 0.

    Boxes need to be tried only where a coordinate is that of a point, or 1: just short of the
    points there, and with them.
    """
    n, s = points.shape[-2:]
    ends = np.concatenate([points, np.ones((*points.shape[:-2], 1, s))], axis=-2)
    chosen = np.array(list(product(range(n + 1), repeat=s)))
    corners = np.stack([ends[..., chosen[:, k], k] for k in range(s)], axis=-1)[..., None, :]
    volume = corners[..., 0, :].prod(axis=-1)
    short = (points[..., None, :, :] < corners).all(axis=-1).mean(axis=-1)
    with_them = (points[..., None, :, :] <= corners).all(axis=-1).mean(axis=-1)
    return np.asarray(np.maximum(volume - short, with_them - volume).max(axis=-1))


def variation(levels: Float, faces: float = 1.0) -> Float:
    """Variation of Hardy and Krause of the product; without its `faces` at 1, that of Vitali."""
    jumps = np.abs(np.diff(levels, axis=-1)).sum(axis=-1)
    last = faces * np.abs(levels[..., -1])
    return np.asarray((jumps + last).prod(axis=-1) - last.prod(axis=-1))


def koksma_hlawka(c: Constants, points: Float, levels: Float) -> Float:
    """Evaluate factor V[f] D*_N."""
    return c["factor"] * variation(levels, c["faces"]) * star_discrepancy(points)


def _in_cube(facts: Facts, n: int, delta: float) -> bool:
    points, knots = np.asarray(facts["points"]), np.asarray(facts["knots"])
    inside = (points >= 0.0).all() and (points < 1.0).all()
    ordered = (np.diff(knots, axis=-1) >= 0.0).all()
    return bool(inside and ordered and (knots >= 0.0).all() and (knots <= 1.0).all())


STATEMENTS = (
    Bound(
        id="c20.koksma-hlawka",
        claim="|I − Î| ≤ V[f] D*_N, V of Hardy and Krause, D*_N the star discrepancy",
        latex=r"|I-\hat I| \le V[f]\,D^*_N",
        source="C20 (9)",
        setting="step-products",
        form="deterministic",
        assumptions=(
            Assumption(
                text="x_i in [0, 1)^s, f a product of step functions of the coordinates",
                predicate=_in_cube,
            ),
        ),
        quantity=Quantity(name="integral-error", text="|I − Î|", function=integral_error),
        constants={"factor": 1.0, "faces": 1.0},
        width_function=koksma_hlawka,
    ),
)
