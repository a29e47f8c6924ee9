"""Scores as ``torchmetrics.Metric``, for training loops and Lightning.

`FrechetDistance` keeps moments only; `FeatureMetric` keeps the rows and computes any metric.

Not imported with the package: it needs torchmetrics (``pip install 'genbounds[torchmetrics]'``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch
from torchmetrics import Metric
from torchmetrics.utilities.data import dim_zero_cat

from genbounds.estimators import MetricSpec, Moments, Prepared, frechet_distance, metric_spec
from genbounds.results import Score
from genbounds.samples import Sample
from genbounds.validation import InputError, check_choice, check_count, check_open_unit

NO_LABEL = torch.iinfo(torch.int64).min
"""Where nothing is said of how a row was drawn."""


class _TwoSamples(Metric):  # type: ignore[misc]
    """What both metrics share: states `real` and `fake`, and calls that only absorb."""

    is_differentiable: ClassVar[bool] = False
    full_state_update: ClassVar[bool] = False
    _of_real: ClassVar[tuple[str, ...]] = ("real",)

    real: Any
    fake: Any

    def __init__(
        self,
        encoder: Callable[[Any], Any] | None,
        *,
        estimator: str,
        level: float,
        reset_real: bool,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.encoder = encoder
        self.estimator = estimator
        self.level = check_open_unit("level", level)
        self.reset_real = reset_real
        self.result: Score | None = None

    def _features(self, samples: Any, columns: int | None) -> Any:
        """Encode a batch and check what comes out: rows of `columns` finite numbers, if known."""
        if self.encoder is not None:
            with torch.no_grad():
                samples = self.encoder(samples)
        shape = tuple(getattr(samples, "shape", ()))
        if not (isinstance(samples, torch.Tensor) and len(shape) == 2) or (
            columns is not None and shape[1] != columns
        ):
            wanted = f"(n, {'d' if columns is None else columns})"
            raise InputError(f"features must be a tensor of shape {wanted}; got {shape}.")
        rows = samples.detach()
        if not torch.isfinite(rows).all():
            raise InputError("the features have NaN or infinite values: fix the encoder.")
        return rows

    def forward(self, *args: Any, **kwargs: Any) -> None:
        """Absorb a batch as `update` does, and return nothing.

        The score of one batch alone would be mostly bias. What torchmetrics does here for other
        metrics, scoring the batch and merging it afterwards, would count the real samples twice.
        """
        self.update(*args, **kwargs)

    def reset(self) -> None:
        """Forget what was absorbed; the real samples only with `reset_real`."""
        held = {name: getattr(self, name) for name in self._of_real}
        # Lists are emptied, not replaced.
        held = {name: list(x) if isinstance(x, list) else x for name, x in held.items()}
        super().reset()
        if not self.reset_real:
            for name, state in held.items():
                setattr(self, name, state)

    def set_dtype(self, dst_type: Any) -> _TwoSamples:
        """Stay in the precision of the states: less would lose the covariance."""
        return self

    def _numbers(self, score: Score) -> dict[str, Any]:
        """Make what a logger takes: scalars by name; the whole score stays in `result`."""
        self.result = score
        found = {
            "value": score.value,
            "low": score.low,
            "high": score.high,
            "reliable": float(score.reliable),
        }
        return {
            name: torch.tensor(number, dtype=torch.float64, device=self.device)
            for name, number in found.items()
        }


class FrechetDistance(_TwoSamples):
    """Debiased Fréchet distance with its interval, from merged moments.

    Parameters
    ----------
    encoder : callable or torch module, optional
        Turns what `update` is given into features (n, d); without one it is given features.
    d : int
        Number of features.
    estimator : {"debiased", "plugin"}
    level : float
        Coverage of the interval.
    reset_real : bool
        Whether `reset` forgets the real samples as well. False keeps them through all epochs.
    **kwargs
        Of ``torchmetrics.Metric``.

    Attributes
    ----------
    result : Score or None
        What `compute` found last, with its warnings.

    Notes
    -----
    The state of a sample is one vector: n, the mean and the sum of squares and products about the
    mean, in float64. Processes (and batches) are merged by Chan, Golub & LeVeque's update, so that
    the result does not depend on how samples are spread over devices, up to rounding. No features
    are kept; the interval takes their fourth moments for those of a Gaussian distribution. Where
    that matters, take `FeatureMetric`, or write the features and use
    `genbounds.frechet_distance`.

    Calling the metric is `update`: no batch has a distance of its own.
    """

    higher_is_better: ClassVar[bool] = False
    plot_lower_bound: ClassVar[float] = 0.0

    def __init__(
        self,
        encoder: Callable[[Any], Any] | None = None,
        *,
        d: int,
        estimator: str = "debiased",
        level: float = 0.95,
        reset_real: bool = True,
        **kwargs: Any,
    ) -> None:
        check_choice("estimator", estimator, ("debiased", "plugin"))
        super().__init__(encoder, estimator=estimator, level=level, reset_real=reset_real, **kwargs)
        self.d = check_count("d", d)
        empty = torch.zeros(1 + d + d * d, dtype=torch.float64)
        for name in ("real", "fake"):
            self.add_state(name, default=empty.clone(), dist_reduce_fx=_merge)

    def update(self, samples: Any, real: bool) -> None:
        """Absorb a batch: features (n, d), or what the encoder turns into them.

        Raises
        ------
        InputError
            If the features have another shape, or are not finite.
        """
        rows = self._features(samples, self.d).to(self.real.device, torch.float64)
        if len(rows) == 0:
            return
        mean = rows.mean(dim=0)
        centred = rows - mean
        count = rows.new_tensor([len(rows)])
        batch = torch.cat([count, mean, (centred.T @ centred).flatten()])
        name = "real" if real else "fake"
        setattr(self, name, _merge(torch.stack([getattr(self, name), batch])))

    def compute(self) -> dict[str, Any]:
        """Return the distance: ``{"value": …, "low": …, "high": …, "reliable": 1 or 0}``.

        Raises
        ------
        InputError
            If there are fewer than two samples of a kind.
        """
        real, fake = (self.moments(name) for name in ("real", "fake"))
        return self._numbers(
            frechet_distance(fake, real, estimator=self.estimator, level=self.level)
        )

    def moments(self, side: str) -> Moments:
        """Return mean, covariance and n of one `side`, "real" or "fake", on this process."""
        check_choice("side", side, ("real", "fake"))
        state = getattr(self, side).cpu().numpy()
        n = round(state[0])
        if n < 2:
            raise InputError(f"at least 2 {side} samples are needed; there are {n}.")
        scatter = state[1 + self.d :].reshape(self.d, self.d)
        return Moments(state[1 : 1 + self.d], scatter / (n - 1), n)


class FeatureMetric(_TwoSamples):
    """Any metric of the library with its interval, from the features themselves.

    Parameters
    ----------
    encoder : callable or torch module, optional
        Turns what `update` is given into features (n, d), or into posteriors for "is"; without
        one it is given those.
    metric : str, MetricSpec, CustomMetric or callable
        A registered name ("fd", "kid", "is", "vendi", "rke", …), or a metric of your own.
    estimator : str
        As far as the metric has it; "debiased" or "plugin".
    level : float
        Coverage of the interval.
    options : mapping, optional
        Further arguments of the metric, as for `genbounds.compare`.
    reset_real : bool
        Whether `reset` forgets the real samples as well. False keeps them through all epochs.
    **kwargs
        Of ``torchmetrics.Metric``; ``compute_on_cpu=True`` keeps the rows off the device.

    Attributes
    ----------
    result : Score or None
        What `compute` found last, with its warnings.

    Notes
    -----
    Every row is kept, in the precision of the encoder (bfloat16 as float32): 50,000 rows of 2,048
    features are 0.4 GB. Processes gather all rows in `compute`.

    Calling the metric is `update`: no batch has a score of its own.
    """

    _of_real: ClassVar[tuple[str, ...]] = ("real", "real_labels")

    def __init__(
        self,
        encoder: Callable[[Any], Any] | None = None,
        *,
        metric: Any = "fd",
        estimator: str = "debiased",
        level: float = 0.95,
        options: Mapping[str, Any] | None = None,
        reset_real: bool = True,
        **kwargs: Any,
    ) -> None:
        self.spec: MetricSpec = metric_spec(metric)
        check_choice("estimator", estimator, self.spec.estimators)
        super().__init__(encoder, estimator=estimator, level=level, reset_real=reset_real, **kwargs)
        self.options = dict(options or {})
        self._reference: tuple[int, Prepared] | None = None
        for name in ("real", "fake", "real_labels", "fake_labels"):
            self.add_state(name, default=[], dist_reduce_fx="cat")

    @property
    def higher_is_better(self) -> bool:
        """As the metric says."""
        return self.spec.higher_is_better

    def update(
        self, samples: Any, real: bool = False, *, groups: Any = None, strata: Any = None
    ) -> None:
        """Absorb a batch: features (n, d), or what the encoder turns into them.

        Parameters
        ----------
        samples : tensor
        real : bool
            Whether these are real samples.
        groups, strata : integers of shape (n,), optional
            How they were drawn, as for `genbounds.Sample`; in every batch or in none. Equal ids of
            two batches are the same group: number on from batch to batch.

        Raises
        ------
        InputError
            If the features have another shape than before, or are not finite; or if real samples
            are given to a metric that takes none; or if labels are not one integer per row.
        """
        if real and self.spec.reference == "none":
            raise InputError(f"metric {self.spec.name!r} takes no real samples.")
        kept = [*_parts(self.real), *_parts(self.fake)]
        rows = self._features(samples, kept[0].shape[1] if kept else None)
        if len(rows) == 0:
            return
        if rows.dtype == torch.bfloat16:  # NumPy has none
            rows = rows.float()
        name = "real" if real else "fake"
        labels = _labels(groups, strata, rows)
        setattr(self, name, [*_parts(getattr(self, name)), rows])
        setattr(self, f"{name}_labels", [*_parts(getattr(self, f"{name}_labels")), labels])
        if real:
            self._reference = None

    def compute(self) -> dict[str, Any]:
        """Return the score: ``{"value": …, "low": …, "high": …, "reliable": 1 or 0}``.

        Raises
        ------
        InputError
            If there are too few samples, or none of real data where the metric needs them.
        """
        real, fake = (self._rows(name) for name in ("real", "fake"))
        if fake is None:
            raise InputError("no generated samples were given: call `update` with real=False.")
        if self.spec.reference == "required" and real is None:
            raise InputError(
                f"metric {self.spec.name!r} needs real samples: call `update` with real=True."
            )
        estimate = self._prepared(real, fake).estimate(fake, estimator=self.estimator)
        return self._numbers(estimate.score(self.level))

    def _rows(self, name: str) -> Any:
        parts = _parts(getattr(self, name))
        if not parts:
            return None
        rows = dim_zero_cat(parts).cpu().numpy()
        labels = dim_zero_cat(_parts(getattr(self, f"{name}_labels"))).cpu().numpy()
        told = (labels != NO_LABEL).any(axis=0)
        if not told.any():
            return rows
        if (labels[:, told] == NO_LABEL).any():
            raise InputError(f"some batches of {name} samples had groups or strata, others none.")
        groups, strata = (labels[:, k] if told[k] else None for k in (0, 1))
        return Sample(rows, groups=groups, strata=strata)

    def _prepared(self, real: Any, fake: Any) -> Prepared:
        """Prepare the reference once for all epochs that keep it."""
        if real is None:
            return self.spec.prepared(None, self.options, [fake])
        if self._reference is None or self._reference[0] != len(real):
            self._reference = len(real), self.spec.prepared(real, self.options, [fake])
        return self._reference[1]

    def _sync_dist(self, *args: Any, **kwargs: Any) -> None:
        """Gather the rows of all processes; one may have no real samples, or none generated.

        What torchmetrics would send for it has no columns, which the others could not be joined to.
        """
        kept = [*_parts(self.real), *_parts(self.fake)]
        for name in ("real", "fake"):
            if kept and not _parts(getattr(self, name)):
                setattr(self, name, [kept[0][:0]])
                setattr(self, f"{name}_labels", [_labels(None, None, kept[0][:0])])
        super()._sync_dist(*args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_reference": None}  # made of closures


def _labels(groups: Any, strata: Any, rows: Any) -> Any:
    """Return groups and strata of the rows as integers, shape (n, 2)."""
    columns = []
    for name, given in (("groups", groups), ("strata", strata)):
        if given is None:
            columns.append(torch.full((len(rows),), NO_LABEL, device=rows.device))
            continue
        ids = torch.as_tensor(given, device=rows.device)
        if ids.shape != (len(rows),) or ids.is_floating_point() or ids.is_complex():
            raise InputError(
                f"must be {len(rows)} integers, one per row; got {ids.dtype} of shape "
                f"{tuple(ids.shape)}.",
                argument=name,
            )
        columns.append(ids.to(torch.int64))
    return torch.stack(columns, dim=1)


def _parts(state: Any) -> list[Any]:
    """Return the batches of a state, which is one tensor once processes have been gathered."""
    batches = state if isinstance(state, list) else [state]
    return [batch for batch in batches if batch.ndim == 2]


def _merge(states: Any) -> Any:
    """Merge the states (k, 1 + d + d²) of k samples into one."""
    counts = states[:, 0]
    total = counts.sum()
    if total == 0:
        return states[0].clone()
    d = round((states.shape[1] - 0.75) ** 0.5 - 0.5)  # of 1 + d + d²
    means, scatters = states[:, 1 : 1 + d], states[:, 1 + d :]
    mean = (counts / total) @ means
    gaps = means - mean
    between = (gaps * counts[:, None]).T @ gaps
    return torch.cat([total[None], mean, scatters.sum(dim=0) + between.flatten()])
