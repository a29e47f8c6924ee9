"""Several models against one reference: simultaneous intervals, and which models differ."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from genbounds._text import percent, quoted
from genbounds.core.checks import shared_rows
from genbounds.core.difference import EstimateDifference, difference, winner_interval
from genbounds.core.estimate import Estimate
from genbounds.estimators._metric_spec import MetricSpec, Prepared, metric_spec
from genbounds.estimators._two_level import with_partner
from genbounds.origins import check_same_encoder, origin_of, origin_warnings
from genbounds.results import Difference, Ranking, Score
from genbounds.validation import InputError, about_model, check_open_unit


def compare(
    fakes: Mapping[str, Any],
    real: Any = None,
    *,
    metric: Any = "fd",
    level: float = 0.95,
    options: Mapping[str, Any] | None = None,
    partners: Mapping[str, Any] | None = None,
) -> Ranking:
    """Rank models by one debiased score, with joint intervals on all pairwise differences.

    Parameters
    ----------
    fakes : mapping of str to array_like of shape (n, d), Sample or Moments
        Generated features (posteriors for "is", one column of values for "mean") of each model.
        Sample sizes may differ. A `Sample` says how its rows were drawn; equal group ids in two
        samples (of two models, or of a model and the reference) are the same prompt or latent,
        whose common noise cancels.
    real : array_like of shape (m, d) or Moments, optional
        The reference; prepared once (kernel distances need its features). Not used by "is" and
        "mean"; for "vendi" and "rke", where the bandwidth comes from if none is given (else from
        all models together).
    metric : str, MetricSpec, CustomMetric or callable
        A registered name ("fd", "kid", "is", "vendi", "rke", "cmmd", …), or a metric of your own.
    level : float
        Coverage of each score on its own and, jointly, of all the differences.
    options : mapping, optional
        For "vendi" and "rke": keyword arguments of `vendi_score` (kernel, bandwidth, order, …);
        for "kid": degree, gamma and offset of its kernel; for "cmmd" and "kad": bandwidth;
        for "mean": bounds.
    partners : mapping of str to array_like of shape (n + N, d) or Sample, optional
        For some models, draws of a cheap partner from the same noise, then further ones, as for
        `two_level`; with groups on both sides the rows in common are those of common groups.

    Returns
    -------
    Ranking
        Best model first. Differences are better minus worse; for "is", "vendi" and "rke"
        they are differences of logarithms.

    Raises
    ------
    InputError
        As the function of that score, naming the model; if the scores are of different
        statistics, which cannot be ranked; or if files that `files.read_features`
        (or `Moments.load`) read name different encoders, weights or preprocessing.

    Notes
    -----
    Joint coverage by Bonferroni with a Welch quantile for each pair: valid under any dependence
    between pairs, and at 12 models 3 % wider than Tukey's range. Reference error common to both
    models cancels in their difference.
    """
    spec = metric_spec(metric)
    estimates = estimate_all(fakes, real, metric=spec, options=options, partners=partners)
    ranking = rank(estimates, metric=spec.name, level=level)
    origins = origin_warnings(_origins(fakes, real))
    return replace(ranking, warnings=(*ranking.warnings, *origins))


def estimate_all(
    fakes: Mapping[str, Any],
    real: Any = None,
    *,
    metric: Any = "fd",
    options: Mapping[str, Any] | None = None,
    partners: Mapping[str, Any] | None = None,
) -> dict[str, Estimate]:
    """Estimate the score of every model against one reference that is prepared once.

    Parameters
    ----------
    fakes : mapping of str to array_like or Moments
    real : array_like or Moments, optional
        The reference, where the metric needs one.
    metric : str, MetricSpec, CustomMetric or callable
    options : mapping, optional
        Further arguments of the metric, such as the kernel of a Vendi score.
    partners : mapping of str to array_like or Sample, optional
        As for `compare`.

    Returns
    -------
    dict of str to Estimate
    """
    spec = metric_spec(metric)
    prepared = prepare_all(spec, fakes, real, options)
    return estimate_each(spec, prepared, fakes, partners=partners)


def prepare_all(
    spec: MetricSpec,
    fakes: Mapping[str, Any],
    real: Any = None,
    options: Mapping[str, Any] | None = None,
) -> Prepared:
    """Check the models as a whole; prepare what scores each of them alike.

    Parameters
    ----------
    spec : MetricSpec
    fakes : mapping of str to array_like or Moments
    real : array_like or Moments, optional
        The reference, where the metric needs one.
    options : mapping, optional
        Further arguments of the metric.

    Returns
    -------
    Prepared
    """
    given: object = fakes  # callers are not type-checked
    if not (isinstance(given, Mapping) and given):
        raise InputError("must map the name of at least one model to its features.", "fakes")
    check_same_encoder(_origins(fakes, real))
    reference = None if spec.reference == "none" else real
    return spec.prepared(reference, options, list(fakes.values()))


def estimate_each(
    spec: MetricSpec,
    prepared: Prepared,
    fakes: Mapping[str, Any],
    *,
    estimator: str = "debiased",
    partners: Mapping[str, Any] | None = None,
    done: Callable[[str, Estimate], None] | None = None,
) -> dict[str, Estimate]:
    """Estimate the score of every model.

    Parameters
    ----------
    spec : MetricSpec
    prepared : Prepared
    fakes : mapping of str to array_like or Moments
    estimator : str
    partners : mapping of str to array_like or Sample, optional
        As for `compare`.
    done : callable, optional
        Called with the name and the estimate of each model as it is done.

    Returns
    -------
    dict of str to Estimate
    """
    found = {}
    partners = {} if partners is None else partners
    if not isinstance(partners, Mapping):
        raise InputError("must map names of models to samples.", "partners")
    if strangers := [name for name in partners if name not in fakes]:
        raise InputError(
            f"must be of models that are scored; got {quoted(strangers[0])}.", "partners"
        )
    for name, fake in fakes.items():
        with about_model(str(name)):
            estimate = prepared.estimate(fake, estimator=estimator)
            if name in partners:
                estimate = with_partner(prepared, estimate, fake, partners[name])
        found[str(name)] = replace(estimate, encoder=origin_of(fake).get("encoder", ""))
        if done is not None:
            done(str(name), found[str(name)])
    common = None if spec.common_estimator is None else spec.common_estimator(found.values())
    if common is None:
        return found
    spec = replace(spec, common_estimator=None)
    return estimate_each(spec, prepared, fakes, estimator=common, partners=partners, done=done)


def _origins(fakes: Mapping[str, Any], real: Any) -> dict[str, Mapping[str, str]]:
    """Return what every sample knows of its encoder."""
    samples = {f"model {str(name)!r}": origin_of(fake) for name, fake in fakes.items()}
    return samples if real is None else {"`real`": origin_of(real)} | samples


def rank(
    estimates: Mapping[str, Estimate],
    *,
    metric: str,
    level: float = 0.95,
    gap: Callable[[str, str], EstimateDifference] | None = None,
) -> Ranking:
    """Turn estimates against one reference into a ranking.

    Parameters
    ----------
    estimates : mapping of str to Estimate
    metric : str
        Name of the metric, for the result.
    level : float
        Of all intervals together.
    gap : callable, optional
        From two names to the difference of their scores; by default that of their estimates.
    """
    level = check_open_unit("level", level)
    check_comparable(estimates)
    sign = -1.0 if all(e.higher_is_better for e in estimates.values()) else 1.0
    names = sorted(estimates, key=lambda name: (sign * estimates[name].value, name))
    pairs = list(combinations(names, 2))
    pair_level = 1.0 - (1.0 - level) / max(len(pairs), 1)
    gap = gap or (lambda a, b: difference(estimates[a], estimates[b]))
    differences, behind = [], []
    for better, worse in pairs:
        found = gap(better, worse)
        if better == names[0]:
            behind.append((estimates[worse], found))
        low, high = found.interval(pair_level)
        differences.append(
            Difference(
                better=better,
                worse=worse,
                value=found.value,
                low=low,
                high=high,
                stderr=found.stderr,
                pvalue=found.pvalue,
                pvalue_adjusted=min(1.0, found.pvalue * len(pairs)),
            )
        )
    separated = {frozenset((d.better, d.worse)) for d in differences if d.distinguishable}
    assumptions = [
        f"the intervals of all pairwise differences ({len(pairs)}) hold together with probability "
        f"{percent(level)} (Bonferroni)",
        "samples of the models with equal group ids share what they were drawn for"
        if any(e.sample.units is not None for e in estimates.values())
        else "the samples of the models are independent of one another",
    ]
    log_scale = any(estimate.log_scale for estimate in estimates.values())
    if log_scale:
        assumptions.append("differences are on the log scale")
    unknown = any(estimate.missing_rate for estimate in estimates.values())
    ids = {name: estimates[name].sample.row_ids for name in names}
    return Ranking(
        reference_rows_needed=_reference_rows(estimates, differences) if unknown else None,
        metric=metric,
        level=level,
        scores={name: estimates[name].score(level) for name in names},
        chosen=winner_score(estimates[names[0]], behind, level),
        differences=tuple(differences),
        groups=letter_groups(names, separated),
        log_scale=log_scale,
        warnings=shared_rows(ids),
        assumptions=tuple(assumptions),
    )


def _reference_rows(estimates: Mapping[str, Estimate], differences: list[Difference]) -> int:
    """Minimum number of reference rows, which is unknown, at which the differences still hold.

    The bias that m rows leave in a difference is the difference of both models' rates, over m.
    """
    needed = 2.0
    for pair in differences:
        if pair.distinguishable:
            rates = [estimates[name].missing_rate for name in (pair.better, pair.worse)]
            margin = min(abs(pair.low), abs(pair.high))
            needed = max(needed, abs(rates[0] - rates[1]) / margin)
    return math.ceil(needed)


def check_comparable(estimates: Mapping[str, Estimate]) -> None:
    """Refuse `estimates` of different statistics, by the name of each."""
    (first, one), *others = estimates.items()
    for name, other in others:
        if other.statistic != one.statistic:
            raise InputError(
                f"models {first!r} and {name!r} are scored by different statistics, which do not "
                f"compare: {one.statistic}; {other.statistic}. Score all models with equal "
                "numbers of rows where they differ, and with equal options."
            )


def letter_groups(
    names: list[str], separated: Iterable[frozenset[str]]
) -> tuple[tuple[str, ...], ...]:
    """Maximal sets of models with no separated pair: a compact letter display.

    Insert-and-absorb (H.-P. Piepho, J. Comput. Graph. Stat. 13, 2004).
    """
    groups = [frozenset(names)]
    for pair in separated:
        split = [group - {member} for group in groups if pair <= group for member in pair]
        whole = [group for group in groups if not pair <= group]
        groups = whole + [new for new in split if not any(new <= old for old in whole)]
        groups = [
            g
            for i, g in enumerate(groups)
            if not any(g < other or (g == other and j < i) for j, other in enumerate(groups))
        ]
    position = {name: i for i, name in enumerate(names)}
    ordered = [tuple(sorted(group, key=position.__getitem__)) for group in groups]
    return tuple(sorted(ordered, key=lambda group: [position[name] for name in group]))


def winner_score(
    best: Estimate,
    rivals: Sequence[tuple[Estimate, EstimateDifference]],
    level: float,
    *,
    of: str = "models",
) -> Score:
    """Score the best of several models, its interval corrected for having been chosen.

    Parameters
    ----------
    best : Estimate
    rivals : sequence of tuple
        Every other estimate, with the difference of the best one to it, in either order.
    level : float
    of : str
        What they are estimates of.

    Returns
    -------
    Score
        Either half of the interval is as much longer or shorter than its own as that of normal
        errors: quantiles of Student's t and curvature stay in it.
    """
    from scipy.special import ndtri

    plain = best.score(level)
    if not rivals or not best.stderr > 0.0:
        return plain
    apart = np.array([gap.stderr**2 for _, gap in rivals])
    covariances = (best.variance + np.array([one.variance for one, _ in rivals]) - apart) / 2.0
    gaps = np.array([abs(gap.value) for _, gap in rivals])
    value, low, high = winner_interval(gaps, covariances, best.variance, level)
    if best.higher_is_better:
        value, low, high = -value, -high, -low
    half = -float(ndtri((1.0 - level) / 2.0)) * best.stderr
    ends = best.interval(level)
    low, high = low * (best.value - ends[0]) / half, high * (ends[1] - best.value) / half
    corrected = best.value + low, best.value + high
    moved = replace(
        best,
        value=best.value + value,
        own_interval=lambda _: corrected,  # of this level
        details=(*best.details, f"corrected for the choice of the best of {len(rivals) + 1} {of}"),
    )
    return moved.score(level)
