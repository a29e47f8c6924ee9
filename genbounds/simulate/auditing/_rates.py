"""Studies of claimed rates: what C20 says of plug-in scores, the Nyström method, regret."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.random import Generator, SeedSequence
from scipy import special, stats

from genbounds.bounds import Bound, catalog, entropy_sum, truncate
from genbounds.simulate.arms._arm import SyntheticArm
from genbounds.simulate.arms._bounded import CategoricalArm, DirichletArm, SphereArm
from genbounds.simulate.arms._covariance import GaussianArm
from genbounds.simulate.arms._frechet import FrechetArm
from genbounds.simulate.arms._kernels import CircleArm, NystromArm
from genbounds.simulate.auditing._results import FALSE_ALARM, Check
from genbounds.validation import Float, InputError

# --- fits, with intervals at 1 − 1e-6 for a claim as a whole, by the normal law of averages ------


def fit(claim: str, holds: bool, found: str, *, kind: str = "fit", decisive: bool = True) -> Check:
    """Return what a fit found; one that contradicts its claim refutes, if it is `decisive`."""
    return Check(kind=kind, claim=claim, holds=bool(holds), found=found, decisive=decisive)


def normal_reach(count: int = 1) -> float:
    """Return the half-width, in standard errors, of one of `count` intervals that hold together."""
    return float(-special.ndtri(FALSE_ALARM / (2.0 * count)))


def average(values: Float) -> tuple[float, float]:
    """Mean and its standard error."""
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(values.size))


def averages(samples: Iterable[Float]) -> tuple[Float, Float]:
    """Means of several samples, and their standard errors."""
    pairs = [average(values) for values in samples]
    return np.array([mean for mean, _ in pairs]), np.array([error for _, error in pairs])


def fit_power(
    sizes: Float, means: Float, errors: Float, *, count: int = 1
) -> tuple[float, float, float]:
    """Exponent b of means ≈ A n^b (1 + c/n), with its limits.

    Parameters
    ----------
    sizes, means, errors : ndarray
        n, averages of one sign, and their standard errors.
    count : int
        Fits that hold together.

    Returns
    -------
    tuple of float
        Exponent, lower and upper limit.
    """
    design = np.stack([np.ones_like(sizes), np.log(sizes), 1.0 / sizes], axis=1)
    weights = np.abs(means) / errors
    scaled = design * weights[:, None]
    target = np.log(np.abs(means)) * weights
    solve = np.linalg.pinv(scaled)  # (X'X)⁻¹ is its product with its transpose
    slope, spread = float(solve[1] @ target), float(np.linalg.norm(solve[1]))
    return slope, slope - normal_reach(count) * spread, slope + normal_reach(count) * spread


def _runs(replications: int, share: int, least: int, most: int) -> int:
    """One run of a long study for `share` replications, within limits."""
    return min(max(replications // share, least), most)


# --- C20 ----------------------------------------------------------------------------------------


def _isotropic(d: int, scale: float, reference: float, name: str | None = None) -> FrechetArm:
    """N(0, scale I) against N(0, reference I)."""
    return FrechetArm(GaussianArm(0.0, np.full(d, scale)), 0.0, np.full(d, reference), name=name)


_WIDER = _isotropic(4, 1.0, 2.0, "I against 2I (d=4)")
_POWER = 1.0 / np.arange(1.0, 5.0)
_REVERSED = FrechetArm(GaussianArm(0.0, _POWER), 0.0, _POWER[::-1], name="1/j reversed (d=4)")

# --- bias and variance of plug-in scores ----------------------------------------------------------

_PLUGIN_SIZES = np.array([16.0, 32.0, 64.0, 128.0, 256.0, 512.0])


def _distances(arm: FrechetArm, n: int, count: int, rng: Generator) -> Float:
    return arm.statistics(["distance_plugin"], n, count, rng)["distance_plugin"]


def fid_bias(bound: Bound, replications: int, rng: Generator) -> Iterator[Check]:
    """Fit the order of the bias of FD_N, and compare its constants for two generators."""
    leads = []
    for arm in (_WIDER, _REVERSED):
        truth = arm.facts["distance"]
        biases = (_distances(arm, int(n), 2 * replications, rng) - truth for n in _PLUGIN_SIZES)
        means, errors = averages(biases)
        yield _exponent(bound, f"E FD_N − FD, {arm.name}", _PLUGIN_SIZES, means, errors)
        leads.append((float(means[3] * _PLUGIN_SIZES[3]), float(errors[3] * _PLUGIN_SIZES[3])))
    (first, e1), (second, e2) = leads
    apart = abs(first - second) / math.hypot(e1, e2)
    # Without it a score that has no bias at all would pass: its exponent is anything.
    yield fit(
        "K depends on the generator",
        apart > normal_reach(),
        f"N (E FD_N − FD) at N = 128: {first:.3f} and {second:.3f}, {apart:.1f} standard errors "
        "apart",
    )


def fid_variance(bound: Bound, replications: int, rng: Generator) -> Iterator[Check]:
    """Fit the order of the variance of FD_N."""
    count = 2 * max(replications, 400)
    used = count // 40 * 40
    for arm in (_WIDER, _REVERSED):
        drawn = (_distances(arm, int(n), count, rng) for n in _PLUGIN_SIZES)
        # The variance of each of 40 batches: independent, and nearly normal in their average.
        batches = (values[:used].reshape(40, -1).var(axis=1, ddof=1) for values in drawn)
        yield _exponent(bound, f"Var FD_N, {arm.name}", _PLUGIN_SIZES, *averages(batches))


def _exponent(bound: Bound, what: str, sizes: Float, means: Float, errors: Float) -> Check:
    """Compare the claimed exponent with the limits of the fitted one, one of two."""
    claimed = bound.constants["exponent"]
    slope, low, high = fit_power(sizes, means, errors, count=2)
    return fit(
        f"{what}: exponent {claimed:g}",
        low <= claimed <= high,
        f"fitted exponent {slope:.3f}, interval [{low:.3f}, {high:.3f}]",
    )


def is_bias(bound: Bound, replications: int, rng: Generator) -> Iterator[Check]:
    """Fit the order of the bias of log IS_N and its constant."""
    arm, total = DirichletArm(np.full(5, 0.3)), 1.5
    # Var p_j / p̄_j of a Dirichlet distribution: p̄(1−p̄)/(A+1)/p̄.
    lead = bound.constants["lead"] * 5 * (1.0 - 0.2) / (total + 1.0)
    sizes = np.array([8.0, 16.0, 32.0, 64.0])

    def losses(n: int) -> Float:
        sample = arm.statistics(["mean_posterior", "mean_entropy"], n, 4 * replications, rng)
        score = entropy_sum(sample["mean_posterior"]) - sample["mean_entropy"]
        return np.asarray(arm.facts["log_score"] - score)

    means, errors = averages(losses(int(n)) for n in sizes)
    yield _exponent(bound, "log IS − E log IS_N", sizes, means, errors)
    # N times the bias is the leading constant and a term in 1/N.
    weights = 1.0 / (errors * sizes)
    (_, found), cov = np.polyfit(1.0 / sizes, means * sizes, 1, w=weights, cov="unscaled")
    reach = normal_reach(2) * math.sqrt(float(cov[1, 1]))
    yield fit(
        f"N (log IS − E log IS_N) tends to ½ Σ Var(p_j)/p_j = {lead:.4f}",
        abs(float(found) - lead) <= reach,
        f"{found:.4f} ± {reach:.4f}",
    )


def rank_flip(bound: Bound, replications: int, rng: Generator) -> Iterator[Check]:
    """Compare a wide generator, which is closer, with a narrow one, which has less bias."""
    arms = _isotropic(16, 1.2, 1.0), _isotropic(16, 0.75, 1.0)
    count = max(replications // 2, 200)
    (first, second), errors = averages(_distances(arm, 30, count, rng) for arm in arms)
    apart = (first - second) / math.hypot(*errors)
    truth = [arm.facts["distance"] for arm in arms]
    yield fit(
        "N(0, 1.2 I) and N(0, 0.75 I) against N(0, I), d = 16, N = 30",
        truth[0] < truth[1] and apart > normal_reach(),
        f"FD {truth[0]:.4f} < {truth[1]:.4f}, but E FD_N {first:.4f} > {second:.4f} "
        f"({apart:.0f} standard errors)",
    )


# --- FID∞: what the regression of FD_N on 1/N leaves of the bias, and which sizes it needs --------
# Played as printed: one pool, subsets of it at 15 sizes, their FD, a line, its value at 0. The
# paper prints two ways to draw the subsets, and they are two statements.

_PROTOCOL = 5000  # the smallest N of the regression
_POINTS = 15
_REPLACED = frozenset({"c20.fid-infinity-with-replacement"})


def fid_infinity(bound: Bound, replications: int, rng: Generator) -> Iterator[Check]:
    """Compare the bias that FID∞ leaves with the bias of the plain score of the same pool.

    "Effectively unbiased" is read as: no more than `ratio` of the plain bias is left, in either
    direction. A study that could not tell the plain score from FID∞ would prove nothing, so that
    its reach stands in what it found.
    """
    runs = _runs(replications, 100, 12, 40)
    equal = _isotropic(32, 1.0, 1.0, "I against I (d=32)")
    wider = _isotropic(64, 1.0, 1.1, "I against 1.1 I (d=64)")
    for case in ((equal, _PROTOCOL, 20_000), (wider, _PROTOCOL, 20_000), (wider, 130, 520)):
        yield bias_left(bound, *case, runs, rng)


def bias_left(
    bound: Bound, arm: FrechetArm, least: int, pool: int, runs: int, rng: Generator
) -> Check:
    """Judge one arm and one pool size."""
    sizes, replaced = even_sizes(least, pool), bound.id in _REPLACED
    pools = (arm.draw(pool, rng) for _ in range(runs))
    scores = [(_infinity(arm, x, sizes, replaced, rng), _score(arm, x)) for x in pools]
    left, plain = np.transpose(scores) - arm.facts["distance"]
    allowed = bound.constants["ratio"]
    # Two sides in each of three cases; the runs are paired, and few.
    reach = float(stats.t.isf(FALSE_ALARM / 6.0, runs - 1)) / math.sqrt(runs)
    above, below = left - allowed * plain, left + allowed * plain
    visible = (
        above.mean() - reach * above.std(ddof=1) > 0.0
        or below.mean() + reach * below.std(ddof=1) < 0.0
    )
    as_asked = least == _PROTOCOL
    share, spread = left.mean() / plain.mean(), reach * left.std(ddof=1) / plain.mean()
    return fit(
        f"FID∞ leaves at most {allowed:.0%} of the bias of the plain score, {arm.name}, "
        f"N from {least} to {pool}" + ("" if as_asked else " (fewer than the protocol asks)"),
        not visible,
        f"{share:.0%} ± {spread:.0%} is left: {left.mean():.4g} of {plain.mean():.4g}, "
        f"{runs} pools",
        decisive=as_asked,
    )


def even_sizes(least: int, pool: int) -> Float:
    """Return the sizes of the protocol, evenly spaced in N."""
    return np.floor(np.linspace(least, pool, _POINTS))


def even_inverses(least: int, pool: int) -> Float:
    """Return sizes evenly spaced in 1/N, the rival."""
    return np.floor(1.0 / np.linspace(1.0 / least, 1.0 / pool, _POINTS))


def _infinity(arm: FrechetArm, rows: Float, sizes: Float, replaced: bool, rng: Generator) -> float:
    """FID∞ of a pool of rows, from a subset of each size."""
    subsets = (rng.choice(len(rows), int(n), replace=replaced) for n in sizes)
    scores = np.array([_score(arm, rows[subset]) for subset in subsets])
    return float(scores @ intercept_weights(sizes))


def _score(arm: FrechetArm, rows: Float) -> float:
    mean = rows.mean(axis=0)
    cov = rows.T @ rows / len(rows) - np.outer(mean, mean)
    return float(arm.plugin_distance(mean[None], cov[None])[0])


def intercept_weights(sizes: Float) -> Float:
    """Weights of FD_N at `sizes` in the value at 0 of their regression on 1/N."""
    design = np.stack([np.ones_like(sizes), 1.0 / sizes], axis=1)
    return np.asarray(np.linalg.pinv(design)[0])


def spacing(bound: Bound, replications: int, rng: Generator) -> Iterator[Check]:
    """Compare the mean squared errors of FID∞ with sizes even in N and even in 1/N.

    From a tenth of the pool on, as in the paper's experiments, the two differ little; from a
    fortieth on enough for an exchange of the two to be seen.
    """
    arm, pool, runs = _WIDER, 4000, max(replications // 25, 40)
    for least in (400, 100):
        grids = (even_sizes(least, pool), even_inverses(least, pool))
        pools = (arm.draw(pool, rng) for _ in range(runs))
        scores = [[_infinity(arm, x, sizes, False, rng) for sizes in grids] for x in pools]
        squared = (np.array(scores) - arm.facts["distance"]) ** 2
        # Paired runs: the logarithm of the ratio by the delta method.
        mean = squared.mean(axis=0)
        influence = squared[:, 0] / mean[0] - squared[:, 1] / mean[1]
        error = float(influence.std(ddof=1)) / math.sqrt(runs)
        log = math.log(mean[0] / mean[1])
        low, high = (math.exp(log + side * normal_reach(2) * error) for side in (-1.0, 1.0))
        yield fit(
            f"mean squared error of FD∞, even in N over even in 1/N, {arm.name}, N from {least} "
            f"to {pool}",
            low <= bound.constants["ratio"],
            f"ratio {math.exp(log):.3f}, interval [{low:.3f}, {high:.3f}]",
        )


# --- scrambled Sobol points: variances and means of scores (Table 1), integrals -------------------
# The generators are random networks, whose latents are driven by one sampler or another.

_SAMPLERS = ("iid", "inverse", "Box–Muller")  # the last two scramble Sobol points
_SOBOL_SIZE = 512
_FEW = 64
_LATENTS = (2, 8, 32)
_SCORES = ("FD_N", "log IS_N")


def sobol_variances(bound: Bound, replications: int, rng: Generator) -> Iterator[Check]:
    """Compare the variances of FD_N and log IS_N by sampler of the latents."""
    runs, allowed = _runs(replications, 25, 40, 400), bound.constants["ratio"]
    lowered = list[bool]()
    # 24: twelve ratios, two sides.
    reach = float(stats.f.isf(FALSE_ALARM / 24.0, runs - 1, runs - 1))
    for latent, scores in _networks(runs, _SOBOL_SIZE, rng):
        iid, *sobol = np.var(scores, axis=0, ddof=1)  # by sampler and score
        ratios = np.ravel(sobol / iid)
        for (sampler, score), share in zip(product(_SAMPLERS[1:], _SCORES), ratios, strict=True):
            yield fit(
                f"variance of {score}, Sobol ({sampler}) over iid, {latent} latent dimensions, "
                f"N = {_SOBOL_SIZE}",
                share / reach <= allowed,
                f"ratio {share:.3f}, F interval [{share / reach:.3f}, {share * reach:.3f}], "
                f"{runs} runs",
            )
            lowered.append(bool(share * reach < allowed))
    # No ratio above one is no gain yet: points that are as good as iid ones would pass, too.
    yield fit(
        "both kinds of Sobol points lower the variance of both scores at 2 latent dimensions",
        all(lowered[:4]),
        f"whole F interval below {allowed:g} for {sum(lowered[:4])} of the 4 ratios there, for "
        f"{sum(lowered)} of all {len(lowered)}",
    )


def sobol_means(bound: Bound, replications: int, rng: Generator) -> Iterator[Check]:
    """Compare the means of FD_N (lower is better) and log IS_N (higher is better) by sampler."""
    # Fewer points leave more of the bias, which goes with 1/N, beside the spread, with 1/√N.
    runs, better = _runs(replications, 10, 200, 1000), list[bool]()
    # 24: twelve differences, two sides.
    reach = float(stats.t.isf(FALSE_ALARM / 24.0, runs - 1)) / math.sqrt(runs)
    for latent, scores in _networks(runs, _FEW, rng):
        mean, spread = scores.mean(axis=0), np.var(scores, axis=0, ddof=1)
        gains = (mean[1:] - mean[0]) * (-1.0, 1.0)  # by sampler and score
        errors = reach * np.sqrt(spread[1:] + spread[0])
        for (j, score), (i, sampler) in product(enumerate(_SCORES), enumerate(_SAMPLERS[1:])):
            gain, error = gains[i, j], errors[i, j]
            yield fit(
                f"mean of {score}, Sobol ({sampler}) no worse than iid, {latent} latent "
                f"dimensions, N = {_FEW}",
                gain + error >= 0.0,
                f"better by {gain:.3g}, interval [{gain - error:.3g}, {gain + error:.3g}], "
                f"{runs} runs",
            )
            better.append(bool(gain - error > 0.0))
    yield fit(
        "both kinds of Sobol points give a better mean of FD_N at 2 latent dimensions",
        all(better[:2]),
        f"whole interval above 0 for {sum(better[:2])} of the 2 differences there, for "
        f"{sum(better)} of all {len(better)}",
    )


def _networks(runs: int, n: int, rng: Generator) -> Iterator[tuple[int, Float]]:
    """For random networks of growing latents: scores of n points by run, sampler and kind."""
    for latent in _LATENTS:
        weight = rng.standard_normal((latent, 4)) / math.sqrt(latent)
        scores = [[_scores(weight, sampler, n, rng) for sampler in _SAMPLERS] for _ in range(runs)]
        yield latent, np.array(scores)


def _scores(weight: Float, sampler: str, n: int, rng: Generator) -> tuple[float, float]:
    """FD_N against N(0, I) and log IS_N of tanh features of latents from one sampler."""
    latent, d = weight.shape
    if sampler == "iid":
        z = rng.standard_normal((n, latent))
    else:
        engine = stats.qmc.MultivariateNormalQMC(
            np.zeros(latent), inv_transform=sampler == "inverse", rng=rng
        )
        z = engine.random(n)
    rows = np.tanh(1.5 * z @ weight)
    distance = _score(_isotropic(d, 1.0, 1.0), rows)
    posterior = special.softmax(3.0 * rows, axis=1)
    score = entropy_sum(posterior.mean(axis=0)) - entropy_sum(posterior).mean()
    return distance, float(score)


_FUNCTIONS: Mapping[str, tuple[int, Callable[[Float], Float], float]] = {
    "a step, d = 1": (1, lambda x: (x[:, 0] < 0.37).astype(float), 0.37),
    "a box, d = 2": (2, lambda x: ((x[:, 0] < 0.37) & (x[:, 1] < 0.71)).astype(float), 0.37 * 0.71),
    "exp(−x−y), d = 2": (2, lambda x: np.exp(-x.sum(axis=1)), (1.0 - math.exp(-1.0)) ** 2),
}
_INTEGRAL_SIZES = 2 ** np.arange(8, 17, 2)


def sobol_integrals(bound: Bound, replications: int, rng: Generator) -> Iterator[Check]:
    """Fit the error of integrals over N^exponent (log N)^d, for functions of bounded variation."""
    runs, exponent = _runs(replications, 25, 40, 400), bound.constants["exponent"]
    reach = float(stats.t.isf(FALSE_ALARM / (4.0 * len(_FUNCTIONS)), runs - 1))
    sizes = _INTEGRAL_SIZES.astype(float)
    for name, (d, function, truth) in _FUNCTIONS.items():
        errors = np.array(
            [
                [float(function(_points(d, int(n), rng)).mean()) - truth for n in _INTEGRAL_SIZES]
                for _ in range(runs)
            ]
        )
        claimed = sizes**exponent * np.log(sizes) ** d
        middle, spread = averages((np.abs(errors) / claimed).T)
        # Points that are not scrambled have the very same error every time.
        spread = np.maximum(spread, 1e-3 * middle)
        slope, low, high = fit_power(sizes, middle, spread, count=2 * len(_FUNCTIONS))
        yield fit(
            f"mean error of the integral of {name} over N^{exponent:g} (log N)^{d} does not grow "
            "with N",
            low <= 0.0,
            f"it grows as N^{slope:.3f}, interval [{low:.3f}, {high:.3f}], N from {sizes[0]:g} "
            f"to {sizes[-1]:g}, {runs} scramblings",
        )
        mean, error = average(errors[:, 0])
        width = reach * error + 1e-12
        yield fit(
            f"scrambling leaves the expectation of the integral of {name} as it is",
            abs(mean) <= width,
            f"mean error {mean:.2g} ± {width:.2g} at N = {sizes[0]:g}",
        )


def _points(d: int, n: int, rng: Generator) -> Float:
    """Scrambled Sobol points in the unit cube."""
    return np.asarray(stats.qmc.Sobol(d, scramble=True, rng=rng).random(n))


# --- the Nyström method: V24 Theorem 3(b) as its main text and its Appendix A.5 have it ----------

_NYSTROM_SIZES = (50, 100, 200, 400, 800)

# C of A.5 in the fits: t = C r log n. The paper calls it universal and gives no value.
_PER_RANK = 1.0

# The arm at each of `_NYSTROM_SIZES`, and what makes it admissible.
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
    cases = [([arm] * len(_NYSTROM_SIZES), f"{arm.name} ({why})") for arm, why in fixed]
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

    return [at(n) for n in _NYSTROM_SIZES]


def _falls(bound: Bound, cases: list[Case], replications: int, rng: Generator) -> Iterator[Check]:
    """Fit the exponent of the error that a tenth of the samples exceeds."""
    claimed, sizes = bound.constants["exponent"], np.array(_NYSTROM_SIZES, dtype=float)
    for arms, name in cases:
        # In 20 batches. Class shares cost next to nothing, samples of features a matrix each.
        shares_only = isinstance(arms[0].arm, CategoricalArm)
        count = max(2 * replications, 2000) if shares_only else max(replications // 10, 100)
        count = count // 20 * 20
        means, errors = averages(
            _quantiles(arm, n, count, rng) for arm, n in zip(arms, _NYSTROM_SIZES, strict=True)
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
    features = [GaussianArm(np.r_[gap, 0.0], np.ones(2)) for gap in (0.0, 1.0, 2.0)]
    arms = [FrechetArm(arm, 0.0, np.ones(2)) for arm in features]
    losses = np.array([arm.facts["distance"] for arm in arms])

    def index(k: int, rows: Float) -> tuple[float, float]:
        sample, bonus = _seen(statement, arms[k], rows)
        return float(sample["distance_plugin"][0]) - bonus, bonus

    return _play(bound, arms, losses, index, replications, rng, "3 Gaussian arms (d=2)")


def is_ucb(bonus: str, bound: Bound, replications: int, rng: Generator) -> Iterator[Check]:
    """Regret of IS-UCB, on arms far apart and on arms so near that a first batch misleads."""
    statement = catalog()[bonus]

    def index(k: int, rows: Float) -> tuple[float, float]:
        sample, top = _seen(statement, arms[k], rows)
        score = entropy_sum(sample["mean_posterior"]) - sample["mean_entropy"]
        return -top, top - float(score[0])

    cases = (((0.1, 0.5, 2.0), "3 Dirichlet arms"), ((0.5, 0.55, 0.6), "3 near Dirichlet arms"))
    for parameters, what in cases:
        arms = [DirichletArm(np.full(3, a)) for a in parameters]
        losses = -np.array([arm.facts["log_score"] for arm in arms])
        yield from _play(bound, arms, losses, index, replications, rng, what)


def _seen(statement: Bound, arm: SyntheticArm, rows: Float) -> tuple[dict[str, Float], float]:
    """Quantities of the rows of an arm, and the width of a statement there."""
    sample = arm.reduce([*statement.needs, "distance_plugin"], rows[None])
    quantities = dict(arm.facts) | sample | {"n": len(rows), "delta": _DELTA}
    return sample, float(statement.width(**quantities)[0])


def _play(
    bound: Bound,
    arms: Arms,
    losses: Float,
    index: Index,
    replications: int,
    rng: Generator,
    what: str,
) -> Iterator[Check]:
    """Compare regret with what its proof bounds it by, and its order with the one claimed.

    The first is all that a finite horizon contradicts. The event behind the proof fails in a run
    with probability 1e-3 at most; that it fails in more than `allowed` of them has probability
    below 1e-6. The exponent is that of the second half of the horizon on a log scale.
    """
    runs, options = _runs(replications, 250, 8, 20), {"steps": _HORIZON, "batch": _BATCH}
    played = [regret(arms, losses, index, **options, rng=rng) for _ in range(runs)]
    lost, spent = np.swapaxes(played, 0, 1)
    worst = float(losses.max() - losses.min())
    share = spent.mean(axis=0) / (worst * np.arange(1.0, _HORIZON + 1.0))
    # A bound above all that can be lost is never contradicted: nothing was tested.
    kind = "vacuous fit" if (share >= 1.0).all() else "fit"
    failed = int((lost > spent).any(axis=1).sum())
    allowed = int(stats.binom.isf(FALSE_ALARM, runs, _FAILURE))
    largest = float((lost / np.maximum(spent, 1e-300)).max())
    yield fit(
        f"regret ≤ 2 Σ bonus of the picks at every step up to T = {_HORIZON}, {what}",
        failed <= allowed,
        f"fails in {failed} of {runs} runs; the regret is at most {largest:.3g} times the bound",
        kind=kind,
    )
    times = np.unique(np.geomspace(math.sqrt(_HORIZON), _HORIZON, 12).astype(int)) - 1
    slopes = np.polyfit(np.log(times + 1.0), np.log(lost[:, times] + worst).T, 1)[0]
    mean, error = average(slopes)
    reach = float(stats.t.isf(FALSE_ALARM / 2.0, runs - 1)) * error
    claimed = bound.constants["exponent"]
    yield fit(
        f"regret up to T = {_HORIZON}, batch {_BATCH}, {what}: exponent {claimed:g}",
        mean - reach <= claimed,
        f"fitted exponent {mean:.3f} ± {reach:.3f} (T from {times[0] + 1}; no finite T "
        f"decides); the bound 2 Σ bonus is {share[-1]:.3g} times the largest regret possible at "
        f"the end, {share.min():.3g} times at least",
        kind=kind,
        decisive=False,  # no finite T contradicts an order at T → ∞
    )


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


# --- every study ---------------------------------------------------------------------------------

Study = Callable[[Bound, int, Generator], Iterable[Check]]

_STUDIES: Mapping[str, Study] = {
    "c20.fid-bias": fid_bias,
    "c20.fid-variance": fid_variance,
    "c20.is-bias": is_bias,
    "c20.rank-flip": rank_flip,
    "c20.fid-infinity": fid_infinity,
    "c20.fid-infinity-with-replacement": fid_infinity,
    "c20.spacing": spacing,
    "c20.sobol": sobol_variances,
    "c20.sobol-mean": sobol_means,
    "c20.sobol-rate": sobol_integrals,
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
