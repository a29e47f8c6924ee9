"""Kernel means between folds of models, by the scores that are quadratic in a mixture's weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from genbounds.estimators._metric_spec import MetricSpec
from genbounds.estimators.kernels import (
    CrossedMeans,
    KernelReference,
    crossed_distances,
    crossed_squares,
)
from genbounds.estimators.vendi import vendi_options
from genbounds.results import Diagnostic
from genbounds.validation import InputError


def crossed_means(
    spec: MetricSpec,
    models: Mapping[str, Any],
    reference: Any,
    options: Mapping[str, Any],
    *,
    folds: int,
    seed: int,
) -> tuple[CrossedMeans, tuple[Diagnostic, ...]]:
    """Return the kernel means of a mixture's score between all folds of its samples.

    Parameters
    ----------
    spec : MetricSpec
        Of a kernel distance, or "rke".
    models : mapping of str to array_like of shape (n, d) or Sample
    reference : array_like of shape (m, d), Sample or None
        The last sample of the means; for "rke" only a bandwidth is taken from it.
    options : mapping
        Of the kernel.
    folds, seed : int

    Returns
    -------
    tuple of CrossedMeans and tuple of Diagnostic

    Raises
    ------
    InputError
        As the score of one model; for "rke" if the kernel is another than "rbf".
    """
    if spec.name != "rke":
        kernel = "polynomial" if spec.name == "kid" else spec.name
        prepared = KernelReference(reference, kernel=kernel, **options)
        return crossed_distances(models, prepared, folds=folds, seed=seed)
    shared = [*models.values()] if reference is None else [reference]
    given, _ = vendi_options("rke", shared, options)
    if given["kernel"] != "rbf":
        raise InputError("must be 'rbf' for a mixture: pass no other.", argument="kernel")
    return crossed_squares(models, given["bandwidth"], folds=folds, seed=seed)
