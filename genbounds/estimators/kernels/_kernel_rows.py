"""Kernels with k(x, x) = 1 on the rows of a sample, evaluated block by block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from genbounds.core.tiles import weighted_sums
from genbounds.validation import Float

BLOCK_ROWS = 1024
"""Side of the square blocks of the kernel matrix that exist at any one time."""

Result = TypeVar("Result")


class KernelRows(ABC):
    """The rows of one sample, ready for blocks of their normalised kernel matrix.

    Attributes
    ----------
    name : str
        Of the kernel.
    label : str
        Kernel and bandwidth, part of the name of the statistic.
    n : int
    width : int
        Features of a row.
    dtype : numpy dtype
    dimension : int or None
        Of the feature map; None where it is infinite or not known.
    bandwidth : float or None
    chosen_by_median : bool
        Whether the rows chose the bandwidth.
    rows : ndarray of shape (n, d)
        Scaled so that `block` needs no more than a product (or an L1 distance). Above 4,096 rows,
        float32 where the input has no more precision than that; else float64.
    """

    name: ClassVar[str]
    per_row: ClassVar[tuple[str, ...]] = ("rows",)
    """Arrays with one entry for every row; `rows` come first."""
    as_given: ClassVar[tuple[str, ...]] = ()
    """Arrays that the rows of the whole sample are made of; a part has its rows alone."""

    label: str
    rows: NDArray[Any]
    dimension: int | None = None
    bandwidth: float | None = None
    chosen_by_median = False

    def __init__(self, rows: NDArray[Any]) -> None:
        self.n, self.width = rows.shape
        self.dtype = rows.dtype

    @abstractmethod
    def block(self, one: slice, two: slice) -> NDArray[Any]:
        """k(x_i, x_j) for i in `one`, j in `two`."""

    @abstractmethod
    def pairs(self, i: NDArray[np.intp], j: NDArray[np.intp]) -> Float:
        """k(x_i, x_j) for pairs of rows."""

    def features(self) -> NDArray[Any] | None:
        """Return an explicit feature map of shape (n, dimension), where there is a small one."""
        return None

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
        return weighted_sums(self.upper_blocks(), vectors.astype(self.rows.dtype), None)[0]

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

    def subset(self, index: NDArray[np.intp] | slice) -> Self:
        """Return some of the rows under the same kernel and bandwidth."""
        return self._holding({name: x[index] for name, x in self._held.items()})

    @property
    def _held(self) -> dict[str, NDArray[Any]]:
        return {name: getattr(self, name) for name in self.per_row}

    def _holding(self, held: Mapping[str, NDArray[Any]]) -> Self:
        """Return a copy for other rows, of which this is held."""
        copy = type(self).__new__(type(self))
        whole = (*self.per_row, *self.as_given)
        copy.__dict__.update({k: v for k, v in self.__dict__.items() if k not in whole}, **held)
        if held:
            copy.n = len(held["rows"])
        return copy


class ProductRows(KernelRows):
    """A kernel of inner products, which are one product of matrices a block."""

    def block(self, one: slice, two: slice) -> NDArray[Any]:
        """From inner products, in their precision."""
        out = np.asarray(self.rows[one] @ self.rows[two].T)
        self._of_products(out, one, two)
        if one == two:
            np.fill_diagonal(out, 1)
        return out

    def _of_products(self, out: NDArray[Any], one: slice, two: slice) -> None:
        """Turn inner products of rows into their kernel, in place."""

    def pairs(self, i: NDArray[np.intp], j: NDArray[np.intp]) -> Float:
        """In float64."""
        a, b = self.rows[i].astype(np.float64), self.rows[j].astype(np.float64)
        out: Float = np.einsum("ij,ij->i", a, b)
        return out
