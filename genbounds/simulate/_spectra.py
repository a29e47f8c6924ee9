"""Covariance spectra: simple families, and those with the norms of real embeddings."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from genbounds.validation import (
    Float,
    InputError,
    check_choice,
    check_count,
    check_not_negative,
    check_positive,
)

# Tr Σ, √Tr Σ², ‖Σ‖ as printed for 5,000 real images (M25 Tables 1-3); ends of the printed ranges
# that go together, so that the effective ranks span the printed ones.
EMBEDDING_NORMS: Mapping[str, tuple[int, float, float, float]] = MappingProxyType(
    {
        "inception low r": (2048, 181.0, 16.0, 13.0),
        "inception high r": (2048, 181.0, 12.0, 9.05),
        "clip low r": (1024, 528.0, 63.0, 44.0),
        "clip high r": (1024, 637.0, 54.0, 32.0),
        "dinov2 low r": (1024, 1886.0, 120.0, 69.0),
        "dinov2 high r": (1024, 2113.0, 85.0, 21.0),
    }
)


def matched_spectrum(d: int, *, trace: float, frobenius: float, operator: float) -> Float:
    """Spectrum with given Tr Σ, √Tr Σ² and ‖Σ‖: a few equal leading eigenvalues and a power law.

    Parameters
    ----------
    d : int
        Number of eigenvalues.
    trace, frobenius, operator : float
        Tr Σ, √Tr Σ² and ‖Σ‖.

    Returns
    -------
    ndarray of shape (d,)
        Decreasing; the three norms are met to 1e-9 in relative terms.

    Raises
    ------
    InputError
        If no spectrum has these norms.
    """
    check_count("d", d, minimum=2)
    norms = f"operator={operator!r}, frobenius={frobenius!r}, trace={trace!r}, d={d}."
    if not (0.0 < operator <= frobenius <= trace <= d * operator):
        raise InputError(
            f"no spectrum has these norms: need ‖Σ‖ ≤ √Tr Σ² ≤ Tr Σ ≤ d ‖Σ‖; got {norms}"
        )
    for leading in range(1, d):
        first = trace - leading * operator
        second = frobenius**2 - leading * operator**2
        # What is left must have a positive sum, and squares that so many numbers can have.
        if not (first > 0.0 and second >= first**2 / (d - leading) * (1.0 - 1e-12)):
            break
        tail = _power_law(d - leading, first, second)
        if tail is not None and tail[0] <= operator * (1.0 + 1e-12):
            return np.concatenate([np.full(leading, operator), np.minimum(tail, operator)])
    raise InputError(
        f"no spectrum of equal leading eigenvalues and a power law has these norms: {norms}"
    )


def _power_law(count: int, total: float, squares: float) -> Float | None:
    """Numbers ∝ j^(−power) with this sum and sum of squares; None above power 60."""
    from scipy.optimize import brentq

    ranks = np.arange(1.0, count + 1.0)
    target = squares / total**2

    def excess(power: float) -> float:
        tail = ranks**-power
        return float((tail @ tail) / tail.sum() ** 2) - target

    if excess(60.0) < 0.0:
        return None
    power = 0.0 if excess(0.0) >= 0.0 else float(brentq(excess, 0.0, 60.0, xtol=1e-14))
    tail = ranks**-power
    return np.asarray(tail * (total / tail.sum()))


def power_law_spectrum(d: int, *, exponent: float, trace: float) -> Float:
    """Eigenvalues ∝ j^(−`exponent`), j = 1 … `d`, summing to `trace`; `exponent` at least 0."""
    check_not_negative("exponent", exponent)
    check_positive("trace", trace)
    shape = np.arange(1.0, check_count("d", d) + 1.0) ** -exponent
    return np.asarray(shape * (trace / shape.sum()))


def embedding_spectrum(name: str) -> Float:
    """Spectrum with the norms of real embeddings; `name` is a key of `EMBEDDING_NORMS`."""
    check_choice("name", name, EMBEDDING_NORMS)
    d, trace, frobenius, operator = EMBEDDING_NORMS[name]
    return matched_spectrum(d, trace=trace, frobenius=frobenius, operator=operator)
