"""Kernel distances: squared MMDs by their U-statistics, whatever the kernel.

With a kernel k, x generated and y real,

    distance = E k(x, x') + E k(y, y') - 2 E k(x, y).

Averages over pairs of *different* rows are unbiased at every sample size. What a row adds to first
order is twice its witness w(x) = E k(x, x') - E k(x, y); where both distributions are equal the
witness is constant, and the variance is that of the doubly centred kernels alone. Derivation:
docs/explanation/kid.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from genbounds._text import quoted
from genbounds.estimators.kernels._parameters import PolynomialKernel
from genbounds.estimators.kernels._reference import KernelReference, RandomSubsets
from genbounds.results import Score
from genbounds.validation import InputError, check_count, check_open_unit


def kernel_distance(
    fake: Any,
    real: Any,
    *,
    kernel: str | PolynomialKernel = "polynomial",
    bandwidth: float | Sequence[float] | None = None,
    estimator: str = "debiased",
    level: float = 0.95,
    subsets: int | None = None,
    subset_size: int = 1000,
    seed: int = 0,
) -> Score:
    """Distance of two distributions by a kernel (squared MMD): KID, CMMD, KAD, energy distance.

    Parameters
    ----------
    fake : array_like of shape (n, d) or Sample
        Generated features, at least 4 rows.
    real : array_like of shape (m, d) or Sample
        Reference features, at least 4 rows.
    kernel : str or PolynomialKernel
        "polynomial": (x·y/d + 1)³, the kernel Inception distance; a `PolynomialKernel` has other
        parameters (and is not normalised here). "rbf": exp(-‖x-y‖²/(2σ²)), averaged over the
        bandwidths σ. "cmmd": the same of rows divided by their lengths, σ = 10, times 1000. "kad":
        the same as "rbf", times 100. "energy": -‖x-y‖.
    bandwidth : float or sequence of float, optional
        σ, for "rbf", "cmmd" and "kad". None: 10 for "cmmd"; else the median distance of (up to
        1,000) reference rows.
    estimator : {"debiased", "plugin"}
        "debiased" averages over pairs of different rows (the U-statistic; unbiased); "plugin"
        includes each row with itself, as CMMD and the energy distance are published.
    level : float
        Coverage of the interval, in (0, 1).
    subsets : int, optional
        Mean over so many random subsets of both samples, at least 2, as KID is published
        (torch-fidelity and clean-fid: 100), in place of all pairs.
    subset_size : int
        Rows in each, at least 2 and at most those of the smaller sample.
    seed : int
        Of the subsets.

    Returns
    -------
    Score
        In units of the kernel; the energy distance in those of the features. Zero exactly if the
        two distributions are equal ("polynomial": have equal moments up to its degree; "cmmd": of
        their directions). A negative estimate is reported as 0, with a caution.

    Raises
    ------
    InputError
        If a shape, a type or a value is not legal, `Moments` are given, or a row of "cmmd" is zero;
        if the samples come from files that name different encoders; or if `subsets` are asked for
        of samples with groups, strata or weights, or with `estimator="plugin"`.

    Notes
    -----
    All pairs are used, in blocks of 1,024 rows: memory stays below 0.2 GB beside the features, and
    time grows with (n + m)². The interval is for the bandwidth as it is, also where the reference
    chose it.

    With `subsets` the value is their mean, and a caution says their standard deviation, which other
    tools print beside it. The interval is from all pairs even then: the variance of the U-statistic
    and that of the choice of subsets.

    References
    ----------
    .. [1] A. Gretton et al., "A kernel two-sample test", JMLR 13, 2012, Lemma 6.
    .. [2] M. Bińkowski et al., "Demystifying MMD GANs", ICLR 2018, §4 (KID).
    .. [3] S. Jayasumana et al., "Rethinking FID: towards a better evaluation metric for image
       generation", CVPR 2024 (CMMD).
    .. [4] Y. Chung et al., "KAD: no more FAD! An effective and efficient evaluation metric for
       audio generation", 2025 (KAD).
    .. [5] G. J. Székely and M. L. Rizzo, "Energy statistics", J. Stat. Plan. Inference 143, 2013.

    Examples
    --------
    >>> import numpy as np, genbounds as gb
    >>> rng = np.random.default_rng(0)
    >>> fake, real = rng.normal(0.5, size=(200, 4)), rng.normal(size=(200, 4))
    >>> score = gb.kernel_distance(fake, real, kernel="energy")
    >>> score.low > 0.0
    True
    """
    level = check_open_unit("level", level)
    drawn = None
    if subsets is not None:
        if estimator != "debiased":
            raise InputError(
                f"must be 'debiased' with `subsets`; got {quoted(estimator)}.", argument="estimator"
            )
        drawn = RandomSubsets(
            count=check_count("subsets", subsets, minimum=2),
            size=check_count("subset_size", subset_size, minimum=2),
            seed=check_count("seed", seed, minimum=0),
        )
    reference = KernelReference(real, kernel=kernel, bandwidth=bandwidth)
    found = reference.estimate(fake, estimator=estimator, subsets=drawn)
    return found.made_from(fake=fake, real=real).score(level)


def kernel_inception_distance(
    fake: Any,
    real: Any,
    *,
    estimator: str = "debiased",
    degree: int = 3,
    gamma: float | None = None,
    offset: float = 1.0,
    level: float = 0.95,
) -> Score:
    """Kernel Inception distance (KID): squared MMD with the kernel (γ x·y + offset)^degree.

    Parameters
    ----------
    fake : array_like of shape (n, d) or Sample
        Generated features, at least 4 independent rows.
    real : array_like of shape (m, d)
        Reference features, at least 4 independent rows.
    estimator : {"debiased", "plugin"}
        "debiased" averages over pairs of different rows (the U-statistic; unbiased); "plugin"
        includes each row with itself.
    degree : int
    gamma : float, optional
        γ; one over the number of features if None, as published.
    offset : float
        Non-negative.
    level : float
        Coverage of the interval, in (0, 1).

    Returns
    -------
    Score
        In units of the kernel. Zero exactly if the two distributions agree in all mixed moments up
        to `degree`. A negative estimate is reported as 0, with a caution.

    Raises
    ------
    InputError
        If a shape, a type or a value is not legal, or `Moments` are given; or if the samples
        come from files that name different encoders.

    Notes
    -----
    All pairs are used, in blocks: memory does not grow with n, time grows with n². The published
    habit of averaging over random subsets of 1,000 rows (`kernel_distance` with `subsets`) has a
    larger variance, and the spread over subsets is no standard error: it is that of a score from
    1,000 rows.

    References
    ----------
    .. [1] M. Bińkowski et al., "Demystifying MMD GANs", ICLR 2018, §4 (the KID).
    .. [2] A. Gretton et al., "A kernel two-sample test", JMLR 13, 2012, Lemma 6.
    .. [3] G. J. Székely and M. L. Rizzo, "Partial distance correlation with methods for
       dissimilarities", Ann. Statist. 42, 2014 (unbiased double centring).

    Examples
    --------
    >>> import numpy as np, genbounds as gb
    >>> rng = np.random.default_rng(0)
    >>> fake, real = rng.normal(1.0, size=(500, 4)), rng.normal(size=(500, 4))
    >>> score = gb.kernel_inception_distance(fake, real)
    >>> score.low > 0.0
    True
    """
    kernel = PolynomialKernel(degree=degree, gamma=gamma, offset=offset)
    return kernel_distance(fake, real, kernel=kernel, estimator=estimator, level=level)
