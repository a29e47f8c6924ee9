"""Class shares: a score of generated rows at those of the reference, and a word where they differ.

A score of rows with other class shares than the reference's mixes two things: other images, and
other shares. Weights p_c / n_c of the rows of class c take the second off (post-stratification: D.
Holt and T. M. F. Smith, "Post stratification", J. R. Statist. Soc. A 142, 1979), and with classes
as strata the variance knows it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy  # its submodules are loaded at their first use

from genbounds._text import number, percent, shown
from genbounds.core.design import sums_by
from genbounds.core.estimate import Estimate
from genbounds.diagnostics import warn_of
from genbounds.results import Diagnostic
from genbounds.samples import Sample
from genbounds.validation import Float, InputError

CHANCE = 1e-6
"""Probability with which equal shares are said to differ, of classes that were drawn at random."""


class Classes(NamedTuple):
    """Classes of a sample.

    Attributes
    ----------
    names : list
        In order.
    rows : ndarray of shape (classes,)
        How many rows each has.
    shares : ndarray of shape (classes,)
        Of the weight.
    units : int
        Groups, or rows that are none.
    weighted : bool
        Whether somebody has seen to the shares.
    """

    names: list[Any]
    rows: Float
    shares: Float
    units: int
    weighted: bool


def classes_of(x: Any) -> Classes | None:
    """Return the classes of a sample; None where it has none."""
    if not isinstance(x, Sample) or x.strata is None:
        return None
    names, of_row = np.unique(x.strata, return_inverse=True)
    rows = np.bincount(of_row).astype(np.float64)
    shares = rows / len(x)
    if x.weights is not None:
        shares = sums_by(of_row, x.weights, len(names))
    units = len(x) if x.groups is None else np.unique(x.groups).size
    return Classes(names.tolist(), rows, shares, units, x.weights is not None)


def score_by_class(fake: Any, real: Classes | None, score: Callable[[Any], Estimate]) -> Estimate:
    """Score a sample with ``shares="reference"`` at those shares, and say where others differ.

    Parameters
    ----------
    fake : array_like or Sample
    real : Classes or None
        Of the reference.
    score : callable
        From a generated sample to its estimate.

    Raises
    ------
    InputError
        If those shares are asked for and the reference has no classes, or not those of the sample.
    """
    if not isinstance(fake, Sample):
        return score(fake)
    fake = at_reference_shares(fake, real)
    return score(fake).warned(*shares_differ(fake, real, score))


def at_reference_shares(fake: Sample, real: Classes | None) -> Sample:
    """Return a sample with ``shares="reference"`` at those shares, and others as they are."""
    if isinstance(fake.shares, str) and fake.shares == "reference":
        if real is None:
            raise InputError(
                "is 'reference', and the reference has no classes: pass it as "
                "genbounds.Sample(real, strata=classes), or the share of every class.",
                argument="shares",
            )
        fake = fake.at_shares(dict(zip(real.names, real.shares.tolist(), strict=True)))
    return fake


def shares_differ(
    fake: Any, real: Classes | None, score: Callable[[Any], Estimate]
) -> tuple[Diagnostic, ...]:
    """Say that two samples have other class shares, with the score at those of the reference.

    Nothing is said where rows have weights.
    """
    own = classes_of(fake)
    if own is None or real is None or own.weighted or real.weighted:
        return ()
    names = sorted({*own.names, *real.names}, key=lambda name: (str(type(name)), name))
    if len(names) < 2:
        return ()
    counts = np.zeros((2, len(names)))
    for row, classes in zip(counts, (own, real), strict=True):
        row[[names.index(name) for name in classes.names]] = classes.rows
    # Pearson's test that both have one distribution; groups of rows count as one each.
    seen = counts * (np.array([own.units, real.units]) / counts.sum(axis=1))[:, None]
    expected = np.outer(seen.sum(axis=1), seen.sum(axis=0)) / seen.sum()
    statistic = float(((seen - expected) ** 2 / expected).sum())
    if scipy.special.chdtrc(len(names) - 1.0, statistic) > CHANCE:
        return ()
    generated, reference = counts / counts.sum(axis=1, keepdims=True)
    worst = int(np.argmax(np.abs(generated - reference)))
    beside = ""
    if (counts > 0.0).all():
        found = score(fake.at_shares(dict(zip(names, reference.tolist(), strict=True))))
        beside = f"; at the reference's shares it is {number(found.value)} ± {number(found.stderr)}"
    seen = warn_of(
        "class-shares",
        name=shown(str(names[worst])),
        generated=percent(float(generated[worst])),
        reference=percent(float(reference[worst])),
        beside=beside,
    )
    return (seen,)
