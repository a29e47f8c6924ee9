"""A kernel with k(x, x) = 1 on the rows of one sample, evaluated block by block.

Every kernel has `block` (all pairs of two sets of prepared rows; of one set with itself the same
array is given twice) and `pairs` (row by row).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from genbounds import validation
from genbounds._process import by_rows, row_parts
from genbounds._text import quoted
from genbounds.core.checks import Checked, check_sample, row_ids
from genbounds.core.moments import is_narrow, spread_rows
from genbounds.estimators.kernels import _pair_kernels as kernels
from genbounds.estimators.kernels._pair_kernels import (
    Block,
    Kernel,
    KernelFunction,
    PolynomialKernel,
)
from genbounds.samples import Sample, features_of
from genbounds.validation import Float, InputError

KERNELS = ("rbf", "laplace", "cosine", "polynomial")

FAR = 1e3
"""Bandwidths from the mean beyond which rows are centred at their medians, in float64."""

CENTRE_ROWS = 1000
"""Rows, about, whose medians are the centre then."""

TINY = 1e-30
"""Squared norms below this are computed in float64."""

FEATURES = 1000
"""Largest feature map of a polynomial that is written out."""

PAIR_BLOCK, OWN_BLOCK = 64, 128
"""Rows for which a user's function is evaluated at once: for pairs of rows, and at themselves."""


@dataclass(frozen=True, eq=False, kw_only=True)
class KernelRows:
    """The rows of one sample under a kernel.

    Attributes
    ----------
    name : str
        Of the kernel.
    label : str
        Kernel and bandwidth, part of the name of the statistic.
    kernel : object with `block` and `pairs`
    given : ndarray of shape (n, d)
        Above 4,096 rows, float32 where the input has no more precision than that; else float64.
    prepare : callable, optional
        What turns rows as given into those that the kernel takes.
    roots : ndarray of shape (n,), optional
        k(x, x)^½ of every row, where the kernel is to be divided by them.
    dimension : int or None
        Of the feature map; None where it is infinite or not known.
    bandwidth : float or None
    chosen_by_median : bool
        Whether the rows chose the bandwidth.
    """

    name: str
    label: str
    kernel: kernels.Radial | Laplace | Cosine | FunctionKernel
    given: NDArray[Any]
    prepare: Callable[[NDArray[Any]], NDArray[Any]] | None = None
    roots: Float | None = None
    dimension: int | None = None
    bandwidth: float | None = None
    chosen_by_median: bool = False

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.given)

    @property
    def linear(self) -> bool:
        """Whether the rows that the kernel takes are their own feature map."""
        return isinstance(self.kernel, Cosine) and self.kernel.degree == 1

    @cached_property
    def rows(self) -> NDArray[Any]:
        """Return all rows as the kernel takes them."""
        prepare = self.prepare
        if prepare is None:
            return self.given
        return by_rows(self.given, lambda part: prepare(self.given[part]), self.given.dtype)

    def subset(self, index: NDArray[np.intp] | slice) -> KernelRows:
        """Return some of the rows under the same kernel and bandwidth."""
        roots = None if self.roots is None else self.roots[index]
        return replace(self, given=self.given[index], roots=roots)

    def block(self, one: slice, two: slice | NDArray[np.intp]) -> NDArray[Any]:
        """k(x_i, x_j) for i in `one`, j in `two`, which may be `one` itself."""
        a, same = self.rows[one], one is two
        values = self.kernel.block(a, a if same else self.rows[two])
        if self.roots is None:
            return values
        values = values / np.multiply.outer(self.roots[one], self.roots[two])
        if same and not np.allclose(values, values.T, rtol=1e-6, atol=1e-8):
            raise InputError("is not symmetric: k(x, y) must equal k(y, x).", argument="kernel")
        return values

    def pairs(self, i: NDArray[np.intp], j: NDArray[np.intp]) -> Float:
        """k(x_i, x_j) for pairs of rows, in float64."""
        a, b = (self.rows[index].astype(np.float64) for index in (i, j))
        values = self.kernel.pairs(a, b)
        return values if self.roots is None else values / (self.roots[i] * self.roots[j])

    def features(self) -> NDArray[Any] | None:
        """Return an explicit feature map of shape (n, dimension), where there is a small one."""
        small = self.linear or (self.dimension is not None and self.dimension <= FEATURES)
        return (
            self.kernel.features(self.rows) if isinstance(self.kernel, Cosine) and small else None
        )

    def slices(self) -> list[slice]:
        """Return the rows of all blocks."""
        starts = range(0, self.n, kernels.BLOCK_ROWS)
        return [slice(i, min(i + kernels.BLOCK_ROWS, self.n)) for i in starts]

    def upper_blocks(self) -> Iterator[Block]:
        """Blocks on and above the diagonal of the kernel matrix."""
        slices = self.slices()
        for i, one in enumerate(slices):
            for two in slices[i:]:
                yield one, two, self.block(one, two)

    def matrix(self, dtype: Any = np.float64) -> NDArray[Any]:
        """Return the whole kernel matrix, shape (n, n)."""
        out = np.empty((self.n, self.n), dtype)
        for one, two, values in self.upper_blocks():
            out[one, two] = values
            if one != two:
                out[two, one] = values.T
        return out

    def multiply(self, vectors: Float) -> Float:
        """Return ``K @ vectors``, one block of K at a time, each used for both of its halves."""
        vectors = vectors.astype(self.given.dtype)
        if self.linear:
            return np.asarray(self.rows @ (self.rows.T @ vectors), float)
        return kernels.weighted_sums(self.upper_blocks(), vectors)[0]


class Laplace:
    """exp(-‖x-y‖₁) of rows in units of the bandwidth."""

    def block(self, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        """Kernel of all pairs."""
        from scipy.spatial.distance import cdist

        return np.asarray(np.exp(-cdist(a, b, "cityblock")).astype(a.dtype, copy=False))

    def pairs(self, a: NDArray[Any], b: NDArray[Any]) -> Float:
        """Kernel of pairs."""
        return np.asarray(np.exp(-np.abs(a - b).sum(axis=1)))


@dataclass(frozen=True, slots=True)
class Cosine:
    """(x·y)^degree of rows of norm one."""

    degree: int

    def block(self, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        """Kernel of all pairs."""
        out = np.asarray(a @ b.T)
        if self.degree > 1:
            out **= self.degree
        if a is b:
            np.fill_diagonal(out, 1)
        return out

    def pairs(self, a: NDArray[Any], b: NDArray[Any]) -> Float:
        """Kernel of pairs."""
        return np.asarray(np.einsum("ij,ij->i", a, b) ** self.degree)

    def features(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return the products of as many features as the degree."""
        if self.degree == 1:
            return rows
        columns, given = [], rows.astype(np.float64)
        for chosen in combinations_with_replacement(range(rows.shape[1]), self.degree):
            same = math.prod(map(math.factorial, Counter(chosen).values()))
            ways = math.factorial(self.degree) // same
            columns.append(math.sqrt(ways) * given[:, list(chosen)].prod(axis=1))
        return np.column_stack(columns)


@dataclass(frozen=True, slots=True)
class FunctionKernel:
    """A user's function of two blocks of rows, checked wherever it is called."""

    function: KernelFunction

    def block(self, a: NDArray[Any], b: NDArray[Any]) -> Float:
        """As the function has it."""
        with validation.blamed("kernel"):
            out = np.asarray(self.function(a, b), dtype=np.float64)
        if out.shape != (len(a), len(b)):
            raise InputError(
                f"must return shape ({len(a)}, {len(b)}) for two blocks of that many "
                f"rows; got shape {out.shape}.",
                argument="kernel",
            )
        if not np.isfinite(out).all():
            raise InputError("returned NaN or infinity.", argument="kernel")
        return out

    def pairs(self, a: NDArray[Any], b: NDArray[Any], step: int = PAIR_BLOCK) -> Float:
        """From small blocks."""
        parts = (slice(start, start + step) for start in range(0, len(a), step))
        diagonals = (np.diagonal(self.block(a[part], b[part])) for part in parts)
        return np.concatenate([np.zeros(0), *diagonals])


def kernel_rows(x: Any, kernel: Kernel, bandwidth: float | None) -> KernelRows:
    """Check rows, kernel and bandwidth as `vendi_score` takes them; prepare the rows."""
    features = validation.check_features("x", x)
    name = check_kernel(kernel, bandwidth)
    single = is_narrow(features) and len(features) > kernels.SINGLE_ROWS
    with np.errstate(invalid="ignore", over="ignore"):  # `check_finite` says it better
        dtype = np.dtype(np.float32 if single else np.float64)
        rows: Any = features
        if features.dtype != dtype:
            rows = by_rows(features, lambda part: features[part].astype(dtype), dtype)
        if name not in ("cosine", "polynomial"):  # which look at every norm
            validation.check_finite("x", rows)
    if name in ("rbf", "laplace"):
        return _scaled_rows(rows, name, bandwidth)
    if callable(kernel):
        return _function_rows(rows, kernel)
    if name == "cosine":
        kernel = PolynomialKernel(degree=1, gamma=1.0, offset=0.0)
    return _cosine_rows(rows, PolynomialKernel() if isinstance(kernel, str) else kernel, name)


def check_kernel(kernel: Any, bandwidth: Any) -> str:
    """Return what a kernel is called; refuse what is none, and a bandwidth that it cannot have."""
    if isinstance(kernel, str):
        name = validation.check_choice("kernel", kernel, KERNELS)
    elif isinstance(kernel, PolynomialKernel):
        name = "polynomial"
    elif callable(kernel):
        name = "callable"
    else:
        raise InputError(
            f"must be one of {', '.join(map(repr, KERNELS))}, a PolynomialKernel or "
            f"a function of two blocks of rows; got {quoted(kernel)}.",
            argument="kernel",
        )
    if bandwidth is not None and name not in ("rbf", "laplace"):
        raise InputError(
            f"is for the kernels 'rbf' and 'laplace'; {name!r} has none.", argument="bandwidth"
        )
    if bandwidth is not None:
        validation.check_positive("bandwidth", bandwidth)
    return name


def _scaled_rows(given: NDArray[Any], name: str, bandwidth: float | None) -> KernelRows:
    """Rows in units of the bandwidth, about a centre: rounding sees it, distances do not."""
    chosen_by_median = bandwidth is None
    if bandwidth is None:
        bandwidth = kernels.median_bandwidth(given, kernel=name)
    with np.errstate(over="ignore", invalid="ignore"):
        centre = given.mean(axis=0, dtype=np.float64)
    rows, largest = _scaled(given, centre, bandwidth, given.dtype)
    if not largest < FAR:  # a few rows must not draw the centre away from all others
        some = spread_rows(given, CENTRE_ROWS).astype(np.float64)
        rows, largest = _scaled(given, np.median(some, axis=0), bandwidth, np.dtype(np.float64))
    if not largest < math.sqrt(np.finfo(rows.dtype).max) / rows.shape[1]:
        raise InputError(
            f"is {bandwidth:.3g}, so far below the size of the features that squared distances "
            "leave the range of floating-point numbers: give a larger one.",
            argument="bandwidth",
        )
    return KernelRows(
        name=name,
        label=f"{name}, bandwidth {bandwidth:.10g}",
        kernel=kernels.Radial() if name == "rbf" else Laplace(),
        given=rows,
        bandwidth=bandwidth,
        chosen_by_median=chosen_by_median,
    )


def _scaled(
    rows: NDArray[Any], centre: Float, bandwidth: float, dtype: np.dtype[Any]
) -> tuple[NDArray[Any], float]:
    """Return centred rows in units of the bandwidth, and the largest entry of them."""
    origin, unit = centre.astype(dtype), dtype.type(bandwidth)

    def scaled(part: slice) -> NDArray[Any]:
        with np.errstate(over="ignore", invalid="ignore"):
            out: NDArray[Any] = rows[part] - origin
            out /= unit
        return out

    out = by_rows(rows, scaled, dtype)
    return out, max(float(out.max()), -float(out.min()))


def _cosine_rows(given: NDArray[Any], poly: PolynomialKernel, name: str) -> KernelRows:
    """Rows times √γ, with √offset as one more feature, of norm one: made where they are needed."""
    width = given.shape[1]
    gamma = 1.0 / width if poly.gamma is None else poly.gamma
    precision = given.dtype
    with np.errstate(invalid="ignore", over="ignore"):
        squares = np.einsum("ij,ij->i", given, given)
        if not (float(squares.min()) > TINY and np.isfinite(squares).all()):
            validation.check_finite("x", given)
            precision = np.dtype(np.float64)
            squares = np.einsum("ij,ij->i", given, given, dtype=precision)
    if poly.offset == 0.0:
        kernels.check_directions("x", squares)

    def unit_rows(rows: NDArray[Any]) -> NDArray[Any]:
        squares = np.einsum("ij,ij->i", rows, rows, dtype=precision)[:, None]
        out = rows / np.sqrt(squares + poly.offset / gamma)
        if poly.offset:
            out = np.hstack([out, np.sqrt(poly.offset / (gamma * squares + poly.offset))])
        return np.asarray(out.astype(given.dtype, copy=False))

    parameters = f", degree {poly.degree}, γ {gamma:.10g}, offset {poly.offset:g}"
    return KernelRows(
        name=name,
        label=name if name == "cosine" else name + parameters,
        kernel=Cosine(poly.degree),
        given=given,
        prepare=unit_rows,
        dimension=poly.dimension(width),
    )


def _function_rows(rows: NDArray[Any], function: KernelFunction) -> KernelRows:
    kernel = FunctionKernel(function)
    own = kernel.pairs(rows, rows, OWN_BLOCK)
    if not (own > 0.0).all():
        row = int(np.flatnonzero(~(own > 0.0))[0])
        raise InputError(
            f"gives k(x, x) = {own[row]:.6g} for row {row}: it must be positive.", argument="kernel"
        )
    return KernelRows(
        name="callable",
        label=f"callable {getattr(function, '__name__', type(function).__name__)}",
        kernel=kernel,
        given=rows,
        roots=np.sqrt(own),
    )


@dataclass(frozen=True, slots=True, eq=False)
class GivenKernel:
    """Kernel of row numbers, entries of a symmetric matrix."""

    matrix: NDArray[Any]
    __name__: ClassVar[str] = "precomputed"

    def __call__(self, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        """Return the kernel of all pairs of rows."""
        return np.asarray(self.matrix[np.ix_(*(x[:, 0].astype(np.intp) for x in (a, b)))])


def inspect_kernel(name: str, x: Any) -> tuple[Checked, GivenKernel]:
    """Check a kernel matrix of shape (n, n); return its rows as numbers, and the kernel of these.

    Equal rows of it are equal samples.
    """
    matrix = validation.check_features(name, features_of(x))
    n, columns = matrix.shape
    if n != columns:
        raise InputError(
            f"must have shape (n, n), the kernel of every two samples; got shape {matrix.shape}.",
            argument=name,
        )
    for part in row_parts(matrix):
        validation.check_finite(name, matrix[part], first_row=part.start)
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
