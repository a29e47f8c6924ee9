"""What two samples do together to the error of the Fréchet distance.

In the coordinates w of either side (`_terms`), with errors E and F of the two covariances
and a and b of the two means, the quadratic part of the distance is

    ‖a - b‖² + Σ_ij H_ij (E_ij - F_ij)²:

the mixed term is -2 h(x, y) with the kernel h of either sample alone. Derivation: docs/frechet.md.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from genbounds.estimators._estimate import SampleError
from genbounds.estimators.frechet._expansion import PAIRING_SEED, Kernel, product_type
from genbounds.estimators.frechet._sample import Sample
from genbounds.validation import Float

PAIRS = 512
"""Of rows, drawn for E h(x, y)²: it corrects a variance of which it is a small share."""


def with_mixed_term(
    fake: Sample,
    real: Sample,
    terms: tuple[SampleError, SampleError],
    *,
    roots: Float,
    projections: tuple[Float, Float],
) -> tuple[SampleError, SampleError]:
    """Correct the terms of either sample for the noise of the other.

    The influence of either side is evaluated at the other's estimate, which adds 4 E h(x, y)² / nm
    to the variance of both, where the mixed term has that variance once: half of it is taken off
    either side, down to that of the quadratic part and the other half.

    Parameters
    ----------
    fake, real : Sample
        Both sampled.
    terms : tuple of SampleError
        Of either sample.
    roots : ndarray of shape (r,)
        Singular values s.
    projections : tuple of ndarray of shape (d, r)
        Map centred rows of either side to w.
    """
    assert fake.n is not None
    assert real.n is not None
    one, two = terms
    gap = np.zeros(fake.d)
    if fake.rows is None or real.rows is None:
        product = float((fake.moments.cov * real.moments.cov).sum())
        square = gaussian_mixed_square(Kernel(gap, roots), product)
    else:
        kinds = [product_type(side, roots) for side in (fake.rows, real.rows)]
        kernel = Kernel(gap, roots, np.result_type(*kinds))
        rows, weights = zip(
            *(side.some(PAIRS, PAIRING_SEED + k) for k, side in enumerate((fake, real))),
            strict=True,
        )
        w = [
            x.astype(kernel.dtype, copy=False) @ projection.astype(kernel.dtype, copy=False)
            for x, projection in zip(rows, projections, strict=True)
        ]
        pairs = kernel.pairs(np.concatenate(rows), np.concatenate(w))
        # Weights in units of the equal ones, so that equal ones are none.
        pairs *= fake.n * weights[0] * (real.n * weights[1])
        square = float(np.mean(pairs**2))
    share = 2.0 * square / (fake.n * real.n)
    one, two = (
        replace(
            side,
            variance=max(
                side.variance - share, min(side.quadratic_variance + share, side.variance)
            ),
            mixed_variance=min(share, side.variance),
        )
        for side in (one, two)
    )
    return one, two


def gaussian_mixed_square(kernel: Kernel, product: float) -> float:
    """E h(x, y)² for Gaussian rows; `product` is Tr Σ Σ_r.

    Tr Σ Σ_r + 2 Σ_ij H_ij² + 2 Σ_i H_ii².
    """
    squares = float((kernel.weights**2).sum()) + float((kernel.diagonal**2).sum())
    return product + 2.0 * squares
