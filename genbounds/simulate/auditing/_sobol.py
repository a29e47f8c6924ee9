"""Studies of scrambled Sobol points: variances and means of scores (C20 Table 1), integrals.

The generators are random networks, whose latents are driven by one sampler or another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

import numpy as np

from genbounds.bounds import Bound, entropy_sum
from genbounds.simulate.arms import FrechetArm, GaussianArm
from genbounds.simulate.auditing._fits import average, fit_power
from genbounds.simulate.auditing._results import FALSE_ALARM, Check
from genbounds.validation import Float

_SAMPLERS = ("iid", "inverse", "Box–Muller")  # the last two scramble Sobol points
_SOBOL_SIZE = 512
_FEW = 64
_LATENTS = (2, 8, 32)
_SCORES = ("FD_N", "log IS_N")


def variances(bound: Bound, replications: int, rng: np.random.Generator) -> list[Check]:
    """Compare the variances of FD_N and log IS_N by sampler of the latents."""
    from scipy.stats import f as f_distribution

    runs = _runs(replications)
    # 24: twelve ratios, two sides.
    reach = float(f_distribution.isf(FALSE_ALARM / 24.0, runs - 1, runs - 1))
    checks, shown = [], list[bool]()
    for latent, scores in _networks(runs, _SOBOL_SIZE, rng):
        iid, *sobol = np.var(scores, axis=0, ddof=1)  # by sampler and score
        for sampler, spread in zip(_SAMPLERS[1:], sobol, strict=True):
            for score, share in zip(_SCORES, spread / iid, strict=True):
                checks.append(
                    Check(
                        kind="fit",
                        claim=f"variance of {score}, Sobol ({sampler}) over iid, "
                        f"{latent} latent dimensions, N = {_SOBOL_SIZE}",
                        holds=bool(share / reach <= bound.constants["ratio"]),
                        found=f"ratio {share:.3f}, F interval [{share / reach:.3f}, "
                        f"{share * reach:.3f}], {runs} runs",
                        decisive=True,
                    )
                )
                shown.append(bool(share * reach < bound.constants["ratio"]))
    # No ratio above one is no gain yet: points that are as good as iid ones would pass, too.
    checks.append(
        Check(
            kind="fit",
            claim="both kinds of Sobol points lower the variance of both scores at 2 latent "
            "dimensions",
            holds=all(shown[:4]),
            found=f"whole F interval below {bound.constants['ratio']:g} for {sum(shown[:4])} of "
            f"the 4 ratios there, for {sum(shown)} of all {len(shown)}",
            decisive=True,
        )
    )
    return checks


def means(bound: Bound, replications: int, rng: np.random.Generator) -> list[Check]:
    """Compare the means of FD_N (lower is better) and log IS_N (higher is better) by sampler."""
    from scipy.stats import t as t_distribution

    # Fewer points leave more of the bias, which goes with 1/N, beside the spread, with 1/√N.
    runs = min(max(replications // 10, 200), 1000)
    # 24: twelve differences, two sides.
    reach = float(t_distribution.isf(FALSE_ALARM / 24.0, runs - 1)) / math.sqrt(runs)
    checks, shown = [], list[bool]()
    for latent, scores in _networks(runs, _FEW, rng):
        mean, spread = scores.mean(axis=0), np.var(scores, axis=0, ddof=1)
        for column, (score, better) in enumerate(zip(_SCORES, (-1.0, 1.0), strict=True)):
            for row, sampler in enumerate(_SAMPLERS[1:], 1):
                gain = better * float(mean[row, column] - mean[0, column])
                error = reach * math.sqrt(float(spread[row, column] + spread[0, column]))
                checks.append(
                    Check(
                        kind="fit",
                        claim=f"mean of {score}, Sobol ({sampler}) no worse than iid, "
                        f"{latent} latent dimensions, N = {_FEW}",
                        holds=gain + error >= 0.0,
                        found=f"better by {gain:.3g}, interval [{gain - error:.3g}, "
                        f"{gain + error:.3g}], {runs} runs",
                        decisive=True,
                    )
                )
                shown.append(gain - error > 0.0)
    checks.append(
        Check(
            kind="fit",
            claim="both kinds of Sobol points give a better mean of FD_N at 2 latent dimensions",
            holds=all(shown[:2]),
            found=f"whole interval above 0 for {sum(shown[:2])} of the 2 differences there, for "
            f"{sum(shown)} of all {len(shown)}",
            decisive=True,
        )
    )
    return checks


def _runs(replications: int) -> int:
    return min(max(replications // 25, 40), 400)


def _networks(runs: int, n: int, rng: np.random.Generator) -> Iterator[tuple[int, Float]]:
    """For random networks of growing latents: scores of n points by run, sampler and kind."""
    for latent in _LATENTS:
        weight = rng.standard_normal((latent, 4)) / math.sqrt(latent)
        found = [[_scores(weight, sampler, n, rng) for sampler in _SAMPLERS] for _ in range(runs)]
        yield latent, np.array(found)


def _scores(weight: Float, sampler: str, n: int, rng: np.random.Generator) -> tuple[float, float]:
    """FD_N against N(0, I) and log IS_N of tanh features of latents from one sampler."""
    from scipy.special import softmax
    from scipy.stats import qmc

    latent, d = weight.shape
    if sampler == "iid":
        z = rng.standard_normal((n, latent))
    else:
        engine = qmc.MultivariateNormalQMC(
            np.zeros(latent), inv_transform=sampler == "inverse", rng=rng
        )
        z = engine.random(n)
    rows = np.tanh(1.5 * z @ weight)
    reference = FrechetArm(GaussianArm(0.0, np.ones(d)), 0.0, np.ones(d))
    cov = np.cov(rows.T, bias=True)[None]
    posterior = softmax(3.0 * rows, axis=1)
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


def integrals(bound: Bound, replications: int, rng: np.random.Generator) -> list[Check]:
    """Fit the error of integrals over N^exponent (log N)^d, for functions of bounded variation."""
    from scipy.stats import t as t_distribution

    runs = _runs(replications)
    checks = []
    for name, (d, function, truth) in _FUNCTIONS.items():
        errors = np.array(
            [
                [float(function(_points(d, int(n), rng)).mean()) - truth for n in _INTEGRAL_SIZES]
                for _ in range(runs)
            ]
        )
        sizes = _INTEGRAL_SIZES.astype(float)
        claimed = sizes ** bound.constants["exponent"] * np.log(sizes) ** d
        drawn = [average(column) for column in (np.abs(errors) / claimed).T]
        middle, spread = (np.array(part) for part in zip(*drawn, strict=True))
        # Points that are not scrambled have the very same error every time.
        spread = np.maximum(spread, 1e-3 * middle)
        slope, low, high = fit_power(sizes, middle, spread, count=2 * len(_FUNCTIONS))
        checks.append(
            Check(
                kind="fit",
                claim=f"mean error of the integral of {name} over N^"
                f"{bound.constants['exponent']:g} (log N)^{d} does not grow with N",
                holds=low <= 0.0,
                found=f"it grows as N^{slope:.3f}, interval [{low:.3f}, {high:.3f}], N from "
                f"{sizes[0]:g} to {sizes[-1]:g}, {runs} scramblings",
                decisive=True,
            )
        )
        first = errors[:, 0]
        reach = float(t_distribution.isf(FALSE_ALARM / (4.0 * len(_FUNCTIONS)), runs - 1))
        width = reach * float(first.std(ddof=1)) / math.sqrt(runs) + 1e-12
        checks.append(
            Check(
                kind="fit",
                claim=f"scrambling leaves the expectation of the integral of {name} as it is",
                holds=abs(float(first.mean())) <= width,
                found=f"mean error {first.mean():.2g} ± {width:.2g} at N = {sizes[0]:g}",
                decisive=True,
            )
        )
    return checks


def _points(d: int, n: int, rng: np.random.Generator) -> Float:
    """Scrambled Sobol points in the unit cube."""
    from scipy.stats import qmc

    return np.asarray(qmc.Sobol(d, scramble=True, rng=rng).random(n))
