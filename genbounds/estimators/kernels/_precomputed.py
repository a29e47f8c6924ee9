"""A kernel matrix that is given: its rows are numbers, of which the kernel looks up pairs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from genbounds._scratch import row_parts
from genbounds.core.checks import Checked, check_sample, row_ids
from genbounds.samples import Sample, features_of
from genbounds.validation import InputError, check_features, check_finite


@dataclass(frozen=True, slots=True, eq=False)
class GivenKernel:
    """Kernel of row numbers, entries of a symmetric matrix."""

    matrix: NDArray[Any]
    __name__: ClassVar[str] = "precomputed"

    def __call__(self, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        """Return the kernel of all pairs of rows."""
        entries: NDArray[Any] = self.matrix[np.ix_(*(x[:, 0].astype(np.intp) for x in (a, b)))]
        return entries


def inspect_kernel(name: str, x: Any) -> tuple[Checked, GivenKernel]:
    """Check a kernel matrix of shape (n, n); return its rows as numbers, and the kernel of these.

    Equal rows of it are equal samples.
    """
    matrix = check_features(name, features_of(x))
    n, columns = matrix.shape
    if n != columns:
        raise InputError(
            f"must have shape (n, n), the kernel of every two samples; got shape {matrix.shape}.",
            argument=name,
        )
    for part in row_parts(matrix):
        check_finite(name, matrix[part], first_row=part.start)
        if not np.allclose(matrix[part], matrix[:, part].T, rtol=1e-6, atol=1e-8):
            raise InputError("is not symmetric: k(x, y) must equal k(y, x).", argument=name)
    # In single precision, which is exact here: its digests are then `ids`, those of the matrix.
    numbers = np.arange(n, dtype=np.float32)[:, None]
    seen = check_sample(name, x, posteriors=True)
    if isinstance(x, Sample):  # which may come in another order
        seen = replace(check_sample(name, replace(x, features=numbers)), findings=seen.findings)
    else:
        seen = replace(seen, rows=numbers)
    ids = row_ids(matrix)[seen.rows[:, 0].astype(np.intp)]
    return replace(seen, ids=ids), GivenKernel(matrix)
