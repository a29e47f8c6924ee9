"""Kernels with a finite feature map: cosine and polynomials."""

from __future__ import annotations

import math
from collections import Counter
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds._scratch import by_rows
from genbounds.core.tiles import Columns
from genbounds.estimators.kernels._kernel_rows import ProductRows
from genbounds.estimators.kernels._parameters import PolynomialKernel
from genbounds.validation import Float, InputError, check_finite

TINY = 1e-30
"""Squared norms below this are computed again in float64."""

FEATURES = 1000
"""Largest feature map of a polynomial that is written out."""


class CosineRows(ProductRows):
    """x·y/(‖x‖‖y‖); rows of norm one are made where they are asked for."""

    name = "cosine"
    label = "cosine"
    as_given = ("_given", "_norms")

    def __init__(self, rows: NDArray[Any]) -> None:
        super().__init__(rows)
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
        self.dimension = self.width

    @cached_property  # which can be assigned, as in a part
    def rows(self) -> NDArray[Any]:  # type: ignore[override]
        """Every row, of norm one."""
        return by_rows(self._given, self._unit_rows, self.dtype)

    def _unit_rows(self, part: slice) -> NDArray[Any]:
        return divided(self._given[part], self._norms[part]).astype(self.dtype, copy=False)

    @property
    def norms_of(self) -> Columns:
        """Rows as they were given and their norms."""
        return self._given, self._norms

    def features(self) -> NDArray[Any]:
        """Return the rows: they are the feature map."""
        return self.rows

    def multiply(self, vectors: Float) -> Float:
        """Return ``K @ vectors`` without K."""
        return np.asarray(self.rows @ (self.rows.T @ vectors.astype(self.dtype)), float)


def divided(rows: NDArray[Any], norms: NDArray[Any]) -> NDArray[Any]:
    """Return rows of norm one."""
    units: NDArray[Any] = rows / norms[:, None]
    return units


class PolynomialRows(ProductRows):
    """(γ x·y + offset)^degree, divided by its roots at x and at y."""

    name = "polynomial"
    per_row = ("rows", "_roots")

    def __init__(self, rows: NDArray[Any], poly: PolynomialKernel) -> None:
        super().__init__(rows)
        gamma = 1.0 / self.width if poly.gamma is None else poly.gamma
        self._poly = poly
        root = rows.dtype.type(math.sqrt(gamma))
        self.rows = by_rows(rows, lambda part: rows[part] * root, rows.dtype)
        square = np.einsum("ij,ij->i", self.rows, self.rows) + poly.offset
        if not square.all():
            raise InputError(
                "has a zero row: a polynomial without offset is 0 there.", argument="x"
            )
        self._roots = np.sqrt(square)
        self.label = f"polynomial, degree {poly.degree}, γ {gamma:.10g}, offset {poly.offset:g}"
        self.dimension = poly.dimension(self.width)

    def _of_products(self, out: NDArray[Any], one: slice, two: slice) -> None:
        out += out.dtype.type(self._poly.offset)
        out /= self._roots[one, None]
        out /= self._roots[None, two]
        out **= self._poly.degree

    def pairs(self, i: NDArray[np.intp], j: NDArray[np.intp]) -> Float:
        """In float64."""
        out = super().pairs(i, j)
        out += self._poly.offset
        out /= self._roots[i] * self._roots[j]
        out **= self._poly.degree
        return out

    def features(self) -> NDArray[Any] | None:
        """Return the products of as many features as the degree, if they are not too many."""
        if self.dimension is None or self.dimension > FEATURES:
            return None
        rows = self.rows.astype(np.float64)
        degree = self._poly.degree
        if self._poly.offset:
            rows = np.column_stack([rows, np.full(self.n, math.sqrt(self._poly.offset))])
        rows /= self._roots[:, None]
        columns = []
        for chosen in combinations_with_replacement(range(rows.shape[1]), degree):
            ways = math.factorial(degree)
            for count in Counter(chosen).values():
                ways //= math.factorial(count)
            columns.append(math.sqrt(ways) * rows[:, list(chosen)].prod(axis=1))
        return np.column_stack(columns)
