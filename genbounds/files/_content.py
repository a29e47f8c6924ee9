"""What a file may hold: features or statistics, under names that the field uses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genbounds.files._display import display
from genbounds.validation import Float, InputError

FEATURE_KEYS = ("features", "reps", "feats", "arr_0")  # dgm-eval: reps; clean-fid: feats
STATISTICS_KEYS = ("mu", "sigma")
METADATA_KEY = "metadata"


class Statistics(NamedTuple):
    """First two moments of a set of features.

    Attributes
    ----------
    mean : ndarray of shape (d,)
    cov : ndarray of shape (d, d)
        Divisor n - 1.
    n : int or None
        Number of samples behind them; None if the file does not say.
    """

    mean: Float
    cov: Float
    n: int | None


def pick(
    shown: str, members: Mapping[str, Callable[[], NDArray[Any]]]
) -> NDArray[Any] | Statistics:
    """Pick features or statistics among named arrays; loads only what is asked for."""
    features = [key for key in FEATURE_KEYS if key in members]
    statistics = all(key in members for key in STATISTICS_KEYS)
    if len(features) + statistics > 1:
        both = [*features, *(STATISTICS_KEYS if statistics else ())]
        raise InputError(
            f"{shown}: is ambiguous, it has {' and '.join(both)}: "
            "keep one array of features, or only the statistics."
        )
    if features:
        return as_features(shown, members[features[0]]())
    if statistics:
        count = members["n"]() if "n" in members else None
        return as_statistics(shown, members["mu"](), members["sigma"](), count)
    keys = [display(key, limit=40) for key in members]
    present = ", ".join(keys[:8]) + (f" and {len(keys) - 8} more" if len(keys) > 8 else "")
    raise InputError(
        f"{shown}: has no known array, only: {present or 'nothing'}. Name the features "
        f"`features`, `reps`, `feats` or `arr_0`, or the statistics `mu` and `sigma`."
    )


def as_features(shown: str, array: NDArray[Any]) -> NDArray[Any]:
    """Check that an array can hold features; make it read-only."""
    if array.ndim != 2:
        raise InputError(
            f"{shown}: holds an array of shape {array.shape}: "
            "features need shape (n, d), one row a sample."
        )
    if array.size == 0:
        raise InputError(
            f"{shown}: holds an array of shape {array.shape}, no data: write it again."
        )
    array.flags.writeable = False
    return array


def as_statistics(
    shown: str, mean: NDArray[Any], cov: NDArray[Any], count: NDArray[Any] | None
) -> Statistics:
    """Check shapes and count; return float64."""
    if mean.ndim != 1 or mean.size == 0 or cov.shape != (mean.size, mean.size):
        raise InputError(
            f"{shown}: mu has shape {mean.shape} and sigma {cov.shape}: "
            "statistics need shapes (d,) and (d, d)."
        )
    n = None
    if count is not None:
        if count.size != 1 or not (float(count.item()) >= 1.0 and float(count.item()) % 1.0 == 0.0):
            raise InputError(
                f"{shown}: n is {display(count, limit=40)}: it must be the number of samples, "
                "a whole number; leave it out if it is not known."
            )
        n = int(count.item())
    return Statistics(mean.astype(np.float64), cov.astype(np.float64), n)


def check_dtype(shown: str, dtype: np.dtype[Any]) -> None:
    """Refuse what is not real numbers."""
    if dtype.hasobject:
        raise InputError(
            f"{shown}: holds pickled Python objects, which are never loaded: "
            "save a plain float array of shape (n, d)."
        )
    if dtype.kind not in "fiub":
        raise InputError(
            f"{shown}: holds {display(dtype, limit=60)}, not real numbers: "
            "save a float array of shape (n, d)."
        )
