"""The Fréchet distance between two samples that are both small for their dimension.

The eigenvalues of Σ̂ Σ̂_r are related to those of Σ Σ_r as those of one sample covariance are to
those of its population, with the Marchenko–Pastur equations of both samples multiplied
(`_marchenko_pastur`): the samples are free of each other, so that S-transforms multiply. Derivation
and measurements: docs/explanation/few_samples.md.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import scipy  # its submodules are loaded at their first use

from genbounds.core.linalg import EPS
from genbounds.diagnostics import warn_of
from genbounds.estimators.spectrum_fit._one_sample import Fit, Side, distinct_rows, fit_of_rows
from genbounds.validation import Float


def fit_both_samples(
    centred: tuple[Float, Float], factors: tuple[Float, Float], *, gap: Float, directions: int
) -> Fit | None:
    """Debias the distance of two samples; None if one does not vary where the other does.

    Parameters
    ----------
    centred : tuple of ndarray of shape (n, d) and (m, d)
        Rows of both samples less their means, that with fewer rows first.
    factors : tuple of ndarray of shape (d, r) and (d, s)
        Of either sample covariance; the rows themselves over √(n - 1) where r = n.
    gap : ndarray of shape (d,)
        Mean of the first minus mean of the second.
    directions : int
        Dimensions that both distributions fill, as far as the samples show.
    """
    sides = _sides(centred, factors, directions)
    if sides is None:
        return None
    norms = [np.einsum("ij,ij->i", rows, rows) for rows in centred]
    one, two = (float(norm.sum()) / (norm.size - 1) for norm in norms)
    rank = sides[0].rank
    found = fit_of_rows(
        sides,
        [
            norm + sign * (rows @ gap)
            for norm, rows, sign in zip(norms, centred, (2, -2), strict=True)
        ],
        [rows @ factor for rows, factor in zip(centred, factors[::-1], strict=True)],
        # Either trace Tr Σ̂ stands for Tr Σ, less the bias Tr Σ̂ / n of the squared gap.
        base=float(gap @ gap) + sum(float(norm.mean()) for norm in norms),
        traces=(one, two),
        lacking=(warn_of("shared-rank", rank=rank),) if rank < directions else (),
    )
    return replace(
        found, method="joint-contour" if found.method == "contour" else "joint-spectrum-fit"
    )


def _sides(
    centred: tuple[Float, Float], factors: tuple[Float, Float], directions: int
) -> tuple[Side, Side] | None:
    """Eigenvectors of both samples for the eigenvalues that they share, and the population's rank.

    By singular values: the smallest eigenvalues of a product of two samples of one size are near 0.
    """
    left, roots, right = scipy.linalg.svd(
        factors[0].T @ factors[1], full_matrices=False, check_finite=False
    )
    if not roots.size:  # neither sample varies
        return None
    kept = int((roots > 10.0 * max(left.shape[0], right.shape[1]) * EPS * roots[0]).sum())
    if not kept:
        return None
    roots, axes = roots[:kept], (left[:, :kept], right[:kept].T)
    distinct = [distinct_rows(rows) for rows in centred]
    seen = min(*(count - 1 for count in distinct), directions)
    rank = directions if kept >= seen else kept
    sides = []
    for k in (0, 1):
        if factors[k].shape[1] == len(centred[k]):
            vectors = axes[k]
        else:
            vectors = centred[k] @ (factors[1 - k] @ axes[1 - k])
            vectors /= math.sqrt(len(centred[k]) - 1) * roots
        sides.append(Side(values=roots**2, vectors=vectors, rank=rank, distinct=distinct[k]))
    return sides[0], sides[1]
