"""Kernels with k(x, x) = 1 on the rows of a sample, evaluated block by block."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from genbounds._scratch import by_rows
from genbounds._text import quoted
from genbounds.estimators._moments import is_narrow
from genbounds.estimators._tiles import SINGLE_ROWS, Columns, over_pairs, weighted_sums
from genbounds.validation import (
    Float,
    InputError,
    check_choice,
    check_count,
    check_features,
    check_finite,
)

KERNELS = ("rbf", "laplace", "cosine", "polynomial")

BLOCK_ROWS = 1024
"""Side of the square blocks of the kernel matrix that exist at any one time."""

TINY = 1e-30
"""Squared norms below this are computed again in float64."""

PAIR_BLOCK = 64
"""Pairs for which a user's kernel is evaluated in one block."""

FEATURES = 1000
"""Largest feature map of a polynomial that is written out."""

BANDWIDTH_ROWS = 1000
"""Rows whose pairwise distances the median heuristic looks at."""

BANDWIDTH_SEED = 20_240_101

PER_ROW = ("rows", "_half_squares", "_diagonal")
"""Arrays of a `KernelRows` with one entry for every row."""

Result = TypeVar("Result")

KernelFunction = Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolynomialKernel:
    """(γ x·y + offset)^degree, normalised to k(x, x) = 1; pass it as `kernel`.

    Attributes
    ----------
    degree : int
    gamma : float or None
        γ; None: one over the number of features.
    offset : float
        Non-negative.
    """

    degree: int = 3
    gamma: float | None = None
    offset: float = 1.0

    def __post_init__(self) -> None:
        check_count("degree", self.degree)
        if self.gamma is not None and not 0.0 < self.gamma < math.inf:
            raise InputError(
                f"must be positive and finite, or None; got {self.gamma!r}.", argument="gamma"
            )
        if not 0.0 <= self.offset < math.inf:
            raise InputError(
                f"must be non-negative and finite; got {self.offset!r}.", argument="offset"
            )

    def dimension(self, d: int) -> int:
        """Dimension of the feature map for d input features."""
        if self.offset == 0.0:
            return math.comb(d + self.degree - 1, self.degree)
        return math.comb(d + self.degree, self.degree)


Kernel = str | PolynomialKernel | KernelFunction


def _name_of(kernel: Any) -> str:
    """Return what a kernel is called; refuse what is none."""
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


class KernelRows:
    """The rows of one sample, ready for blocks of their normalised kernel matrix.

    Attributes
    ----------
    label : str
        Kernel and bandwidth, part of the name of the statistic.
    n : int
    dimension : int or None
        Of the feature map; None where it is infinite or not known.
    rows : ndarray of shape (n, d)
        Scaled so that `block` needs no more than a product (or an L1 distance). Above 4,096 rows,
        float32 where the input has no more precision than that; else float64.
    """

    def __init__(self, x: Any, kernel: Kernel, bandwidth: float | None) -> None:
        given = check_features("x", x)
        single = is_narrow(given) and len(given) > SINGLE_ROWS
        with np.errstate(invalid="ignore", over="ignore"):  # `check_finite` says it better
            dtype = np.dtype(np.float32 if single else np.float64)
            rows: Any = given
            if given.dtype != dtype:
                rows = by_rows(given, lambda part: given[part].astype(dtype), dtype)
            if _name_of(kernel) != "cosine":  # which looks at every norm
                check_finite("x", rows)
        self.n, d = rows.shape
        self.width, self.dtype = d, rows.dtype
        self.dimension: int | None = None
        self.bandwidth: float | None = None
        self.chosen_by_median = False
        self._function: KernelFunction | None = None
        self._diagonal: NDArray[Any] | None = None
        self.name = _name_of(kernel)
        if bandwidth is not None and self.name not in {"rbf", "laplace"}:
            raise InputError(
                f"is for the kernels 'rbf' and 'laplace'; {self.name!r} has none.",
                argument="bandwidth",
            )
        if self.name in {"rbf", "laplace"}:
            self._scale_by_bandwidth(rows, bandwidth)
        elif self.name == "cosine":
            self._measure_norms(rows)
        elif self.name == "polynomial":
            poly = kernel if isinstance(kernel, PolynomialKernel) else PolynomialKernel()
            self._scale_by_degree(rows, poly)
        else:
            self._take_function(rows, kernel)

    @cached_property
    def rows(self) -> NDArray[Any]:
        """Every row as the kernel takes it; of the cosine kernel made when asked for."""
        return by_rows(self._given, self.unit_rows, self.dtype)

    def unit_rows(self, part: slice | NDArray[np.intp]) -> NDArray[Any]:
        """Return some rows of the cosine kernel, of norm one."""
        if "rows" in self.__dict__:
            return np.asarray(self.rows[part])
        units = divided(*(column[part] for column in self.norms_of))
        return units.astype(self.dtype, copy=False)

    @property
    def norms_of(self) -> Columns:
        """Rows as they were given and their norms, of the cosine kernel."""
        return self._given, self._norms

    def _scale_by_bandwidth(self, rows: Any, bandwidth: float | None) -> None:
        if bandwidth is None:
            bandwidth = median_bandwidth(rows, kernel=self.name)
            self.chosen_by_median = True
        bandwidth = check_bandwidth(bandwidth)
        self.bandwidth = bandwidth
        # Distances do not see the mean, but rounding does.
        mean = rows.mean(axis=0, dtype=np.float64).astype(rows.dtype)
        unit = rows.dtype.type(bandwidth)

        def scaled(part: slice) -> NDArray[Any]:
            out: NDArray[Any] = rows[part] - mean
            with np.errstate(over="ignore"):
                out /= unit
            return out

        rows = by_rows(rows, scaled, rows.dtype)
        largest = max(float(rows.max()), -float(rows.min()))
        if not largest < math.sqrt(np.finfo(rows.dtype).max) / self.width:
            raise InputError(
                f"is {bandwidth:.3g}, so far below the size of the features that squared distances "
                "leave the range of floating-point numbers: give a larger one.",
                argument="bandwidth",
            )
        self.rows = rows
        self._half_squares = np.einsum("ij,ij->i", rows, rows) / 2
        self.label = f"{self.name}, bandwidth {bandwidth:.10g}"

    def _measure_norms(self, rows: Any) -> None:
        with np.errstate(invalid="ignore", over="ignore"):
            squares = np.einsum("ij,ij->i", rows, rows)
            if not (float(squares.min()) > TINY and np.isfinite(squares).all()):
                check_finite("x", rows)
                squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
        norms = np.sqrt(squares)
        if not norms.all():
            raise InputError(
                f"has a zero row ({int(np.argmin(norms))}): the cosine kernel is not "
                "defined there. Drop it, or take another kernel.",
                argument="x",
            )
        self._given, self._norms = rows, norms
        self.label, self.dimension = "cosine", rows.shape[1]

    def _scale_by_degree(self, rows: Any, poly: PolynomialKernel) -> None:
        d = rows.shape[1]
        gamma = 1.0 / d if poly.gamma is None else poly.gamma
        self._poly = poly
        root = rows.dtype.type(math.sqrt(gamma))
        self.rows = by_rows(rows, lambda part: rows[part] * root, rows.dtype)
        square = np.einsum("ij,ij->i", self.rows, self.rows) + poly.offset
        if not square.all():
            raise InputError(
                "has a zero row: a polynomial without offset is 0 there.", argument="x"
            )
        self._diagonal = np.sqrt(square)
        self.label = f"polynomial, degree {poly.degree}, γ {gamma:.10g}, offset {poly.offset:g}"
        self.dimension = poly.dimension(d)

    def _take_function(self, rows: Any, kernel: Any) -> None:
        self._function = kernel
        self.rows = rows
        self.label = f"callable {getattr(kernel, '__name__', type(kernel).__name__)}"
        self._diagonal = self._own_values()

    def _own_values(self) -> NDArray[Any]:
        """Square roots of k(x, x) for a user's kernel."""
        own = np.empty(self.n)
        step = 128
        for start in range(0, self.n, step):
            part = self.rows[start : start + step]
            own[start : start + step] = np.diagonal(self._call(part, part))
        if not (own > 0.0).all():
            row = int(np.flatnonzero(~(own > 0.0))[0])
            raise InputError(
                f"gives k(x, x) = {own[row]:.6g} for row {row}: it must be positive.",
                argument="kernel",
            )
        roots: Float = np.sqrt(own)
        return roots

    def _call(self, a: NDArray[Any], b: NDArray[Any]) -> Float:
        assert self._function is not None
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

    def features(self) -> NDArray[Any] | None:
        """Return an explicit feature map of shape (n, dimension), where there is a small one."""
        if self.name == "cosine":
            return self.rows
        if self.name != "polynomial" or self.dimension is None or self.dimension > FEATURES:
            return None
        assert self._diagonal is not None
        rows = self.rows.astype(np.float64)
        degree = self._poly.degree
        if self._poly.offset:
            rows = np.column_stack([rows, np.full(self.n, math.sqrt(self._poly.offset))])
        rows /= self._diagonal[:, None]
        columns = []
        for chosen in combinations_with_replacement(range(rows.shape[1]), degree):
            ways = math.factorial(degree)
            for count in Counter(chosen).values():
                ways //= math.factorial(count)
            columns.append(math.sqrt(ways) * rows[:, list(chosen)].prod(axis=1))
        return np.column_stack(columns)

    def block(self, one: slice, two: slice) -> NDArray[Any]:
        """k(x_i, x_j) for i in `one`, j in `two`."""
        a, b = self.rows[one], self.rows[two]
        if self.name == "laplace":
            from scipy.spatial.distance import cdist

            out: NDArray[Any] = np.exp(-cdist(a, b, "cityblock")).astype(a.dtype, copy=False)
            return out
        if self._function is not None:
            assert self._diagonal is not None
            scale = np.multiply.outer(self._diagonal[one], self._diagonal[two])
            values: NDArray[Any] = self._call(a, b) / scale
            if one == two and not np.allclose(values, values.T, rtol=1e-6, atol=1e-8):
                raise InputError("is not symmetric: k(x, y) must equal k(y, x).", argument="kernel")
            return values
        out = np.asarray(a @ b.T)
        if self.name == "rbf":
            out -= self._half_squares[one, None]
            out -= self._half_squares[None, two]
            np.minimum(out, 0, out=out)
            np.exp(out, out=out)
        elif self.name == "polynomial":
            assert self._diagonal is not None
            out += out.dtype.type(self._poly.offset)
            out /= self._diagonal[one, None]
            out /= self._diagonal[None, two]
            out **= self._poly.degree
        if one == two:
            np.fill_diagonal(out, 1)
        return out

    def pairs(self, i: NDArray[np.intp], j: NDArray[np.intp]) -> Float:
        """k(x_i, x_j) for pairs of rows."""
        if self._function is not None:
            found = [
                np.diagonal(self._between(i[k : k + PAIR_BLOCK], j[k : k + PAIR_BLOCK]))
                for k in range(0, i.size, PAIR_BLOCK)
            ]
            return np.concatenate([np.zeros(0), *found])
        a, b = self.rows[i].astype(np.float64), self.rows[j].astype(np.float64)
        if self.name == "laplace":
            return np.asarray(np.exp(-np.abs(a - b).sum(axis=1)))
        if self.name == "rbf":
            a -= b
            return np.asarray(np.exp(-0.5 * np.einsum("ij,ij->i", a, a)))
        out: Float = np.einsum("ij,ij->i", a, b)
        if self.name == "polynomial":
            assert self._diagonal is not None
            out += self._poly.offset
            out /= self._diagonal[i] * self._diagonal[j]
            out **= self._poly.degree
        return out

    def _between(self, i: NDArray[np.intp], j: NDArray[np.intp]) -> Float:
        assert self._diagonal is not None
        scale = np.multiply.outer(self._diagonal[i], self._diagonal[j])
        values: Float = self._call(self.rows[i], self.rows[j]) / scale
        return values

    def _slices(self) -> list[slice]:
        return [slice(i, min(i + BLOCK_ROWS, self.n)) for i in range(0, self.n, BLOCK_ROWS)]

    def upper_blocks(self) -> Iterator[tuple[slice, slice, NDArray[Any]]]:
        """Blocks on and above the diagonal of the kernel matrix."""
        slices = self._slices()
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
        if self.name == "cosine":
            return np.asarray(self.rows @ (self.rows.T @ vectors.astype(self.rows.dtype)), float)
        out = np.zeros(vectors.shape)
        for one, two, (over_others, over_rows) in self.over_pairs(
            _products, vectors.astype(self.rows.dtype)
        ):
            out[one] += over_others
            if one != two:
                out[two] += over_rows
        return out

    def over_pairs(
        self, function: Callable[..., Result], *columns: NDArray[Any]
    ) -> Iterator[tuple[slice, slice, Result]]:
        """Yield (i, j, function(…)) for tiles of all pairs, once each, as `over_pairs` does.

        The function is called with rows i, with their part of each of `columns`, with rows j or
        None, and with their part or None.
        """
        held = self._held
        bare = self._holding({})
        for name in (*held, "_given", "_norms"):
            bare.__dict__.pop(name, None)
        rows = (*held.values(), *columns)
        yield from over_pairs(_on_tile, rows, None, function, bare, tuple(held))

    def blocks(self, other: KernelRows | None) -> Iterator[tuple[slice, slice, NDArray[Any]]]:
        """Blocks of the kernel of all rows and those of another one, or on and above the diagonal.

        `other`: None, or rows under the same kernel and bandwidth.
        """
        if other is None:
            yield from self.upper_blocks()
            return
        for two in other._slices():
            chosen = other.subset(two)
            for one in self._slices():
                yield one, two, self._against(one, chosen)

    def columns(self, index: NDArray[np.intp]) -> Iterator[tuple[slice, Float]]:
        """Blocks of rows of the columns ``K[:, index]``."""
        chosen = self.subset(index)
        for one in self._slices():
            yield one, self._against(one, chosen).astype(np.float64)

    def _against(self, one: slice, chosen: KernelRows) -> NDArray[Any]:
        count = one.stop - one.start
        theirs = chosen._held
        pair = self._holding(
            {name: np.concatenate([x[one], theirs[name]]) for name, x in self._held.items()}
        )
        return pair.block(slice(0, count), slice(count, pair.n))

    def subset(self, index: NDArray[np.intp] | slice) -> KernelRows:
        """Return some of the rows under the same kernel and bandwidth."""
        return self._holding({name: x[index] for name, x in self._held.items()})

    @property
    def _held(self) -> dict[str, NDArray[Any]]:
        """What there is for every row; `rows` come first."""
        found = {name: getattr(self, name, None) for name in PER_ROW}
        return {name: x for name, x in found.items() if x is not None}

    def _holding(self, held: Mapping[str, NDArray[Any]]) -> KernelRows:
        """Return a copy for other rows, of which this is held."""
        copy = type(self).__new__(type(self))
        copy.__dict__.update(self.__dict__)
        copy.__dict__.update(held)
        if held:
            copy.n = len(held["rows"])
        return copy


def divided(rows: NDArray[Any], norms: NDArray[Any]) -> NDArray[Any]:
    """Return rows of norm one."""
    units: NDArray[Any] = rows / norms[:, None]
    return units


def _on_tile(
    one: Columns,
    two: Columns | None,
    function: Callable[..., Result],
    bare: KernelRows,
    names: Sequence[str],
) -> Result:
    """Call a function of `KernelRows.over_pairs`."""
    arguments: list[Any] = []
    for columns in (one, two):
        if columns is None:
            arguments += [None, None]
        else:
            held = dict(zip(names, columns, strict=False))
            arguments += [bare._holding(held), columns[len(names) :]]
    return function(*arguments)


def _products(
    one: KernelRows, v: Columns, two: KernelRows | None, u: Columns | None
) -> tuple[Float, Float]:
    """K v of the others, and that of the rows; of rows with themselves both are one array."""
    return weighted_sums(one.blocks(two), v[0], None if u is None else u[0])


def check_bandwidth(bandwidth: Any) -> float:
    """Return a positive, finite bandwidth as a float."""
    from numbers import Real

    if isinstance(bandwidth, bool) or not (
        isinstance(bandwidth, Real) and 0.0 < float(bandwidth) < math.inf
    ):
        raise InputError(
            f"must be a positive, finite number; got {quoted(bandwidth)}.", argument="bandwidth"
        )
    return float(bandwidth)


def median_bandwidth(x: Any, *, kernel: str = "rbf") -> float:
    """Median of the pairwise distances of at most 1,000 rows: the median heuristic.

    Parameters
    ----------
    x : array_like of shape (n, d)
    kernel : {"rbf", "laplace"}
        Euclidean distances for "rbf", ``exp(-‖x-y‖²/(2σ²))``; L1 distances for "laplace",
        ``exp(-‖x-y‖₁/σ)``.

    Returns
    -------
    float
        σ, in the unit of the features.
    """
    from scipy.spatial.distance import pdist

    check_choice("kernel", kernel, ("rbf", "laplace"))
    rows = check_features("x", x)
    if len(rows) > BANDWIDTH_ROWS:
        rng = np.random.default_rng(BANDWIDTH_SEED)
        rows = rows[np.sort(rng.choice(len(rows), BANDWIDTH_ROWS, replace=False))]
    rows = np.array(rows, dtype=np.float64)
    check_finite("x", rows)
    distances = pdist(rows, "euclidean" if kernel == "rbf" else "cityblock")
    median = float(np.median(distances))
    if median == 0.0:  # most rows coincide
        median = float(distances.mean())
    if median == 0.0 and (rows != rows[0]).any():
        raise InputError(
            "has rows so close together that the squares of their distances round to zero: "
            "multiply the features by a common number.",
            argument="x",
        )
    return median if median > 0.0 else 1.0
