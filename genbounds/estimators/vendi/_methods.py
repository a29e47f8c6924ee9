"""What every method of the Vendi score is given, and the methods that approximate the spectrum.

"truncated" and "nystrom" score leading eigenvalues, "fkea" another kernel, of random frequencies;
"lanczos" sums over the empirical spectrum without it. `_exact` has those that approximate nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from genbounds.core.design import Design
from genbounds.core.estimate import Estimate, SampleError
from genbounds.core.expansion import expand
from genbounds.diagnostics import warn_of
from genbounds.estimators.kernels._kernel_rows import KernelRows
from genbounds.estimators.vendi import _spectrum as spectra
from genbounds.estimators.vendi._expansion import PAIRING_SEED, SpectralForm, Spectrum
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

PROBES, STEPS = 64, 16

LANDMARKS_PER_COMPONENT = 5
"""As many as the components, as in V24, leave out trace, whose lift makes scores too large."""

ROWS_PER_EIGENVALUE = 10
"""With fewer, bias can be left, so that the interval is widened."""


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

    def expanded(
        self, spectrum: Spectrum, kept: int | None = None
    ) -> tuple[float, SampleError, float]:
        """Plug-in log score of a spectrum, its error, and what parts of the rows add to it."""
        form = SpectralForm(
            spectrum, n=self.n, order=self.order, kept=kept, every_row=self.every_row
        )
        error, noise = expand(form, self.design, part_rows=form.part_rows)
        return form.at.value, error, noise

    def features(self) -> spectra.FeatureRows | None:
        """Feature map, in float32 where the rows are and no power of an eigenvalue below one is."""
        dtype = None if self.order >= 1.0 else np.float64
        if self.rows.linear:  # rows of norm one are made when they are asked for
            given, d = self.rows.given, self.rows.dimension or 0
            return spectra.FeatureRows(given, make=self.rows.prepare, d=d, dtype=dtype)
        features = self.rows.features()
        return None if features is None else spectra.FeatureRows(features, dtype=dtype)


def truncated(job: Job) -> Estimate:
    """Score of the leading `job.components` eigenvalues (V24, Definition 2)."""
    enough_rows(job)
    details: tuple[str, ...] = ()
    features = job.features()
    if features is not None and features.d < job.n:
        spectrum = spectra.from_features(features, None, job.weights)
    elif job.n <= DENSE_ROWS:
        spectrum = spectra.from_gram(job.rows.matrix(), job.weights)
    else:
        unweighted(job)
        spectrum, residual = spectra.leading(job.rows, job.components, job.seed)
        details = (f"leading eigenpairs by block Krylov, largest residual {residual:.1g}",)
    statistic = f"vendi, truncated at t={job.components}"
    return _of_leading(job, "truncated", statistic, spectrum, details)


def nystrom(job: Job) -> Estimate:
    """Score of the leading eigenvalues of the Nyström approximation on random landmarks."""
    t = job.components
    unweighted(job)
    enough_rows(job)
    landmarks = job.landmarks or min(LANDMARKS_PER_COMPONENT * t, job.n)
    if not t <= landmarks <= job.n:
        legal = f"must be from {t}, the components, to {job.n}, the rows"
        raise InputError(f"{legal}; got {landmarks}.", argument="landmarks")
    spectrum, trace = spectra.nystrom_spectrum(job.rows, landmarks, job.seed)
    captured = f"{landmarks} landmarks capture {trace:.1%} of the trace"
    found = _of_leading(job, "nystrom", f"vendi, nystrom, truncated at t={t}", spectrum, ())
    low = (
        f"each eigenvalue is low by at most {1.0 - trace:.2g}, all together, which the "
        "interval does not cover"
    )
    return replace(found, assumptions=(*found.assumptions, low), details=(*found.details, captured))


def _of_leading(
    job: Job, method: Method, statistic: str, spectrum: Spectrum, details: tuple[str, ...]
) -> Estimate:
    t, n = job.components, job.n
    kept = min(t, spectrum.values.size)
    if kept < t:
        details += (f"only {kept} eigenvalues are positive; the others of the {t} kept are 0",)
    value, error, _ = job.expanded(spectrum, t if kept == t else None)
    if not job.plugin:
        value -= error.bias
    warnings = []
    if n < ROWS_PER_EIGENVALUE * t:
        error = replace(error, variance=error.variance + error.bias**2 / 4.0)
        few = warn_of("few-for-eigenvalues", n=n, eigenvalues=t, least=ROWS_PER_EIGENVALUE)
        warnings.append(few)
    return job.estimate(
        method, statistic, value, error, limit=t, warnings=(*warnings,), details=details
    )


def random_features(job: Job) -> Estimate:
    """Score of the kernel made of `job.components` random frequencies."""
    t, n, rows = job.components, job.n, job.rows
    if rows.name not in {"rbf", "laplace"}:
        raise InputError(
            f"method 'fkea' needs a shift-invariant kernel ('rbf' or 'laplace'); got {rows.name!r}."
        )
    features = spectra.fourier_features(rows, t, job.seed)
    if job.order < 1.0:
        features = replace(features, dtype=np.float64)
    value, error, _ = job.expanded(spectra.from_features(features, None, job.weights))
    warnings = [warn_of("score-of-frequencies", frequencies=t)]
    if not job.plugin and (job.order >= 2.0 or n >= RESOLVED_RATIO * 2 * t):
        value -= error.bias
    elif not job.plugin:
        few = warn_of("few-for-frequencies", n=n, dimensions=2 * t, least=RESOLVED_RATIO)
        warnings.insert(0, few)
    statistic = f"vendi, fkea with {t} frequencies, seed {job.seed}"
    return job.estimate(
        "random-features", statistic, value, error, limit=2 * t, warnings=(*warnings,)
    )


def lanczos(job: Job) -> Estimate:
    """Empirical score by stochastic Lanczos quadrature."""
    n = job.n
    if math.isinf(job.order):
        raise InputError("method 'lanczos' is for finite orders; order inf needs one eigenvalue.")
    unweighted(job)
    error = subsample_error(job)
    found = spectra.lanczos_entropy(
        job.rows,
        order=job.order,
        deflated=min(job.components, n // 4),
        probes=PROBES,
        steps=min(STEPS, n),
        seed=job.seed,
    )
    variance = error.variance + found.stderr**2 + found.bracket**2
    return job.estimate(
        "lanczos",
        f"vendi, empirical at n={n}",
        found.value,
        replace(error, variance=variance, influence=None),
        warnings=(warn_of("grows-with-n", n=n),),
        details=(
            f"Lanczos quadrature: error of the log score from {PROBES} probes {found.stderr:.2g}, "
            f"from quadrature {found.bracket:.2g}, both in the interval",
        ),
    )


def unweighted(job: Job) -> None:
    """Refuse weights where only leading eigenvalues, or none, are computed."""
    if job.weights is not None:
        raise InputError(
            "has weights, which need the whole spectrum: use the method 'ustat' (order 2) or "
            f"'fkea', or at most {DENSE_ROWS} rows.",
            argument="x",
        )


def enough_rows(job: Job) -> None:
    """Refuse to keep as many eigenvalues as there are rows."""
    if not job.components < job.n:
        raise InputError(
            f"must be below the number of samples; got {job.components} for {job.n}. "
            "Keep fewer eigenvalues, or draw more samples.",
            argument="components",
        )


def subsample_error(job: Job) -> SampleError:
    """Error of the score of all rows, carried over from a subsample: bias falls as 1/n."""
    rows, design = job.rows, job.design
    rng = np.random.default_rng(PAIRING_SEED)
    index = np.arange(rows.n)
    if rows.n > SUBSAMPLE_ROWS and design is None:
        index = np.sort(rng.choice(rows.n, SUBSAMPLE_ROWS, replace=False))
    elif rows.n > SUBSAMPLE_ROWS and design is not None:
        if design.seed is not None:
            raise InputError(
                f"has seeds that groups share: use the method 'exact', 'ustat' (order 2), or at "
                f"most {SUBSAMPLE_ROWS} rows.",
                argument="x",
            )
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
    _, error, _ = part.expanded(spectra.from_gram(part.rows.matrix(), part.weights))
    if part.n == rows.n:
        return error
    share = part.n / rows.n
    return replace(
        error,
        bias=error.bias * share,
        variance=error.variance * share,
        quadratic_variance=error.quadratic_variance * share**2,
        influence=None,
        degrees_of_freedom=rows.n - 1.0 if design is None else design.degrees_of_freedom,
    )
