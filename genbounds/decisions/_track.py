"""A training run whose checkpoints are all there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from genbounds.decisions._estimates import estimated, origins
from genbounds.decisions._follow import Following
from genbounds.decisions._looks import Track
from genbounds.estimators import Estimate, metric_spec
from genbounds.origins import origin_warnings
from genbounds.results import Diagnostic
from genbounds.validation import InputError

T = TypeVar("T")


def track(
    samples: Mapping[Any, Any],
    reference: Any = None,
    *,
    metric: Any = "fd",
    level: float = 0.95,
    looks: int | None = None,
    patience: int = 3,
    min_delta: float | None = None,
    fresh: Mapping[Any, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    rng: Any = 0,
) -> Track:
    """Say whether a training run still improves, and which checkpoint is to be kept.

    Parameters
    ----------
    samples : mapping of int or float to array_like of shape (n, d), Sample or Moments
        By step, what each checkpoint generated.
    reference : array_like of shape (m, d), Sample or Moments, optional
        Real data, as in `compare`.
    metric : str, MetricSpec, CustomMetric or callable
    level : float
        The probability that any look is wrongly called improved or collapsed is at most
        ``1 - level``.
    looks : int, optional
        For how many looks the level is planned; by default as many as there are. Give it where
        the run goes on and this is called again.
    patience : int
        So many looks without an improvement are a plateau.
    min_delta : float, optional
        Call it a plateau only if no improvement larger than this can have been missed, in the
        unit of the score (of its logarithm for "is", "vendi" and "rke").
    fresh : mapping of int or float to array_like or Sample, optional
        Rows that checkpoints generated anew, by step: those of the kept one give its score.
    options : mapping, optional
        Further arguments of the metric, as in `compare`.
    rng : int, SeedSequence or Generator
        Of the simulated limits.

    Returns
    -------
    Track

    Raises
    ------
    InputError
        If steps are no numbers, or there are more than `looks`; or as `compare`.

    See Also
    --------
    Monitor : The same, one checkpoint at a time.

    Examples
    --------
    >>> import numpy as np, genbounds as gb
    >>> rng = np.random.default_rng(0)
    >>> real = gb.Moments(np.zeros(4), np.eye(4))
    >>> scales = {1000: 2.0, 2000: 1.2, 3000: 1.1, 4000: 2.0}
    >>> run = gb.track({t: c * rng.normal(size=(2000, 4)) for t, c in scales.items()}, real)
    >>> run.verdict, run.best
    ('collapsed', 3000)
    """
    given: object = samples  # callers are not type-checked
    if not (isinstance(given, Mapping) and given):
        raise InputError("must map at least one step to its features.", argument="samples")
    ordered = in_order(samples)
    spec = metric_spec(metric)
    named = {f"step {step!r}": sample for step, sample in ordered.items()}
    again = {} if fresh is None else dict(fresh)
    named |= {f"fresh step {step!r}": sample for step, sample in again.items()}
    _, scored = estimated(spec, named, reference, options)
    return track_estimates(
        {step: scored[f"step {step!r}"] for step in ordered},
        metric=spec.name,
        level=level,
        looks=looks,
        patience=patience,
        min_delta=min_delta,
        fresh={step: scored[f"fresh step {step!r}"] for step in again},
        warnings=origin_warnings(origins(named, reference)),
        rng=rng,
    )


def track_estimates(
    estimates: Mapping[Any, Estimate],
    *,
    metric: str,
    level: float = 0.95,
    looks: int | None = None,
    patience: int = 3,
    min_delta: float | None = None,
    fresh: Mapping[Any, Estimate] | None = None,
    warnings: Sequence[Diagnostic] = (),
    rng: Any = 0,
) -> Track:
    """Turn the estimates of all checkpoints into a `Track`, as `track` does.

    Parameters
    ----------
    estimates : mapping of int or float to Estimate
        By step.
    metric : str
        Its name, for the result.
    level : float
    looks : int, optional
    patience : int
    min_delta : float, optional
    fresh : mapping of int or float to Estimate, optional
        Of rows that checkpoints generated anew; those of the kept one are used.
    warnings : sequence of Diagnostic
        About the run.
    rng : int, SeedSequence or Generator

    Returns
    -------
    Track
    """
    if not estimates:
        raise InputError("must hold at least one step.", argument="estimates")
    ordered = in_order(estimates)
    following = Following(
        metric=metric,
        looks=len(ordered) if looks is None else looks,
        level=level,
        patience=patience,
        min_delta=min_delta,
        rng=rng,
    )
    for step, estimate in ordered.items():
        following.add(step, estimate)
    again = {} if fresh is None else fresh
    best = following.looks[-1].best
    if again and best not in again:
        raise InputError(
            f"holds no rows of step {best!r}, which is the one to keep: generate them, or leave "
            "it out.",
            argument="fresh",
        )
    return following.track(fresh=again.get(best), warnings=warnings)


def in_order(samples: Mapping[Any, T]) -> dict[float, T]:
    """Sort by step; what is no number is left to the check of each step."""
    try:
        return dict(sorted(samples.items(), key=lambda item: item[0]))
    except TypeError:
        return dict(samples)
