"""Vendi scores from fewer samples than twice the feature dimension, by a fitted spectrum.

Below that ratio the eigenvalues of the sample say little one by one, but together they determine a
smooth population spectrum (`_marchenko_pastur`), whose entropy is the score. Measured, and where
it fails: docs/explanation/vendi.md, "Few samples".
"""

from __future__ import annotations

import numpy as np
import scipy  # its submodules are loaded at their first use

from genbounds.core.estimate import Estimate, SampleError
from genbounds.core.linalg import EPS
from genbounds.diagnostics import warn_of
from genbounds.estimators.spectrum_fit._few_rows import (
    FEW_ROWS,
    MISFIT,
    REPEATED_SHARE,
    SEEN_SHARE,
    Side,
    distinct_rows,
    kept_ranks,
    row_scales,
)
from genbounds.estimators.spectrum_fit._marchenko_pastur import Functional, RowLaw, fit_spectrum
from genbounds.estimators.vendi._expansion import log_vendi
from genbounds.estimators.vendi._job import RESOLVED_RATIO, STATISTIC, Job
from genbounds.validation import Float

DOUBT = 0.05
"""Share of the removed bias by which a believed fit is off: measured, see
docs/explanation/vendi.md."""

REFUSED_MISFIT = 1.0
"""Mean squared whitened residual above which the fit is refused; from `MISFIT` on the variance is
inflated. Measured: below 0.7 on network features, mostly above 1 on rows from a few tens of
orthogonal subspaces, which no distribution of independent factors describes."""


UNEQUAL = 0.12
"""Variance of the rows' leverages, beyond noise, above which as much bias may be left as was
removed: rows of norm one that the others span unequally well can lie in subspaces of their own.
Measured: up to 0.11 on images, their network features and mixtures; from 0.13 on rows from spheres
of unequal dimension, but also, without harm, where a few strong directions set every row's scale.
"""


def entropy(order: float) -> Functional:
    """Rényi entropy of a spectrum divided by its sum, for a finite order."""

    def functional(spectrum: Float, counts: Float) -> tuple[float, Float]:
        p = spectrum / float(counts @ spectrum)
        if order == 1.0:
            logs = np.log(p)
            value, slope = -float((counts * p) @ logs), -logs
        else:
            power = float(counts @ p**order)
            value = float(np.log(power)) / (1.0 - order)
            slope = order / (1.0 - order) * p ** (order - 1.0) / power
        share = counts * p
        return value, share * (slope - float(share @ slope))

    return functional


def fitted_estimate(job: Job) -> Estimate | str:
    """Score of a smooth spectrum fitted to that of few samples; or why the fit is not believed.

    Parameters
    ----------
    job : Job
        Of a finite order and independent rows of a kernel with a finite feature dimension; with an
        explicit feature map where there are more rows than that.

    Notes
    -----
    The variance is that of the estimator linearised in the rows, each row left out of the resolvent
    that weighs it, plus the posterior variance of what the sample cannot see, both inflated where
    the fit is poor, plus the square of `DOUBT` times the bias removed, or of all of it.
    """
    rows, n, d, order = job.rows, job.n, job.rows.dimension, job.order
    assert d is not None
    features = None
    if n <= d:
        gram = rows.matrix() / n
    else:
        features = np.asarray(rows.features(), np.float64)
        gram = features.T @ features / n
    values, vectors = scipy.linalg.eigh(gram, check_finite=False, overwrite_a=True, driver="evd")
    distinct = distinct_rows(rows.rows)
    kept, rank = kept_ranks(values[::-1], n + 1, d, distinct=distinct + 1)
    values, vectors = values[::-1][:kept], vectors[:, ::-1][:, :kept]
    if features is not None:
        vectors = (features @ vectors) / np.sqrt(n * values)
    fit = fit_spectrum(values, rows=[RowLaw(n)], rank=rank, functional=entropy(order))
    refusal = _refusal(n, rank, distinct, fit.misfit)
    if refusal:
        return refusal
    scales = row_scales(Side(values=values, vectors=vectors, rank=rank, distinct=distinct))
    unequal = scales is not None and float(np.var(scales.radii)) > UNEQUAL
    squared = vectors**2
    shift = values[:, None] + fit.points
    left = np.maximum(1.0 - squared @ (values[:, None] / shift), EPS)
    influence = (squared @ (values[:, None] * fit.points / shift**2) / left) @ fit.weights
    influence -= influence.mean()
    removed = fit.value - log_vendi(values, order)
    doubt = removed if unequal else DOUBT * removed
    sampling = float(influence @ influence) / (n - 1) / n
    error = SampleError(
        variance=(sampling + fit.prior_variance) * max(1.0, fit.misfit / MISFIT) + doubt**2,
        degrees_of_freedom=n - 1.0,
        influence=influence,
    )
    # Rows that the others span unequally well: the interval is widened by all of the bias removed.
    unequal_spans = [warn_of("unequal-subspaces")] if unequal else []
    fitted = warn_of("fitted-vendi-spectrum", n=n, dimension=d, least=RESOLVED_RATIO)
    return job.estimate(
        "spectrum-fit", STATISTIC, fit.value, error, limit=d, warnings=(fitted, *unequal_spans)
    )


def _refusal(n: int, rank: int, distinct: int, misfit: float) -> str:
    if n < FEW_ROWS:
        return f"{n} rows are too few for a fit of the spectrum"
    if n < SEEN_SHARE * rank:
        return f"{n} rows show little of {rank} directions"
    if distinct < (1.0 - REPEATED_SHARE) * n:
        return f"{n - distinct} of {n} rows repeat others"
    if misfit > REFUSED_MISFIT:
        return "no smooth spectrum fits the sample's"
    return ""
