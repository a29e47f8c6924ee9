"""A score that is given by its value, its influence function and its bias."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from genbounds.core.estimate import Estimate, SampleError
from genbounds.estimators._metric_spec import MetricSpec, Prepared, Rows
from genbounds.samples import features_of
from genbounds.validation import Float, InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomMetric:
    """A score of your own: value, influence function, bias correction.

    Attributes
    ----------
    name : str
    value : callable
        Rows (n, d) to the plug-in score.
    influence : callable
        Rows to the influence of each of them on the score, (n,): the derivative of the score in
        the weight of a row. It is centred here; its variance over n is that of the score.
    bias : callable or None
        Rows to what `value` is too large by on average; None: unbiased to order 1/n.
    higher_is_better : bool
    samples_per_dimension : int
        Selection first looks at an arm after ``max(100, samples_per_dimension * d)`` rows.

    Examples
    --------
    The variance of the first feature, whose plug-in (divisor n) is too small by its n-th part:

    >>> import numpy as np
    >>> import genbounds as gb
    >>> spread = gb.select.CustomMetric(
    ...     name="spread",
    ...     value=lambda x: float(x[:, 0].var()),
    ...     influence=lambda x: (x[:, 0] - x[:, 0].mean()) ** 2,
    ...     bias=lambda x: -float(x[:, 0].var()) / len(x),
    ...     higher_is_better=True,
    ... )
    >>> x = np.random.default_rng(0).normal(size=(500, 1))
    >>> bool(np.isclose(spread(x).value, x.var(ddof=1), rtol=1e-5))
    True
    """

    name: str
    value: Callable[[Rows], float]
    influence: Callable[[Rows], Any]
    bias: Callable[[Rows], float] | None = None
    higher_is_better: bool = False
    samples_per_dimension: int = 0

    def __call__(self, rows: Rows, *, estimator: str = "debiased") -> Estimate:
        """Value with its variance; the bias is removed unless `estimator` is "plugin"."""
        rows = features_of(rows)
        n = rows.shape[0]
        influence: Float = np.asarray(self.influence(rows), dtype=np.float64)
        if influence.shape != (n,):
            raise InputError(
                f"of metric {self.name!r} must return one number per row, shape ({n},); "
                f"got shape {influence.shape}.",
                argument="influence",
            )
        influence = influence - influence.mean()
        value = float(self.value(rows))
        if self.bias is not None and estimator != "plugin":
            value -= float(self.bias(rows))
        return Estimate(
            title=self.name,
            estimator=estimator,
            value=value,
            sample=SampleError(
                n=n,
                variance=float(influence @ influence) / (n - 1) / n,
                degrees_of_freedom=n - 1.0,
                influence=influence,
            ),
            higher_is_better=self.higher_is_better,
        )

    def spec(self) -> MetricSpec:
        """Describe it as every other metric is."""
        prepared = Prepared(estimate=self, samples_per_dimension=self.samples_per_dimension)
        return MetricSpec(
            name=self.name,
            title=self.name,
            prepare=lambda reference, options, models: prepared,
            higher_is_better=self.higher_is_better,
            reference="none",
        )
