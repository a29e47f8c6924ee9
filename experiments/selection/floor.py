"""What no method can do better: minimum number of samples to tell two Gaussian models apart."""

from __future__ import annotations

import math

import numpy as np

from genbounds.simulate import GaussianArm


def fewest_samples(
    best: GaussianArm,
    second: GaussianArm,
    gap: float,
    *,
    confidence: float,
    reference_mean: np.ndarray | float = 0.0,
) -> float:
    """Mean samples an arm that every method needs, whatever it knows but the two means.

    Parameters
    ----------
    best, second : GaussianArm
    gap : float
        Difference of their distances.
    confidence : float
        The method names the better one with at least this probability, for all means.
    reference_mean : ndarray of shape (d,) or float

    Returns
    -------
    float
        Expected samples of both arms together, halved.

    Notes
    -----
    Transport inequality (Kaufmann, Cappé & Garivier, "On the complexity of best-arm
    identification in multi-armed bandit models", JMLR 2016, Lemma 1): for every pair of them whose
    better arm is the other one, Σ E N_a KL_a >= log (1 / (2.4 δ)). The means are moved along Σ m, m
    the difference to the reference's mean, which changes the distance by t at the price
    t² / (2 σ²) a sample, σ² = 4 mᵀ Σ m, the variance of the distance's linear part; to first order
    in t, for arms that differ from the reference in their means at all. The best division gives
    E (N_1 + N_2) >= 2 log (1 / (2.4 δ)) (σ_1 + σ_2)² / gap².
    """
    sigma = 0.0
    for arm in (best, second):
        mean = np.asarray(arm.mean) - reference_mean
        moved = arm.cov * mean if np.ndim(arm.cov) == 1 else arm.cov @ mean
        sigma += 2.0 * math.sqrt(float(mean @ moved))
    return math.log(1.0 / (2.4 * (1.0 - confidence))) * (sigma / gap) ** 2
