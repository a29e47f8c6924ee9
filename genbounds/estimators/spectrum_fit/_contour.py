"""The trace of the root of a population covariance by a contour integral: r < N, equal rows.

With m(z) = N⁻¹ Σ_i 1/(λ_i - z) - (1 - c)/z and w = -1/m (X. Mestre, IEEE Trans. Inf. Theory 54,
2008; M. Tiomoko and R. Couillet, arXiv 1903.03447)

    Tr √M ≈ -(N/2πi) ∮ ρ(z) dw/√w,  ρ = 1 + z m(z),

and for the product of two sample covariances w = 1/(z m m̃), with m̃ the same for the number of rows
of the other. It assumes no shape of the spectrum, but that no row is longer than another.
Derivation, and the O(1) bias that is taken off: docs/explanation/few_samples.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # its submodules are loaded at their first use
from numpy.typing import NDArray

from genbounds.validation import Float

STEP = 0.25
"""Of the trapezoidal sum along the contour: a half of it, or a quarter, moves the value by less
than 1e-9 of itself, over 24 decades of eigenvalues."""

TAIL = 30.0
"""Where the integrand has fallen to exp(-TAIL) beyond either end of the spectrum, the sum ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContourTrace:
    """Tr √M, and its derivative in the first sample's ρ(x) at the complex points x = -z.

    The points are those of the upper half of the contour, and of products with the weights only the
    real part is meant: the lower half adds the complex conjugate.
    """

    trace_root: float
    points: NDArray[np.complex128]
    weights: NDArray[np.complex128]


def zero_below(lam: Float, size: float) -> float:
    """Return the zero of 1 - Σ λ/(λ - x)/size below all `lam`, from some size on the least of them.

    It is at about (1 - 1/size) of it: no step from there that rounding lets through may pass it.
    """
    least = float(lam.min())
    end = least * (1.0 - 1e-12)

    def excess(x: float) -> float:
        return 1.0 - float((lam / (lam - x)).sum()) / size

    if excess(end) >= 0.0:
        return least
    return float(scipy.optimize.brentq(excess, 0.0, end, xtol=1e-6 * least))


def contour_trace_root(values: Float, *, sizes: Sequence[int]) -> ContourTrace:
    """Estimate Σ_j √t_j from all r positive sample eigenvalues.

    Parameters
    ----------
    values : ndarray of shape (r,)
        Of a sample covariance, or of the product of two.
    sizes : sequence of int
        Effective rows of each sample, more than r.
    """
    scale = float(values.max())
    lam = np.sort(values) / scale
    smallest = float(min(sizes))
    # The smallest zero of m, alone below the spectrum: the contour must pass between it and 0.
    zero = zero_below(lam, smallest)
    low, high = max(zero, 1e-3 * float(lam[0])) / 2.0, 1.3
    # The upper half of a circle, from its right end on, in even steps of log (z - low)/(high - z):
    # spectra over many decades are resolved alike, and no cluster of eigenvalues, nor a complex
    # zero of m' beside it, is near the contour. The lower half is the complex conjugate.
    run = np.exp(np.arange(TAIL, np.log(low / high) - TAIL, -STEP))
    z = (low + 1j * high * run) / (1.0 + 1j * run)
    dz = -STEP * 1j * run * (high - low) / (1.0 + 1j * run) ** 2 / (1j * np.pi)
    inverse = 1.0 / (lam - z[:, None])
    powers = [(inverse**k).sum(axis=1) for k in (1, 2, 3)]
    count, rise = lam.size + z * powers[0], powers[0] + z * powers[1]
    w, log_slope, bias = z.copy(), 1.0 / z, np.zeros_like(z)
    for size in sizes:
        m0, m1, m2 = (
            factor * (power - (size - lam.size) / z * (-1.0 / z) ** k) / size
            for k, (factor, power) in enumerate(zip((1.0, 1.0, 2.0), powers, strict=True))
        )
        w *= -1.0 / (z * m0)
        log_slope += rise / (size - count)
        bias += m2 / (2.0 * m1) - m1 / m0
    # w does not go round 0: its root is followed along the contour, from the right end.
    roots = np.sqrt(np.abs(w)) * np.exp(0.5j * np.unwrap(np.angle(w)))
    estimate = -(count * roots * log_slope * dz).sum() + (roots * bias * dz).sum()
    unit = float(np.sqrt(scale))
    return ContourTrace(
        trace_root=unit * float(estimate.real),
        points=-scale * z,
        weights=-unit * sizes[0] * roots * dz / z,
    )
