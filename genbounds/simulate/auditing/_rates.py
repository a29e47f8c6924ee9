"""Studies of claimed rates: orders of growth, ratios of variances, regret."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from genbounds.bounds import Bound, entropy_sum
from genbounds.simulate.arms import DirichletArm, FrechetArm, GaussianArm
from genbounds.simulate.auditing._fits import average, fit_power, judge_exponent, normal_reach
from genbounds.simulate.auditing._infinity import fid_infinity, spacing
from genbounds.simulate.auditing._nystrom import nystrom, nystrom_product, nystrom_proof
from genbounds.simulate.auditing._regret import fd_ucb, is_ucb
from genbounds.simulate.auditing._results import Check
from genbounds.simulate.auditing._sobol import integrals, means, variances
from genbounds.validation import Float, InputError


def fit_rate(bound: Bound, replications: int, seeds: np.random.SeedSequence) -> tuple[Check, ...]:
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


def _distances(arm: FrechetArm, n: int, count: int, rng: np.random.Generator) -> Float:
    return arm.statistics(["distance_plugin"], n, count, rng)["distance_plugin"]


def _two_generators() -> tuple[FrechetArm, FrechetArm]:
    power = 1.0 / np.arange(1.0, 5.0)
    return (
        FrechetArm(GaussianArm(0.0, np.ones(4)), 0.0, np.full(4, 2.0), name="I against 2I (d=4)"),
        FrechetArm(GaussianArm(0.0, power), 0.0, power[::-1], name="1/j reversed (d=4)"),
    )


_SIZES = np.array([16.0, 32.0, 64.0, 128.0, 256.0, 512.0])


def _fid_bias(bound: Bound, replications: int, rng: np.random.Generator) -> list[Check]:
    checks, leads = [], []
    for arm in _two_generators():
        drawn = [
            average(_distances(arm, int(n), 2 * replications, rng) - arm.facts["distance"])
            for n in _SIZES
        ]
        means, errors = (np.array(part) for part in zip(*drawn, strict=True))
        fitted = fit_power(_SIZES, means, errors, count=2)
        what = f"E FD_N − FD, {arm.name}"
        checks.append(judge_exponent(bound.constants["exponent"], what, fitted))
        leads.append((float(means[3] * _SIZES[3]), float(errors[3] * _SIZES[3])))
    (first, e1), (second, e2) = leads
    apart = abs(first - second) / math.hypot(e1, e2)
    checks.append(
        Check(
            kind="fit",
            claim="K depends on the generator",
            holds=apart > normal_reach(),
            found=f"N (E FD_N − FD) at N = 128: {first:.3f} and {second:.3f}, "
            f"{apart:.1f} standard errors apart",
            # Without it a score that has no bias at all would pass: its exponent is anything.
            decisive=True,
        )
    )
    return checks


def _fid_variance(bound: Bound, replications: int, rng: np.random.Generator) -> list[Check]:
    checks = []
    for arm in _two_generators():
        means, errors = [], []
        for n in _SIZES:
            values = _distances(arm, int(n), 2 * max(replications, 400), rng)
            # The variance of each of 40 batches: independent, and nearly normal in their average.
            batches = values[: values.size // 40 * 40].reshape(40, -1)
            mean, error = average(batches.var(axis=1, ddof=1))
            means.append(mean)
            errors.append(error)
        fitted = fit_power(_SIZES, np.array(means), np.array(errors), count=2)
        what = f"Var FD_N, {arm.name}"
        checks.append(judge_exponent(bound.constants["exponent"], what, fitted))
    return checks


def _is_bias(bound: Bound, replications: int, rng: np.random.Generator) -> list[Check]:
    arm = DirichletArm(np.full(5, 0.3))
    total = 1.5
    # Var p_j / p̄_j of a Dirichlet distribution: p̄(1−p̄)/(A+1)/p̄.
    lead = bound.constants["lead"] * 5 * (1.0 - 0.2) / (total + 1.0)
    sizes = np.array([8.0, 16.0, 32.0, 64.0])
    drawn = []
    for n in sizes:
        found = arm.statistics(["mean_posterior", "mean_entropy"], int(n), 4 * replications, rng)
        score = entropy_sum(found["mean_posterior"]) - found["mean_entropy"]
        drawn.append(average(arm.facts["log_score"] - score))
    means, errors = (np.array(part) for part in zip(*drawn, strict=True))
    # N times the bias is the leading constant and a term in 1/N: weighted least squares.
    low, spread = means * sizes, errors * sizes
    design = np.stack([np.ones(4), 1.0 / sizes], axis=1) / spread[:, None]
    solution, *_ = np.linalg.lstsq(design, low / spread, rcond=None)
    error = math.sqrt(float(np.linalg.inv(design.T @ design)[0, 0]))
    reach = normal_reach(2) * error
    fitted = fit_power(sizes, means, errors, count=2)
    return [
        judge_exponent(bound.constants["exponent"], "log IS − E log IS_N", fitted),
        Check(
            kind="fit",
            claim=f"N (log IS − E log IS_N) tends to ½ Σ Var(p_j)/p_j = {lead:.4f}",
            holds=abs(float(solution[0]) - lead) <= reach,
            found=f"{solution[0]:.4f} ± {reach:.4f}",
            decisive=True,
        ),
    ]


def _rank_flip(bound: Bound, replications: int, rng: np.random.Generator) -> list[Check]:
    # The reference is N(0, I). A wide generator is closer, a narrow one has less bias.
    wide = FrechetArm(GaussianArm(0.0, np.full(16, 1.2)), 0.0, np.ones(16))
    narrow = FrechetArm(GaussianArm(0.0, np.full(16, 0.75)), 0.0, np.ones(16))
    n = 30
    drawn = [
        average(_distances(arm, n, max(replications // 2, 200), rng)) for arm in (wide, narrow)
    ]
    gap = drawn[0][0] - drawn[1][0]
    apart = gap / math.hypot(drawn[0][1], drawn[1][1])
    truth = [arm.facts["distance"] for arm in (wide, narrow)]
    return [
        Check(
            kind="fit",
            claim="N(0, 1.2 I) and N(0, 0.75 I) against N(0, I), d = 16, N = 30",
            holds=truth[0] < truth[1] and apart > normal_reach(),
            found=f"FD {truth[0]:.4f} < {truth[1]:.4f}, but E FD_N {drawn[0][0]:.4f} > "
            f"{drawn[1][0]:.4f} ({apart:.0f} standard errors)",
            decisive=True,
        )
    ]


Study = Callable[[Bound, int, np.random.Generator], list[Check]]

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
        "o24.fid-ucb-regret": fd_ucb,
        "m25.fd-ucb-regret": fd_ucb,
        "o24.is-ucb-regret": is_ucb,
        "m25.is-ucb-regret": is_ucb,
    }
)
