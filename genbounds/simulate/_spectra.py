"""Covariance spectra: simple families, and those with the norms of real embeddings."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from genbounds.validation import Float, InputError, check_choice, check_count

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
    from scipy.optimize import brentq

    check_count("d", d, minimum=2)
    if not (0.0 < operator <= frobenius <= trace <= d * operator):
        raise InputError(
            "no spectrum has these norms: need ‖Σ‖ ≤ √Tr Σ² ≤ Tr Σ ≤ d ‖Σ‖; got "
            f"operator={operator!r}, frobenius={frobenius!r}, trace={trace!r}, d={d}."
        )
    for leading in range(1, d):
        rest = d - leading
        first = trace - leading * operator
        second = frobenius**2 - leading * operator**2
        if not (first > 0.0 and second >= first**2 / rest * (1.0 - 1e-12)):
            break
        ranks = np.arange(1.0, rest + 1.0)

        target = second / first**2

        def excess(power: float, ranks: Float = ranks, target: float = target) -> float:
            tail = ranks**-power
            return float((tail @ tail) / tail.sum() ** 2) - target

        if excess(60.0) < 0.0:
            continue
        power = 0.0 if excess(0.0) >= 0.0 else float(brentq(excess, 0.0, 60.0, xtol=1e-14))
        tail = ranks**-power
        tail *= first / tail.sum()
        if tail[0] <= operator * (1.0 + 1e-12):
            return np.concatenate([np.full(leading, operator), np.minimum(tail, operator)])
    raise InputError(
        "no spectrum of equal leading eigenvalues and a power law has these norms: "
        f"operator={operator!r}, frobenius={frobenius!r}, trace={trace!r}, d={d}."
    )


def isotropic_spectrum(d: int, *, trace: float) -> Float:
    """All `d` eigenvalues equal, summing to `trace`: the highest effective rank."""
    return _scaled(np.ones(check_count("d", d)), trace)


def power_law_spectrum(d: int, *, exponent: float, trace: float) -> Float:
    """Eigenvalues ∝ j^(−`exponent`), j = 1 … `d`, summing to `trace`; `exponent` at least 0."""
    if not 0.0 <= exponent < np.inf:
        raise InputError(f"`exponent` must be a finite number of at least 0; got {exponent!r}.")
    return _scaled(np.arange(1.0, check_count("d", d) + 1.0) ** -exponent, trace)


def spiked_spectrum(d: int, *, share: float, trace: float) -> Float:
    """One of `d` eigenvalues has `share` of `trace`, the others are equal; `share` in [1/d, 1]."""
    check_count("d", d, minimum=2)
    if not 1.0 / d <= share <= 1.0:
        raise InputError(f"`share` must lie in [1/d, 1]; got {share!r} at d = {d}.")
    return _scaled(np.r_[share, np.full(d - 1, (1.0 - share) / (d - 1))], trace)


def low_rank_spectrum(d: int, *, rank: int, trace: float) -> Float:
    """`rank` of `d` eigenvalues equal, summing to `trace`, the others 0: a singular covariance."""
    check_count("d", d)
    if check_count("rank", rank) > d:
        raise InputError(f"`rank` must be at most d = {d}; got {rank}.")
    return _scaled(np.r_[np.ones(rank), np.zeros(d - rank)], trace)


def embedding_spectrum(name: str) -> Float:
    """Spectrum with the norms of real embeddings; `name` is a key of `EMBEDDING_NORMS`."""
    check_choice("name", name, EMBEDDING_NORMS)
    d, trace, frobenius, operator = EMBEDDING_NORMS[name]
    return matched_spectrum(d, trace=trace, frobenius=frobenius, operator=operator)


def _scaled(shape: Float, trace: float) -> Float:
    if not 0.0 < trace < np.inf:
        raise InputError(f"`trace` must be positive and finite; got {trace!r}.")
    return np.asarray(shape * (trace / shape.sum()))
