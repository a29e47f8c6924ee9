"""Families of generators with a quality dial, against one reference: who is best is known."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from genbounds.estimators import gaussian_bias
from genbounds.simulate._frechet import FrechetArm
from genbounds.simulate._gaussian import GaussianArm
from genbounds.validation import Float, InputError, check_count

# M25, O24: twenty generators that differ in truncation only.
TRUNCATIONS = tuple(round(0.01 + 0.09 * k / 19, 6) for k in range(20))


def truncated_generators(
    spectrum: ArrayLike, *, truncations: Iterable[float] = TRUNCATIONS, shift: float = 0.0
) -> dict[str, FrechetArm]:
    """Make generators whose latents were drawn towards the mean by a factor ψ, the truncation.

    Features are N(shift e₁, ψ² Σ_r) against N(0, Σ_r), so that FD = shift² + (1−ψ)² Tr Σ_r falls
    as ψ grows to 1 while the variance, which the plug-in's bias follows, grows.

    Parameters
    ----------
    spectrum : array_like of shape (d,)
        Of the reference covariance Σ_r.
    truncations : iterable of float
        ψ of every generator, in (0, ∞); by default the twenty from 0.01 to 0.1 of the papers.
    shift : float
        Distance of the means.

    Returns
    -------
    dict of str to FrechetArm
        Named by ψ.

    Raises
    ------
    InputError
        If a truncation or the spectrum is not legal.
    """
    values = np.atleast_1d(np.array(spectrum, dtype=np.float64))
    arms = {}
    for psi in truncations:
        if not 0.0 < psi < np.inf:
            raise InputError(f"`truncations` must be positive and finite; got {psi!r}.")
        name = f"truncation {psi:g}"
        features = GaussianArm(_along(values.size, 0, shift), psi**2 * values)
        arms[name] = FrechetArm(features, 0.0, values, name=name)
    return arms


def equal_scores(count: int, d: int, *, distance: float) -> dict[str, FrechetArm]:
    """Make generators with one and the same FD to N(0, I), by different faults.

    The k-th has a share of the distance in its mean that falls from 1 to 0 with k, the rest in a
    variance above 1 in every direction: their biases differ, their scores do not.

    Parameters
    ----------
    count, d : int
    distance : float
        FD of every one, at least 0.

    Returns
    -------
    dict of str to FrechetArm

    Raises
    ------
    InputError
        If a number is not legal.
    """
    check_count("count", count)
    check_count("d", d)
    if not 0.0 <= distance < np.inf:
        raise InputError(f"`distance` must be a finite number of at least 0; got {distance!r}.")
    arms = {}
    for k, share in enumerate(np.linspace(1.0, 0.0, count)):
        scale = 1.0 + np.sqrt((1.0 - share) * distance / d)
        features = GaussianArm(_along(d, k % d, np.sqrt(share * distance)), np.full(d, scale**2))
        name = f"equal {k}"
        arms[name] = FrechetArm(features, 0.0, np.ones(d), name=name)
    return arms


def graded_scores(count: int, d: int, *, best: float, gap: float) -> dict[str, FrechetArm]:
    """Make generators N(shift, I) with FD to N(0, I) = best, best + gap, best + 2 gap and so on.

    Parameters
    ----------
    count, d : int
    best : float
        Smallest FD, at least 0.
    gap : float
        Between neighbours, positive; tiny ones make a long search.

    Returns
    -------
    dict of str to FrechetArm
        Best first.

    Raises
    ------
    InputError
        If a number is not legal.
    """
    check_count("count", count)
    check_count("d", d)
    if not (0.0 <= best < np.inf and 0.0 < gap < np.inf):
        raise InputError(f"`best` must be at least 0 and `gap` positive; got {best!r}, {gap!r}.")
    arms = {}
    for k in range(count):
        features = GaussianArm(_along(d, k % d, np.sqrt(best + gap * k)), np.ones(d))
        arms[f"graded {k}"] = FrechetArm(features, 0.0, np.ones(d), name=f"graded {k}")
    return arms


def flipped_scores(
    d: int, *, wide: float = 1.3, narrow: float = 0.67
) -> tuple[dict[str, FrechetArm], float]:
    """Make two generators that the plug-in distance ranks wrongly below a known sample size.

    N(0, wide² I) and N(0, narrow² I) against N(0, I) have FD d(σ−1)²; the bias K/n of the plug-in
    has K = dσ² + σ d(d+1)/4 (to second order, `plugin_bias`), larger on the wide side.

    Parameters
    ----------
    d : int
    wide, narrow : float
        Scales σ above and below 1, the wide one nearer to 1.

    Returns
    -------
    arms : dict of str to FrechetArm
        "wide", which is best, and "narrow".
    size : float
        Samples below which the expected plug-in distance puts "narrow" first.

    Raises
    ------
    InputError
        If the scales are not as described.
    """
    check_count("d", d)
    if not 0.0 < narrow < 1.0 < wide < 2.0 - narrow:
        raise InputError(
            f"`wide` and `narrow` must be scales above and below 1, `wide` nearer to 1; "
            f"got {wide!r}, {narrow!r}."
        )
    arms = {
        name: FrechetArm(GaussianArm(0.0, np.full(d, scale**2)), 0.0, np.ones(d), name=name)
        for name, scale in (("wide", wide), ("narrow", narrow))
    }
    constants = {name: plugin_bias(arm) for name, arm in arms.items()}
    gap = arms["narrow"].facts["distance"] - arms["wide"].facts["distance"]
    return arms, (constants["wide"] - constants["narrow"]) / gap


def plugin_bias(arm: FrechetArm) -> float:
    """K of E FD_n = FD + K/n + O(n⁻²) for Gaussian features, covariances with divisor n − 1.

    Parameters
    ----------
    arm : FrechetArm
        Its own covariance and that of its reference, which is exactly known.

    Returns
    -------
    float

    Raises
    ------
    InputError
        If the features are not Gaussian.
    """
    values, axes, _ = arm.gaussian_parts()
    turned = arm.reference_root if axes is None else arm.reference_root @ axes
    inner = np.linalg.eigvalsh((turned * values) @ turned.T)
    return gaussian_bias(float(values.sum()), np.sqrt(np.maximum(inner, 0.0)), 1)


def _along(d: int, axis: int, length: float) -> Float:
    mean = np.zeros(d)
    mean[axis] = length
    return mean
