"""Scores of few samples per feature, whose variance does not say how it falls with more."""

from __future__ import annotations

from collections.abc import Iterable

from genbounds.core.estimate import Estimate
from genbounds.diagnostics import warn_of
from genbounds.results import Diagnostic, Method

FEW: frozenset[Method] = frozenset(
    {"spectrum-fit", "joint-spectrum-fit", "contour", "joint-contour", "one-by-one"}
)
"""Methods for few samples per feature, of either side."""


def from_few(estimates: Iterable[Estimate]) -> tuple[Diagnostic, ...]:
    """Return what a plan has to say if it is made from such scores.

    Their variance has no quadratic part of its own: all of it is taken to fall with 1/n.

    Parameters
    ----------
    estimates : iterable of Estimate

    Returns
    -------
    tuple of Diagnostic
    """
    if not any(estimate.method in FEW for estimate in estimates):
        return ()
    return (warn_of("plan-from-few"),)
