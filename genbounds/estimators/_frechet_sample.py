"""One side of a Fréchet distance: rows, or exact moments, with what the distance needs of them."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.estimators._frechet_terms import (
    PAIRING_SEED,
    SideTerms,
    gaussian_terms,
    sample_terms,
)
from genbounds.estimators._frechet_weighted import check_weights, weighted_moments, weighted_terms
from genbounds.estimators._linalg import factor
from genbounds.estimators._moments import Moments, row_blocks
from genbounds.validation import Float, InputError, check_features, check_finite

FEW_RATIO = 4
"""Below this many samples per direction the expansion in 1/n fails: random-matrix routes."""

SPLIT_RATIO = 64
"""From this many samples per direction on, the error of the second-order term is negligible."""


class Sample:
    """One sample, or exact moments: mean, covariance, its factor, and its random halves."""

    def __init__(
        self,
        moments: Moments,
        rows: NDArray[Any] | None = None,
        index: NDArray[np.intp] | None = None,
        parts: tuple[Sample, ...] = (),
        weights: Float | None = None,
    ) -> None:
        self.moments = moments
        self.rows = rows
        self.index = index
        self.parts = parts
        self.weights = weights

    @property
    def n(self) -> int | None:
        return self.moments.n

    @property
    def effective(self) -> float:
        """Kish's effective number of rows, 1 / Σ w²; infinite for exact moments."""
        if self.weights is not None:
            return 1.0 / float(self.weights @ self.weights)
        return math.inf if self.n is None else float(self.n)

    @property
    def d(self) -> int:
        return self.moments.d

    @property
    def mean(self) -> Float:
        return self.moments.mean

    @cached_property
    def trace(self) -> float:
        return float(np.trace(self.moments.cov))

    @cached_property
    def factor(self) -> Float:
        """L of shape (d, r) with cov = L Lᵀ; from the rows themselves where there are few."""
        if self.rows is not None and self.n is not None and self.n <= self.d:
            if self.weights is not None:
                scale = np.sqrt(self.weights / (1.0 - float(self.weights @ self.weights)))
                return self.centred().T * scale
            return self.centred().T / math.sqrt(self.n - 1)
        return factor(self.moments.cov)

    @property
    def directions(self) -> int:
        """Dimensions that the sample has to fill: the rank of the covariance, where it shows."""
        if self.n is not None and self.n <= self.d:
            return self.d
        return max(int(self.factor.shape[1]), 1)

    def centred(self) -> Float:
        assert self.rows is not None
        rows = self.rows if self.index is None else self.rows[self.index]
        return np.array(rows, dtype=np.float64) - self.mean

    def terms(
        self,
        *,
        gap: Float,
        projection: Float,
        roots: Float,
        every_row: bool,
        bias_only: bool = False,
    ) -> SideTerms:
        assert self.n is not None
        if self.rows is None:
            return gaussian_terms(
                gap=gap, cov=self.moments.cov, projection=projection, roots=roots, n=self.n
            )
        if self.weights is not None:
            return weighted_terms(
                self.rows,
                self.weights,
                mean=self.mean,
                gap=gap,
                projection=projection,
                roots=roots,
            )
        return sample_terms(
            self.rows,
            self.index,
            mean=self.mean,
            trace=self.trace,
            gap=gap,
            projection=projection,
            roots=roots,
            every_row=every_row,
            bias_only=bias_only,
        )

    def without(self, k: int) -> Sample:
        """Every part but part `k`."""
        kept = [part for i, part in enumerate(self.parts) if i != k]
        moments = kept[0].moments
        for part in kept[1:]:
            moments = moments.merge(part.moments)
        index = np.sort(np.concatenate([part.index for part in kept if part.index is not None]))
        return Sample(moments, self.rows, index)

    def divided(self, parts: int) -> Sample:
        """Divide the same sample at random into `parts` equal groups."""
        assert self.rows is not None
        assert self.index is None
        if len(self.parts) == parts:
            return self
        return Sample(self.moments, self.rows, None, _divide("rows", self.rows, parts))


class FewRows(Sample):
    """A sample of no more rows than features: its covariance is formed only where it is used."""

    def __init__(self, name: str, rows: NDArray[Any]) -> None:
        self.rows, self.index, self.parts, self.weights = rows, None, (), None
        with np.errstate(invalid="ignore", over="ignore"):  # `check_finite` says it better
            block: Float = np.array(rows, dtype=np.float64)
        check_finite(name, block)
        self._mean: Float = block.mean(axis=0)
        block -= self._mean
        self._centred = block

    @cached_property
    def moments(self) -> Moments:  # type: ignore[override]
        return Moments.from_features(self.rows)

    @property
    def n(self) -> int:
        return int(self._centred.shape[0])

    @property
    def d(self) -> int:
        return int(self._centred.shape[1])

    @property
    def mean(self) -> Float:
        return self._mean

    @cached_property
    def trace(self) -> float:
        return float(np.vdot(self._centred, self._centred)) / (self.n - 1)

    def centred(self) -> Float:
        return self._centred


def moments_of(rows: NDArray[Any], index: NDArray[np.intp]) -> Moments:
    moments = Moments.empty(rows.shape[1])
    for _, block in row_blocks(rows, index):
        moments.absorb_block(block)
    return moments


def _divide(name: str, rows: NDArray[Any], parts: int) -> tuple[Sample, ...]:
    """Moments of random groups of equal size, in one pass over all rows."""
    n, d = rows.shape
    label = np.random.default_rng(PAIRING_SEED).permutation(np.arange(n) % parts)
    moments = [Moments.empty(d) for _ in range(parts)]
    for positions, block in row_blocks(rows):
        check_finite(name, block, first_row=int(positions[0]))
        for k, group in enumerate(moments):
            chosen = block[label[positions] == k]
            if chosen.size:
                group.absorb_block(chosen)
    return tuple(Sample(group, rows, np.flatnonzero(label == k)) for k, group in enumerate(moments))


def sample_of(name: str, x: Any, weights: Any = None) -> Sample:
    label = "weights" if name == "fake" else "reference_weights"
    if isinstance(x, Moments):
        if weights is not None:
            raise InputError(f"`{label}` are for rows; `{name}` is given by its moments.")
        _ = x.cov  # at least two samples
        return Sample(x)
    rows = check_features(name, x)
    n, d = rows.shape
    if weights is not None:
        checked = check_weights(label, weights, n)
        return Sample(weighted_moments(name, rows, checked), rows, weights=checked)
    if n <= d:
        return FewRows(name, rows)
    if FEW_RATIO * d <= n < SPLIT_RATIO * d:  # its halves will be wanted: one pass for all
        halves = _divide(name, rows, 2)
        return Sample(halves[0].moments.merge(halves[1].moments), rows, None, halves)
    moments = Moments.empty(d)
    for positions, block in row_blocks(rows):
        check_finite(name, block, first_row=int(positions[0]))
        moments.absorb_block(block)
    return Sample(moments, rows)
