"""What every method of the Vendi score is given, and the steps that several of them share."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from genbounds.core.design import Design
from genbounds.core.estimate import Estimate, SampleError
from genbounds.estimators.kernels._kernel_rows import KernelRows
from genbounds.estimators.vendi._ceiling import NEAR_CEILING, ceiling_interval
from genbounds.estimators.vendi._expansion import (
    PAIRING_SEED,
    SpectralForm,
    Spectrum,
    spectral_error,
)
from genbounds.estimators.vendi._spectrum import FeatureRows, from_gram
from genbounds.results import Method
from genbounds.validation import Float, InputError

DENSE_ROWS = 3000
"""Up to so many rows all eigenvectors are computed; above, leading ones or those of a subsample."""

SUBSAMPLE_ROWS = 1500
"""Rows of the subsample that measures the standard error where eigenvectors are out of reach."""

RESOLVED_RATIO = 2
"""Samples per dimension of the feature map from which the spectrum of the sample is debiased for
orders below 2; from fewer a spectrum is fitted."""

AS_THEY_ARE = ("empirical", "lanczos")
"""Methods that score the empirical spectrum whatever the estimator: there is no bias to remove."""

STATISTIC = "vendi, exact"
"""What the methods estimate that take the whole spectrum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One score to compute.

    Attributes
    ----------
    rows : KernelRows
    order : float
    plugin : bool
        Whether the bias is to be left in.
    components : int
        Eigenvalues kept, frequencies or deflated eigenpairs, as the method has it.
    seed : int
    landmarks : int or None
        Of the Nyström approximation, where the caller says how many.
    every_row : bool
        Whether the influence of every row is wanted.
    design : Design or None
        How the rows were drawn, where they are not simply independent.
    """

    rows: KernelRows
    order: float
    plugin: bool
    components: int
    seed: int
    landmarks: int | None
    every_row: bool
    design: Design | None = None

    @property
    def degrees_of_freedom(self) -> float:
        """Of a variance estimated from all rows."""
        return self.n - 1.0 if self.design is None else self.design.degrees_of_freedom

    @property
    def weights(self) -> Float | None:
        """Weights of the rows, where they differ."""
        return self.design.weights if self.design is not None and self.design.weighted else None

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.rows.n

    def estimate(
        self,
        method: Method,
        statistic: str,
        value: float,
        error: SampleError,
        *,
        limit: float | None = None,
        **words: Any,
    ) -> Estimate:
        """Make the estimate of the log score, at most log `limit`; `words`: what else it says."""
        return Estimate(
            title=f"Vendi score of order {self.order:g}",
            estimator="plugin" if self.plugin else "debiased",
            method="plug-in" if self.plugin and method not in AS_THEY_ARE else method,
            statistic=statistic,
            value=value,
            sample=replace(error, n=self.n),
            log_scale=True,
            lower_limit=0.0,
            upper_limit=math.inf if limit is None else math.log(limit),
            higher_is_better=True,
            **words,
        )

    def near_ceiling(
        self, *, value: float, bias: float, second: float, seeds: bool
    ) -> dict[str, Any]:
        """Say what an estimate has to say near the largest possible score (`ceiling_interval`)."""
        dimension = self.rows.dimension
        # Its noncentral distribution knows nothing of `seeds`.
        if dimension is None or math.isinf(self.order) or seeds:
            return {}
        ceiling = math.log(dimension)
        interval = ceiling_interval(
            value=value, bias=bias, second=second, ceiling=ceiling, n=self.n
        )
        return {} if interval is None else {"own_interval": interval, "details": (NEAR_CEILING,)}

    def expanded(
        self, spectrum: Spectrum, kept: int | None = None
    ) -> tuple[float, SampleError, float]:
        """Plug-in log score of a spectrum, its error, and the noise of parts (`spectral_error`)."""
        form = SpectralForm(
            spectrum, n=self.n, order=self.order, kept=kept, every_row=self.every_row
        )
        return spectral_error(form, self.design)

    def features(self) -> FeatureRows | None:
        """Feature map, in float32 where the rows are and no power of an eigenvalue below one is."""
        if self.rows.prepare is not None:  # rows of norm one are made when they are asked for
            rows = FeatureRows(self.rows.given, make=self.rows.prepare)
        else:
            features = self.rows.features()
            if features is None:
                return None
            rows = FeatureRows(features)
        return rows if self.order >= 1.0 else rows.double()


def unweighted(job: Job) -> None:
    """Refuse weights where only leading eigenvalues, or none, are computed."""
    if job.weights is not None:
        raise InputError(
            "has weights, which need the whole spectrum: use the method 'ustat' (order 2) or "
            f"'fkea', or at most {DENSE_ROWS} rows.",
            argument="x",
        )


def enough_rows(job: Job, components: int) -> None:
    """Refuse to keep as many eigenvalues as there are rows."""
    if not components < job.n:
        raise InputError(
            f"must be below the number of samples; got {components} for {job.n}. "
            "Keep fewer eigenvalues, or draw more samples.",
            argument="components",
        )


def subsample_error(job: Job) -> SampleError:
    """Error of the score of all rows, carried over from a subsample: bias falls as 1/n."""
    rows, design = job.rows, job.design
    rng = np.random.default_rng(PAIRING_SEED)
    index = np.arange(rows.n)
    if rows.n > SUBSAMPLE_ROWS and design is not None and design.seed is not None:
        raise InputError(
            f"has seeds that groups share: use the method 'exact', 'ustat' (order 2), or at most "
            f"{SUBSAMPLE_ROWS} rows.",
            argument="x",
        )
    if rows.n > SUBSAMPLE_ROWS and design is None:
        index = np.sort(rng.choice(rows.n, SUBSAMPLE_ROWS, replace=False))
    elif rows.n > SUBSAMPLE_ROWS and design is not None:
        cells = design.cells(rng)
        ends = np.cumsum(design.row_counts[cells.numbers])[cells.starts[1:] - 1]
        count = int(np.searchsorted(ends, SUBSAMPLE_ROWS)) + 1
        index = np.sort(design.rows.take(cells.take(np.arange(count)).numbers).numbers)
    part = replace(
        job,
        rows=rows.subset(index),
        design=None if design is None else design.restricted(index),
        every_row=True,
    )
    _, error, _ = part.expanded(from_gram(part.rows.matrix(), part.weights))
    if part.n == rows.n:
        return error
    share = part.n / rows.n
    return replace(
        error,
        bias=error.bias * share,
        variance=error.variance * share,
        quadratic_variance=error.quadratic_variance * share**2,
        influence=None,
        degrees_of_freedom=job.degrees_of_freedom,
    )
