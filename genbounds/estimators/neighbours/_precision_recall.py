"""Precision, recall and their like together, with intervals, and against real data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from genbounds import validation
from genbounds._text import listed, percent, quoted
from genbounds.core.checks import leaked
from genbounds.core.estimate import Estimate
from genbounds.diagnostics import warn_of
from genbounds.estimators._metric_spec import MetricSpec, Prepared
from genbounds.estimators.neighbours import _scored
from genbounds.estimators.neighbours._clipped import clipped_scores
from genbounds.estimators.neighbours._reference import LARGEST_GROUP, NeighbourReference
from genbounds.estimators.neighbours._scored import NAMES, NeighbourScores, PrecisionRecall
from genbounds.results import Score, all_reliable
from genbounds.samples import Sample, features_of
from genbounds.validation import Float, InputError

MOST_TIES = 0.2
"""Share of balls with more than k real rows, up to which what real rows get is as good as known.
Rounded Gaussian rows, 400 of each in 8 dimensions, 12 runs: a perfect model's density relative to
real rows was 1.04 at 17 % of ties, 1.08 at 28 % and 1.56 at 77 %, with intervals of ± 0.12 to 0.16.
"""


def precision_recall(
    fake: Any,
    real: Any,
    *,
    k: int = 5,
    null: Any = "real",
    splits: int = 40,
    level: float = 0.95,
    seed: int = 0,
) -> PrecisionRecall:
    """Precision, recall, density and coverage with intervals, as published and against real data.

    Parameters
    ----------
    fake : array_like of shape (m, d) or Sample
        Generated features. Of more rows than the reference has, a random part is used.
    real : array_like of shape (n, d) or Sample
        Reference features. Both samples need 20 k rows.
    k : int
        Neighbours: 5 for density and coverage, 3 for precision and recall as first published. Only
        scores with equal k, n and m compare.
    null : "real", array_like of shape (at least m, d), Sample, or None
        Where the scores of real data come from. "real": the reference itself, each row (group of
        rows) against the rest, recall in a random m of its rows; those of density and coverage are
        known exactly. An array: a second real sample in place of the generated one. None: no
        ratios.
    splits : int
        Random halvings of both samples that the standard errors come from.
    level : float
        Coverage of each interval, in (0, 1).
    seed : int
        Of the halvings, and of rows left out.

    Returns
    -------
    PrecisionRecall
        The interval of a score that is always the same in both halves, or differs by more than
        15 % between halves and the whole, is not given (NaN), and the score is marked as
        unreliable.

    Raises
    ------
    InputError
        If a shape, a type or a value is not legal, rows are too few for `k` or have weights, there
        are more generated rows than real ones with groups or strata, or a group of real rows has
        more than 100 of them and `null` is "real".

    Notes
    -----
    With distances d_k to the k-th nearest other row of the same sample and closed balls
    B(x) = {z : ‖z - x‖ <= d_k(x)}: precision is the share of generated rows in a B(x), x real;
    recall that of real rows in a B(y), y generated; density the number of pairs with y in B(x) over
    k m; coverage the share of B(x) that hold a y; the F-score is 2 P R / (P + R) of precision and
    recall. Neighbours are exact; ties and copies count.

    The interval is for the mean score of samples of these sizes. The variance s² is the mean of
    (S_A - S_B)² / 4 over random halves A and B, which consist of whole groups and divide every
    stratum, more where shares of halves are nearer to 1. Density and ratios: value ± t · s, t of
    `splits` degrees of freedom; shares: Clopper and Pearson's limits [3]_. For single-precision
    features memory stays below 1 GiB beside them at n = m = 50,000
    (docs/explanation/precision_recall.md).

    References
    ----------
    .. [1] T. Kynkäänniemi et al., "Improved precision and recall metric for assessing generative
       models", NeurIPS 2019, §3.
    .. [2] M. F. Naeem et al., "Reliable fidelity and diversity metrics for generative models",
       ICML 2020, §3 and Lemma 2 (expected coverage).
    .. [3] E. Korn and B. Graubard, "Confidence intervals for proportions with small expected number
       of positive counts estimated from survey data", Survey Methodology 24, 1998.

    Examples
    --------
    >>> import numpy as np, genbounds as gb
    >>> rng = np.random.default_rng(0)
    >>> real, fake = rng.normal(size=(400, 8)), rng.normal(size=(400, 8))
    >>> found = gb.precision_recall(fake, real)
    >>> found.calibrated.recall.low < 1.0 < found.calibrated.recall.high
    True
    """
    level = validation.check_open_unit("level", level)
    reference = NeighbourReference(real, k=k, splits=splits, seed=seed)
    _check_null(null, reference)
    scored = reference.scored("fake", fake)
    return _read(scored, reference, null, level=level, samples={"fake": fake, "real": real})


def neighbour_estimates(reference: NeighbourReference, fake: Any) -> NeighbourScores[Estimate]:
    """Estimate the scores of `fake` as published; each knows the others.

    The `together` of each gives all of them, and their ratios to what the reference gets.
    """
    scored = reference.scored("fake", fake)
    null = "real" if reference.largest_group <= LARGEST_GROUP else None
    found = scored.estimates()
    others = {name: listed([other for other in NAMES[:4] if other != name]) for name in found}

    def together(level: float) -> PrecisionRecall:
        return _read(scored, reference, null, level=level, samples={})

    for name, one in found.items():
        alone = f"{name} says little alone: read it with {others[name]}"
        found[name] = replace(one, assumptions=(*one.assumptions, alone), together=together)
    return NeighbourScores(**found)


def _read(
    scored: _scored.Scored,
    reference: NeighbourReference,
    null: Any,
    *,
    level: float,
    samples: Mapping[str, Any],
) -> PrecisionRecall:
    """Turn what was counted into scores, and into ratios to those of the `null`, if any."""

    def scores(found: Mapping[str, Estimate]) -> dict[str, Score]:
        made = {name: one.made_from(**samples) for name, one in found.items()}
        return {n: replace(one, estimator="plugin").score(level) for n, one in made.items()}

    against = calibrated = None
    if null is not None:
        against = _null_of(null, reference, scored)
        ratios = scored.estimates(against)
        if isinstance(null, str):
            tied = warn_of("ties", tied=percent(reference.tied), k=reference.k)
            doubts = [warn_of("grouped-reference-rows")] * (reference.largest_group > 1)
            doubts += [tied] * (reference.tied > MOST_TIES)
            ratios |= {name: ratios[name].warned(*doubts) for name in ("density", "coverage")}
        calibrated = NeighbourScores(**scores(ratios))
    n, m = scored.rows
    return PrecisionRecall(
        **scores(scored.estimates()),
        calibrated=calibrated,
        null=None if against is None else NeighbourScores(*map(float, against[0])),
        drift=NeighbourScores(*map(float, scored.drift)),
        k=reference.k,
        n=n,
        m=m,
        level=level,
    )


def _check_null(null: Any, reference: NeighbourReference) -> None:
    """Refuse a null that cannot be had before anything is computed."""
    if not isinstance(null, str):
        return
    if null != "real":
        raise InputError(
            f"must be 'real', features of a second real sample, or None; got {quoted(null)}.",
            argument="null",
        )
    if reference.largest_group > LARGEST_GROUP:
        raise InputError(
            f"cannot be 'real' with a group of {reference.largest_group} real rows (at most "
            f"{LARGEST_GROUP}): pass a second real sample, or None.",
            argument="null",
        )


def _null_of(null: Any, reference: NeighbourReference, scored: _scored.Scored) -> Float:
    """Score real data of the sizes and in the halves of the scored sample."""
    m = scored.rows[1]
    if isinstance(null, str):  # of precision and recall measured, of the others known
        held, coverage = reference.null(m), _scored.expected_coverage(*scored.sizes, scored.k)
        known = _scored.with_f_score(*held.T, np.ones(len(held)), coverage)
        return np.column_stack([*known.values()])
    rows = validation.check_features("null", features_of(null))
    if len(rows) < m:
        raise InputError(
            f"has {len(rows)} rows; pass at least as many as are scored, {m}.", argument="null"
        )
    if len(rows) > m:
        chosen = validation.seeded(reference.seed, "null").choice(len(rows), m, replace=False)
        null = null[np.sort(chosen)] if isinstance(null, Sample) else rows[np.sort(chosen)]
    second = reference.scored("null", null)
    if not all_reliable(leaked(*second.seen[::-1])):
        raise InputError(
            "must be a second real sample: it has rows of `real`. Pass other real rows, or "
            "null='real'.",
            argument="null",
        )
    return second.values


SUMMARIES = {
    "precision": "share of generated rows in a neighbourhood of a real one",
    "recall": "share of real rows in a neighbourhood of a generated one",
    "density": "generated rows per neighbourhood of a real one, over k",
    "coverage": "share of neighbourhoods of real rows that hold a generated one",
    "f_score": "harmonic mean of precision and recall",
    "clipped-density": "share of generated rows in usual neighbourhoods of real ones, 1 = as real",
    "clipped-coverage": "share of good rows that would cover the real ones as well, 1 = as real",
}


def _clipped_estimates(reference: NeighbourReference, fake: Any) -> dict[str, Estimate]:
    return reference.scored("fake", fake, clipped_scores).estimates()


def _prepare(
    name: str, reference: Any, options: Mapping[str, Any], models: Sequence[Any]
) -> Prepared:
    prepared = NeighbourReference(reference, **options)
    estimates = neighbour_estimates if name in NAMES else _clipped_estimates

    def estimate(x: Any, *, estimator: str = "debiased") -> Estimate:
        validation.check_choice("estimator", estimator, ("debiased", "plugin"))
        return replace(estimates(prepared, x)[name], estimator=estimator)

    return Prepared(
        estimate=estimate, columns=prepared.d, minimum=prepared.minimum, sampled_reference=True
    )


METRICS = tuple(
    MetricSpec(
        name=name,
        title=_scored.TITLES[name],
        summary=summary,
        prepare=partial(_prepare, name),
        higher_is_better=True,
        options=("k", "splits", "seed"),
        aliases=() if name in NAMES else (name.replace("-", "_"),),
        fixed_size=True,
    )
    for name, summary in SUMMARIES.items()
)
