"""Studies of claimed rates: the Nyström method and regret; those of C20 are in `_c20`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator, SeedSequence
from scipy import stats

from genbounds.bounds import Bound, catalog, entropy_sum, truncate
from genbounds.simulate.arms._arm import SyntheticArm
from genbounds.simulate.arms._bounded import CategoricalArm, DirichletArm, SphereArm
from genbounds.simulate.arms._covariance import GaussianArm
from genbounds.simulate.arms._frechet import FrechetArm
from genbounds.simulate.arms._kernels import CircleArm, NystromArm
from genbounds.simulate.auditing import _c20
from genbounds.simulate.auditing import _results as fits
from genbounds.simulate.auditing._results import FALSE_ALARM, Check
from genbounds.validation import Float, InputError

# --- the Nyström method: V24 Theorem 3(b) as its main text and its Appendix A.5 have it ----------

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
        means, errors = fits.averages(
            _quantiles(arm, n, count, rng) for arm, n in zip(arms, _SIZES, strict=True)
        )
        # Class shares are multiples of 1/n: all batches may have the very same quantile.
        errors = np.maximum(errors, 1e-3 * means)
        slope, low, high = fits.fit_power(sizes, means, errors, count=len(cases))
        yield fits.fit(
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


# --- regret of the published index policies, played here at one horizon ------------------------

_HORIZON = 1000
_BATCH = 5
_FAILURE = 1e-3  # of the event behind the proof, in one run
_DELTA = _FAILURE / _HORIZON  # a union over the steps

Arms = Sequence[SyntheticArm]

# ``index(k, rows)`` returns the optimistic score of arm k from all its rows, and its bonus.
Index = Callable[[int, Float], tuple[float, float]]


def fd_ucb(bonus: str, bound: Bound, replications: int, rng: Generator) -> Iterator[Check]:
    """Regret of FD-UCB with the width of a statement as its bonus."""
    statement = catalog()[bonus]
    arms = tuple(
        FrechetArm(GaussianArm(np.r_[gap, 0.0], np.ones(2)), 0.0, np.ones(2))
        for gap in (0.0, 1.0, 2.0)
    )
    losses = np.array([arm.facts["distance"] for arm in arms])

    def index(k: int, rows: Float) -> tuple[float, float]:
        sample = arms[k].reduce([*statement.needs, "distance_plugin"], rows[None])
        quantities = dict(arms[k].facts) | sample | {"n": len(rows), "delta": _DELTA}
        bonus = float(statement.width(**quantities)[0])
        return float(sample["distance_plugin"][0]) - bonus, bonus

    return _play(bound, arms, losses, index, _runs(replications), rng, "3 Gaussian arms (d=2)")


def is_ucb(bonus: str, bound: Bound, replications: int, rng: Generator) -> Iterator[Check]:
    """Regret of IS-UCB, on arms far apart and on arms so near that a first batch misleads."""
    statement = catalog()[bonus]

    def index(k: int, rows: Float) -> tuple[float, float]:
        sample = arms[k].reduce(statement.needs, rows[None])
        quantities = dict(arms[k].facts) | sample | {"n": len(rows), "delta": _DELTA}
        top = float(statement.width(**quantities)[0])
        score = entropy_sum(sample["mean_posterior"]) - sample["mean_entropy"]
        return -top, top - float(score[0])

    cases = (((0.1, 0.5, 2.0), "3 Dirichlet arms"), ((0.5, 0.55, 0.6), "3 near Dirichlet arms"))
    for parameters, what in cases:
        arms = [DirichletArm(np.full(3, a)) for a in parameters]
        losses = -np.array([arm.facts["log_score"] for arm in arms])
        yield from _play(bound, arms, losses, index, _runs(replications), rng, what)


def _runs(replications: int) -> int:
    return min(max(replications // 250, 8), 20)


def _play(
    bound: Bound, arms: Arms, losses: Float, index: Index, runs: int, rng: Generator, what: str
) -> Iterator[Check]:
    """Compare regret with what its proof bounds it by, and its order with the one claimed."""
    options: dict[str, Any] = {"steps": _HORIZON, "batch": _BATCH, "rng": rng}
    played = [regret(arms, losses, index, **options) for _ in range(runs)]
    lost, spent = np.swapaxes(played, 0, 1)
    worst = float(losses.max() - losses.min())
    share = spent.mean(axis=0) / (worst * np.arange(1.0, _HORIZON + 1.0))
    # A bound above all that can be lost is never contradicted: nothing was tested.
    kind = "vacuous fit" if (share >= 1.0).all() else "fit"
    yield replace(_within(lost, spent, what), kind=kind)
    yield replace(_judge(bound, lost, worst, share, what), kind=kind)


def regret(
    arms: Arms, losses: Float, index: Index, *, steps: int, batch: int, rng: Generator
) -> tuple[Float, Float]:
    """Play an index policy.

    Parameters
    ----------
    arms : sequence of SyntheticArm
    losses : ndarray of shape (K,)
        True scores, small is good.
    index : callable
        ``index(k, rows)`` returns the optimistic score of arm k from all its rows, and its bonus.
    steps, batch : int
    rng : numpy.random.Generator

    Returns
    -------
    regret, spent : ndarray of shape (steps,)
        Accumulated regret, and accumulated 2 · bonus of the picks, which the theorems bound it by.
    """
    rows = [arm.draw(batch, rng) for arm in arms]
    current = [index(k, part) for k, part in enumerate(rows)]
    gaps = losses - losses.min()
    lost, spent = np.zeros(steps), np.zeros(steps)
    for t in range(steps):
        pick = min(range(len(arms)), key=lambda k: current[k][0])
        lost[t], spent[t] = gaps[pick], 2.0 * current[pick][1]
        rows[pick] = np.concatenate([rows[pick], arms[pick].draw(batch, rng)])
        current[pick] = index(pick, rows[pick])
    return lost.cumsum(), spent.cumsum()


def _within(lost: Float, spent: Float, what: str) -> Check:
    """Compare the regret with what its proof bounds it by: all that a finite horizon contradicts.

    The event behind the proof fails in a run with probability 1e-3 at most; that it fails in more
    than `allowed` of them has probability below 1e-6.
    """
    failed, runs = int((lost > spent).any(axis=1).sum()), len(lost)
    allowed = int(stats.binom.isf(FALSE_ALARM, runs, _FAILURE))
    largest = float((lost / np.maximum(spent, 1e-300)).max())
    return fits.fit(
        f"regret ≤ 2 Σ bonus of the picks at every step up to T = {_HORIZON}, {what}",
        failed <= allowed,
        f"fails in {failed} of {runs} runs; the regret is at most {largest:.3g} times the bound",
    )


def _judge(bound: Bound, lost: Float, worst: float, share: Float, what: str) -> Check:
    """Exponent over the second half of the horizon on a log scale, and the theorem's own bound."""
    times = np.unique(np.geomspace(math.sqrt(_HORIZON), _HORIZON, 12).astype(int)) - 1
    slopes = np.polyfit(np.log(times + 1.0), np.log(lost[:, times] + worst).T, 1)[0]
    mean, error = fits.average(slopes)
    reach = float(stats.t.isf(FALSE_ALARM / 2.0, len(lost) - 1)) * error
    claimed = bound.constants["exponent"]
    return fits.fit(
        f"regret up to T = {_HORIZON}, batch {_BATCH}, {what}: exponent {claimed:g}",
        mean - reach <= claimed,
        f"fitted exponent {mean:.3f} ± {reach:.3f} (T from {times[0] + 1}; no finite T "
        f"decides); the bound 2 Σ bonus is {share[-1]:.3g} times the largest regret possible at "
        f"the end, {share.min():.3g} times at least",
        decisive=False,  # no finite T contradicts an order at T → ∞
    )


# --- every study ---------------------------------------------------------------------------------

Study = Callable[[Bound, int, Generator], Iterable[Check]]

_STUDIES: Mapping[str, Study] = {
    "c20.fid-bias": _c20.fid_bias,
    "c20.fid-variance": _c20.fid_variance,
    "c20.is-bias": _c20.is_bias,
    "c20.rank-flip": _c20.rank_flip,
    "c20.fid-infinity": _c20.fid_infinity,
    "c20.fid-infinity-with-replacement": _c20.fid_infinity,
    "c20.spacing": _c20.spacing,
    "c20.sobol": _c20.sobol_variances,
    "c20.sobol-mean": _c20.sobol_means,
    "c20.sobol-rate": _c20.sobol_integrals,
    "v24.nystrom": nystrom,
    "v24.nystrom-product": nystrom_product,
    "v24.nystrom-proof": nystrom_proof,
    "o24.fid-ucb-regret": partial(fd_ucb, "o24.fd-bonus"),
    "m25.fd-ucb-regret": partial(fd_ucb, "m25.fd-bonus"),
    "o24.is-ucb-regret": partial(is_ucb, "o24.is-bound"),
    "m25.is-ucb-regret": partial(is_ucb, "m25.is-bound"),
}


def fit_rate(bound: Bound, replications: int, seeds: SeedSequence) -> tuple[Check, ...]:
    """Judge a claimed rate.

    Raises
    ------
    InputError
        If there is no study of the statement.
    """
    if bound.id not in _STUDIES:
        raise InputError(
            f"`{bound.id}` claims a rate, and there is no study of it: only {', '.join(_STUDIES)} "
            "can be audited."
        )
    return tuple(_STUDIES[bound.id](bound, replications, np.random.default_rng(seeds)))
