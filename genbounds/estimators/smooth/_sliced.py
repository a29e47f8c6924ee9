"""Sliced Wasserstein-2 distance, scaled as the Monge Inception distance (MIND).

On a line the best transport of one weighted sample to another pairs equal quantiles. With X(u) and
Y(u) the quantile functions,

    W²  =  ∫ (X - Y)² du  =  Σ w x² + Σ v y² - 2 ∫ X Y du,

and the last integral runs over the levels of x only, with C(t) = ∫_0^t Y du, which is piecewise
linear. Its derivative in the weight of a row is a Kantorovich potential, Y integrated over the gaps
of x above the row. As a function of the weights this is the value of a linear programme: it has no
Hessian, which is why the bias is removed by secants.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from genbounds.core.scale import REPRESENTABLE, factor_of, unit_of
from genbounds.estimators._metric_spec import MetricSpec, prepared_by
from genbounds.estimators.smooth._score import MINIMUM, SmoothReference, SmoothScore
from genbounds.results import Score
from genbounds.validation import Float, check_count

if TYPE_CHECKING:
    from torch import Tensor

BLOCK = 1 << 21
"""Entries of projected rows that are worked on at once."""

PROBES = 8
"""For each sample. An evaluation sorts nothing, but looks every level of one sample up in the other
one; what 8 probes add to an interval of equal distributions is 6 %, of others hardly anything."""


def sliced_distance(
    fake: Any, real: Any, *, directions: int = 1000, seed: int = 0, level: float = 0.95
) -> Score:
    """Sliced Wasserstein-2 distance of two distributions, as published under the name MIND.

    Parameters
    ----------
    fake : array_like of shape (n, d) or Sample
        Generated features, at least 8 rows.
    real : array_like of shape (m, d) or Sample
        Reference features, at least 8 rows.
    directions : int
        Random directions onto which the features are projected.
    seed : int
        Of the directions: scores compare only where it is the same, and `directions` are.
    level : float
        Coverage of the interval, in (0, 1).

    Returns
    -------
    Score
        3 d times the mean over the directions θ of the squared Wasserstein-2 distance of θ·x and
        θ·y, in squared units of the features; divide by 3 d for the squared sliced distance. Zero
        exactly if the distributions are equal (in these directions). A negative estimate is
        reported as 0, with a caution.

    Raises
    ------
    InputError
        If a shape, a type or a value is not legal, or torch is not installed.

    Notes
    -----
    The published number is the plug-in, which is too large. The interval is for these directions;
    others would move the score by its spread over them, over √directions. Time grows with
    n log m times the directions, memory by 12 bytes for each row and direction.

    References
    ----------
    .. [1] Q. Berthet et al., "MIND: Monge Inception distance for generative models evaluation",
       arXiv:2605.06797, 2026.
    .. [2] N. Bonneel et al., "Sliced and Radon Wasserstein barycenters of measures", J. Math.
       Imaging Vis. 51, 2015.

    Examples
    --------
    >>> import numpy as np, genbounds as gb
    >>> rng = np.random.default_rng(0)
    >>> fake, real = rng.normal(0.5, size=(200, 4)), rng.normal(size=(200, 4))
    >>> score = gb.sliced_distance(fake, real, directions=20)
    >>> score.low > 0.0
    True
    """
    return sliced_score(directions=directions, seed=seed)(fake, real, level=level)


def sliced_score(*, directions: int = 1000, seed: int = 0) -> SmoothScore:
    """Return the score of `sliced_distance` with these `directions` of this `seed`."""
    return SmoothScore(
        Sliced(check_count("directions", directions), check_count("seed", seed, minimum=0)),
        name=f"sliced Wasserstein distance, {directions} directions of seed {seed}",
        higher_is_better=False,
        needs_reference=True,
        derivative="secant",
        probes=PROBES,
        seed=seed,
        lower_limit=0.0,
    )


@dataclass(frozen=True, slots=True)
class Sliced:
    """The plug-in, as a function of weighted rows.

    Attributes
    ----------
    directions : int
    seed : int
    """

    directions: int
    seed: int

    def __call__(self, x: Tensor, w: Tensor, y: Tensor, v: Tensor) -> Tensor:
        """Distance of two weighted samples."""
        return self.of_rows(x, y)(w, v)

    def of_rows(self, x: Tensor, y: Tensor) -> Any:
        """Return the distance as a function of the weights `w` and `v`."""
        d = x.shape[1]
        theta = np.random.default_rng(self.seed).standard_normal((d, self.directions))
        theta /= np.linalg.norm(theta, axis=0)
        centre = y.numpy().mean(axis=0)  # squares of what both have in common would cost digits
        sides = [_sorted((rows.numpy() - centre) @ theta) for rows in (x, y)]
        size = max(float(np.abs(values).max()) for values, _ in sides)
        factor_of(unit_of(size, decades=REPRESENTABLE / 2.0), 2)  # refuses what leaves it

        def weighted(w: Tensor, v: Tensor) -> Tensor:
            value, slopes = transport([w.detach().numpy(), v.detach().numpy()], sides)
            out = w.new_tensor(value)
            for u, slope in zip((w, v), slopes, strict=True):
                # Of value 0. Its derivative is constant between kinks: a second one is zero.
                out = out + w.new_tensor(slope) @ (u - u.detach())
            return 3.0 * d * out

        return weighted


Projected = tuple[Float, NDArray[np.int32]]
"""Projections of the rows in order, shape (directions, n), and the rows that they are of."""


def _sorted(projected: Float) -> Projected:
    order = np.argsort(projected.T, axis=1)
    return np.take_along_axis(projected.T, order, axis=1), order.astype(np.int32)


def transport(weights: list[Float], sides: list[Projected]) -> tuple[float, list[Float]]:
    """Mean over directions of W², and its derivatives in the weights of either sample.

    Parameters
    ----------
    weights : list of ndarray
        Of both samples; either sums to one.
    sides : list of tuple
        Both samples, projected and sorted.

    Returns
    -------
    value : float
    slopes : list of ndarray
        Up to a constant, which no weights that sum to one can tell.
    """
    directions = len(sides[0][0])
    step = max(1, BLOCK // sum(values.shape[1] for values, _ in sides))
    total, slopes = 0.0, [np.zeros(w.size) for w in weights]
    for start in range(0, directions, step):
        part = slice(start, start + step)
        values = [projected[part] for projected, _ in sides]
        rows = [order[part] for _, order in sides]
        shares = [w[row] for w, row in zip(weights, rows, strict=True)]
        for k, at in enumerate(_images(*(np.cumsum(share, axis=1) for share in shares))):
            x = values[k]
            image = np.take_along_axis(values[1 - k], at, axis=1)
            # Row i gets ∫ Y over the levels below the top of x, less Y times the gaps above i.
            crossed = np.repeat(x[:, -1:] * image[:, -1:], x.shape[1], axis=1)
            gaps = image[:, :-1] * np.diff(x, axis=1)
            crossed[:, :-1] -= np.cumsum(gaps[:, ::-1], axis=1)[:, ::-1]
            slope = x**2 - 2.0 * crossed
            slopes[k] += np.bincount(rows[k].ravel(), slope.ravel(), weights[k].size)
            total += float((shares[k] * slope).sum())
        # Both potentials hold that of the last pair of rows, which counts once.
        total += 2.0 * float(values[0][:, -1] @ values[1][:, -1])
    return total / directions, [slope / directions for slope in slopes]


def _images(one: Float, two: Float) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """For every level of either sample, the row of the other whose levels hold it."""
    n, m = one.shape[1], two.shape[1]
    at = np.stack([np.searchsorted(b, a) for a, b in zip(one, two, strict=True)])
    at = np.minimum(at, m - 1)
    # The levels of one that are not above a level of two are those whose image is not above it.
    flat = at + m * np.arange(len(at))[:, None]
    counts = np.bincount(flat.ravel(), minlength=at.shape[0] * m).reshape(-1, m)
    return at, np.minimum(np.cumsum(counts, axis=1), n - 1)


def _reference(reference: Any, **options: Any) -> SmoothReference:
    return SmoothReference(sliced_score(**options), reference)


MIND = MetricSpec(
    name="mind",
    title="Sliced Wasserstein distance (MIND)",
    summary="sliced Wasserstein distance along 1,000 random lines (needs torch)",
    unit="squared feature units",
    prepare=partial(prepared_by, _reference, minimum=MINIMUM, sampled_reference=True),
    options=("directions", "seed"),
)
