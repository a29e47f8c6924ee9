"""Training recipes, each known by several training runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import combinations
from typing import Any

import numpy as np

from genbounds import estimators
from genbounds._random_effects import paule_mandel
from genbounds._tables import AsJson, Line
from genbounds._text import count, number, percent
from genbounds.decisions._estimates import estimated
from genbounds.estimators import Estimate, EstimateDifference, SampleError
from genbounds.origins import compared
from genbounds.results import Ranking
from genbounds.validation import Float, InputError

LEAST_SEEDS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedNoise(AsJson):
    """What the noise of one recipe is made of; standard deviations of the score of one run.

    Attributes
    ----------
    seeds : int
        Training runs.
    between : float
        Between training runs, beyond the noise of their samples.
    within : float
        Of one run's samples, without what all runs have in common.
    common : float
        Of what all runs have in common: the reference, prompts. It does not average out; in a
        difference of two recipes most of it cancels.
    seed_share : float
        Share of `between` in the variance of one run (`between` and `within`).
    """

    seeds: int
    between: float
    within: float
    common: float
    seed_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeRanking(Ranking):
    """A `Ranking` of training recipes whose intervals hold over training seeds.

    Attributes
    ----------
    metric, level, scores, differences, groups, log_scale, warnings, assumptions
        As in `Ranking`.
    reference_rows_needed, chosen
        As in `Ranking`.
    noise : dict of str to SeedNoise
        Of every recipe, in the order of `scores`. On the log scale where `log_scale`.
    """

    noise: dict[str, SeedNoise]

    @property
    def advice(self) -> str:
        """Whether more training runs or more samples would narrow the intervals."""
        seeds = np.mean([noise.seed_share for noise in self.noise.values()])
        what = (
            "more training runs narrow the intervals, more samples hardly do"
            if seeds > 0.5
            else "more samples per run narrow the intervals as well"
        )
        return f"Seeds make up {percent(round(float(seeds), 2))} of the variance of a run: {what}."

    def _lines(self) -> list[Line]:
        lines = []
        for line, noise in zip(Ranking._lines(self), self.noise.values(), strict=True):
            spread = {"sd of seeds": noise.between, "sd of samples": noise.within}
            lines.append(replace(line, more={"seeds": noise.seeds, **line.more, **spread}))
        return lines

    def __repr__(self) -> str:
        return f"{Ranking.__repr__(self)}\n  {self.advice}"


def compare_recipes(
    recipes: Mapping[str, Sequence[Any]],
    reference: Any = None,
    *,
    metric: Any = "fd",
    level: float = 0.95,
    options: Mapping[str, Any] | None = None,
) -> RecipeRanking:
    """Rank training recipes, with intervals that hold over training seeds.

    Two runs of one recipe differ by more than the noise of their samples. An interval from one run
    each says which *model* is better, not which recipe.

    Parameters
    ----------
    recipes : mapping of str to sequence of array_like, Sample or Moments
        For each recipe a sample of every training run, at least two; five are better.
    reference : array_like of shape (m, d), Sample or Moments, optional
        Real data, as in `compare`.
    metric : str, MetricSpec, CustomMetric or callable
    level : float
        Coverage of each score on its own and, jointly, of all the differences.
    options : mapping, optional
        Further arguments of the metric, as in `compare`.

    Returns
    -------
    RecipeRanking
        Best recipe first; `noise` says what is due to seeds and what to samples.

    Raises
    ------
    InputError
        If a recipe has one training run only; or as `compare`.

    Notes
    -----
    Of each recipe the runs are pooled with Paule–Mandel weights; the variance of their mean is
    Hartung and Knapp's, with one degree of freedom less than runs. Noise that runs have in common
    (the reference, units of `Sample.groups` with equal ids) is in no such spread: it is kept out of
    the variances within, and what of it a difference does not cancel is added once. The difference
    of two recipes has Welch's degrees of freedom; in the interval of one recipe both half-widths
    are added in squares.

    Examples
    --------
    >>> import numpy as np, genbounds as gb
    >>> rng = np.random.default_rng(0)
    >>> def run(scale):  # one training run: its seed moves the model
    ...     return (scale + 0.05 * rng.normal()) * rng.normal(size=(1000, 4))
    >>> recipes = {"base": [run(1.6) for _ in range(5)], "new": [run(1.2) for _ in range(5)]}
    >>> found = gb.compare_recipes(recipes, gb.Moments(np.zeros(4), np.eye(4)))
    >>> found.best, found.contenders, found.noise["base"].seed_share > 0.5
    ('new', ('new',), True)
    """
    runs = _named_runs(recipes)
    samples = {run: x for of_recipe in runs.values() for run, x in of_recipe.items()}
    spec = estimators.metric_spec(metric)
    _, by_run = estimated(spec, samples, reference, options)
    estimators.check_comparable(by_run)
    estimates = {name: [by_run[run] for run in of_recipe] for name, of_recipe in runs.items()}
    ranking = rank_recipes(estimates, metric=spec.name, level=level)
    rows = {name: estimate.sample.row_ids for name, estimate in by_run.items()}
    origins = compared({**samples, "`reference`": reference})
    return replace(ranking, warnings=(*ranking.warnings, *estimators.shared_rows(rows), *origins))


def rank_recipes(
    estimates: Mapping[str, Sequence[Estimate]], *, metric: str, level: float = 0.95
) -> RecipeRanking:
    """Turn the estimates of all runs into a ranking of recipes, as `compare_recipes` does.

    Parameters
    ----------
    estimates : mapping of str to sequence of Estimate
        Of the runs of each recipe, at least two.
    metric : str
        Its name, for the result.
    level : float

    Returns
    -------
    RecipeRanking
    """
    every = list(estimates.values())
    within, common = _within_and_common(every)
    pools = [
        pooled(np.array([run.value for run in runs]), own)
        for runs, own in zip(every, within, strict=True)
    ]
    noise = {
        name: SeedNoise(
            seeds=own.size,
            between=math.sqrt(pool.between),
            within=math.sqrt(own.mean()),
            common=math.sqrt(common[k, k]),
            seed_share=pool.between / (pool.between + float(own.mean())) if pool.between else 0.0,
        )
        for k, (name, own, pool) in enumerate(zip(estimates, within, pools, strict=True))
    }
    means = {
        name: _mean(runs, pool, noise[name])
        for (name, runs), pool in zip(estimates.items(), pools, strict=True)
    }

    def gap(one: str, two: str) -> EstimateDifference:
        """Return the difference of two recipes; noise that they have in common does not count."""
        i, j = list(estimates).index(one), list(estimates).index(two)
        rest = max(0.0, float(common[i, i] + common[j, j] - 2.0 * common[i, j]))
        parts = [(pools[k].variance, pools[k].degrees_of_freedom) for k in (i, j)]
        return EstimateDifference(
            value=pools[i].mean - pools[j].mean,
            stderr=math.sqrt(sum(variance for variance, _ in parts) + rest),
            degrees_of_freedom=estimators.welch_degrees_of_freedom(*parts, (rest, math.inf)),
        )

    ranking = estimators.rank(means, metric=metric, level=level, gap=gap)
    assumptions = (
        ranking.assumptions[0],
        "the training runs of a recipe differ by their seeds only, and are independent",
        "scores of runs vary about normally from seed to seed",
        *ranking.assumptions[2:],
    )
    ranked = {field.name: getattr(ranking, field.name) for field in fields(ranking)}
    ranked |= {"assumptions": assumptions, "noise": {name: noise[name] for name in ranking.scores}}
    return RecipeRanking(**ranked)


def _within_and_common(recipes: Sequence[Sequence[Estimate]]) -> tuple[list[Float], Float]:
    """Divide the errors of all runs into those of one and what two runs have in common.

    Parameters
    ----------
    recipes : sequence of sequence of Estimate
        The runs of each of k recipes.

    Returns
    -------
    within : list of ndarray
        For each recipe: the variance of every run without what all its runs have in common.
    common : ndarray of shape (k, k)
        Covariance of a run of one recipe and another run of the same, or of another, recipe.
    """
    covariance = _covariance([run for runs in recipes for run in runs])
    counts = np.array([len(runs) for runs in recipes])
    starts = np.cumsum(counts) - counts
    variances = np.diag(covariance)
    sums = np.add.reduceat(np.add.reduceat(covariance, starts, axis=0), starts, axis=1)
    same = np.diag(sums) - np.add.reduceat(variances, starts)
    common: Float = sums / np.outer(counts, counts)
    np.fill_diagonal(common, np.maximum(same / (counts * (counts - 1.0)), 0.0))
    within = np.maximum(variances - np.repeat(np.diag(common), counts), 0.0)
    return np.split(within, starts[1:]), common


def _mean(runs: Sequence[Estimate], pool: Pooled, noise: SeedNoise) -> Estimate:
    """Return the score of a recipe as an estimate."""
    first, common = runs[0], noise.common**2
    sizes = [run.n for run in runs if run.n is not None]

    def interval(level: float) -> tuple[float, float]:
        half = half_width(level, pool.variance, pool.degrees_of_freedom, common)
        return pool.mean - half, pool.mean + half

    return replace(
        first,
        value=pool.mean,
        sample=SampleError(
            n=sum(sizes) if len(sizes) == len(runs) else None,
            variance=pool.variance,
            degrees_of_freedom=pool.degrees_of_freedom,
        ),
        reference=SampleError(n=first.reference.n, variance=common),
        shared_variance=0.0,
        own_interval=interval,
        warnings=tuple(dict.fromkeys(warning for run in runs for warning in run.warnings)),
        assumptions=(
            "the training runs are independent draws of the recipe's seeds",
            *first.assumptions,
        ),
        details=(
            *first.details,
            f"mean of {count(len(runs), 'training run')}; standard deviation between seeds "
            f"{number(noise.between)}, of the samples of a run {number(noise.within)} "
            "(Paule–Mandel, Hartung–Knapp)",
        ),
    )


def _covariance(estimates: Sequence[Estimate]) -> Float:
    """Covariance of the errors of several estimates, from those of all their differences."""
    variances = np.array([estimate.variance for estimate in estimates])
    out: Float = np.diag(variances)
    for i, j in combinations(range(len(estimates)), 2):
        apart = estimators.difference(estimates[i], estimates[j]).stderr ** 2
        out[i, j] = out[j, i] = (variances[i] + variances[j] - apart) / 2.0
    return out


def _named_runs(recipes: Mapping[str, Sequence[Any]]) -> dict[str, dict[str, Any]]:
    """Return the samples of each recipe by run; refuse what is no mapping to several each."""
    given: object = recipes  # callers are not type-checked
    if not (isinstance(given, Mapping) and given):
        raise InputError(
            "must map the name of every recipe to the samples of its training runs.",
            argument="recipes",
        )
    runs: dict[str, dict[str, Any]] = {}
    for name, samples in recipes.items():
        if not isinstance(samples, (list, tuple)):
            wanted = f"must map {str(name)!r} to a list with one sample per training run"
            raise InputError(f"{wanted}; got {type(samples).__name__}.", argument="recipes")
        if len(samples) < LEAST_SEEDS:
            raise InputError(
                f"has {count(len(samples), 'training run')} of {str(name)!r}: nothing shows how "
                "seeds vary. Train at least 2 (5 are better), or use `compare` to compare the "
                "models themselves.",
                argument="recipes",
            )
        runs[str(name)] = {f"{name}, run {run}": x for run, x in enumerate(samples, 1)}
    return runs


@dataclass(frozen=True, slots=True)
class Pooled:
    """A mean of values by Paule–Mandel weights.

    Attributes
    ----------
    mean : float
    variance : float
        Of the mean, after Hartung and Knapp: from how the values spread.
    degrees_of_freedom : float
        One less than there are values.
    between : float
        Variance between the values that their own errors do not explain.
    """

    mean: float
    variance: float
    degrees_of_freedom: float
    between: float


def pooled(values: Float, within: Float) -> Pooled:
    """Pool values with known variances `within` and one unknown variance between them.

    Paule & Mandel, J. Res. NBS 87, 1982; Hartung & Knapp, Stat. Med. 20, 2001 (their variance as
    it stands, also where the values spread less than their errors say).
    """
    between, degrees = paule_mandel(values, within), values.size - 1.0
    total = within + between
    weights = 1.0 / total if (total > 0.0).all() else np.ones(values.size)
    weights = weights / weights.sum()
    mean = float(weights @ values)
    return Pooled(mean, float(weights @ (values - mean) ** 2) / degrees, degrees, between)


def half_width(level: float, variance: float, degrees_of_freedom: float, known: float) -> float:
    """Return half the interval of one mean with an estimated and a `known` variance.

    Both half-widths are added in squares. Welch's degrees of freedom of the sum would be too many
    whenever the estimated variance is small by chance: with two of its own, intervals then cover
    92 to 94 %. (Differences of two such means keep Welch's: theirs err on the safe side as it is.)
    """
    estimated = estimators.student_quantile(level, degrees_of_freedom) * math.sqrt(variance)
    return math.hypot(estimated, estimators.student_quantile(level) * math.sqrt(known))
