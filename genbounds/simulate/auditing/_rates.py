"""Studies of claimed rates: orders of growth, ratios of variances, regret."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import MappingProxyType

import numpy as np
from numpy.random import Generator, SeedSequence

from genbounds.bounds import Bound, entropy_sum
from genbounds.simulate.arms._frechet import FrechetArm
from genbounds.simulate.arms._gaussian import GaussianArm
from genbounds.simulate.arms._posteriors import DirichletArm
from genbounds.simulate.auditing._fits import averages, fit, fit_power, judge_exponent, normal_reach
from genbounds.simulate.auditing._infinity import fid_infinity, spacing
from genbounds.simulate.auditing._nystrom import nystrom, nystrom_product, nystrom_proof
from genbounds.simulate.auditing._regret import fd_ucb, is_ucb
from genbounds.simulate.auditing._results import Check
from genbounds.simulate.auditing._sobol import integrals, means, variances
from genbounds.validation import Float, InputError


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


def _distances(arm: FrechetArm, n: int, count: int, rng: Generator) -> Float:
    return arm.statistics(["distance_plugin"], n, count, rng)["distance_plugin"]


def _two_generators() -> tuple[FrechetArm, FrechetArm]:
    power = 1.0 / np.arange(1.0, 5.0)
    return (
        FrechetArm(GaussianArm(0.0, np.ones(4)), 0.0, np.full(4, 2.0), name="I against 2I (d=4)"),
        FrechetArm(GaussianArm(0.0, power), 0.0, power[::-1], name="1/j reversed (d=4)"),
    )


_SIZES = np.array([16.0, 32.0, 64.0, 128.0, 256.0, 512.0])


def _fid_bias(bound: Bound, replications: int, rng: Generator) -> Iterator[Check]:
    leads = []
    for arm in _two_generators():
        truth = arm.facts["distance"]
        biases = (_distances(arm, int(n), 2 * replications, rng) - truth for n in _SIZES)
        means, errors = averages(biases)
        fitted = fit_power(_SIZES, means, errors, count=2)
        yield judge_exponent(bound.constants["exponent"], f"E FD_N − FD, {arm.name}", fitted)
        leads.append((float(means[3] * _SIZES[3]), float(errors[3] * _SIZES[3])))
    (first, e1), (second, e2) = leads
    apart = abs(first - second) / math.hypot(e1, e2)
    # Without it a score that has no bias at all would pass: its exponent is anything.
    yield fit(
        "K depends on the generator",
        apart > normal_reach(),
        f"N (E FD_N − FD) at N = 128: {first:.3f} and {second:.3f}, {apart:.1f} standard errors "
        "apart",
    )


def _fid_variance(bound: Bound, replications: int, rng: Generator) -> Iterator[Check]:
    count = 2 * max(replications, 400) // 40 * 40
    for arm in _two_generators():
        drawn = (_distances(arm, int(n), 2 * max(replications, 400), rng) for n in _SIZES)
        # The variance of each of 40 batches: independent, and nearly normal in their average.
        variances = (values[:count].reshape(40, -1).var(axis=1, ddof=1) for values in drawn)
        fitted = fit_power(_SIZES, *averages(variances), count=2)
        yield judge_exponent(bound.constants["exponent"], f"Var FD_N, {arm.name}", fitted)


def _is_bias(bound: Bound, replications: int, rng: Generator) -> Iterator[Check]:
    arm, total = DirichletArm(np.full(5, 0.3)), 1.5
    # Var p_j / p̄_j of a Dirichlet distribution: p̄(1−p̄)/(A+1)/p̄.
    lead = bound.constants["lead"] * 5 * (1.0 - 0.2) / (total + 1.0)
    sizes = np.array([8.0, 16.0, 32.0, 64.0])

    def losses(n: int) -> Float:
        sample = arm.statistics(["mean_posterior", "mean_entropy"], n, 4 * replications, rng)
        score = entropy_sum(sample["mean_posterior"]) - sample["mean_entropy"]
        return np.asarray(arm.facts["log_score"] - score)

    means, errors = averages(losses(int(n)) for n in sizes)
    fitted = fit_power(sizes, means, errors, count=2)
    yield judge_exponent(bound.constants["exponent"], "log IS − E log IS_N", fitted)
    # N times the bias is the leading constant and a term in 1/N: weighted least squares.
    scaled, spread = means * sizes, errors * sizes
    design = np.stack([np.ones(4), 1.0 / sizes], axis=1) / spread[:, None]
    solution, *_ = np.linalg.lstsq(design, scaled / spread, rcond=None)
    reach = normal_reach(2) * math.sqrt(float(np.linalg.inv(design.T @ design)[0, 0]))
    yield fit(
        f"N (log IS − E log IS_N) tends to ½ Σ Var(p_j)/p_j = {lead:.4f}",
        abs(float(solution[0]) - lead) <= reach,
        f"{solution[0]:.4f} ± {reach:.4f}",
    )


def _rank_flip(bound: Bound, replications: int, rng: Generator) -> Iterator[Check]:
    # The reference is N(0, I). A wide generator is closer, a narrow one has less bias.
    wide = FrechetArm(GaussianArm(0.0, np.full(16, 1.2)), 0.0, np.ones(16))
    narrow = FrechetArm(GaussianArm(0.0, np.full(16, 0.75)), 0.0, np.ones(16))
    count, arms = max(replications // 2, 200), (wide, narrow)
    (first, second), errors = averages(_distances(arm, 30, count, rng) for arm in arms)
    apart = (first - second) / math.hypot(*errors)
    truth = [arm.facts["distance"] for arm in arms]
    yield fit(
        "N(0, 1.2 I) and N(0, 0.75 I) against N(0, I), d = 16, N = 30",
        truth[0] < truth[1] and apart > normal_reach(),
        f"FD {truth[0]:.4f} < {truth[1]:.4f}, but E FD_N {first:.4f} > {second:.4f} "
        f"({apart:.0f} standard errors)",
    )


Study = Callable[[Bound, int, Generator], Iterable[Check]]

_STUDIES: Mapping[str, Study] = MappingProxyType(
    {
        "c20.fid-bias": _fid_bias,
        "c20.fid-variance": _fid_variance,
        "c20.is-bias": _is_bias,
        "c20.rank-flip": _rank_flip,
        "c20.fid-infinity": fid_infinity,
        "c20.fid-infinity-with-replacement": fid_infinity,
        "c20.spacing": spacing,
        "c20.sobol": variances,
        "c20.sobol-mean": means,
        "c20.sobol-rate": integrals,
        "v24.nystrom": nystrom,
        "v24.nystrom-product": nystrom_product,
        "v24.nystrom-proof": nystrom_proof,
        "o24.fid-ucb-regret": partial(fd_ucb, "o24.fd-bonus"),
        "m25.fd-ucb-regret": partial(fd_ucb, "m25.fd-bonus"),
        "o24.is-ucb-regret": partial(is_ucb, "o24.is-bound"),
        "m25.is-ucb-regret": partial(is_ucb, "m25.is-bound"),
    }
)
