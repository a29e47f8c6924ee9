"""Whether a mixture of models beats every single one: its weights, its score, its gain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from genbounds._tables import Line, Warned
from genbounds._text import interval, number, percent, shown
from genbounds.estimators import MetricSpec, metric_spec
from genbounds.mixtures._frechet import frechet_mixture
from genbounds.mixtures._kernel import FOLDS, crossed_means, judged_by_folds
from genbounds.origins import compared
from genbounds.results import Diagnostic, Score, hedged, titled
from genbounds.validation import InputError, calling, check_count, check_open_unit

MIXTURE_METRICS = ("fd", "kid", "cmmd", "kad", "energy", "rke")
"""Scores that are convex in the weights of a mixture; all but "fd" are quadratic in them."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Mixture(Warned):
    """The best mixture of several models, and by how much it beats the best of them.

    Attributes
    ----------
    weights : dict of str to float
        Share of every model; they add up to one.
    score : Score
        Of the mixture with these weights, with its interval.
    gain : float
        Estimate of how much better the mixture scores than the best single model.
    gain_low : float
        Lower confidence bound of that, one-sided at `level`, in units of the score; 0 or less: the
        mixture may be no better.
    best_single : str
        The single model with the best score.
    scores : dict of str to Score
        Of every single model, from the same rows, each with its own interval at `level`.
    metric : str
    level : float
    folds, seed : int
    warnings : tuple of Diagnostic
        Also those of `score`.
    assumptions : tuple of str
    """

    _json = "* certified reliable"

    _names, _number = "Model", "score.value"

    weights: dict[str, float]
    score: Score
    gain: float
    gain_low: float
    best_single: str
    scores: dict[str, Score]
    metric: str
    level: float
    folds: int
    seed: int
    warnings: tuple[Diagnostic, ...] = ()
    assumptions: tuple[str, ...] = ()

    @property
    def certified(self) -> bool:
        """Whether the mixture beats every single model: the bound is above 0, and reliable."""
        return self.gain_low > 0.0 and self.reliable

    def __str__(self) -> str:
        """Return one line for a log."""
        text = (
            f"{self.metric} of {in_words(self.weights)}: {number(self.score.value)} "
            f"{interval(self.score.low, self.score.high)}; {self.verdict}"
        )
        return hedged(text, self.warnings)

    @property
    def verdict(self) -> str:
        """Whether the mixture is better than the best single model, in words."""
        best = f"{shown(self.best_single)} ({number(self.scores[self.best_single].value)})"
        bound = f"at least {number(self.gain_low)} ({percent(self.level)})"
        if self.certified:
            return f"better than the best single model, {best}, by {bound}"
        if self.gain_low > 0.0:
            return f"better than {best} by {bound} if the warnings can be set aside: not certified"
        alone = ", which scores better alone" if self.gain < 0.0 else ""
        return f"not certified to be better than the best single model, {best}{alone}"

    def warned(self, *warnings: Diagnostic) -> Mixture:
        """Return the same with further warnings."""
        every = (*self.warnings, *(one for one in warnings if one not in self.warnings))
        return replace(self, score=replace(self.score, warnings=every), warnings=every)

    def _lines(self) -> list[Line]:
        rows = [("mixture", self.score, 1.0)]
        rows += [(x, self.scores[x], self.weights[x]) for x in largest_first(self.weights)]
        return [Line.of(name, score, weight=weight) for name, score, weight in rows]

    def _caption(self) -> str:
        title = titled(self.scores.values(), self.metric)
        return f"{title} of the mixture and of each model, {percent(self.level)} intervals"


def mixture(
    samples: Mapping[str, Any],
    reference: Any = None,
    *,
    metric: str = "kid",
    level: float = 0.95,
    folds: int | None = None,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
) -> Mixture:
    """Find the mixture of models with the best score, and a lower bound on what it gains.

    Each row of a mixture comes from model a with probability w_a. Mixing pays where models err
    differently, or where one lacks what another has.

    Parameters
    ----------
    samples : mapping of str to array_like of shape (n, d) or Sample
        Generated features of two models or more, as in `compare`. Sizes may differ.
    reference : array_like of shape (m, d) or Sample, optional
        Features of real data. For "rke" only a bandwidth is taken from it.
    metric : {"fd", "kid", "cmmd", "kad", "energy", "rke"}
    level : float
        Coverage of the intervals, and confidence of `gain_low`; in (0.5, 1).
    folds : int, optional
        Parts of the rows, 5 by default: weights are fitted to all parts but two, and judged between
        those two. Not for "fd": one half chooses the weights, the other judges, both ways round.
    seed : int
        Of the division into folds.
    options : mapping, optional
        As in `compare`; for "rke" a bandwidth.

    Returns
    -------
    Mixture

    Raises
    ------
    InputError
        As `compare`; if there are fewer than two models, a sample has fewer than four rows (or
        groups) per fold, or a stratum fewer than one.

    Notes
    -----
    The score of a mixture, Σ A_ab ⟨m_a, m_b⟩ with m_a the mean embeddings of models and reference,
    is estimated across pairs of folds, at weights fitted to the other folds. The Fréchet distance
    of each half is estimated at weights fitted to the other half. The weights reported are the
    means of these: by convexity their score is no worse than the mean of the scores, which is what
    is estimated. The bound of the gain is the least of one bound per model: only that
    of the best model can be too large, so there is no correction for their number. Time grows with
    the square of all rows together. Derivation and measured coverage: docs/explanation/mixtures.md.

    References
    ----------
    .. [1] V. Chernozhukov et al., "Double/debiased machine learning for treatment and structural
       parameters", Econometrics J. 21, 2018 (cross-fitting).
    .. [2] A. Gretton et al., "A kernel two-sample test", JMLR 13, 2012.

    Examples
    --------
    Each model knows one half of the data:

    >>> import numpy as np, genbounds as gb
    >>> rng = np.random.default_rng(0)
    >>> left, right = rng.normal(-1.0, size=(200, 2)), rng.normal(1.0, size=(200, 2))
    >>> real = rng.normal(size=(400, 2)) + rng.choice([-1.0, 1.0], size=(400, 1))
    >>> found = gb.mixture({"left": left, "right": right}, real)
    >>> found.certified, round(found.weights["left"], 1)
    (True, 0.5)
    """
    spec = metric_spec(metric)
    check_mixture(spec, level=level, folds=folds, seed=seed)
    given: object = samples  # callers are not type-checked
    if not (isinstance(given, Mapping) and len(given) > 1):
        raise InputError(
            "must map the names of at least two models to their features.", argument="samples"
        )
    models = {str(name): sample for name, sample in samples.items()}
    named = {f"model {name!r}": sample for name, sample in models.items()}
    origins = compared({"`reference`": reference} | named)
    chosen = spec.checked(reference, options)
    with calling("real", "reference"):
        if spec.name == "fd":
            judged = frechet_mixture(models, reference, seed=seed)
        else:
            how: dict[str, int] = {"folds": folds or FOLDS, "seed": seed}
            judged = judged_by_folds(spec, *crossed_means(spec, models, reference, chosen, **how))
    score = judged.mixed.warned(*judged.warnings, *origins).score(level)
    best = min(range(len(models)), key=lambda model: judged.gains[model].value)
    both_sides = 2.0 * level - 1.0  # one end of such an interval is the bound at `level`
    mean = judged.weights.mean(axis=0)
    return Mixture(
        weights=dict(zip(models, (mean / mean.sum()).tolist(), strict=True)),
        score=score,
        gain=judged.gains[best].value,
        gain_low=min(gain.interval(both_sides)[0] for gain in judged.gains),
        best_single=list(models)[best],
        scores={name: one.score(level) for name, one in zip(models, judged.alone, strict=True)},
        metric=spec.name,
        level=level,
        folds=judged.folds,
        seed=seed,
        warnings=score.warnings,
        assumptions=score.assumptions,
    )


def check_mixture(spec: MetricSpec, *, level: float, folds: int | None, seed: int) -> None:
    """Refuse a metric (`spec`), `level`, `folds` or `seed` that mixtures do not take."""
    check_metric(spec, "a mixture")
    if check_open_unit("level", level) <= 0.5:
        raise InputError(f"must be above 0.5 for a bound; got {level!r}.", argument="level")
    check_count("seed", seed, minimum=0)
    if folds is not None and spec.name == "fd":
        raise InputError("does not apply to 'fd', which halves the rows: leave it out.", "folds")
    if folds is not None:
        check_count("folds", folds, minimum=4)  # two to fit the weights, two to judge them


def check_metric(spec: MetricSpec, what: str) -> None:
    """Refuse a metric that `what` does not take."""
    if spec.name not in MIXTURE_METRICS:
        legal = ", ".join(MIXTURE_METRICS)
        raise InputError(f"must be one of {legal} for {what}; got {spec.name!r}.", "metric")


def largest_first(weights: Mapping[str, float]) -> list[str]:
    """Return the names of models, that with the largest share first."""
    return sorted(weights, key=lambda name: -weights[name])


def in_words(weights: Mapping[str, float]) -> str:
    """Return the shares of a mixture that a reader would see, the largest first."""
    return ", ".join(
        f"{percent(round(weights[name], 3))} {shown(name)}"
        for name in largest_first(weights)
        if weights[name] >= 0.0005
    )
