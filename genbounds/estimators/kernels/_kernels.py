"""The kernel that is meant, on the rows of a sample."""

from __future__ import annotations

from typing import Any

import numpy as np

from genbounds._scratch import by_rows
from genbounds._text import quoted
from genbounds.core.moments import is_narrow
from genbounds.core.tiles import SINGLE_ROWS
from genbounds.estimators.kernels._feature_rows import CosineRows, PolynomialRows
from genbounds.estimators.kernels._function_rows import FunctionRows
from genbounds.estimators.kernels._kernel_rows import KernelRows
from genbounds.estimators.kernels._parameters import Kernel, PolynomialKernel, check_bandwidth
from genbounds.estimators.kernels._radial_rows import LaplaceRows, RbfRows
from genbounds.validation import InputError, check_choice, check_features, check_finite

KERNELS = ("rbf", "laplace", "cosine", "polynomial")


def kernel_rows(x: Any, kernel: Kernel, bandwidth: float | None) -> KernelRows:
    """Check rows, kernel and bandwidth as `vendi_score` takes them; prepare the rows."""
    given = check_features("x", x)
    name = check_kernel(kernel, bandwidth)
    single = is_narrow(given) and len(given) > SINGLE_ROWS
    with np.errstate(invalid="ignore", over="ignore"):  # `check_finite` says it better
        dtype = np.dtype(np.float32 if single else np.float64)
        rows: Any = given
        if given.dtype != dtype:
            rows = by_rows(given, lambda part: given[part].astype(dtype), dtype)
        if name != "cosine":  # which looks at every norm
            check_finite("x", rows)
    if name == "rbf":
        return RbfRows(rows, bandwidth)
    if name == "laplace":
        return LaplaceRows(rows, bandwidth)
    if name == "cosine":
        return CosineRows(rows)
    if name == "polynomial":
        poly = kernel if isinstance(kernel, PolynomialKernel) else PolynomialKernel()
        return PolynomialRows(rows, poly)
    assert callable(kernel)
    return FunctionRows(rows, kernel)


def check_kernel(kernel: Any, bandwidth: Any) -> str:
    """Return what a kernel is called; refuse what is none, and a bandwidth that it cannot have."""
    name = _name_of(kernel)
    if bandwidth is None:
        return name
    if name not in {"rbf", "laplace"}:
        raise InputError(
            f"is for the kernels 'rbf' and 'laplace'; {name!r} has none.", argument="bandwidth"
        )
    check_bandwidth(bandwidth)
    return name


def _name_of(kernel: Any) -> str:
    if isinstance(kernel, str):
        return check_choice("kernel", kernel, KERNELS)
    if isinstance(kernel, PolynomialKernel):
        return "polynomial"
    if callable(kernel):
        return "callable"
    raise InputError(
        f"must be one of {', '.join(map(repr, KERNELS))}, a PolynomialKernel or "
        f"a function of two blocks of rows; got {quoted(kernel)}.",
        argument="kernel",
    )
