"""Samples of several models, checked and divided into folds that no unit is in two of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from genbounds.core.checks import Checked, check_rows, leaked, shared_rows
from genbounds.core.design import Design, Index, row_design, sums_by
from genbounds.core.scale import factor_of
from genbounds.estimators.kernels._crossed import CrossedMeans, FoldedSample
from genbounds.estimators.kernels._pair_kernels import Radial
from genbounds.estimators.kernels._parameters import check_bandwidth
from genbounds.estimators.kernels._reference import (
    MINIMUM,
    NEEDS,
    KernelReference,
    lost_digits,
)
from genbounds.results import Diagnostic
from genbounds.validation import Float, InputError, about_model, check_same_dimension, seeded

LEAST_FOLDS = 4
"""Weights are fitted between two folds, and judged between two others."""

UNITS_PER_FOLD = 4
"""Minimum number of rows, or groups of rows, of a sample in every fold."""


def crossed_distances(
    models: Mapping[str, Any], reference: KernelReference, *, folds: int, seed: int
) -> tuple[CrossedMeans, tuple[Diagnostic, ...]]:
    """Return the means of a kernel distance between all folds of models and reference.

    Parameters
    ----------
    models : mapping of str to array_like of shape (n, d) or Sample
    reference : KernelReference
    folds, seed : int

    Returns
    -------
    tuple of CrossedMeans and tuple of Diagnostic
        The reference is the last sample.
    """
    seen = inspected_models(models, needs=NEEDS)
    kernel = reference.kernel_of({name: one.rows for name, one in seen.items()})
    samples = folded([*seen.items(), ("", reference.sample)], folds, seed)
    crossed = CrossedMeans(samples, kernel, folds, factor=factor_of(kernel.unit, kernel.power))
    lost = lost_digits(kernel, [sample.rows for sample in samples])
    return crossed, (*lost, *warnings_of(seen, reference.sample))


def crossed_squares(
    models: Mapping[str, Any], bandwidth: float, *, folds: int, seed: int
) -> tuple[CrossedMeans, tuple[Diagnostic, ...]]:
    """Return the means of k(x, x')² between all folds of the models, k the RBF kernel.

    Parameters
    ----------
    models : mapping of str to array_like of shape (n, d) or Sample
    bandwidth : float
        Of k; its square is the kernel of a bandwidth smaller by √2.
    folds, seed : int

    Returns
    -------
    tuple of CrossedMeans and tuple of Diagnostic
    """
    seen = inspected_models(models, needs=NEEDS)
    first, one = next(iter(seen.items()))
    for name, other in seen.items():
        with about_model(name):
            check_same_dimension("x", other.rows.shape[1], first, one.rows.shape[1])
    label = f"RBF kernel, bandwidth {check_bandwidth(bandwidth):.10g}"
    centre = np.mean([one.rows.mean(axis=0, dtype=np.float64) for one in seen.values()], axis=0)
    kernel = Radial(
        title="Vendi score of order 2 (RKE)",
        label=label,
        bandwidths=(bandwidth / 2.0**0.5,),
        near_one=(False,),
        centre=centre,
    ).for_rows(max(float(np.abs(one.rows).max()) for one in seen.values()))
    return CrossedMeans(folded([*seen.items()], folds, seed), kernel, folds), warnings_of(seen)


def folded(samples: Sequence[tuple[str, Checked]], folds: int, seed: int) -> list[FoldedSample]:
    """Divide the units of every stratum at random and evenly; one name is in one fold everywhere.

    Parameters
    ----------
    samples : sequence of (str, Checked)
        With their names, which errors say.
    folds, seed : int

    Raises
    ------
    InputError
        If a sample has too few units, or a stratum has none in some fold.
    """
    designs = [seen.design or row_design(len(seen.rows)) for _, seen in samples]
    names = _names(designs)
    rng = seeded(seed, "folds")
    fold = np.full(1 + max(int(one.max()) for one in names), -1)
    found, start = [], 0
    for (model, seen), design, name in zip(samples, designs, names, strict=True):
        if design.units < UNITS_PER_FOLD * folds:
            what = "rows" if design.units == design.n else "groups of rows"
            least = f"{folds} folds take at least {UNITS_PER_FOLD * folds}: use more samples"
            raise _unfolded(f"has {design.units} {what}; {least}", ", or", model, folds)
        order = rng.permutation(design.units)
        order = order[np.argsort(design.stratum[order], kind="stable")]
        free = name[order[fold[name[order]] < 0]]
        fold[free] = (start + np.arange(free.size)) % folds
        start += free.size
        of_row = fold[name][design.unit]
        weights = _fold_weights(design, of_row, folds)
        if weights is None:
            text = f"has strata without a row in each of {folds} folds: merge small strata"
            raise _unfolded(text, ", or use", model, folds)
        found.append(FoldedSample(seen.rows, design, of_row, weights, name))
    return found


def _unfolded(text: str, instead: str, model: str, folds: int) -> InputError:
    """Complain of a sample, that of a model or the reference, that cannot be divided."""
    text += f"{instead} fewer folds." if folds > LEAST_FOLDS else "."
    return InputError(text, argument="x").of_model(model) if model else InputError(text, "real")


def _fold_weights(design: Design, fold: Index, folds: int) -> Float | None:
    """Weights of rows in their fold, in which every stratum has the share that it has in all."""
    stratum = design.stratum[design.unit]
    cell = stratum * folds + fold
    mass = sums_by(cell, design.weights, design.sizes.size * folds)
    if not (mass > 0.0).all():
        return None
    share = sums_by(stratum, design.weights, design.sizes.size)
    out: Float = design.weights * share[stratum] / mass[cell]
    return out


def _names(designs: Sequence[Design]) -> list[Index]:
    """Return a number for every unit; those of one label have one."""
    known: dict[Any, int] = {}
    labels = [
        [(k, unit) for unit in range(design.units)]  # what nobody else is called
        if design.labels is None
        else design.labels.tolist()
        for k, design in enumerate(designs)
    ]
    return [np.array([known.setdefault(label, len(known)) for label in each]) for each in labels]


def inspected_models(models: Mapping[str, Any], *, needs: str) -> dict[str, Checked]:
    """Inspect the samples of several models; `needs` as for `check_rows`."""
    found = {}
    for name, model in models.items():
        with about_model(name):
            found[name] = check_rows("fake", model, needs=needs, minimum=MINIMUM)
    return found


def warnings_of(
    seen: Mapping[str, Checked], reference: Checked | None = None
) -> tuple[Diagnostic, ...]:
    """Return what the rows of models, and of their reference, show."""
    own = [warning.of(name) for name, one in seen.items() for warning in one.warnings]
    found = [*own, *shared_rows({name: one.ids for name, one in seen.items()})]
    if reference is not None:
        found += reference.warnings
        found += [w.of(k) for k, one in seen.items() for w in leaked(one, reference)]
    return tuple(found)
