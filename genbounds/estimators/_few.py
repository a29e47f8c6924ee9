"""Scores of few samples per feature, whose variance does not say how it falls with more."""

from __future__ import annotations

from collections.abc import Iterable

from genbounds.core.estimate import Estimate
from genbounds.results import Diagnostic, Method, caution

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
    return (
        caution(
            "few-samples",
            "planned from few samples per feature: all of the variance is taken to fall with 1/n, "
            "which asks for too many samples rather than too few, and sometimes finds that no "
            "number suffices where one does",
            "Plan again from a larger pilot or, if it is the smaller one, with a larger reference.",
        ),
    )
