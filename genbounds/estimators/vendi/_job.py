"""What every method of the Vendi score is given, and the steps that several of them share."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from genbounds.estimators._estimate import EXACT, Estimate, OwnInterval, SampleError
from genbounds.estimators.kernels._kernels import KernelRows
from genbounds.estimators.vendi._expansion import PAIRING_SEED, spectral_error
from genbounds.estimators.vendi._spectrum import FeatureRows, Spectrum, from_gram
from genbounds.results import Diagnostic, Method
from genbounds.validation import InputError

DENSE_ROWS = 3000
"""Up to so many rows all eigenvectors are computed; above, leading ones or those of a subsample."""

SUBSAMPLE_ROWS = 1500
"""Rows of the subsample that measures the standard error where eigenvectors are out of reach."""

RESOLVED_RATIO = 2
"""Samples per dimension of the feature map from which the spectrum of the sample is debiased for
orders below 2; from fewer a spectrum is fitted."""

AS_THEY_ARE = ("empirical", "lanczos")
"""Methods that score the empirical spectrum whatever the estimator: there is no bias to remove."""

NEIGHBOURS = 64
"""Eigenvalues beyond a cut that are taken one by one."""


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
    every_row : bool
        Whether the influence of every row is wanted.
    """

    rows: KernelRows
    order: float
    plugin: bool
    components: int
    seed: int
    every_row: bool

    @property
    def n(self) -> int:
        """Number of rows."""
        n: int = self.rows.n
        return n

    def estimate(
        self,
        method: Method,
        statistic: str,
        value: float,
        error: SampleError,
        *,
        limit: float | None = None,
        own_interval: OwnInterval | None = None,
        warnings: tuple[Diagnostic, ...] = (),
        details: tuple[str, ...] = (),
    ) -> Estimate:
        """Make the estimate of the log score, at most log `limit`."""
        return Estimate(
            estimator="plugin" if self.plugin else "debiased",
            method="plug-in" if self.plugin and method not in AS_THEY_ARE else method,
            statistic=statistic,
            value=value,
            sample=replace(error, n=self.n),
            reference=EXACT,
            log_scale=True,
            lower_limit=0.0,
            upper_limit=math.inf if limit is None else math.log(limit),
            higher_is_better=True,
            own_interval=own_interval,
            warnings=warnings,
            details=details,
        )

    def features(self) -> FeatureRows | None:
        """Feature map, in float32 where the rows are and no power of an eigenvalue below one is."""
        if self.rows.name == "cosine":
            rows = FeatureRows(self.n, self.rows.width, self.rows.dtype, self.rows.unit_rows)
        else:
            features = self.rows.features()
            if features is None:
                return None
            rows = FeatureRows.of(features)
        return rows if self.order >= 1.0 else rows.double()


def enough_rows(job: Job, components: int) -> None:
    """Refuse to keep as many eigenvalues as there are rows."""
    if not components < job.n:
        raise InputError(
            f"must be below the number of samples; got {components} for {job.n}. "
            "Keep fewer eigenvalues, or draw more samples.",
            argument="components",
        )


def spectrum_error(
    spectrum: Spectrum, n: int, order: float, kept: int | None = None, *, every_row: bool = True
) -> tuple[float, SampleError, float]:
    """Plug-in log score of a spectrum, its error, and the noise of parts (`spectral_error`)."""
    spectrum = as_far_as_it_counts(spectrum, order, kept)
    return spectral_error(
        spectrum.coordinates, spectrum.values, n=n, order=order, kept=kept, every_row=every_row
    )


def as_far_as_it_counts(spectrum: Spectrum, order: float, kept: int | None = None) -> Spectrum:
    """Leave out what lies far beyond a cut, which acts through its sum alone."""
    cut = 1 if math.isinf(order) and kept is None else kept
    return spectrum if cut is None else spectrum.head(2 * cut + NEIGHBOURS)


def subsample_error(rows: KernelRows, order: float) -> SampleError:
    """Error of the score of all rows, carried over from a subsample: bias falls as 1/n."""
    part = rows
    if rows.n > SUBSAMPLE_ROWS:
        rng = np.random.default_rng(PAIRING_SEED)
        part = rows.subset(np.sort(rng.choice(rows.n, SUBSAMPLE_ROWS, replace=False)))
    _, error, _ = spectrum_error(from_gram(part.matrix()), part.n, order)
    share = part.n / rows.n
    return replace(
        error,
        bias=error.bias * share,
        variance=error.variance * share,
        quadratic_variance=error.quadratic_variance * share**2,
        influence=error.influence if part.n == rows.n else None,
        degrees_of_freedom=rows.n - 1.0,
    )
