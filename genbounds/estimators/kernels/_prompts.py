"""Outputs beside their prompts: a product kernel, and prompts as what is drawn independently.

With k(a, b) = exp(-‖a-b‖²/(2σ²)) for prompts and for outputs, either in units of its own σ, the
product of both kernels is that of prompt and output in one row. Rows with one prompt form a group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.core.estimate import Estimate
from genbounds.estimators.kernels._pair_kernels import median_bandwidth
from genbounds.samples import Sample
from genbounds.validation import Float, InputError, check_features, check_positive

SAME_PROMPT = 1e-4
"""Difference of features, in bandwidths, below which two prompts are one."""


def beside_prompts(
    outputs: dict[str, Any],
    prompts: Sequence[Any],
    *,
    bandwidth: Any = None,
    prompt_bandwidth: Any = None,
) -> list[tuple[Sample, Sample]]:
    """Return every sample of outputs with its prompts, and the prompts alone, for σ = 1.

    Parameters
    ----------
    outputs : dict of str to array_like of shape (n, d)
        By argument. Bandwidths that are not given are the medians of the last one.
    prompts : sequence of array_like of shape (n, p)
        Features of the prompt of every row, for each sample; equal rows are one prompt.
    bandwidth, prompt_bandwidth : float, optional
    """
    rows, texts = [], []
    for (argument, x), t in zip(outputs.items(), prompts, strict=True):
        if isinstance(x, Sample) or isinstance(t, Sample):
            raise InputError(
                "is a Sample: pass its features; the prompts are the groups.", argument=argument
            )
        if np.ndim(t) == 1:
            raise InputError(
                "must hold features of every row's prompt, shape (n, p), from a text encoder; got "
                "one value a row.",
                argument="prompts",
            )
        rows.append(check_features(argument, x).astype(np.float64))
        texts.append(check_features("prompts", t).astype(np.float64))
        if len(rows[-1]) != len(texts[-1]):
            raise InputError(
                f"must have one row for each of the {len(rows[-1])} rows of `{argument}`; got "
                f"{len(texts[-1])}.",
                argument="prompts",
            )
    if texts[-1].shape[1] != texts[0].shape[1]:
        raise InputError("must have equally many features for both samples.", argument="prompts")
    rows = _in_bandwidths(rows, "bandwidth", bandwidth)
    texts = _in_bandwidths(texts, "prompt_bandwidth", prompt_bandwidth)
    # An encoder that works in batches gives one prompt features that differ by rounding.
    near = np.round(np.concatenate(texts) / SAME_PROMPT) * SAME_PROMPT
    _, names = np.unique(near, axis=0, return_inverse=True)
    ends = np.cumsum([len(t) for t in texts])[:-1]
    groups: list[NDArray[Any]] = np.split(names.ravel(), ends)
    return [
        (Sample(np.hstack([t, x]), groups=g), Sample(t, groups=g))
        for x, t, g in zip(rows, texts, groups, strict=True)
    ]


def _in_bandwidths(samples: list[Float], name: str, given: Any) -> list[Float]:
    """Divide rows by the bandwidth that is given, or by the median distance of the last sample."""
    unit = median_bandwidth(samples[-1]) if given is None else check_positive(name, given)
    return [x / unit for x in samples]


def as_one_sample(estimate: Estimate) -> Estimate:
    """Give the error of a distance whose samples have the same prompts as that of pairs.

    What a prompt adds, it adds through both samples; its third moment says which way the interval
    leans. The part in pairs is not taken off the variance: with a few hundred prompts value and
    estimated variance rise and fall together (docs/evidence/encoders_and_prompts.md).
    """
    one, two = estimate.sample, estimate.reference
    if one.influence is None or two.influence is None or one.units is None:
        return estimate
    if not np.array_equal(one.units, np.asarray(two.units)):
        return estimate
    n = one.influence.size
    steps = (one.influence + two.influence) / np.sqrt(n * (n - 1.0))
    more = float(steps @ steps) - estimate.variance
    return replace(
        estimate,
        sample=replace(one, skewness=float((steps**3).sum())),
        reference=replace(two, skewness=0.0),
        shared_variance=estimate.shared_variance + max(more, 0.0),
    )
