"""Fitted rates: claims about orders of growth, judged by exponents with confidence intervals.

Every interval is at 1 − 1e-6 for the claim as a whole, by the normal law of the averages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from genbounds.bounds import Bound, catalog, entropy_sum, truncate
from genbounds.simulate._arms import SyntheticArm
from genbounds.simulate._bounded import CategoricalArm, CircleArm, SphereArm
from genbounds.simulate._frechet import FrechetArm
from genbounds.simulate._gaussian import GaussianArm
from genbounds.simulate._kernels import NystromArm
from genbounds.simulate._posteriors import DirichletArm
from genbounds.simulate._symbolic import Check
from genbounds.validation import Float, InputError

_FALSE_ALARM = 1e-6


def fit_rate(bound: Bound, replications: int, seeds: np.random.SeedSequence) -> tuple[Check, ...]:
    """Judge a claimed rate.

    Raises
    ------
    InputError
        If there is no study of the statement.
    """
    if bound.id not in _STUDIES:
        raise InputError(f"`{bound.id}` claims a rate that no study at hand fits.")
    return tuple(_STUDIES[bound.id](bound, replications, np.random.default_rng(seeds)))


def _z(count: int = 1) -> float:
    from scipy.special import ndtri

    return float(-ndtri(_FALSE_ALARM / (2.0 * count)))


def fit_power(sizes: Float, means: Float, errors: Float, *, count: int = 1) -> tuple[float, ...]:
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
    return slope, slope - _z(count) * spread, slope + _z(count) * spread


def _exponent(bound: Bound, what: str, fitted: tuple[float, ...]) -> Check:
    slope, low, high = fitted
    claimed = bound.constants["exponent"]
    return Check(
        kind="fit",
        claim=f"{what}: exponent {claimed:g}",
        holds=low <= claimed <= high,
        found=f"fitted exponent {slope:.3f}, interval [{low:.3f}, {high:.3f}]",
        decisive=True,
    )


def _averages(values: Float) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(values.size))


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
            _averages(_distances(arm, int(n), 2 * replications, rng) - arm.facts["distance"])
            for n in _SIZES
        ]
        means, errors = (np.array(part) for part in zip(*drawn, strict=True))
        checks.append(
            _exponent(bound, f"E FD_N − FD, {arm.name}", fit_power(_SIZES, means, errors, count=2))
        )
        leads.append((float(means[3] * _SIZES[3]), float(errors[3] * _SIZES[3])))
    (first, e1), (second, e2) = leads
    apart = abs(first - second) / math.hypot(e1, e2)
    checks.append(
        Check(
            kind="fit",
            claim="K depends on the generator",
            holds=apart > _z(),
            found=f"N (E FD_N − FD) at N = 128: {first:.3f} and {second:.3f}, "
            f"{apart:.1f} standard errors apart",
        )
    )
    return checks


def _fid_variance(bound: Bound, replications: int, rng: np.random.Generator) -> list[Check]:
    checks = []
    for arm in _two_generators():
        means, errors = [], []
        for n in _SIZES:
            values = _distances(arm, int(n), 2 * max(replications, 400), rng)
            parts = values[: values.size // 40 * 40].reshape(40, -1).var(axis=1, ddof=1)
            mean, error = _averages(parts)
            means.append(mean)
            errors.append(error)
        fitted = fit_power(_SIZES, np.array(means), np.array(errors), count=2)
        checks.append(_exponent(bound, f"Var FD_N, {arm.name}", fitted))
    return checks


def _is_bias(bound: Bound, replications: int, rng: np.random.Generator) -> list[Check]:
    arm = DirichletArm(np.full(5, 0.3))
    total = 1.5
    # Var p_j / p̄_j of a Dirichlet law: p̄(1−p̄)/(A+1)/p̄.
    lead = float(0.5 * 5 * (1.0 - 0.2) / (total + 1.0))
    sizes = np.array([8.0, 16.0, 32.0, 64.0])
    means, errors = [], []
    for n in sizes:
        count = 4 * replications
        drawn = arm.statistics(["mean_posterior", "mean_entropy"], int(n), count, rng)
        score = entropy_sum(drawn["mean_posterior"]) - drawn["mean_entropy"]
        mean, error = _averages(arm.facts["log_score"] - score)
        means.append(mean)
        errors.append(error)
    low = np.array(means) * sizes
    spread = np.array(errors) * sizes
    design = np.stack([np.ones(4), 1.0 / sizes], axis=1) / spread[:, None]
    solution, *_ = np.linalg.lstsq(design, low / spread, rcond=None)
    error = math.sqrt(float(np.linalg.inv(design.T @ design)[0, 0]))
    reach = _z(2) * error
    return [
        _exponent(
            bound,
            "log IS − E log IS_N",
            fit_power(sizes, np.array(means), np.array(errors), count=2),
        ),
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
        _averages(_distances(arm, n, max(replications // 2, 200), rng)) for arm in (wide, narrow)
    ]
    gap = drawn[0][0] - drawn[1][0]
    apart = gap / math.hypot(drawn[0][1], drawn[1][1])
    truth = [arm.facts["distance"] for arm in (wide, narrow)]
    return [
        Check(
            kind="fit",
            claim="N(0, 1.2 I) and N(0, 0.75 I) against N(0, I), d = 16, N = 30",
            holds=truth[0] < truth[1] and apart > _z(),
            found=f"FD {truth[0]:.4f} < {truth[1]:.4f}, but E FD_N {drawn[0][0]:.4f} > "
            f"{drawn[1][0]:.4f} ({apart:.0f} standard errors)",
            decisive=True,
        )
    ]


def _intercept_weights(sizes: Float) -> Float:
    """Weights of FD_N at `sizes` in the value at 0 of their regression on 1/N."""
    design = np.stack([np.ones_like(sizes), 1.0 / sizes], axis=1)
    return np.asarray(np.linalg.pinv(design)[0])


def _fid_infinity(bound: Bound, replications: int, rng: np.random.Generator) -> list[Check]:
    checks = []
    count = max(replications // 100, 20)
    for d, least, pool in ((8, 5000, 20_000), (64, 5000, 20_000), (64, 130, 520)):
        values = 1.0 / np.arange(1.0, d + 1.0)
        arm = FrechetArm(GaussianArm(0.0, values), 0.0, np.full(d, values.mean()))
        sizes = np.floor(np.linspace(least, pool, 15))
        weights = _intercept_weights(sizes)
        truth = arm.facts["distance"]
        parts = [_distances(arm, int(n), count, rng) for n in sizes]
        bias = float(sum(w * part.mean() for w, part in zip(weights, parts, strict=True))) - truth
        error = math.sqrt(
            sum(w * w * part.var(ddof=1) / count for w, part in zip(weights, parts, strict=True))
        )
        noise = float(parts[-1].std(ddof=1))
        plain = float(parts[-1].mean()) - truth
        reach = _z(3) * error
        visible = abs(bias) - reach > bound.constants["ratio"] * noise
        checks.append(
            Check(
                kind="fit",
                claim=f"bias left by FD∞ is below the spread of one FD_N: d = {d}, N from {least} "
                f"to {pool}" + ("" if least == 5000 else " (fewer than the protocol asks)"),
                holds=not visible,
                found=f"bias {bias:.4g} ± {reach:.2g}; plug-in at the pool: bias {plain:.4g}, "
                f"spread {noise:.3g}",
                decisive=least == 5000,
            )
        )
    return checks


def _spacing(bound: Bound, replications: int, rng: np.random.Generator) -> list[Check]:
    arm, pool, runs = _two_generators()[0], 4000, max(replications // 25, 40)
    grids = (
        np.floor(np.linspace(400, pool, 15)),
        np.floor(1.0 / np.linspace(1.0 / 400, 1.0 / pool, 15)),
    )
    squared = np.zeros((runs, 2))
    for run in range(runs):
        rows = arm.draw(pool, rng)
        for column, sizes in enumerate(grids):
            chosen = [rows[rng.choice(pool, int(n), replace=False)] for n in sizes]
            means = np.array([part.mean(axis=0) for part in chosen])
            covs = np.array([np.cov(part.T, bias=True) for part in chosen])
            found = arm.plugin_distance(means, covs)
            squared[run, column] = (found @ _intercept_weights(sizes) - arm.facts["distance"]) ** 2
    # Paired runs: the logarithm of the ratio by the delta method.
    mean = squared.mean(axis=0)
    influence = squared[:, 0] / mean[0] - squared[:, 1] / mean[1]
    error = float(influence.std(ddof=1)) / math.sqrt(runs)
    log = math.log(mean[0] / mean[1])
    low, high = math.exp(log - _z() * error), math.exp(log + _z() * error)
    return [
        Check(
            kind="fit",
            claim=f"mean squared error of FD∞, even in N over even in 1/N, {arm.name}, pool {pool}",
            holds=low <= bound.constants["ratio"],
            found=f"ratio {math.exp(log):.3f}, interval [{low:.3f}, {high:.3f}]",
            decisive=True,
        )
    ]


def _sobol(bound: Bound, replications: int, rng: np.random.Generator) -> list[Check]:
    from scipy.special import softmax
    from scipy.stats import f as f_law
    from scipy.stats import qmc

    runs, n, d = min(max(replications // 25, 40), 400), 512, 4
    reference = FrechetArm(GaussianArm(0.0, np.ones(d)), 0.0, np.ones(d))
    checks = []
    for latent in (2, 8, 32):
        weight = rng.standard_normal((latent, d)) / math.sqrt(latent)
        table: dict[str, list[tuple[float, float]]] = {"iid": [], "inverse": [], "Box–Muller": []}
        for _ in range(runs):
            for name, found in table.items():
                if name == "iid":
                    z = rng.standard_normal((n, latent))
                else:
                    engine = qmc.MultivariateNormalQMC(
                        np.zeros(latent), inv_transform=name == "inverse", rng=rng
                    )
                    z = engine.random(n)
                rows = np.tanh(1.5 * z @ weight)
                cov = np.cov(rows.T, bias=True)[None]
                posterior = softmax(3.0 * rows, axis=1)
                score = entropy_sum(posterior.mean(axis=0)) - entropy_sum(posterior).mean()
                distance = reference.plugin_distance(rows.mean(axis=0)[None], cov)[0]
                found.append((float(distance), float(score)))
        spread = {name: np.var(np.array(found), axis=0, ddof=1) for name, found in table.items()}
        reach = float(f_law.isf(_FALSE_ALARM / 24.0, runs - 1, runs - 1))
        for name in ("inverse", "Box–Muller"):
            for column, score_name in enumerate(("FD_N", "log IS_N")):
                share = float(spread[name][column] / spread["iid"][column])
                checks.append(
                    Check(
                        kind="fit",
                        claim=f"variance of {score_name}, Sobol ({name}) over iid, "
                        f"{latent} latent dimensions, N = {n}",
                        holds=share / reach <= bound.constants["ratio"],
                        found=f"ratio {share:.3f}, F interval [{share / reach:.3f}, "
                        f"{share * reach:.3f}], {runs} runs",
                        decisive=True,
                    )
                )
    return checks


def _nystrom(bound: Bound, replications: int, rng: np.random.Generator) -> list[Check]:
    """Quantile of the error at fixed t, with the t-truncation of both spectra.

    Asked is λ_r(K) ≤ τ and t ≥ r τ log n for some r; in the proof t ≥ C r log n. The last law
    meets the first with r = 102, where λ_r = 0, and any τ > 0; it does not meet the second.
    """
    unequal = CategoricalArm(np.r_[0.5, np.full(100, 0.005)], name="one class of 1/2 among 101")
    cases = (
        (NystromArm(SphereArm(3), 8), "rank 3: λ_4 = 0"),
        (NystromArm(CircleArm(1.0), 20), "infinite rank: λ_10 ≤ 0.1 at n ≤ 800"),
        (NystromArm(unequal, 2), "as printed only: λ_102 = 0 ≤ τ, t ≥ 102 τ log n for small τ"),
    )
    sizes = np.array([50.0, 100.0, 200.0, 400.0, 800.0])
    claimed = bound.constants["exponent"]
    checks = []
    for arm, why in cases:
        truth = truncate(arm.facts["kernel_spectrum"][None], min(arm.landmarks, arm.d))
        dear = not isinstance(arm.law, CategoricalArm)
        count = max(replications // 10, 100) if dear else max(2 * replications, 2000)
        count = count // 20 * 20
        means, errors = [], []
        for n in sizes:
            drawn = arm.statistics(["nystrom_spectrum"], int(n), count, rng)["nystrom_spectrum"]
            found = np.linalg.norm(truncate(drawn, min(arm.landmarks, arm.d)) - truth, axis=1)
            mean, error = _averages(np.quantile(found.reshape(20, -1), 0.9, axis=1))
            means.append(mean)
            # Class shares are multiples of 1/n: all batches may have the very same quantile.
            errors.append(max(error, 1e-3 * mean))
        fitted = fit_power(sizes, np.array(means), np.array(errors), count=len(cases))
        slope, low, high = fitted
        checks.append(
            Check(
                kind="fit",
                claim=f"error of Nyström that a tenth of the samples exceeds, {arm.name} ({why}): "
                f"exponent at most {claimed:g}",
                holds=low <= claimed,
                found=f"fitted exponent {slope:.3f}, interval [{low:.3f}, {high:.3f}]; the error "
                f"is {means[0]:.3f} at n = {sizes[0]:g}, {means[-1]:.3f} at n = {sizes[-1]:g}",
                decisive=True,
            )
        )
    return checks


def regret(
    arms: tuple[SyntheticArm, ...],
    losses: Float,
    index: Callable[[int, Float], tuple[float, float]],
    *,
    steps: int,
    batch: int,
    rng: np.random.Generator,
) -> tuple[Float, Float]:
    """Play an index policy.

    Parameters
    ----------
    arms : tuple of SyntheticArm
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


def _judge_regret(
    bound: Bound, runs: list[tuple[Float, Float]], worst: float, law: str
) -> list[Check]:
    """Exponent over the second half of the horizon on a log scale, and the theorem's own bound."""
    steps = runs[0][0].size
    times = np.unique(np.geomspace(math.sqrt(steps), steps, 12).astype(int)) - 1
    slopes = np.array(
        [np.polyfit(np.log(times + 1.0), np.log(lost[times] + worst), 1)[0] for lost, _ in runs]
    )
    mean, error = _averages(slopes)
    from scipy.stats import t as t_law

    reach = float(t_law.isf(_FALSE_ALARM / 2.0, len(runs) - 1)) * error
    bounded = np.mean([spent for _, spent in runs], axis=0)
    trivial = worst * np.arange(1.0, steps + 1.0)
    empty = bool((bounded >= trivial).all())
    claimed = bound.constants["exponent"]
    return [
        Check(
            kind="vacuous fit" if empty else "fit",
            claim=f"regret up to T = {steps}, batch 5, {law}: exponent {claimed:g}",
            # An order at T → ∞ is not contradicted by any finite T.
            holds=mean - reach <= claimed,
            found=f"fitted exponent {mean:.3f} ± {reach:.3f} (T from {times[0] + 1}); the bound "
            f"2 Σ bonus is {bounded[-1] / trivial[-1]:.3g} times the largest regret possible at "
            f"the end, {(bounded / trivial).min():.3g} times at least",
        )
    ]


_STEPS = 1000


def _fd_ucb(bound: Bound, replications: int, rng: np.random.Generator) -> list[Check]:
    statement = catalog()["o24.fd-bonus" if bound.id.startswith("o24") else "m25.fd-bonus"]
    arms = tuple(
        FrechetArm(GaussianArm(np.r_[gap, 0.0], np.ones(2)), 0.0, np.ones(2))
        for gap in (0.0, 1.0, 2.0)
    )
    losses = np.array([arm.facts["distance"] for arm in arms])

    def index(k: int, rows: Float) -> tuple[float, float]:
        arm, n = arms[k], len(rows)
        mean = rows.mean(axis=0)
        centred = rows - mean
        sample = {
            "n": n,
            "delta": 0.05 / _STEPS,
            "sample_mean_gap": float(np.linalg.norm(mean - arm.reference_mean)),
            "mean_error_norm": float(np.linalg.norm(mean - arm.facts["mean"])),
            "mean_deviation": float(np.sqrt(np.square(centred).sum(axis=1)).mean()),
        }
        bonus = float(statement.width(**(dict(arm.facts) | sample)))
        value = float(arm.plugin_distance(mean[None], (centred.T @ centred / n)[None])[0])
        return value - bonus, bonus

    runs = [
        regret(arms, losses, index, steps=_STEPS, batch=5, rng=rng)
        for _ in range(min(max(replications // 250, 8), 20))
    ]
    return _judge_regret(bound, runs, float(losses.max() - losses.min()), "3 Gaussian arms (d=2)")


def _is_ucb(bound: Bound, replications: int, rng: np.random.Generator) -> list[Check]:
    statement = catalog()["m25.is-bound"]
    arms = tuple(DirichletArm(np.full(3, a)) for a in (0.1, 0.5, 2.0))
    losses = -np.array([arm.facts["log_score"] for arm in arms])

    def index(k: int, rows: Float) -> tuple[float, float]:
        entropies = entropy_sum(rows)
        mean = rows.mean(axis=0)[None]
        top = float(
            statement.width(
                n=len(rows),
                delta=0.05 / _STEPS,
                d=3,
                mean_posterior=mean,
                posterior_variance=rows.var(axis=0, ddof=1)[None],
                mean_entropy=entropies.mean()[None],
                entropy_variance=entropies.var(ddof=1)[None],
            )[0]
        )
        return -top, top - float(entropy_sum(mean)[0] - entropies.mean())

    runs = [
        regret(arms, losses, index, steps=_STEPS, batch=5, rng=rng)
        for _ in range(min(max(replications // 250, 8), 20))
    ]
    return _judge_regret(bound, runs, float(losses.max() - losses.min()), "3 Dirichlet arms")


_STUDIES: Mapping[str, Callable[[Any, int, np.random.Generator], list[Check]]] = MappingProxyType(
    {
        "c20.fid-bias": _fid_bias,
        "c20.fid-variance": _fid_variance,
        "c20.is-bias": _is_bias,
        "c20.rank-flip": _rank_flip,
        "c20.fid-infinity": _fid_infinity,
        "c20.spacing": _spacing,
        "c20.sobol": _sobol,
        "v24.nystrom": _nystrom,
        "o24.fid-ucb-regret": _fd_ucb,
        "m25.fd-ucb-regret": _fd_ucb,
        "m25.is-ucb-regret": _is_ucb,
    }
)
