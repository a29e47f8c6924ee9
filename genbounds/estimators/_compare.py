"""Several models against one reference: simultaneous intervals and indistinguishable groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any

from genbounds.estimators._expansion import Expansion, difference, times_unit
from genbounds.estimators._inception import inception_expansion
from genbounds.estimators.frechet import FrechetReference
from genbounds.estimators.kernels import KernelReference
from genbounds.estimators.vendi import vendi_metric
from genbounds.origins import check_same_encoder, origin_notes, origin_of
from genbounds.results import Difference, Ranking
from genbounds.validation import InputError, check_choice, check_open_unit

VENDI_METRICS = ("vendi", "rke")
METRICS = ("fd", "kid", "is", "vendi", "rke")


def compare(
    fakes: Mapping[str, Any],
    real: Any = None,
    *,
    metric: str = "fd",
    level: float = 0.95,
    paired: bool = False,
    options: Mapping[str, Any] | None = None,
) -> Ranking:
    """Rank models by one debiased score, with joint intervals on all pairwise differences.

    Parameters
    ----------
    fakes : mapping of str to array_like of shape (n, d) or Moments
        Generated features (posteriors for "is") of each model. Sample sizes may differ.
    real : array_like of shape (m, d) or Moments, optional
        The reference; prepared once ("kid" needs its features). Not used by "is"; for "vendi" and
        "rke", where the bandwidth comes from if none is given (else from all models together).
    metric : {"fd", "kid", "is", "vendi", "rke"}
    level : float
        Coverage of each score on its own and, jointly, of all the differences.
    paired : bool
        Whether row i of every model came from the same latent or prompt, so that their common
        noise cancels. All models then need equally many rows.
    options : mapping, optional
        For "vendi" and "rke": keyword arguments of `vendi_score` (kernel, bandwidth, order, …);
        for "kid": degree, gamma and offset of its kernel.

    Returns
    -------
    Ranking
        Best model first. Differences are better minus worse; for "is", "vendi" and "rke"
        they are differences of logarithms.

    Raises
    ------
    InputError
        As the function of that score, naming the model; if the scores are of different
        statistics, which no order could be read into; or if files that `files.read_features`
        (or `Moments.load`) read name different encoders, weights or preprocessing.

    Notes
    -----
    Joint coverage by Bonferroni with a Welch quantile for each pair: valid under any dependence
    between pairs, and at 12 models 3 % wider than Tukey's range. The noise of a shared sampled
    reference cancels in a difference as far as both models feel it alike.
    """
    check_choice("metric", metric, METRICS)
    expansions = expand_all(fakes, real, metric=metric, options=options)
    ranking = rank(expansions, metric=metric, level=level, paired=paired)
    return replace(ranking, notes=ranking.notes + tuple(origin_notes(_origins(fakes, real))))


def expand_all(
    fakes: Mapping[str, Any],
    real: Any = None,
    *,
    metric: str = "fd",
    options: Mapping[str, Any] | None = None,
) -> dict[str, Expansion]:
    """Expand every model against one reference that is prepared once.

    Parameters
    ----------
    fakes : mapping of str to array_like or Moments
    real : array_like or Moments, optional
        The reference, where the metric needs one.
    metric : str
        A key of `METRICS`.
    options : mapping, optional
        Further arguments of the metric, such as the kernel of a Vendi score.

    Returns
    -------
    dict of str to Expansion
    """
    expand = shared_expansion(fakes, real, metric=metric, options=options)
    expansions = {}
    for name, fake in fakes.items():
        try:
            expansions[str(name)] = expand(fake)
        except InputError as error:
            raise InputError(f"model {name!r}: {error}") from error
    if metric in VENDI_METRICS and _some_empirical(expansions):
        # From few samples a spectrum is fitted, unless it is refused: then for no model.
        expansions = {str(name): expand(fake, estimator="plugin") for name, fake in fakes.items()}
    return expansions


def shared_expansion(
    fakes: Mapping[str, Any],
    real: Any = None,
    *,
    metric: str,
    options: Mapping[str, Any] | None = None,
) -> Callable[..., Expansion]:
    """Check the models as a whole; return the function that expands each of them alike.

    Arguments are those of `expand_all`; the function takes an `estimator` as well.
    """
    given: object = fakes  # callers are not type-checked
    if not (isinstance(given, Mapping) and given):
        raise InputError("`fakes` must map the name of at least one model to its features.")
    check_same_encoder(_origins(fakes, real))
    if metric in VENDI_METRICS:
        samples = list(fakes.values()) if real is None else [real]
        sizes = [n for fake in fakes.values() if (n := _rows(fake)) is not None]
        return vendi_metric(metric, samples, options, fewest=min(sizes, default=None))
    return metric_expansion(metric, real, options)


def _rows(x: Any) -> int | None:
    try:
        return len(x)
    except TypeError:  # no array: refused where it is scored, by its name
        return None


def _some_empirical(expansions: Mapping[str, Expansion]) -> bool:
    """Whether some, but not all, are the score at this sample size."""
    return len({"empirical" in e.estimator for e in expansions.values()}) == 2


def _origins(fakes: Mapping[str, Any], real: Any) -> dict[str, Mapping[str, str]]:
    """Return what every side knows of its encoder."""
    sides = {f"model {str(name)!r}": origin_of(fake) for name, fake in fakes.items()}
    return sides if real is None else {"`real`": origin_of(real)} | sides


def metric_expansion(
    metric: str, real: Any = None, options: Mapping[str, Any] | None = None
) -> Callable[..., Expansion]:
    """Return the function that expands one model under `metric`; the registry of metrics.

    `real` is the reference, where the metric needs one; `options` are its further arguments.
    """
    check_choice("metric", metric, METRICS)
    if metric in VENDI_METRICS:
        if real is None and (options or {}).get("bandwidth") is None:
            raise InputError(
                f"metric {metric!r} needs `real`, or a `bandwidth` in `options`: all models must "
                "be scored with one bandwidth."
            )
        return vendi_metric(metric, [] if real is None else [real], options)
    if options and metric != "kid":
        raise InputError(f"`options` are for the metrics kid, vendi and rke; got {metric!r}.")
    if metric == "is":
        return inception_expansion
    if real is None:
        raise InputError(f"`real` is needed for metric {metric!r}: pass reference features.")
    if metric == "kid":
        return KernelReference(real, **(options or {})).expand
    return FrechetReference(real).expand


def rank(
    expansions: Mapping[str, Expansion], *, metric: str, level: float = 0.95, paired: bool = False
) -> Ranking:
    """Turn expansions against one reference into a ranking.

    Parameters
    ----------
    expansions : mapping of str to Expansion
    metric : str
        A key of `METRICS`: says which way is better.
    level : float
        Of all intervals together.
    paired : bool
        Whether row i of every sample came from the same latent or prompt.
    """
    level = check_open_unit("level", level)
    check_comparable(expansions)
    if paired:
        sizes = {e.n for e in expansions.values() if e.influence is not None}
        if len(sizes) != 1 or any(e.influence is None for e in expansions.values()):
            raise InputError("`paired` needs the samples of every model, and equally many.")
    sign = -1.0 if all(e.higher_is_better for e in expansions.values()) else 1.0
    values = {name: expansions[name].value * expansions[name].unit for name in expansions}
    names = sorted(expansions, key=lambda name: (sign * values[name], name))
    pairs = list(combinations(names, 2))
    pair_level = 1.0 - (1.0 - level) / max(len(pairs), 1)
    differences = []
    for better, worse in pairs:
        gap = difference(expansions[better], expansions[worse], shared_samples=paired)
        low, high = gap.interval(pair_level)
        differences.append(
            Difference(
                better=better,
                worse=worse,
                value=times_unit(gap.value, gap.unit),
                low=low,
                high=high,
                stderr=times_unit(gap.stderr, gap.unit),
            )
        )
    separated = {frozenset((d.better, d.worse)) for d in differences if d.distinguishable}
    notes = [
        f"the intervals of all pairwise differences ({len(pairs)}) hold together with probability "
        f"{level:.0%} (Bonferroni)",
        "models that share their samples (same latents or prompts): noise differenced row by row"
        if paired
        else "models' samples are taken as independent of one another",
    ]
    if any(e.log_scale for e in expansions.values()):
        notes.append("differences are on the log scale")
    return Ranking(
        metric=metric,
        level=level,
        scores={name: expansions[name].score(level) for name in names},
        differences=tuple(differences),
        groups=letter_groups(names, separated),
        notes=tuple(notes),
    )


def check_comparable(expansions: Mapping[str, Expansion]) -> None:
    """Refuse to rank scores of different statistics."""
    (first, one), *others = expansions.items()
    for name, other in others:
        if other.statistic != one.statistic:
            raise InputError(
                f"models {first!r} and {name!r} are scored by different statistics, which do not "
                f"compare: {one.statistic}; {other.statistic}. Score all models with one kernel, "
                "bandwidth, order and method; where the statistic depends on n, with equal n."
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
