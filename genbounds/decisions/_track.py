"""A training run, of checkpoints that are all there or while it goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from genbounds.decisions._estimates import estimated
from genbounds.decisions._follow import Following
from genbounds.decisions._looks import Checkpoint, Look, Track
from genbounds.estimators import Estimate, metric_spec
from genbounds.origins import check_same_encoder, compared, origin_of, origin_warnings
from genbounds.results import Diagnostic
from genbounds.validation import InputError, about_model, calling

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
    partners: Mapping[Any, Any] | None = None,
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
    partners : mapping of int or float to array_like or Sample, optional
        For some steps, draws of a cheap partner of that checkpoint, as in `compare`.
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
    named |= {f"fresh step {step!r}": sample for step, sample in (fresh or {}).items()}
    if not isinstance(partners, Mapping | None):
        raise InputError("must map steps to samples.", argument="partners")
    helped = {f"step {step!r}": partner for step, partner in (partners or {}).items()}
    _, scored = estimated(spec, named, reference, options, helped)
    return track_estimates(
        {step: scored[f"step {step!r}"] for step in ordered},
        metric=spec.name,
        level=level,
        looks=looks,
        patience=patience,
        min_delta=min_delta,
        fresh={step: scored[f"fresh step {step!r}"] for step in fresh or {}},
        warnings=compared({**named, "`reference`": reference}),
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
    planned = len(ordered) if looks is None else looks
    following = Following(metric, planned, level, patience, min_delta, rng)
    for step, estimate in ordered.items():
        following.add(step, estimate)
    best = following.looks[-1].best
    if fresh and best not in fresh:
        raise InputError(
            f"holds no rows of step {best!r}, which is the one to keep: generate them, or leave "
            "it out.",
            argument="fresh",
        )
    return following.track(fresh=fresh[best] if fresh else None, warnings=warnings)


def in_order(samples: Mapping[Any, T]) -> dict[float, T]:
    """Sort by step; what is no number is left to the check of each step."""
    try:
        return dict(sorted(samples.items(), key=lambda item: item[0]))
    except TypeError:
        return dict(samples)


class Monitor:
    """Follow a training run, one checkpoint at a time.

    Every look is compared with all earlier ones; the probability that any of them, in the whole
    run, is wrongly called improved or collapsed is at most ``1 - level``. The state is in this
    object and nowhere else.

    Parameters
    ----------
    reference : array_like of shape (m, d), Sample or Moments, optional
        Real data; prepared once. Not used by "is"; for "vendi" and "rke", where the bandwidth
        comes from if `options` name none.
    looks : int
        How many checkpoints there will be at most. The level is spent evenly over them: plan
        beforehand, not too many.
    metric : str, MetricSpec, CustomMetric or callable
        As in `compare`.
    level : float
    patience : int
        So many looks without an improvement are a plateau.
    min_delta : float, optional
        Call it a plateau only if no improvement larger than this can have been missed, in the
        unit of the score (of its logarithm for "is", "vendi" and "rke").
    options : mapping, optional
        Further arguments of the metric, as in `compare`.
    rng : int, SeedSequence or Generator
        Of the simulated limits.

    Raises
    ------
    InputError
        As `compare`.

    Notes
    -----
    "Improved" takes, against each earlier look, a one-sided interval at (1 - level) / 2 divided by
    the number of looks less one: the best of the earlier looks is one of them, whichever it is.
    "Collapsed" takes the limit of the largest difference to any earlier look, simulated from the
    joint covariance of all looks, which influences give: the reference is common to all, and so
    are units of `Sample.groups` with equal ids. Samples from the same latents at every look make
    differences more exact.

    Examples
    --------
    >>> import numpy as np, genbounds as gb
    >>> rng = np.random.default_rng(0)
    >>> monitor = gb.Monitor(gb.Moments(np.zeros(4), np.eye(4)), looks=10)
    >>> for step, scale in [(1000, 2.0), (2000, 1.5), (3000, 1.1), (4000, 1.9)]:
    ...     look = monitor.update(step, scale * rng.normal(size=(2000, 4)))
    ...     print(look.step, look.state)
    1000 first
    2000 improved
    3000 improved
    4000 collapsed
    >>> monitor.best(fresh=1.1 * rng.normal(size=(2000, 4))).step
    3000
    """

    def __init__(
        self,
        reference: Any = None,
        *,
        looks: int = 30,
        metric: Any = "fd",
        level: float = 0.95,
        patience: int = 3,
        min_delta: float | None = None,
        options: Mapping[str, Any] | None = None,
        rng: Any = 0,
    ) -> None:
        spec = metric_spec(metric)
        self._following = Following(spec.name, looks, level, patience, min_delta, rng)
        self._metric, self._reference, self._options = metric, reference, options
        self._prepare()
        self._origins = {} if reference is None else {"`reference`": origin_of(reference)}

    def _prepare(self) -> None:
        spec = metric_spec(self._metric)
        reference = None if spec.reference == "none" else self._reference
        with calling("real", "reference"):
            self._prepared = spec.prepared(reference, self._options)

    def __getstate__(self) -> dict[str, Any]:
        """Return what a checkpoint of the run keeps; the reference is prepared anew."""
        return {name: value for name, value in self.__dict__.items() if name != "_prepared"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._prepare()

    @property
    def looks(self) -> tuple[Look, ...]:
        """All looks so far."""
        return tuple(self._following.looks)

    def update(self, step: float, sample: Any) -> Look:
        """Score one more checkpoint and compare it with all earlier ones.

        Parameters
        ----------
        step : int or float
            Larger than the last one.
        sample : array_like of shape (n, d), Sample or Moments
            What the checkpoint generated. Sizes may differ from look to look.

        Returns
        -------
        Look

        Raises
        ------
        InputError
            If the step does not grow, the planned looks are used up, or as the score. Nothing is
            recorded then, nor where it is interrupted.
        """
        self._following.check_step(step)
        return self._following.add(step, self._estimate(f"step {step!r}", sample))

    def best(self, fresh: Any = None) -> Checkpoint:
        """Return the checkpoint to keep, with a score that its choice does not flatter.

        Parameters
        ----------
        fresh : array_like of shape (n, d), Sample or Moments, optional
            Rows that the kept checkpoint generated anew. None: its score is corrected for the
            choice instead, with a wider interval.

        Returns
        -------
        Checkpoint
        """
        return self._following.kept(self._fresh(fresh))

    def track(self, fresh: Any = None) -> Track:
        """Return everything so far, with the verdict at the last look.

        Parameters
        ----------
        fresh : array_like of shape (n, d), Sample or Moments, optional
            As in `best`.

        Returns
        -------
        Track
        """
        estimate = self._fresh(fresh)
        return self._following.track(fresh=estimate, warnings=origin_warnings(self._origins))

    def _fresh(self, sample: Any) -> Estimate | None:
        return None if sample is None else self._estimate("the fresh sample", sample)

    def _estimate(self, name: str, sample: Any) -> Estimate:
        origins = {**self._origins, name: origin_of(sample)}
        check_same_encoder(origins)
        with about_model(name):
            estimate: Estimate = self._prepared.estimate(sample)
        self._origins = origins
        return estimate
