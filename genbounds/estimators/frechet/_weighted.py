"""Weighted rows: moments, and the expansion of `_expansion` under weights.

With weights w_i that sum to one, the covariance Σ_i w_i (x_i - μ̂)(x_i - μ̂)ᵀ / (1 - Σ w_i²) and
h the kernel of the quadratic part, the bias is

    Σ_i w_i² [ h(x_i, x_i) - IF(x_i) - q(x_i) ],

q the centred part of IF that is quadratic in x. The last two terms are what a normalised ratio of
sums errs by; they vanish on average where weights are independent of the rows, and matter for
importance weights. Derivation: docs/frechet.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.estimators._estimate import SampleError
from genbounds.estimators._moments import Moments, row_blocks
from genbounds.estimators.frechet._expansion import PAIRING_SEED, Kernel
from genbounds.validation import Float, InputError, as_numpy, check_finite


def check_weights(name: str, weights: Any, n: int) -> Float:
    """Return weights of n rows, divided by their sum."""
    w = np.array(as_numpy(name, weights), dtype=np.float64)
    if w.shape != (n,):
        raise InputError(f"must have shape ({n},), one weight a row; got {w.shape}.", argument=name)
    if not (np.isfinite(w).all() and (w >= 0.0).all()):
        raise InputError("must be finite and non-negative.", argument=name)
    if int((w > 0.0).sum()) < 2:
        raise InputError("must be positive for at least 2 rows.", argument=name)
    w /= w.max()  # a sum of huge weights would overflow
    normalised: Float = w / w.sum()
    return normalised


def weighted_moments(name: str, rows: NDArray[Any], weights: Float) -> Moments:
    """Weighted mean and covariance, unbiased for weights that do not depend on the rows."""
    d = rows.shape[1]
    mean = np.zeros(d)
    for positions, block in row_blocks(rows):
        check_finite(name, block, first_row=int(positions[0]))
        mean += weights[positions] @ block
    cov = np.zeros((d, d))
    for positions, block in row_blocks(rows):
        block -= mean
        block *= np.sqrt(weights[positions])[:, None]
        cov += block.T @ block
    return Moments(mean, cov / (1.0 - float(weights @ weights)), len(rows))


def weighted_error(
    rows: NDArray[Any],
    weights: Float,
    *,
    mean: Float,
    gap: Float,
    projection: Float,
    roots: Float,
    transport: Float,
) -> SampleError:
    """Error of weighted rows; arguments as in `sample_error`, `weights` sum to one."""
    n = len(rows)
    kernel = Kernel(gap, roots)
    influence, own, linear, noise = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    shuffler = np.random.default_rng(PAIRING_SEED)
    pair_sum, pairs = 0.0, 0
    for positions, block in row_blocks(rows, width=max(rows.shape[1], roots.size)):
        shuffled = shuffler.permutation(len(block))  # pairs must not follow the file
        x = block[shuffled]
        x -= mean
        at = positions[shuffled]
        w = x @ projection
        terms = kernel(x, w)
        influence[at], own[at] = terms.influence, terms.own
        noise[at] = (w * w) @ (transport - roots)
        crossed = kernel.pairs(x, w)
        linear[at] = 2.0 * (x @ gap)
        k = crossed.size
        pair_sum += float(((weights[at[:k]] * weights[at[k : 2 * k]] * crossed) ** 2).sum())
        pairs += k
    quadratic = influence - linear
    centred = influence - float(weights @ influence)
    squares = weights**2
    ratio = centred + quadratic - float(weights @ quadratic)
    loo = centred - noise - 2.0 * weights * own
    loo -= float(weights @ loo)
    first = float(squares @ loo**2) * n / (n - 1.0)
    second = min(2.0 * pair_sum / max(pairs, 1) * float(n) ** 2, first)
    return SampleError(
        n=n,
        bias=float(squares @ (own - ratio)),
        variance=max(first - second, second),
        degrees_of_freedom=max(1.0 / float(squares.sum()) - 1.0, 1.0),
        # In units in which the plain mean of the influences has the variance of the estimate.
        influence=n * weights * loo,
        quadratic_variance=second,
    )
