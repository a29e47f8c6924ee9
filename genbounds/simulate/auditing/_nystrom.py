"""Studies of the Nyström method: V24 Theorem 3(b) as its main text and its Appendix A.5 have it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.random import Generator

from genbounds.bounds import Bound, truncate
from genbounds.simulate.arms._arm import SyntheticArm
from genbounds.simulate.arms._bounded import CategoricalArm, SphereArm
from genbounds.simulate.arms._kernels import CircleArm, NystromArm
from genbounds.simulate.auditing._fits import averages, fit, fit_power
from genbounds.simulate.auditing._results import Check
from genbounds.validation import Float

_SIZES = (50, 100, 200, 400, 800)

# C of A.5 in the fits: t = C r log n. The paper calls it universal and gives no value.
_PER_RANK = 1.0

# The arm at each of `_SIZES`, and what makes it admissible.
Case = tuple[list[NystromArm], str]


def nystrom(bound: Bound, replications: int, rng: Generator) -> Iterator[Check]:
    """Quantile of the error at fixed t, with the t-truncation of both spectra.

    Asked is λ_r(K) ≤ τ and t ≥ r τ log n for some r; in the proof t ≥ C r log n. The last
    distribution meets the first with r = 102, where λ_r = 0, and any τ > 0; it does not meet the
    second.
    """
    unequal = CategoricalArm(np.r_[0.5, np.full(100, 0.005)], name="one class of 1/2 among 101")
    fixed = (
        (NystromArm(SphereArm(3), 8), "rank 3: λ_4 = 0"),
        (NystromArm(CircleArm(1.0), 20), "infinite rank: λ_10 ≤ 0.1 at n ≤ 800"),
        (NystromArm(unequal, 2), "as printed only: λ_102 = 0 ≤ τ, t ≥ 102 τ log n for small τ"),
    )
    cases = [([arm] * len(_SIZES), f"{arm.name} ({why})") for arm, why in fixed]
    return _falls(bound, cases, replications, rng)


def nystrom_proof(bound: Bound, replications: int, rng: Generator) -> Iterator[Check]:
    """Quantile of the error with t = ⌈C r log n⌉ landmarks; and whether one C can serve all."""
    growing = (
        (SphereArm(3), 0.0, "rank 3: λ_4 = 0"),
        (CircleArm(1.0), 0.1, "infinite rank, τ = 0.1"),
    )
    cases = [
        (_enough(arm, tau), f"{arm.name}, t = ⌈{_PER_RANK:g} r log n⌉ ({why})")
        for arm, tau, why in growing
    ]
    yield _universal(bound)
    yield from _falls(bound, cases, replications, rng)


def _universal(bound: Bound) -> Check:
    """Two classes of 1 − p and p = 1/t, k(x, y) = [x = y]: rank 2, λ_3(K) = 0, τ → 0.

    All landmarks miss the small class with probability (1−p)^t, about 1/e. Then λ^Nys is the
    share s of the large class, lifted to s + (1−s)/t and t − 1 times (1−s)/t; and s is within x of
    1 − p but for 2 exp(−2nx²) (Hoeffding). The error, α = 2, is compared with √(log(2/δ)/n).
    """
    from mpmath import mp

    delta, needed, missed = 0.1, list[float](), list[float]()
    with mp.workdps(80):
        for per_rank, n in ((1, mp.mpf(10) ** 12), (100, mp.mpf(10) ** 36)):
            t = mp.ceil(per_rank * 3 * mp.log(n))
            p = 1 / t
            x = n ** mp.mpf(-0.4)
            s = 1 - p - x  # the norm grows with s, and the truth lies below
            lifted = mp.sqrt((s + (1 - s) / t) ** 2 + (t - 1) * ((1 - s) / t) ** 2)
            error = lifted - mp.sqrt((1 - p) ** 2 + p**2)
            claimed = n ** bound.constants["exponent"] * mp.sqrt(mp.log(2 / delta))
            missed.append(float(_unseen(p, t) - 2 * mp.exp(-2 * n * x**2)))
            needed.append(float(error / claimed))
    return Check(
        kind="fact",
        claim="one C and one constant of O(·) serve every distribution: two classes of 1 − p and "
        "p = 1/t, α = 2, λ_3(K) = 0",
        holds=min(missed) <= delta + 2e-36 or needed[1] <= 1000.0 * needed[0],
        found=f"the landmarks miss the small class with probability {min(missed):.3f}; then "
        f"the constant must be at least {needed[0]:.2g} at C = 1, n = 1e12 and {needed[1]:.2g} at "
        "C = 100, n = 1e36",
        decisive=True,
    )


def _unseen(p: Any, t: Any) -> Any:
    """Probability that none of t landmarks is of a class of probability p."""
    return (1 - p) ** t


def _enough(arm: SyntheticArm, tau: float) -> list[NystromArm]:
    """Return the arm with as many landmarks as A.5 asks for: the first r with n λ_r ≤ τ."""
    spectrum = np.r_[np.sort(arm.facts["kernel_spectrum"])[::-1], 0.0]

    def at(n: int) -> NystromArm:
        rank = 1 + int(np.argmax(n * spectrum <= tau))
        return NystromArm(arm, min(max(math.ceil(_PER_RANK * rank * math.log(n)), 2), n))

    return [at(n) for n in _SIZES]


def _falls(bound: Bound, cases: list[Case], replications: int, rng: Generator) -> Iterator[Check]:
    """Fit the exponent of the error that a tenth of the samples exceeds."""
    claimed, sizes = bound.constants["exponent"], np.array(_SIZES, dtype=float)
    for arms, name in cases:
        # In 20 batches. Class shares cost next to nothing, samples of features a matrix each.
        shares_only = isinstance(arms[0].arm, CategoricalArm)
        count = max(2 * replications, 2000) if shares_only else max(replications // 10, 100)
        count = count // 20 * 20
        means, errors = averages(
            _quantiles(arm, n, count, rng) for arm, n in zip(arms, _SIZES, strict=True)
        )
        # Class shares are multiples of 1/n: all batches may have the very same quantile.
        errors = np.maximum(errors, 1e-3 * means)
        slope, low, high = fit_power(sizes, means, errors, count=len(cases))
        yield fit(
            f"error of Nyström that a tenth of the samples exceeds, {name}: exponent at most "
            f"{claimed:g}",
            low <= claimed,
            f"fitted exponent {slope:.3f}, interval [{low:.3f}, {high:.3f}]; the error is "
            f"{means[0]:.3f} at n = {sizes[0]:g}, {means[-1]:.3f} at n = {sizes[-1]:g}",
        )


def _quantiles(arm: NystromArm, n: int, count: int, rng: Generator) -> Float:
    """Error that a tenth of the samples exceeds, in each of 20 batches."""
    most = min(arm.landmarks, arm.d)
    truth = truncate(arm.facts["kernel_spectrum"][None], most)
    spectra = arm.statistics(["nystrom_spectrum"], n, count, rng)["nystrom_spectrum"]
    errors = np.linalg.norm(truncate(spectra, most) - truth, axis=1)
    return np.asarray(np.quantile(errors.reshape(20, -1), 0.9, axis=1))


def nystrom_product(bound: Bound, replications: int, rng: Generator) -> Iterator[Check]:
    """Ask for the constant of O(·) as τ → 0, exactly: two equal classes, two landmarks, odd n.

    The kernel has rank 2, so that λ_3(K) = 0 ≤ τ, and t = 2 ≥ 3 τ log n, for every τ ≤ 0.1. With
    one landmark of each class λ^Nys is the shares, at least 1/(2n) off; with both of one class of
    share s ≥ 2/n it is lifted to ((1+s)/2, (1−s)/2), further off. So no sample has a smaller error
    than the shares (½ ± 1/(2n)), whatever τ.
    """
    n, t, delta, order = 101, 2, 0.1, 2.0
    least = math.hypot(0.5 + 0.5 / n, 0.5 - 0.5 / n) - math.sqrt(0.5)  # of ‖λ‖₂ = VENDI₂^(−1/2)
    fixed = {"n": n, "delta": delta, "landmarks": t, "order": order}
    needed = [least / float(bound.width(**fixed, tau=tau)) for tau in (0.1, 1e-6, 1e-12)]
    yield Check(
        kind="fact",
        claim=f"one constant serves every τ ≤ 0.1: two equal classes, t = {t}, n = {n}, "
        f"α = {order:g}, λ_3(K) = 0",
        holds=needed[-1] <= 10.0 * needed[0],
        found=f"the error is at least {least:.4g} in every sample; the constant must be at "
        f"least {needed[0]:.2g} at τ = 0.1, {needed[1]:.2g} at 1e-6, {needed[2]:.2g} at 1e-12",
        decisive=True,
    )
