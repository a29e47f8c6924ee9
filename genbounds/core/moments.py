"""Mean and covariance of a sample: streaming, mergeable, in float64."""

from __future__ import annotations

import copy
import hashlib
import logging
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Self

import numpy as np
import scipy  # its submodules are loaded at their first use
from numpy.typing import NDArray

from genbounds import validation
from genbounds._process import is_dask_array, row_blocks_of_dask
from genbounds.files import Statistics, display, read_statistics, write_statistics
from genbounds.origins import UNKNOWN, check_same_encoder, origin_of, together
from genbounds.samples import Sample
from genbounds.validation import Float, InputError

EPS = float(np.finfo(np.float64).eps)

# --- A random part of rows that are gone: parts join, in any order, as if drawn at once -----------


KEPT = 2048
"""Rows that parts read from files keep together: fourth moments of features need about as many."""


@dataclass(frozen=True, slots=True)
class KeptRows:
    """The rows with the least of n random keys, one a row.

    Attributes
    ----------
    rows : ndarray of shape (k, d)
    keys : ndarray of shape (k,)
        In [0, 1].
    n : int
        Rows that they were drawn from.
    limit : int
        At most so many are kept when parts are joined.
    """

    rows: NDArray[Any]
    keys: Float
    n: int
    limit: int

    @classmethod
    def of_part(cls, rows: NDArray[Any], n: int, limit: int, *, seed: int = 0) -> Self:
        """Draw the keys of k rows that were chosen at random among `n`: the k least of n.

        Their content seeds them: parts that know nothing of one another have keys of their own,
        and the same parts the same keys.
        """
        content = hashlib.sha256(np.ascontiguousarray(rows).tobytes()).digest()
        rng = np.random.default_rng([seed, n, *content])
        # Uniform order statistics are ratios of sums of exponential variables (Rényi 1953).
        sums = np.cumsum(rng.exponential(size=len(rows)))
        keys = sums / (sums[-1:] + rng.gamma(n - len(rows) + 1.0))
        return cls(rows, rng.permutation(keys), n, limit)

    def joined(self, other: KeptRows) -> KeptRows:
        """Return the rows with the least keys among those of both."""
        keys = np.concatenate([self.keys, other.keys])
        known = min(self._known_up_to(), other._known_up_to())
        limit = max(self.limit, other.limit)
        least = np.argsort(keys)[: min(limit, int(np.sum(keys <= known)))]
        rows = np.concatenate([self.rows, other.rows])[least]
        return KeptRows(rows, keys[least], self.n + other.n, limit)

    def _known_up_to(self) -> float:
        """Every row with a key up to this one is here."""
        return float(self.keys.max()) if len(self.keys) < self.n else 1.0


def choose_rows(n: int, limit: int, seed: int) -> NDArray[np.intp]:
    """Choose at most `limit` of n rows at random, in their order."""
    return np.sort(np.random.default_rng(seed).choice(n, min(limit, n), False))


_log = logging.getLogger("genbounds.estimators")

BLOCK_BYTES = 32 * 2**20
"""Rows are converted to float64 and centred in blocks of about this size."""

LARGEST_VARIANCE = 1e305
"""Entry of a covariance whose sums are still within double precision."""

SYMMETRY_RTOL = 1e-6
"""Asymmetry of a covariance, relative to its largest entry, beyond which it is refused."""


LEAST_KEPT = 64
"""Rows kept beside moments: of fewer, fourth moments are mere noise."""

NEAR_ROWS = 64
"""Rows at equal distances whose mean is near that of all, also where rows come in order."""

LEAST_LEFT = 0.05
"""Share of every sum of squares that must be left where some rows are taken off a sum over all."""


class Moments:
    """Mean and covariance (divisor n - 1) of n feature vectors.

    Parameters
    ----------
    mean : array_like of shape (d,)
    cov : array_like of shape (d, d)
        Symmetric; unbiased (divisor n - 1) if it comes from a sample.
    n : int or None
        Sample size, at least 2. None: the moments are exactly known (a population), so that
        nothing on this side is random.

    Attributes
    ----------
    mean : ndarray of shape (d,)
    n : int or None
        Number of samples; None if the moments are exactly known.
    size_known : bool
        False if the file that they were read from does not say how many rows are behind them.
    origin : mapping of str to str
        Which encoder made the features, as far as their file said; empty if nothing.

    Raises
    ------
    InputError
        If shapes disagree, a value is not finite, or `cov` is not symmetric.

    Notes
    -----
    Blocks are merged by their centred scatter matrices (Chan, Golub & LeVeque 1983); the raw
    second moment, whose cancellation ruins features with a large mean, is never formed. Only the
    lower triangle of the scatter matrix is kept up to date, in place.
    """

    mean: Float
    n: int | None
    size_known = True
    origin: Mapping[str, str] = UNKNOWN
    _cov: Float | None = None
    _scatter: Float | None = None
    _kept: KeptRows | None = None

    def __init__(self, mean: Any, cov: Any, n: int | None = None) -> None:
        mean = np.array(validation.as_floats("mean", mean))
        cov = validation.as_floats("cov", cov)
        if mean.ndim != 1 or mean.size < 1:
            raise InputError(f"must have shape (d,); got shape {mean.shape}.", "mean")
        if cov.shape != (mean.size, mean.size):
            raise InputError(
                f"must have shape (d, d) with d = {mean.size}, the length of `mean`; "
                f"got shape {cov.shape}.",
                argument="cov",
            )
        if not np.isfinite(mean).all():
            raise InputError("has NaN or infinite entries.", "mean")
        largest = max(float(cov.max()), -float(cov.min()))
        if not largest <= LARGEST_VARIANCE:
            validation.check_finite("cov", cov)
        cov, asymmetry = symmetric_part(cov)
        if not asymmetry <= SYMMETRY_RTOL * largest:
            raise InputError("is not symmetric: it is not a covariance matrix.", "cov")
        if not (np.diagonal(cov) >= 0.0).all():
            raise InputError("has a negative variance on its diagonal.", "cov")
        self.mean, self._cov = mean, cov
        self.n = None if n is None else validation.check_count("n", n, minimum=2)

    @classmethod
    def from_features(cls, x: Any, *, keep: int = 0, seed: int = 0) -> Moments:
        """Return the moments of the rows of `x`, read in blocks.

        Parameters
        ----------
        x : array_like of shape (n, d)
            At least one row. The blocks of a dask array are summed up where dask computes them, and
            only sums and kept rows leave a worker.
        keep : int, default 0
            How many rows, chosen at random, are kept beside the moments, in `update` and `merge`
            too. A Fréchet distance takes the reference's fourth moments from them; without, they
            are borrowed from the model.
        seed : int, default 0
            Of that choice.
        """
        if isinstance(x, Sample):
            raise InputError(
                "is a Sample: moments do not keep groups, strata and weights. Pass the Sample "
                "itself to the score, or its features here.",
                argument="x",
            )
        check_keep(keep)
        blocks = row_blocks_of_dask(x) if is_dask_array(x) else None
        rows = validation.check_features("x", x, minimum=1) if blocks is None else x
        chosen = choose_rows(len(rows), keep, seed) if keep else None
        if blocks is None:
            moments, kept = _of_rows(rows, 0, chosen)
        else:
            moments, kept = _on_workers(blocks, x.shape, chosen)
        if kept is not None:
            moments._kept = KeptRows.of_part(kept, len(rows), keep, seed=seed)
        moments.origin = origin_of(x)
        return moments

    @classmethod
    def load(cls, path: str | os.PathLike[str], n: int | None = None) -> Moments:
        """Read statistics (`mu`, `sigma` and, where known, `n`) from `path`, as pytorch-fid does.

        Parameters
        ----------
        path : path-like
        n : int, optional
            Rows behind the statistics, where the file does not say. Without either the moments
            have no sampling error, and a score against them is called unreliable
            (`size_known` is False); ``Moments(mean, cov)`` says that they are exact.
        """
        found = read_statistics(path)
        n = None if n is None else validation.check_count("n", n, minimum=2)
        try:
            return cls.from_statistics(found, n)
        except InputError as error:
            raise InputError(f"{display(path)}: {error}") from error

    @classmethod
    def from_statistics(
        cls, found: Statistics, n: int | None = None, *, exact: bool = False
    ) -> Moments:
        """Return what `genbounds.files.read_statistics` found.

        Parameters
        ----------
        found : Statistics
        n : int, optional
            As for `load`.
        exact : bool, default False
            Whether they are those of a population: nothing on this side is random.
        """
        n = None if exact else found.n if n is None else n
        if found.n not in (None, n):
            instead = "they are taken as exact" if exact else f"n = {n} is taken"
            _log.warning("The statistics say n = %s; %s, as asked.", found.n, instead)
        moments = cls(found.mean, found.cov, n)
        moments.origin = found.origin
        if found.rows is not None and not exact:
            kept = len(found.rows)
            if n is not None and n < kept:
                raise InputError(
                    f"keeps {kept:,} rows of its sample: n is that or more; got {n:,}."
                )
            moments._kept = KeptRows.of_part(found.rows, n or kept, max(KEPT, kept))
        moments.size_known = exact or n is not None
        return moments

    @classmethod
    def empty(cls, d: int, *, keep: int = 0) -> Moments:
        """Moments of no samples of `d` features yet, to be filled by `update`.

        At most `keep` rows, chosen at random among all that come, are kept: see `from_features`.
        """
        check_keep(keep)
        moments = cls.__new__(cls)
        moments.mean, moments._scatter = np.zeros(d), np.zeros((d, d), order="F")
        moments.n = 0
        moments._kept = KeptRows(np.empty((0, d)), np.empty(0), 0, keep) if keep else None
        return moments

    @property
    def d(self) -> int:
        """Number of features."""
        return self.mean.size

    @property
    def rows(self) -> NDArray[Any] | None:
        """Random part of the rows that was kept, shape (k, d); None if none was."""
        return None if self._kept is None or not self._kept.n else self._kept.rows

    @property
    def cov(self) -> Float:
        """Covariance with divisor n - 1, shape (d, d)."""
        if self._cov is None:
            if self.n is None or self.n < 2 or self._scatter is None:
                raise InputError(
                    f"a covariance needs at least 2 samples; these moments hold {self.n}."
                )
            self._cov = mirror_lower(self._scatter / (self.n - 1)).T
        return self._cov

    def update(self, batch: Any) -> Moments:
        """Absorb the rows of `batch`, shape (n, d), in place; returns self.

        Raises
        ------
        InputError
            If these moments are exactly known, or the batch does not fit; they stay as they were.
        """
        rows = validation.check_features("batch", batch, minimum=1)
        if self.n is None:
            raise InputError("exactly known moments (n=None) cannot absorb samples.")
        if rows.shape[1] != self.d:
            raise InputError(f"has {rows.shape[1]} features, these moments have {self.d}.", "batch")
        check_same_encoder({"these moments": self.origin, "`batch`": origin_of(batch)})
        for positions, block in row_blocks(rows):  # all checked before any is absorbed
            validation.check_finite("batch", block, first_row=int(positions[0]))
        if self._kept is not None:
            before, limit = self._kept.n, self._kept.limit
            part = np.array(rows[choose_rows(len(rows), limit, before)])
            self._kept = self._kept.joined(KeptRows.of_part(part, len(rows), limit, seed=before))
        for _, block in row_blocks(rows):
            self._absorb_block(block)
        self.origin = together(self.origin, origin_of(batch))
        return self

    def merge(self, other: Moments) -> Moments:
        """Moments of this and the `other` sample together, as a new object; neither changes.

        Rows that both keep are a random part of both again, the same in whatever order parts of
        other content are merged.
        """
        if self.n is None or other.n is None:
            raise InputError("exactly known moments (n=None) cannot be merged with a sample.")
        if other.d != self.d:
            raise InputError(f"cannot merge moments of {self.d} and of {other.d} features.")
        check_same_encoder({"these moments": self.origin, "`other`": other.origin})
        merged = copy.copy(self)
        merged._scatter = self._scatter_matrix() + other._scatter_matrix()
        merged._kept, merged.size_known = None, True  # no random part of more rows
        merged.origin = together(self.origin, other.origin)
        merged._combine(other.n, other.mean)
        if self._kept is not None and other._kept is not None:
            merged._kept = self._kept.joined(other._kept)
        elif self.n == 0 or other.n == 0:
            merged._kept = self._kept or other._kept
        return merged

    def save(
        self, path: str | os.PathLike[str], *, metadata: Mapping[str, str] | None = None
    ) -> None:
        """Write `mu`, `sigma` and `n` to `path`, a file that pytorch-fid can read as well.

        Rows that were kept (`from_features`) are written beside them, and where the features came
        from: `metadata`, by default the `origin`.
        """
        stored = self.origin if metadata is None else metadata
        write_statistics(path, self.mean, self.cov, self.n, rows=self.rows, metadata=stored)

    def divided_by(self, unit: float) -> Moments:
        """Moments of the same samples in units of `unit`."""
        same = copy.copy(self)
        same.mean, same._cov = self.mean / unit, self.cov / unit / unit
        same._scatter = None
        if self._kept is not None:
            same._kept = replace(self._kept, rows=self._kept.rows / unit)
        return same

    def __repr__(self) -> str:
        size = "exactly known" if self.n is None else f"n={self.n}"
        return f"Moments(d={self.d}, {size})"

    def _scatter_matrix(self) -> Float:
        """Sum of squares and products about the mean; only the lower triangle holds it."""
        if self._scatter is None:
            assert self.n is not None
            assert self._cov is not None
            self._scatter = (self._cov * (self.n - 1)).T
        return self._scatter

    def _absorb_block(self, block: Float) -> None:
        """Absorb a checked block of whole rows, which is overwritten."""
        mean: Float = block.mean(axis=0)
        block -= mean
        self._scatter = scipy.linalg.blas.dsyrk(
            1.0, block.T, beta=1.0, c=self._scatter_matrix(), lower=1, overwrite_c=1
        )
        self._combine(block.shape[0], mean)

    def _combine(self, n: int, mean: Float) -> None:
        """Chan's update, after the scatter of `n` rows about their own `mean` was added."""
        assert self.n is not None
        total = self.n + n
        gap = mean - self.mean
        if self.n:
            self._scatter = scipy.linalg.blas.dsyr(
                self.n * (n / total), gap, lower=1, a=self._scatter_matrix(), overwrite_a=1
            )
        self.mean = self.mean + gap * (n / total)
        self.n = total
        self._cov = None


@dataclass(frozen=True, slots=True)
class RowMoments:
    """Mean, covariance and number of rows that are at hand; of a design in their own mean squares.

    Attributes
    ----------
    mean : ndarray of shape (d,)
    cov : ndarray of shape (d, d)
        With divisor n - 1; of weighted rows that of the distribution that they are.
    n : int
    """

    mean: Float
    cov: Float
    n: int

    def joined(self, other: RowMoments, *, sign: int = 1) -> RowMoments:
        """Moments of these and other rows together; `sign` -1: without those, a part of these."""
        n = self.n + sign * other.n
        gap = other.mean - self.mean
        scatter = (self.n - 1) * self.cov + sign * (other.n - 1) * other.cov
        scatter += np.outer(sign * self.n * (other.n / n) * gap, gap)
        return RowMoments(self.mean + sign * (other.n / n) * gap, scatter / (n - 1), n)

    def without(self, part: RowMoments) -> RowMoments | None:
        """Moments of the rows that are not in a `part` of them.

        None where these make up most of a variance: the difference of two sums would be rounding.
        """
        rest = self.joined(part, sign=-1)
        left = np.diagonal(rest.cov) * (rest.n - 1)
        return rest if (left >= LEAST_LEFT * (self.n - 1) * np.diagonal(self.cov)).all() else None


def row_moments(
    rows: NDArray[Any],
    index: NDArray[np.intp] | None = None,
    *,
    weights: Float | None = None,
    dtype: type[np.floating[Any]] = np.float64,
) -> RowMoments:
    """Mean and covariance of rows, or of those in `index`, in one pass; `weights`: of each of them.

    About a row that is near the mean: what is taken off in the end is small. Products of blocks in
    single precision are rounded to it, means and sums of blocks are not.
    """
    near = spread_rows(rows, NEAR_ROWS) if index is None else rows[spread_rows(index, NEAR_ROWS)]
    first = near[0].astype(np.float64)  # equal rows give 0, not rounding
    origin = (first + (near - first).mean(axis=0)).astype(dtype)
    n, blas = len(rows) if index is None else index.size, scipy.linalg.blas
    sums, scatter = np.zeros(origin.size), np.zeros((origin.size, origin.size), order="F")
    for positions, block in row_blocks(rows, index, dtype=dtype):
        w = None if weights is None else weights[positions]
        if dtype is np.float64:
            block -= origin
        sums += block.sum(axis=0, dtype=np.float64) if w is None else w @ block
        if dtype is np.float32:  # after their sum: the difference is rounded
            sums -= (len(block) if w is None else w.sum()) * origin.astype(np.float64)
            block -= origin
        if w is not None:
            block *= np.sqrt(w)[:, None]
        if dtype is np.float32:
            scatter += blas.ssyrk(1.0, block.T, lower=1)
        else:
            scatter = blas.dsyrk(1.0, block.T, beta=1.0, c=scatter, lower=1, overwrite_c=1)
    total, divisor = (float(n), max(n - 1.0, 1.0)) if weights is None else (1.0, 1.0)
    gap = sums / total
    scatter = blas.dsyr(-total, gap, lower=1, a=scatter, overwrite_a=1)
    return RowMoments(origin + gap, mirror_lower(scatter / divisor).T, n)


def _of_rows(
    rows: Any, first: int, chosen: NDArray[np.intp] | None
) -> tuple[Moments, NDArray[Any] | None]:
    """Moments of rows that come after `first` others, and those whose number is `chosen`."""
    rows = validation.check_features("x", rows, minimum=1)
    moments = Moments.empty(rows.shape[1])
    for positions, block in row_blocks(rows):
        validation.check_finite("x", block, first_row=first + int(positions[0]))
        moments._absorb_block(block)
    if chosen is None:
        return moments, None
    own = chosen[(chosen >= first) & (chosen < first + len(rows))] - first
    return moments, np.array(rows[own])


def _joined(one: Any, two: Any) -> tuple[Moments, NDArray[Any] | None]:
    """Merge the moments of rows that follow one another, with the rows that they keep."""
    kept = None if one[1] is None else np.concatenate([one[1], two[1]])
    return one[0].merge(two[0]), kept


def _on_workers(
    blocks: list[Any], shape: tuple[int, int], chosen: NDArray[np.intp] | None
) -> tuple[Moments, NDArray[Any] | None]:
    """Moments of the `blocks` of a dask array, each of whole rows; merged in pairs by dask."""
    from dask.delayed import delayed

    first, parts = 0, []
    for length, block in blocks:
        if length:
            parts.append(delayed(_of_rows)(block, first, chosen))
        first += length
    while len(parts) > 1:
        alone = parts[-1:] if len(parts) % 2 else []
        pairs = zip(parts[::2], parts[1::2], strict=False)
        parts = [delayed(_joined)(*pair) for pair in pairs] + alone
    with validation.refused("x", "is a dask array that cannot be computed: "):
        found, kept = parts[0].compute()
    if (found.n, found.d) != shape:
        raise InputError(f"has blocks that hold {(found.n, found.d)}, where {shape} was said.", "x")
    return found, kept


def check_keep(keep: int) -> None:
    """Refuse to keep rows that are too few to tell of fourth moments; 0: none."""
    if 0 < validation.check_count("keep", keep, minimum=0) < LEAST_KEPT:
        raise InputError(
            f"must be 0 or at least {LEAST_KEPT}: fewer rows say nothing of fourth moments; "
            f"got {keep}.",
            argument="keep",
        )


def row_blocks(
    rows: NDArray[Any],
    index: NDArray[np.intp] | None = None,
    *,
    width: int | None = None,
    dtype: type[np.floating[Any]] = np.float64,
) -> Iterator[tuple[NDArray[np.intp], NDArray[Any]]]:
    """Yield (positions, copy in `dtype`) over blocks of rows; memory does not grow with n.

    `index` selects rows; positions count within the selection. `width`: largest number of columns
    that the caller makes of a block, which sets its size. The copies share one buffer: a block is
    only good until the next one, and the caller may overwrite it.
    """
    n = rows.shape[0] if index is None else index.size
    size = max(2, BLOCK_BYTES // (np.dtype(dtype).itemsize * (width or rows.shape[1])))
    # Memory touched first costs more than a copy.
    buffer = np.empty((min(size, n), rows.shape[1]), dtype=dtype)
    for start in range(0, n, size):
        stop = min(start + size, n)
        block = buffer[: stop - start]
        with np.errstate(invalid="ignore", over="ignore"):  # `check_finite` says it better
            block[...] = rows[start:stop] if index is None else rows[index[start:stop]]
        yield np.arange(start, stop), block


def is_narrow(rows: NDArray[Any]) -> bool:
    """Whether single precision holds every digit of the rows, as `check_features` leaves them."""
    return rows.dtype.itemsize <= 4


def spread_rows(rows: NDArray[Any], most: int) -> NDArray[Any]:
    """Return some rows at equal distances, a view: `most`, and fewer than twice as many."""
    return rows[:: max(1, len(rows) // most)]


def random_groups(seed: int, n: int, groups: int) -> NDArray[np.intp]:
    """Label each of n rows with one of as many random groups, equal in size to one row."""
    return np.random.default_rng(seed).permutation(np.arange(n) % groups)


def random_parts(seed: int, n: int, size: int) -> Iterator[NDArray[np.intp]]:
    """Positions of disjoint random parts of `size` of n rows, and fewer than twice that."""
    order = np.random.default_rng(seed).permutation(n)
    for start in range(0, n, size):
        # A last part of one row would have no pair.
        stop = n if n - start < 2 * size else start + size
        yield np.sort(order[start:stop])
        if stop == n:
            return


def as_rows(name: str, x: Any) -> Any:
    """Return rows as an array, one value a row as a column, whatever they came in.

    A `Sample` has done so, and moments have no rows: they stay as they are.
    """
    if isinstance(x, Sample | Moments):
        return x
    rows = x if isinstance(x, np.ndarray) else validation.as_numpy(name, x)
    return rows[:, None] if rows.ndim == 1 else rows


# --- Half of a symmetric matrix: panels of columns need no other copy of all of it ----------------

PANEL = 256


@lru_cache(maxsize=8)
def _above(d: int) -> NDArray[np.bool_]:
    """Mask of the entries above the diagonal."""
    return ~np.tri(d, dtype=bool)


def mirror_lower(matrix: Float) -> Float:
    """Copy the lower triangle onto the upper one, in place."""
    d = matrix.shape[0]
    for start in range(0, d, PANEL):
        stop = min(start + PANEL, d)
        square = matrix[start:stop, start:stop]
        np.copyto(square, square.T.copy(), where=_above(stop - start))
        matrix[start:stop, stop:] = matrix[stop:, start:stop].T
    return matrix


def symmetric_part(matrix: Float) -> tuple[Float, float]:
    """Return ``(A + A.T) / 2``, a new array, and the largest entry of ``|A - A.T|``."""
    d = matrix.shape[0]
    part = np.empty_like(matrix, order="C")
    gap = 0.0
    for start in range(0, d, PANEL):
        stop = min(start + PANEL, d)
        rows, columns = matrix[start:stop, start:], matrix[start:, start:stop].T
        gap = max(gap, float(np.abs(rows - columns).max()))
        np.add(rows, columns, out=part[start:stop, start:])
        part[start:stop, start:] *= 0.5
        part[stop:, start:stop] = part[start:stop, stop:].T
    return part, gap
