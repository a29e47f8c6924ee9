"""Two levels: a score from few images of an expensive model and many of a cheap partner.

Both start from the same noise for n draws; the partner alone makes N more. With S a debiased score,

    T = S_E(n) + b [S_C(N) - S_C(n)]

estimates the score of the expensive model, whatever that of the partner is: the bracket has mean
zero. What counts is the correlation of both scores' influences on the common rows.

    V(b) = var(u - b v)/n + b² var S_C(N) + V_ref,   best b = cov(u, v) / (var v (1 + n/N)),

with u, v those influences. The reference acts on T through ψ_E + b [ψ_C(N) - ψ_C(n)], so that its
variance stays whole. The choice of n and N for a budget is that of multifidelity Monte Carlo (B.
Peherstorfer, K. Willcox and M. Gunzburger, SIAM J. Sci. Comput. 38, 2016). docs/two-levels.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from genbounds._text import quoted
from genbounds.core.checks import row_ids
from genbounds.core.combined import Covariances, combined
from genbounds.core.crossed import with_seeds
from genbounds.core.estimate import SAME, Estimate
from genbounds.core.moments import as_rows
from genbounds.diagnostics import Diagnostic, warn_of
from genbounds.estimators._metric_spec import Prepared, metric_spec
from genbounds.origins import check_same_encoder, origin_of
from genbounds.results import Score
from genbounds.samples import Sample, features_of
from genbounds.validation import InputError, about_model, check_open_unit

CHANCE = 9.0
"""n r² below which a correlation of influences may be chance: three standard errors. How often this
and the limits below speak, rightly and wrongly: ``python -m experiments.accuracy.two_levels``."""

LEAST_LIKENESS = 5.0
"""Standard errors by which rows of the same noise are more alike than shuffled ones, at least."""

LEAST_ENTRIES = 400
"""Numbers in either sample below which nothing is said of that."""

OTHER_PARTNER = 3.0
"""Standard errors between the partner's scores of common and of further draws that are too many."""

LARGEST_BETA = 1e6

REPEATED = 0.01
"""Share of further draws that may repeat others: a few collapsed images."""

LEAST_GAIN = 1.2
"""Factor of the variance below which a partner is hardly worth its trouble."""

TINY = 1e-300

FEW_ROWS = 200
"""Common rows below which a fitted coefficient moves with the scores that it multiplies."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TwoLevel(Score):
    """A score of an expensive model that a cheap partner has sharpened.

    Attributes
    ----------
    value, low, high, level, stderr, n, estimator, method, warnings, assumptions, details
        As in `Score`.
    title, reference_n, encoder, higher_is_better
        As in `Score`.
    plain : Score
        From the images of the expensive model alone.
    beta : float
        Weight of the partner; 0 where the plain score is returned.
    correlation : float
        Of both scores' influences on the common rows.
    variance_left : float
        Variance due to the generated rows, relative to that of the plain score.
    reference_share : float
        Share of the reference in the variance that is left: more images do not reduce it.
    """

    plain: Score
    beta: float
    correlation: float
    variance_left: float
    reference_share: float


def two_level(
    expensive: Any,
    cheap: Any,
    cheap_more: Any,
    real: Any = None,
    *,
    metric: Any = "fd",
    beta: float | None = None,
    level: float = 0.95,
    options: Mapping[str, Any] | None = None,
) -> TwoLevel:
    """Score an expensive model by few of its images and many of a cheap partner's.

    The partner is the same model with fewer sampling steps, a distilled one, or an earlier
    checkpoint. It may be much worse: only its noise is used, not its score.

    Parameters
    ----------
    expensive : array_like of shape (n, d) or Sample
        Features (posteriors for "is", one column of values for "mean") of the expensive model.
    cheap : array_like of shape (n, d) or Sample
        Of the partner, row by row from the same noise (and prompts) as `expensive`.
    cheap_more : array_like of shape (N, d) or Sample
        Further draws of the same partner, from noise of their own.
    real : array_like of shape (m, d), Sample or Moments, optional
        The reference, where the metric needs one.
    metric : str, MetricSpec or CustomMetric
        Any score with an influence of every row.
    beta : float, optional
        Weight of the partner. By default the best one, fitted to these rows; give one that is known
        beforehand (1 for a partner as good as the model, or from a pilot) where rows are few.
    level : float
        Coverage of the interval, in (0, 1).
    options : mapping, optional
        Of the metric, as for `compare`.

    Returns
    -------
    TwoLevel
        The plain score if the partner explains no more than chance does.

    Raises
    ------
    InputError
        If `expensive` and `cheap` differ in rows, or the score has no influences.

    Notes
    -----
    A correlation of r leaves 1 - r² N/(N + n) of the variance due to the generated rows. Formulas,
    measured coverage and limits: docs/two-levels.md.

    Examples
    --------
    >>> import numpy as np, genbounds as gb
    >>> rng = np.random.default_rng(0)
    >>> noise = rng.normal(size=(2200, 8))
    >>> images, rough = noise[:200] + 0.3, 1.2 * noise[:200] + 0.5
    >>> real = gb.Moments(mean=np.zeros(8), cov=np.eye(8))
    >>> score = gb.two_level(images, rough, 1.2 * noise[200:] + 0.5, real)
    >>> score.variance_left < 0.3
    True
    """
    level = check_open_unit("level", level)
    given: object = beta  # callers are not type-checked
    if given is not None and not (isinstance(given, int | float) and abs(given) <= LARGEST_BETA):
        raise InputError(f"must be a number, or None; got {quoted(beta)}.", "beta")
    expensive, cheap = as_rows("expensive", expensive), as_rows("cheap", cheap)
    cheap_more = as_rows("cheap_more", cheap_more)
    spec = metric_spec(metric)
    reference = None if spec.reference == "none" else real
    prepared = spec.prepared(reference, options, [expensive, cheap, cheap_more])
    with about_model("expensive"):
        plain = prepared.estimate(expensive)
    plain = plain.made_from(expensive=expensive, real=real)
    found = sharpened(prepared, plain, expensive, cheap, cheap_more, beta=beta)
    assert found.together is not None
    score: TwoLevel = found.together(level)
    return score


def influence_correlation(
    prepared: Prepared, plain: Estimate, expensive: Any, cheap: Any
) -> tuple[float, tuple[Diagnostic, ...]]:
    """Correlation of both scores' influences on the same rows of a model and of its partner.

    Parameters
    ----------
    prepared : Prepared
        The metric.
    plain : Estimate
        Of the model.
    expensive, cheap : array_like of shape (n, d) or Sample
        The model's rows, and the partner's from the same noise.

    Returns
    -------
    tuple of float and tuple of Diagnostic
        With a warning of rows that are not alike.
    """
    expensive, cheap = as_rows("pilot", expensive), as_rows("partner", cheap)
    with about_model("partner"):
        common = prepared.estimate(cheap)
    _check_rows(plain, common)
    return Covariances.of([plain.sample, common.sample]).correlation, _unlike(expensive, cheap)


def with_partner(prepared: Prepared, plain: Estimate, expensive: Any, partner: Any) -> Estimate:
    """Sharpen an estimate by one sample of a partner that holds common and further rows.

    With groups on both sides the rows of common ones are the common rows, by their order within a
    group; else they are as many first rows as there are of the model.
    """
    expensive, partner = as_rows("model", expensive), as_rows("partner", partner)
    cheap, more = split_partner(expensive, partner)
    return sharpened(prepared, plain, expensive, cheap, more)


def split_partner(expensive: Any, partner: Any) -> tuple[Any, Any]:
    """Split a partner's sample into the rows that it has in common with the model, and the rest."""
    if not (np.ndim(features_of(expensive)) and np.ndim(features_of(partner))):
        raise InputError("must be an array of rows, and so must the model.", "partner")
    n, total = len(features_of(expensive)), len(features_of(partner))
    ids, theirs = (x.groups if isinstance(x, Sample) else None for x in (expensive, partner))
    if ids is None or theirs is None:
        if total <= n:
            raise InputError(
                f"must hold the {n} draws that it shares with the model first, and then further "
                f"ones; got {total} rows.",
                argument="partner",
            )
        return partner[:n], partner[n:]
    common = np.isin(theirs, ids)
    rows = np.flatnonzero(common)
    # The place of every row of the model: the same group, and the same turn within it.
    order, other = (np.argsort(each, kind="stable") for each in (ids, theirs[rows]))
    if rows.size != n or not np.array_equal(ids[order], theirs[rows][other]):
        raise InputError(
            f"must have every group of the model with as many rows; {rows.size} rows of the "
            f"partner are in the groups of {n}.",
            argument="partner",
        )
    if rows.size == total:
        raise InputError("has no draws beside the common ones.", "partner")
    place = np.empty(n, dtype=np.intp)
    place[order] = rows[other]
    return partner[place], partner[np.flatnonzero(~common)]


def sharpened(
    prepared: Prepared,
    plain: Estimate,
    expensive: Any,
    cheap: Any,
    cheap_more: Any,
    *,
    beta: float | None = None,
) -> Estimate:
    """Combine the scores of a model, of its partner on the same rows, and on further ones.

    Its `together` gives the `TwoLevel` of a level.
    """
    named, influence = plain.sample.units is not None, plain.sample.influence
    if not named and influence is not None and influence.size < len(features_of(expensive)):
        # Equal rows are one draw, and come in an order of their own: groups, of the partner too.
        _, groups = np.unique(features_of(expensive), axis=0, return_inverse=True)
        if len(features_of(cheap)) != groups.size:
            raise _other_rows(len(features_of(cheap)), groups.size)
        expensive, cheap = (
            Sample(features_of(x), groups=groups.ravel()) for x in (expensive, cheap)
        )
        plain = prepared.estimate(expensive, estimator=plain.estimator)
    common, more = (prepared.estimate(x, estimator=plain.estimator) for x in (cheap, cheap_more))
    _check_rows(plain, common)
    _check_drawn(expensive, cheap, cheap_more)
    _check_more(plain, common, more)
    both = Covariances.of([plain.sample, common.sample])
    units, raw = both.units, both.correlation
    of_gap = max(float(both.best[1, 1]) + more.sample.variance, TINY)
    gap = more.value - common.value
    warnings = [*_unlike(expensive, cheap), *_repeated(cheap, cheap_more)]
    rounding = SAME * max(abs(more.value), abs(common.value))
    if abs(gap) > max(OTHER_PARTNER * math.sqrt(of_gap), rounding):
        warnings.append(warn_of("other-partner", apart=abs(gap) / math.sqrt(of_gap)))
    if beta is None and raw**2 < CHANCE / units:
        warnings.append(warn_of("chance-correlation", correlation=raw, units=units))
        return _together(replace(plain, together=None).warned(*warnings), plain, 0.0, raw, 1.0)
    weight = float(both.best[0, 1]) / of_gap if beta is None else float(beta)
    own = combined([plain.sample, common.sample], [1.0, -weight])
    further = more.sample.scaled(weight)
    if beta is None:  # a coefficient that was fitted costs one degree of freedom
        own = replace(own, variance=own.variance * (units - 1.0) / (units - 2.0))
    if not named:
        own = replace(own, units=None)
    sample = with_seeds(own, further)  # further draws cross models as seeds do
    left = sample.variance / max(plain.sample.variance, TINY)
    if left * LEAST_GAIN > 1.0:
        warnings.append(warn_of("little-gain", left=left))
    elif beta is None and units < FEW_ROWS:
        warnings.append(warn_of("fitted-beta", units=units, enough=FEW_ROWS))
    warnings += [w.of("partner") for w in common.warnings if w.code == "heavy-tails"]
    references = [e.reference for e in (plain, more, common)]
    estimate = replace(
        plain,
        value=plain.value + weight * gap,
        sample=sample,
        reference=combined(references, [1.0, weight, -weight]),
        own_interval=None,
        combined=False,
        together=None,
        details=(*plain.details, f"two levels: {weight:.3g} times what further draws tell"),
    )
    return _together(estimate.warned(*warnings), plain, weight, raw, left)


def _together(
    estimate: Estimate, plain: Estimate, beta: float, correlation: float, left: float
) -> Estimate:
    """Let an estimate tell with its score what the partner did: fields as in `TwoLevel`."""

    def score(level: float) -> TwoLevel:
        found = estimate.score(level)
        return TwoLevel(
            **{each.name: getattr(found, each.name) for each in fields(Score)},
            plain=plain.score(level),
            beta=beta,
            correlation=correlation,
            variance_left=left,
            reference_share=estimate.reference.variance / max(estimate.variance, TINY),
        )

    return replace(estimate, together=score)


def _check_drawn(*samples: Any) -> None:
    """Refuse samples of which one has classes or weights and another has none."""
    check_same_encoder(
        {name: origin_of(x) for name, x in zip(("model", "partner", "more"), samples, strict=True)}
    )
    for name in ("strata", "weights"):
        if len({getattr(x, name, None) is None for x in samples}) > 1:
            raise InputError(
                f"must have {name} if one of model, partner and further draws has.",
                argument="cheap",
            )


def _check_more(plain: Estimate, common: Estimate, more: Estimate) -> None:
    """Refuse scores that are not of one statistic, and units that stand in several samples."""
    if len({e.statistic for e in (plain, common, more)}) > 1:
        raise InputError(
            f"is of another statistic at another number of rows ({plain.statistic}; "
            f"{more.statistic}): take one that has a limit, such as rke.",
            argument="metric",
        )
    if plain.shared_variance or common.shared_variance or more.shared_variance:
        raise InputError(
            "has groups of the reference: there is no error for a partner then. Give the reference "
            "groups of its own.",
            argument="expensive",
        )
    names, others = common.sample.units, more.sample.units
    if names is not None and others is not None and np.isin(others, names).any():
        raise InputError(
            "has groups of `cheap`: further draws need noise, and prompts, of their own.",
            argument="cheap_more",
        )


def _check_rows(plain: Estimate, common: Estimate) -> None:
    """Refuse samples whose rows do not belong together, and scores that are no sum over rows."""
    one, two = plain.sample, common.sample
    if plain.halves is not None or one.influence is None or two.influence is None:
        raise InputError(
            "must be one with an influence of every row (fd, kid, is, vendi, mean, …), and models "
            "given by their features: a partner works on these.",
            argument="metric",
        )
    if one.seeds is not None:
        raise InputError("has seeds that cross its groups: no partner is taken for it.")
    same = one.n == two.n and one.influence.size == two.influence.size
    if one.units is not None and two.units is not None:
        same = same and np.array_equal(one.units, two.units)
    if not same:
        if one.n == two.n:
            raise InputError(
                "must be grouped as the model is, row by row: one has groups, an order or rows "
                "that repeat, and the other has not. Give both the same `groups`.",
                argument="cheap",
            )
        raise _other_rows(two.n, one.n)


def _other_rows(given: int | None, wanted: int | None) -> InputError:
    return InputError(
        "must have the rows (and groups) of the model, from the same noise, in the same order; got "
        f"{given} rows for {wanted}. Further draws come after them.",
        argument="cheap",
    )


def _repeated(cheap: Any, cheap_more: Any) -> tuple[Diagnostic, ...]:
    """Warn of further draws that are common ones, or one another: the noise was started again."""
    common, more = (row_ids(features_of(x)) for x in (cheap, cheap_more))
    again = int(np.isin(more, common).sum()) + more.size - np.unique(more).size
    if again <= REPEATED * more.size or features_of(cheap).shape[1] < 2:
        return ()
    return (warn_of("noise-again", again=again, rows=more.size),)


def _unlike(expensive: Any, cheap: Any) -> tuple[Diagnostic, ...]:
    """Warn of rows that are no more alike than shuffled ones: another noise, or another order."""
    x, y = (np.asarray(features_of(each), dtype=np.float64) for each in (expensive, cheap))
    if x.shape != y.shape or x.size < LEAST_ENTRIES:
        return ()
    x, y = ((z - z.mean(axis=0)) / np.maximum(z.std(axis=0), 1e-12) for z in (x, y))
    n = len(x)
    shuffled = math.sqrt(float(((x.T @ x) * (y.T @ y)).sum()) / n)
    likeness = float((x * y).sum()) / max(shuffled, TINY)
    return () if likeness >= LEAST_LIKENESS else (warn_of("unpaired-noise", likeness=likeness),)
