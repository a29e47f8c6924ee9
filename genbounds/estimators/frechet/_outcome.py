"""What all methods of the Fréchet distance end in: an estimate with what is to be doubted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from genbounds.core.checks import drawing_warnings
from genbounds.core.design import drawn
from genbounds.core.estimate import Estimate, SampleError, heavy_tails, small_sample
from genbounds.diagnostics import warn_of
from genbounds.estimators.frechet._gaussian import gaussian_bias
from genbounds.estimators.frechet._pair import FrechetPair, lends
from genbounds.estimators.frechet._sample import SIDES, FrechetSample
from genbounds.results import Diagnostic, Method

OF_STDERR = 4.0
"""One over the share of a standard error that an unknown bias may have in an interval."""


def make_estimate(
    method: Method,
    value: float,
    samples: tuple[FrechetSample, FrechetSample],
    errors: tuple[SampleError, SampleError],
    *,
    estimator: str = "debiased",
    shared_variance: float = 0.0,
    warnings: tuple[Diagnostic, ...] = (),
    assumptions: tuple[str, ...] = (),
    details: tuple[str, ...] = (),
) -> Estimate:
    """Join the errors of both samples, given in the order (generated, reference)."""
    one, two = (
        replace(
            error,
            n=sample.n,
            units=None if sample.design is None else sample.design.labels,
            row_ids=None if sample.seen is None else sample.seen.single_ids,
        )
        for sample, error in zip(samples, errors, strict=True)
    )
    found = Estimate(
        title="Fréchet distance",
        estimator=estimator,
        method=method,
        value=value,
        sample=one,
        reference=two,
        shared_variance=shared_variance,
        lower_limit=0.0,
        warnings=(
            drawing_warnings(*(sample.seen for sample in samples))
            + warnings
            + _fourth_moments_warnings(samples, warnings)
            + _size_warnings(samples)
        ),
        assumptions=_assumptions(samples) + assumptions,
        details=details,
    )
    return _unknown_size(found.warned(*heavy_tails(found)), samples)


def _unknown_size(found: Estimate, samples: tuple[FrechetSample, FrechetSample]) -> Estimate:
    """Say from how many reference rows on the interval would hold, where m is unknown."""
    fake, real = samples
    if real.n is not None or real.moments.size_known:
        return found
    pair = FrechetPair(fake, real)
    roots = pair.directions[0] if pair.roots.any() else pair.roots
    rate = gaussian_bias(real.trace, roots, 1)
    needed = OF_STDERR * rate / found.stderr if found.stderr > 0.0 else np.inf
    what = (
        f"interval holds if they were {needed:,.0f} or more"
        if np.isfinite(needed)
        else "bias of its samples is left in"
    )
    warning = warn_of("reference-size-unknown", what=what)
    return replace(found, missing_rate=rate).warned(warning)


def _assumptions(samples: tuple[FrechetSample, FrechetSample]) -> tuple[str, ...]:
    if all(sample.n is None for sample in samples):
        return ("both moments are taken as exactly known: no sampling error",)
    known = "the {} moments are taken as exactly known"
    return (
        "features have finite eighth moments",
        *(
            known.format(name) if sample.n is None else f"{drawn(sample.design)} ({name})"
            for name, sample in zip(SIDES, samples, strict=True)
        ),
    )


def _size_warnings(samples: tuple[FrechetSample, FrechetSample]) -> tuple[Diagnostic, ...]:
    found = tuple(
        warning
        for name, sample in zip(SIDES, samples, strict=True)
        if sample.n is not None
        for warning in small_sample(sample.effective, name=name, units=sample.free_units)
    )
    fake = samples[0]
    if fake.n is not None or fake.moments.size_known:
        return found
    return (*found, warn_of("generated-size-unknown"))


def _fourth_moments_warnings(
    samples: tuple[FrechetSample, FrechetSample], given: tuple[Diagnostic, ...]
) -> tuple[Diagnostic, ...]:
    """Say where the fourth moments of a sample come from, if it has no rows of its own."""
    if any(warning.code == "moments-only" for warning in given):
        return ()
    found = []
    directions = min(sample.directions for sample in samples)
    for k, (name, sample) in enumerate(zip(SIDES, samples, strict=True)):
        if sample.n is None or sample.some_rows is not None:
            continue
        borrowed = lends(samples[1 - k], directions)
        source = f"of the {SIDES[1 - k]} samples" if borrowed else "of a Gaussian distribution"
        found.append(warn_of("fourth-moments", name=name, source=source))
    return tuple(found)
