"""The trace of the root of a population covariance by a contour integral: r < N, equal rows.

With m(z) = N⁻¹ Σ_i 1/(λ_i - z) - (1 - c)/z and w = -1/m (X. Mestre, IEEE Trans. Inf. Theory 54,
2008; M. Tiomoko and R. Couillet, arXiv 1903.03447)

    Tr √M ≈ -(N/2πi) ∮ ρ(z) dw/√w,  ρ = 1 + z m(z),

which assumes no shape of the spectrum, but that no row is longer than another. Derivation, and
the O(1) bias that is taken off: docs/few_samples.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # its submodules are loaded at their first use
from numpy.typing import NDArray

from genbounds.validation import Float

CONTOUR_POINTS = 400
"""The integrand is periodic and analytic: the trapezoidal sum is exact to rounding long before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContourTrace:
    """Tr √M, and its derivative in the measured ρ(x) at the complex points x = -z."""

    trace_root: float
    points: NDArray[np.complex128]
    weights: NDArray[np.complex128]


def contour_trace_root(values: Float, *, n_effective: int) -> ContourTrace:
    """Estimate Σ_j √t_j from all r < `n_effective` positive sample eigenvalues."""
    N = float(n_effective)
    scale = float(values.max())
    lam = np.sort(values) / scale
    # The smallest zero of m, alone below the spectrum: the contour must pass between it and 0.
    zero = scipy.optimize.brentq(
        lambda x: 1.0 - float((lam / (lam - x)).sum()) / N,
        0.0,
        lam[0] * (1.0 - 1e-12),
        xtol=1e-6 * lam[0],
    )
    low, high = np.log(max(float(zero), 1e-3 * float(lam[0])) / 2.0), np.log(1.3)
    angle = 2.0 * np.pi * (np.arange(CONTOUR_POINTS) + 0.5) / CONTOUR_POINTS
    # An ellipse in log z, so that spectra over many decades are resolved alike.
    z = np.exp((low + high) / 2 + (high - low) / 2 * np.cos(angle) + 1j * np.sin(angle))
    dz = z * (-(high - low) / 2 * np.sin(angle) + 1j * np.cos(angle))
    dz *= 2.0 * np.pi / CONTOUR_POINTS / (2j * np.pi)
    inverse = 1.0 / (lam - z[:, None])
    zeros = N - lam.size
    m0 = (inverse.sum(axis=1) - zeros / z) / N
    m1 = ((inverse**2).sum(axis=1) + zeros / z**2) / N
    m2 = 2.0 * ((inverse**3).sum(axis=1) - zeros / z**3) / N
    roots = np.sqrt(-1.0 / m0)
    estimate = -N * ((1.0 + z * m0) / roots * (m1 / m0**2) * dz).sum()
    bias = -(roots * (m2 / (2.0 * m1) - m1 / m0) * dz).sum()
    unit = float(np.sqrt(scale))
    return ContourTrace(
        trace_root=unit * float((estimate - bias).real),
        points=-scale * z,
        weights=-unit * N * roots * dz / z,
    )
