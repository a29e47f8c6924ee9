"""Any metric of the library from rows that processes gather."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch
from torchmetrics.utilities.data import dim_zero_cat

from genbounds.estimators import MetricSpec, Prepared, metric_spec
from genbounds.features import Encoder
from genbounds.samples import Sample
from genbounds.torchmetrics._two_samples import TwoSamples
from genbounds.validation import InputError, check_choice, check_flag

NO_LABEL = torch.iinfo(torch.int64).min
"""Where nothing is said of how a row was drawn."""


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
        super().__init__(
            encoder,
            estimator=estimator,
            level=level,
            reset_real_features=reset_real_features,
            **kwargs,
        )
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
