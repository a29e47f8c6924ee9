"""The Fréchet distance between two samples that are both small for their dimension.

The eigenvalues of Σ̂ Σ̂_r are related to those of Σ Σ_r as those of one sample covariance are to
those of its population, with the Marchenko–Pastur equations of both samples multiplied
(`_marchenko_pastur`): the samples are free of each other, so that S-transforms multiply. Derivation
and measurements: docs/explanation/few_samples.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import scipy  # its submodules are loaded at their first use

from genbounds.core.linalg import EPS
from genbounds.diagnostics import warn_of
from genbounds.estimators.spectrum_fit._marchenko_pastur import RowLaw
from genbounds.estimators.spectrum_fit._one_sample import (
    Side,
    distinct_rows,
    jackknifed_contour,
    population_root,
    repeated_rows,
    root_influences,
    row_scales,
    scale_doubt,
    variance_of_mean,
)
from genbounds.estimators.spectrum_fit._root_limits import RootLimits
from genbounds.results import Diagnostic, Method
from genbounds.validation import Float


@dataclass(frozen=True, slots=True, kw_only=True)
class JointFit:
    """The distance with the bias of both samples removed.

    Attributes
    ----------
    value : float
        Can be negative where the two distributions are close.
    variances : tuple of float
        Due to the first sample and what neither shows; due to the second.
    influences : tuple of ndarray of shape (n,) and (m,)
        Centred, of the rows of either sample.
    method : {"joint-spectrum-fit", "joint-contour"}
    warnings : tuple of Diagnostic
    details : tuple of str
    """

    value: float
    variances: tuple[float, float]
    influences: tuple[Float, Float]
    method: Method
    warnings: tuple[Diagnostic, ...] = ()
    details: tuple[str, ...] = ()


# In one piece: each step takes what the steps before it made of both samples.
def fit_both_samples(
    centred: tuple[Float, Float], factors: tuple[Float, Float], *, gap: Float, directions: int
) -> JointFit | None:
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

    Notes
    -----
    Variances as in `fit_one_sample`, either sample's at the other as it is.
    """
    sizes = [len(rows) for rows in centred]
    norms = [np.einsum("ij,ij->i", rows, rows) for rows in centred]
    sides = _sides(centred, factors, directions)
    if sides is None:
        return None
    values, rank = sides[0].values, sides[0].rank
    scales = [row_scales(side) for side in sides]
    laws = [
        RowLaw(n - 1, None if one is None else one.radii)
        for n, one in zip(sizes, scales, strict=True)
    ]
    root = population_root(values, rows=laws, rank=rank)
    if root.method == "contour":
        steps = (
            jackknifed_contour(
                centred[k] @ factors[1 - k], rank, root.trace, [laws[1 - k].n_effective]
            )
            - root.trace
            for k in (0, 1)
        )
        root = replace(root, trace=root.trace + sum(steps))
    traces = [float(norm.sum()) / (n - 1) for n, norm in zip(sizes, norms, strict=True)]
    limits = RootLimits.of(values, traces=(traces[0], traces[1]))
    root = root.within(limits)
    pairs = [
        root_influences(
            (2.0 - 4.0 * k) * (centred[k] @ gap) + norms[k], sides[k], root, laws, sample=k
        )
        for k in (0, 1)
    ]
    doubts = [scale_doubt(sides[k], root, laws, scales[k], k) ** 2 for k in (0, 1)]
    doubts[0] += 4.0 * root.unseen * root.inflation
    variances, by_plugin = limits.errors(
        root.trace,
        fitted=[variance_of_mean(fitted) for fitted, _ in pairs],
        plugin=[variance_of_mean(plugin) for _, plugin in pairs],
        inflation=root.inflation,
        doubts=doubts,
    )
    influences = [plugin if by_plugin else fitted for fitted, plugin in pairs]
    warnings = root.warnings
    if rank < directions:
        warnings += (warn_of("shared-rank", rank=rank),)
    for side, n in zip(sides, sizes, strict=True):
        warnings += repeated_rows(n - side.distinct, n)
    return JointFit(
        # Either trace Tr Σ̂ stands for Tr Σ, less the bias Tr Σ̂ / n of the squared gap.
        value=float(gap @ gap) + sum(float(norm.mean()) for norm in norms) - 2.0 * root.trace,
        variances=(variances[0], variances[1]),
        influences=(influences[0], influences[1]),
        method="joint-contour" if root.method == "contour" else "joint-spectrum-fit",
        warnings=warnings,
        details=root.details,
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
