"""A user's function as a kernel, checked wherever it is called."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.estimators.kernels._kernel_rows import KernelRows
from genbounds.estimators.kernels._parameters import KernelFunction
from genbounds.validation import Float, InputError, blamed

PAIR_BLOCK = 64
"""Pairs for which the function is evaluated in one block."""

OWN_BLOCK = 128
"""Rows for which it is evaluated at themselves."""


class FunctionRows(KernelRows):
    """A user's function of two blocks of rows."""

    name = "callable"
    per_row = ("rows", "_roots")

    def __init__(self, rows: NDArray[Any], function: KernelFunction) -> None:
        super().__init__(rows)
        self._function, self.rows = function, rows
        self.label = f"callable {getattr(function, '__name__', type(function).__name__)}"
        own = np.empty(self.n)
        for start in range(0, self.n, OWN_BLOCK):
            part = rows[start : start + OWN_BLOCK]
            own[start : start + OWN_BLOCK] = np.diagonal(self._call(part, part))
        if not (own > 0.0).all():
            row = int(np.flatnonzero(~(own > 0.0))[0])
            raise InputError(
                f"gives k(x, x) = {own[row]:.6g} for row {row}: it must be positive.",
                argument="kernel",
            )
        self._roots: Float = np.sqrt(own)

    def block(self, one: slice, two: slice) -> NDArray[Any]:
        """As the function has it, if it is symmetric."""
        values = self._between(one, two)
        if one == two and not np.allclose(values, values.T, rtol=1e-6, atol=1e-8):
            raise InputError("is not symmetric: k(x, y) must equal k(y, x).", argument="kernel")
        return values

    def pairs(self, i: NDArray[np.intp], j: NDArray[np.intp]) -> Float:
        """From small blocks."""
        parts = (slice(k, k + PAIR_BLOCK) for k in range(0, i.size, PAIR_BLOCK))
        found = [np.diagonal(self._between(i[part], j[part])) for part in parts]
        return np.concatenate([np.zeros(0), *found])

    def _between(self, i: Any, j: Any) -> Float:
        """Return the normalised kernel of rows i with rows j."""
        scale = np.multiply.outer(self._roots[i], self._roots[j])
        values: Float = self._call(self.rows[i], self.rows[j]) / scale
        return values

    def _call(self, a: NDArray[Any], b: NDArray[Any]) -> Float:
        with blamed("kernel"):
            out = np.asarray(self._function(a, b), dtype=np.float64)
        if out.shape != (len(a), len(b)):
            raise InputError(
                f"must return shape ({len(a)}, {len(b)}) for two blocks of that many "
                f"rows; got shape {out.shape}.",
                argument="kernel",
            )
        if not np.isfinite(out).all():
            raise InputError("returned NaN or infinity.", argument="kernel")
        return out
