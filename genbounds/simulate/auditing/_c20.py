"""Studies of what C20 claims: bias and variance of scores, FID∞, scrambled Sobol points."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import product

import numpy as np
from numpy.random import Generator
from scipy import special, stats

from genbounds.bounds import Bound, entropy_sum
from genbounds.simulate.arms._bounded import DirichletArm
from genbounds.simulate.arms._covariance import GaussianArm
from genbounds.simulate.arms._frechet import FrechetArm
from genbounds.simulate.auditing import _results as fits
from genbounds.simulate.auditing._results import FALSE_ALARM, Check, fit
from genbounds.validation import Float


def _isotropic(d: int, scale: float, reference: float, name: str | None = None) -> FrechetArm:
    """N(0, scale I) against N(0, reference I)."""
    return FrechetArm(GaussianArm(0.0, np.full(d, scale)), 0.0, np.full(d, reference), name=name)


_WIDER = _isotropic(4, 1.0, 2.0, "I against 2I (d=4)")
_REVERSED = FrechetArm(
    GaussianArm(0.0, 1.0 / np.arange(1.0, 5.0)),
    0.0,
    1.0 / np.arange(4.0, 0.0, -1.0),
    name="1/j reversed (d=4)",
)

# --- bias and variance of plug-in scores ----------------------------------------------------------

_SIZES = np.array([16.0, 32.0, 64.0, 128.0, 256.0, 512.0])


def _distances(arm: FrechetArm, n: int, count: int, rng: Generator) -> Float:
    return arm.statistics(["distance_plugin"], n, count, rng)["distance_plugin"]


def fid_bias(bound: Bound, replications: int, rng: Generator) -> Iterator[Check]:
    """Fit the order of the bias of FD_N, and compare its constants for two generators."""
    leads = []
    for arm in (_WIDER, _REVERSED):
        truth = arm.facts["distance"]
        biases = (_distances(arm, int(n), 2 * replications, rng) - truth for n in _SIZES)
        means, errors = fits.averages(biases)
        yield _exponent(bound, f"E FD_N − FD, {arm.name}", _SIZES, means, errors)
        leads.append((float(means[3] * _SIZES[3]), float(errors[3] * _SIZES[3])))
    (first, e1), (second, e2) = leads
    apart = abs(first - second) / math.hypot(e1, e2)
    # Without it a score that has no bias at all would pass: its exponent is anything.
    yield fit(
        "K depends on the generator",
        apart > fits.normal_reach(),
        f"N (E FD_N − FD) at N = 128: {first:.3f} and {second:.3f}, {apart:.1f} standard errors "
        "apart",
    )


def fid_variance(bound: Bound, replications: int, rng: Generator) -> Iterator[Check]:
    """Fit the order of the variance of FD_N."""
    count = 2 * max(replications, 400)
    used = count // 40 * 40
    for arm in (_WIDER, _REVERSED):
        drawn = (_distances(arm, int(n), count, rng) for n in _SIZES)
        # The variance of each of 40 batches: independent, and nearly normal in their average.
        batches = (values[:used].reshape(40, -1).var(axis=1, ddof=1) for values in drawn)
        yield _exponent(bound, f"Var FD_N, {arm.name}", _SIZES, *fits.averages(batches))


def _exponent(bound: Bound, what: str, sizes: Float, means: Float, errors: Float) -> Check:
    """Compare the claimed exponent with the limits of the fitted one, one of two."""
    claimed = bound.constants["exponent"]
    slope, low, high = fits.fit_power(sizes, means, errors, count=2)
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

    means, errors = fits.averages(losses(int(n)) for n in sizes)
    yield _exponent(bound, "log IS − E log IS_N", sizes, means, errors)
    # N times the bias is the leading constant and a term in 1/N.
    weights = 1.0 / (errors * sizes)
    (_, found), cov = np.polyfit(1.0 / sizes, means * sizes, 1, w=weights, cov="unscaled")
    reach = fits.normal_reach(2) * math.sqrt(float(cov[1, 1]))
    yield fit(
        f"N (log IS − E log IS_N) tends to ½ Σ Var(p_j)/p_j = {lead:.4f}",
        abs(float(found) - lead) <= reach,
        f"{found:.4f} ± {reach:.4f}",
    )


def rank_flip(bound: Bound, replications: int, rng: Generator) -> Iterator[Check]:
    """Compare a wide generator, which is closer, with a narrow one, which has less bias."""
    arms = _isotropic(16, 1.2, 1.0), _isotropic(16, 0.75, 1.0)
    count = max(replications // 2, 200)
    (first, second), errors = fits.averages(_distances(arm, 30, count, rng) for arm in arms)
    apart = (first - second) / math.hypot(*errors)
    truth = [arm.facts["distance"] for arm in arms]
    yield fit(
        "N(0, 1.2 I) and N(0, 0.75 I) against N(0, I), d = 16, N = 30",
        truth[0] < truth[1] and apart > fits.normal_reach(),
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
    runs = min(max(replications // 100, 12), 40)
    equal = _isotropic(32, 1.0, 1.0, "I against I (d=32)")
    wider = _isotropic(64, 1.0, 1.1, "I against 1.1 I (d=64)")
    for arm, least, pool in (
        (equal, _PROTOCOL, 20_000),
        (wider, _PROTOCOL, 20_000),
        (wider, 130, 520),
    ):
        yield bias_left(bound, arm, least, pool, runs, rng)


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
        low, high = (math.exp(log + side * fits.normal_reach(2) * error) for side in (-1.0, 1.0))
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
    runs, allowed, lowered = _runs(replications), bound.constants["ratio"], list[bool]()
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
    runs, better = min(max(replications // 10, 200), 1000), list[bool]()
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


def _runs(replications: int) -> int:
    return min(max(replications // 25, 40), 400)


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
    runs, exponent = _runs(replications), bound.constants["exponent"]
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
        middle, spread = fits.averages((np.abs(errors) / claimed).T)
        # Points that are not scrambled have the very same error every time.
        spread = np.maximum(spread, 1e-3 * middle)
        slope, low, high = fits.fit_power(sizes, middle, spread, count=2 * len(_FUNCTIONS))
        yield fit(
            f"mean error of the integral of {name} over N^{exponent:g} (log N)^{d} does not grow "
            "with N",
            low <= 0.0,
            f"it grows as N^{slope:.3f}, interval [{low:.3f}, {high:.3f}], N from {sizes[0]:g} "
            f"to {sizes[-1]:g}, {runs} scramblings",
        )
        mean, error = fits.average(errors[:, 0])
        width = reach * error + 1e-12
        yield fit(
            f"scrambling leaves the expectation of the integral of {name} as it is",
            abs(mean) <= width,
            f"mean error {mean:.2g} ± {width:.2g} at N = {sizes[0]:g}",
        )


def _points(d: int, n: int, rng: Generator) -> Float:
    """Scrambled Sobol points in the unit cube."""
    return np.asarray(stats.qmc.Sobol(d, scramble=True, rng=rng).random(n))
