"""Studies of scrambled Sobol points: variances and means of scores (C20 Table 1), integrals.

The generators are random networks, whose latents are driven by one sampler or another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from types import MappingProxyType

import numpy as np
from numpy.random import Generator
from scipy import special, stats

from genbounds.bounds import Bound, entropy_sum
from genbounds.simulate.arms._frechet import FrechetArm
from genbounds.simulate.arms._gaussian import GaussianArm
from genbounds.simulate.auditing._fits import average, averages, fit, fit_power
from genbounds.simulate.auditing._results import FALSE_ALARM, Check
from genbounds.validation import Float

_SAMPLERS = ("iid", "inverse", "Box–Muller")  # the last two scramble Sobol points
_SOBOL_SIZE = 512
_FEW = 64
_LATENTS = (2, 8, 32)
_SCORES = ("FD_N", "log IS_N")


def variances(bound: Bound, replications: int, rng: Generator) -> Iterator[Check]:
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


def means(bound: Bound, replications: int, rng: Generator) -> Iterator[Check]:
    """Compare the means of FD_N (lower is better) and log IS_N (higher is better) by sampler."""
    # Fewer points leave more of the bias, which goes with 1/N, beside the spread, with 1/√N.
    runs, better = min(max(replications // 10, 200), 1000), list[bool]()
    # 24: twelve differences, two sides.
    reach = float(stats.t.isf(FALSE_ALARM / 24.0, runs - 1)) / math.sqrt(runs)
    for latent, scores in _networks(runs, _FEW, rng):
        mean, spread = scores.mean(axis=0), np.var(scores, axis=0, ddof=1)
        gains = (mean[1:] - mean[0]) * (-1.0, 1.0)  # by sampler and score
        errors = reach * np.sqrt(spread[1:] + spread[0])
        of_scores = product(_SCORES, _SAMPLERS[1:])
        for (score, sampler), gain, error in zip(
            of_scores, gains.T.ravel(), errors.T.ravel(), strict=True
        ):
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
    reference = FrechetArm(GaussianArm(0.0, np.ones(d)), 0.0, np.ones(d))
    cov = np.cov(rows.T, bias=True)[None]
    posterior = special.softmax(3.0 * rows, axis=1)
    score = entropy_sum(posterior.mean(axis=0)) - entropy_sum(posterior).mean()
    return float(reference.plugin_distance(rows.mean(axis=0)[None], cov)[0]), float(score)


_FUNCTIONS: Mapping[str, tuple[int, Callable[[Float], Float], float]] = MappingProxyType(
    {
        "a step, d = 1": (1, lambda x: (x[:, 0] < 0.37).astype(float), 0.37),
        "a box, d = 2": (
            2,
            lambda x: ((x[:, 0] < 0.37) & (x[:, 1] < 0.71)).astype(float),
            0.37 * 0.71,
        ),
        "exp(−x−y), d = 2": (2, lambda x: np.exp(-x.sum(axis=1)), (1.0 - math.exp(-1.0)) ** 2),
    }
)
_INTEGRAL_SIZES = 2 ** np.arange(8, 17, 2)


def integrals(bound: Bound, replications: int, rng: Generator) -> Iterator[Check]:
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
