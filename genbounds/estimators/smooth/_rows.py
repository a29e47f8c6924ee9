"""Samples as a user's function takes them, and what goes wrong in that function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from genbounds._scratch import is_dask_array
from genbounds.core.checks import Checked, check_rows
from genbounds.core.moments import Moments
from genbounds.estimators.smooth._slopes import Weighted
from genbounds.samples import features_of
from genbounds.validation import POSTERIOR_ATOL, as_numpy

SAME_VALUE = 1e-6
"""Of the larger of value and standard error: what rounding may change."""

MINIMUM = 8
"""Rows below which no second-order expansion is of use."""


def weighted_function(function: Callable[..., Any], rows: list[NDArray[Any]]) -> Weighted:
    """Return a function of the weights alone, for these rows of one sample or of two."""
    import torch

    tensors = [torch.from_numpy(np.array(part, dtype=np.float64)) for part in rows]
    prepare = getattr(function, "of_rows", None)
    if prepare is not None:
        return cast(Weighted, prepare(*tensors))

    def weighted(*weights: Any) -> Any:
        pairs = zip(tensors, weights, strict=True)
        return function(*(argument for pair in pairs for argument in pair))

    return weighted


def value_of(function: Callable[..., Any], rows: Sequence[NDArray[Any]]) -> float:
    """Plug-in value of these rows, each of the same weight."""
    import torch

    weights = [torch.full((len(part),), 1.0 / len(part), dtype=torch.float64) for part in rows]
    value = torch.as_tensor(weighted_function(function, list(rows))(*weights))
    return float(value.detach())


def once_and_twice(
    function: Callable[..., Any], rows: Sequence[NDArray[Any]], stderr: float
) -> tuple[float, float, bool]:
    """Return the values of the rows once and of every row twice, and whether they are the same.

    A function of weighted rows does not see the difference; one that counts rows does.
    """
    once, twice = (
        value_of(function, [np.repeat(part, times, axis=0) for part in rows]) for times in (1, 2)
    )
    return once, twice, abs(once - twice) <= SAME_VALUE * max(abs(once), stderr)


def inspected(name: str, x: Any) -> Checked:
    if is_dask_array(x):
        x = as_numpy(name, x)  # once
    posteriors = not isinstance(x, Moments) and _are_posteriors(features_of(x))
    return check_rows(name, x, needs="this score needs", minimum=MINIMUM, posteriors=posteriors)


def _are_posteriors(rows: Any) -> bool:
    """Whether every row is a distribution: sure ones are all alike, and no near duplicates."""
    array = np.asarray(rows)
    if array.ndim != 2 or array.shape[1] < 2 or array.dtype.kind != "f" or array.size == 0:
        return False
    with np.errstate(over="ignore", invalid="ignore"):  # such rows are refused
        return bool(array.min() >= 0.0 and np.abs(array.sum(axis=1) - 1.0).max() <= POSTERIOR_ATOL)
