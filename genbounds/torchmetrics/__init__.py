"""Scores as ``torchmetrics.Metric``, for training loops and Lightning.

`FrechetDistance` keeps moments only; `FeatureMetric` keeps the rows and computes any metric.

Not imported with the package: it needs torchmetrics (``pip install 'genbounds[torchmetrics]'``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar
from zlib import crc32

import numpy as np
import torch
from torchmetrics import Metric
from torchmetrics.utilities import rank_zero_warn
from torchmetrics.utilities.data import dim_zero_cat

from genbounds._drawing import COLOUR
from genbounds.core.moments import check_keep
from genbounds.estimators import MetricSpec, Moments, Prepared, frechet_distance, metric_spec
from genbounds.features import Encoder
from genbounds.features._encoder import evaluating
from genbounds.files import Statistics
from genbounds.results import Score
from genbounds.samples import Sample
from genbounds.validation import InputError, check_choice, check_count, check_flag, check_open_unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["FeatureMetric", "FrechetDistance"]

NO_LABEL = torch.iinfo(torch.int64).min
"""Where nothing is said of how a row was drawn."""


class TwoSamples(Metric):  # type: ignore[misc]
    """States `real` and `fake`, and calls that only absorb."""

    is_differentiable: ClassVar[bool] = False
    full_state_update: ClassVar[bool] = False
    _of_real: ClassVar[tuple[str, ...]] = ("real",)

    real: Any
    fake: Any
    _title: str
    """What the values are."""

    def __init__(
        self,
        encoder: Callable[[Any], Any] | Encoder | None,
        estimator: str,
        level: float,
        reset_real_features: bool,
        **kwargs: Any,
    ) -> None:
        # An earlier name of it.
        reset_real_features = kwargs.pop("reset_real", reset_real_features)
        super().__init__(**kwargs)
        self.encoder = encoder
        self.estimator = estimator
        self.level = check_open_unit("level", level)
        self.reset_real_features = reset_real_features
        self.result: Score | None = None
        self._told: set[tuple[str, str]] = set()

    def _features(self, samples: Any, columns: int | None) -> Any:
        """Encode a batch and check what comes out: rows of `columns` finite numbers, if known."""
        if self.encoder is not None:
            # The metric is a part of the model that is trained, and so is the encoder.
            with torch.no_grad(), evaluating(self.encoder):
                samples = _encoded(samples, self.encoder, self.device)
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
        """Forget what was absorbed; the real samples only with `reset_real_features`."""
        held = {name: getattr(self, name) for name in self._of_real}
        # Lists are emptied, not replaced.
        held = {name: list(x) if isinstance(x, list) else x for name, x in held.items()}
        super().reset()
        if not self.reset_real_features:
            for name, state in held.items():
                setattr(self, name, state)

    def set_dtype(self, dst_type: Any) -> TwoSamples:
        """Stay in the precision of the states: less would lose the covariance."""
        return self

    def _numbers(self, score: Score) -> dict[str, float]:
        """Make what every logger takes: floats by name; the whole score stays in `result`.

        A kind of warning is said once, not at every epoch, and by one process.
        """
        self.result = score
        for warning in score.warnings:
            kind = warning.code, warning.severity
            if kind not in self._told:
                self._told.add(kind)
                rank_zero_warn(f"{type(self).__name__}: {warning}", UserWarning)
        return {name: float(getattr(score, name)) for name in ("value", "low", "high", "reliable")}

    def plot(
        self,
        val: Mapping[str, float] | Sequence[Mapping[str, float]] | None = None,
        ax: Axes | None = None,
    ) -> tuple[Figure | SubFigure, Axes]:
        """Draw a score with its interval, or the scores of several epochs.

        Parameters
        ----------
        val : mapping or sequence of mappings, optional
            What `compute` returned, once or at every epoch; its result now by default.
        ax : matplotlib.axes.Axes, optional
            A new figure's by default.

        Returns
        -------
        figure, axes
            As the plots of torchmetrics return them. A cross is an unreliable score.
        """
        import matplotlib.pyplot as plt
        from matplotlib.ticker import MaxNLocator

        found = self.compute() if val is None else val
        results = [found] if isinstance(found, Mapping) else list(found)
        figure, axes = plt.subplots(layout="constrained") if ax is None else (ax.figure, ax)
        for epoch, result in enumerate(results):
            value, low, high = (float(result[name]) for name in ("value", "low", "high"))
            mark, role = ("o", "accent") if result["reliable"] else ("X", "bad")
            error = [[value - low], [high - value]] if math.isfinite(high - low) else None
            axes.errorbar(epoch, value, yerr=error, fmt=mark, color=COLOUR[role], capsize=3)
        values = [float(result["value"]) for result in results]
        axes.plot(values, color=COLOUR["accent"], zorder=1)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("epoch")
        axes.set_ylabel(self._title)
        return figure, axes


def _encoded(samples: Any, encoder: Callable[[Any], Any] | Encoder, device: Any) -> Any:
    """Return the features of a batch."""
    if isinstance(encoder, Encoder):
        prepared = [encoder.prepare(item) for item in _items(samples)]
        return torch.as_tensor(encoder.encode(prepared)).to(device)
    try:
        return encoder(samples)
    except torch.OutOfMemoryError:
        raise
    except (RuntimeError, TypeError) as error:
        if isinstance(samples, torch.Tensor) and not samples.is_floating_point():
            raise InputError(
                f"the encoder does not take {samples.dtype} images: scale them as it was trained "
                "(for many: images.float() / 255), or pass an encoder of "
                "genbounds.features.load_encoder, which does."
            ) from error
        raise


def _items(samples: Any) -> list[Any]:
    """Return the items of a batch as encoders of `genbounds.features` take them.

    Their own preprocessing scales and resizes images, which only integers from 0 to 255 leave no
    doubt about.
    """
    if not isinstance(samples, torch.Tensor):
        return list(samples)
    if samples.dtype != torch.uint8 or samples.ndim != 4 or samples.shape[1] not in (1, 3):
        raise InputError(
            "images must be uint8 (0 to 255) of shape (n, 3, h, w) or (n, 1, h, w): the encoder "
            f"scales them itself; got {samples.dtype} of shape {tuple(samples.shape)}."
        )
    return list(samples.permute(0, 2, 3, 1).cpu().numpy())


class FrechetDistance(TwoSamples):
    """Debiased Fréchet distance with its interval, from merged moments.

    Parameters
    ----------
    encoder : callable, torch module or genbounds.features.Encoder, optional
        Turns what `update` is given into features (n, d); without one it is given features. One of
        `genbounds.features.load_encoder` takes uint8 images (n, 3, h, w) and scales them as it
        was trained; any other gets the images as they are.
    d : int
        Number of features.
    estimator : {"debiased", "plugin"}
    level : float
        Coverage of the interval.
    keep : int
        How many rows of each sample, chosen at random, are kept for their fourth moments. 0: those
        of a Gaussian distribution are taken, which a caution says.
    reset_real_features : bool
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
    the result does not depend on how samples are spread over devices, up to rounding.

    Beside it `keep` rows are kept, because bias and interval depend on fourth moments: 2,048 rows
    of 2,048 features take as much memory as the covariance, 34 MB. Every row has a random key, and
    those with the least keys stay: the same for all sizes of batches, others where the samples are
    spread over other processes. For all rows take `FeatureMetric`.

    Calling the metric is `update`: no batch has a distance of its own.
    """

    _of_real: ClassVar[tuple[str, ...]] = ("real", "real_rows")
    higher_is_better: ClassVar[bool] = False
    plot_lower_bound: ClassVar[float] = 0.0
    _title = "Fréchet distance"

    def __init__(
        self,
        encoder: Callable[[Any], Any] | Encoder | None = None,
        *,
        d: int,
        estimator: str = "debiased",
        level: float = 0.95,
        keep: int = 2048,
        reset_real_features: bool = True,
        **kwargs: Any,
    ) -> None:
        check_choice("estimator", estimator, ("debiased", "plugin"))
        super().__init__(encoder, estimator, level, reset_real_features, **kwargs)
        self.d = check_count("d", d)
        check_keep(keep)
        empty = torch.zeros(1 + d + d * d, dtype=torch.float64)
        none = torch.full((keep, 1 + d), math.inf, dtype=torch.float64)
        for name in ("real", "fake"):
            self.add_state(name, default=empty.clone(), dist_reduce_fx=_merge)
            self.add_state(f"{name}_rows", default=none.clone(), dist_reduce_fx=_least_keys)

    def update(self, samples: Any, real: bool) -> None:
        """Absorb a batch: features (n, d), or what the encoder turns into them.

        Raises
        ------
        InputError
            If the features have another shape, or are not finite, or `real` is no truth value.
        """
        real = check_flag("real", real)
        rows = self._features(samples, self.d).to(self.real.device, torch.float64)
        if len(rows) == 0:
            return
        mean = rows.mean(dim=0)
        centred = rows - mean
        count = rows.new_tensor([len(rows)])
        batch = torch.cat([count, mean, (centred.T @ centred).flatten()])
        name = "real" if real else "fake"
        self._keep(f"{name}_rows", rows, before=round(getattr(self, name)[0].item()))
        setattr(self, name, _merge(torch.stack([getattr(self, name), batch])))

    def _keep(self, name: str, rows: Any, *, before: int) -> None:
        """Draw keys for the rows, which come after `before` others; keep those with the least."""
        stream = np.random.PCG64(crc32(name.encode())).advance(before)
        keys = torch.as_tensor(np.random.Generator(stream).random(len(rows))).to(rows)
        kept = getattr(self, name)
        fresh = keys < kept[:, 0].max() if len(kept) else torch.zeros_like(keys, dtype=torch.bool)
        if fresh.any():
            keyed = torch.cat([keys[:, None], rows], dim=1)
            setattr(self, name, _least_keys([kept, keyed[fresh]]))

    def compute(self) -> dict[str, float]:
        """Return the distance: ``{"value": …, "low": …, "high": …, "reliable": 1.0 or 0.0}``.

        Raises
        ------
        InputError
            If there are fewer than two samples of a kind.
        """
        real, fake = (self.moments(name) for name in ("real", "fake"))
        score = frechet_distance(fake, real, estimator=self.estimator, level=self.level)
        return self._numbers(score)

    def moments(self, side: str) -> Moments:
        """Return mean, covariance and n of one `side`, "real" or "fake", on this process."""
        check_choice("side", side, ("real", "fake"))
        state = getattr(self, side).cpu().numpy()
        n = round(state[0])
        if n < 2:
            raise InputError(f"at least 2 {side} samples are needed; there are {n}.")
        cov = state[1 + self.d :].reshape(self.d, self.d) / (n - 1)
        kept = getattr(self, f"{side}_rows").cpu().numpy()
        rows = kept[np.isfinite(kept[:, 0]), 1:]
        return Moments.from_statistics(
            Statistics(state[1 : 1 + self.d], cov, n, rows if len(rows) else None)
        )


def _least_keys(states: Any) -> Any:
    """Return the rows with the least keys, their first entries, as many as the first state has."""
    rows = torch.cat([*states])
    return rows[torch.argsort(rows[:, 0], stable=True)[: len(states[0])]]


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


class FeatureMetric(TwoSamples):
    """Any metric of the library with its interval, from the features themselves.

    Parameters
    ----------
    encoder : callable, torch module or genbounds.features.Encoder, optional
        Turns what `update` is given into features (n, d), or into posteriors for "is"; without
        one it is given those. One of `genbounds.features.load_encoder` takes uint8 images
        (n, 3, h, w) and scales them as it was trained; any other gets the images as they are.
    metric : str, MetricSpec, CustomMetric or callable
        A registered name ("fd", "kid", "is", "vendi", "rke", …), or a metric of your own.
    estimator : str
        As far as the metric has it; "debiased" or "plugin".
    level : float
        Coverage of the interval.
    options : mapping, optional
        Further arguments of the metric, as for `genbounds.compare`.
    reset_real_features : bool
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
        encoder: Callable[[Any], Any] | Encoder | None = None,
        *,
        metric: Any = "fd",
        estimator: str = "debiased",
        level: float = 0.95,
        options: Mapping[str, Any] | None = None,
        reset_real_features: bool = True,
        **kwargs: Any,
    ) -> None:
        self.spec: MetricSpec = metric_spec(metric)
        self._title = self.spec.title
        check_choice("estimator", estimator, self.spec.estimators)
        super().__init__(encoder, estimator, level, reset_real_features, **kwargs)
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
        if check_flag("real", real) and self.spec.reference == "none":
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

    def compute(self) -> dict[str, float]:
        """Return the score: ``{"value": …, "low": …, "high": …, "reliable": 1.0 or 0.0}``.

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
