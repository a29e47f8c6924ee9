"""Rows in a row, as frames of a video or steps of a chain: blocks of neighbours, taken as groups.

Neighbours are alike, rows far apart are not. With the autocorrelation ρ_k of a stationary series

    τ = 1 + 2 Σ_{k ≤ M} ρ_k,    M the least lag ≥ 5 τ (A. Sokal, "Monte Carlo methods in statistical
    mechanics", 1989, section 3),

n rows say as much of a mean as n / τ independent ones. Blocks of ⌈0.8 (τ n)^½⌉ rows are long enough
that what neighbours share lies within a block, and as many as can be. How the influence of a score
varies is not known before it is computed, so τ is the largest of what influences are made of: the
rows, the directions that vary most and slowest, and the squared distance from the mean.
"""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genbounds._process import row_parts
from genbounds.validation import Float, InputError, as_numpy, check_finite

Index = NDArray[np.intp]

ENOUGH_SERIES = 20
"""Series from which on each is a unit as it is: all that its rows have in common is then seen."""

ALONE = 1.3
"""Correlation time below which rows are taken as independent: chance makes it so long."""

COLUMNS = 32
"""Random directions that stand for more features than that."""

LEADING = 4
"""Directions whose correlation time is looked at one by one."""

FEWEST_BLOCKS = 5
"""Into which rows are cut however slowly they vary; a score of so few is called unreliable."""


class Series(NamedTuple):
    """Rows in blocks: how many a block has at least, and what their series are called."""

    block: int
    names: NDArray[Any] | None


def check_order(order: Any, groups: NDArray[Any] | None, n: int) -> tuple[Index, Index]:
    """Return the rows sorted by series and place, and where each series begins.

    Raises
    ------
    InputError
        If there is not one finite number a row, or two rows of a series have the same place.
    """
    place = as_numpy("order", order)
    if place.shape != (n,):
        raise InputError(
            f"must have shape ({n},), the place of each row; got shape {place.shape}.",
            argument="order",
        )
    if place.dtype.kind not in "iuf" or not np.isfinite(place).all():
        raise InputError("must hold finite numbers, the place of each row.", argument="order")
    series = np.zeros(n, dtype=np.intp)
    if groups is not None:
        series = np.unique(groups, return_inverse=True)[1].astype(np.intp)
    rows = np.lexsort((place, series))
    new = np.diff(series[rows]) != 0
    tied = np.flatnonzero(~new & (np.diff(place[rows]) == 0))
    if tied.size:
        one, two = sorted(rows[tied[0] : tied[0] + 2].tolist())
        where = "" if groups is None else f" of group {groups[one].item()!r}"
        raise InputError(
            f"gives rows {one} and {two}{where} the same place, {place[one].item()!r}: rows of "
            "several series need `groups`, which says whose each is.",
            argument="order",
        )
    return rows, np.concatenate([[0], np.flatnonzero(new) + 1]).astype(np.intp)


def in_blocks(
    x: NDArray[Any], order: Any, groups: NDArray[Any] | None
) -> tuple[NDArray[Any], Series | None]:
    """Return the block of each row as its group; the groups as they are where there are enough.

    Parameters
    ----------
    x : ndarray of shape (n, d)
    order : array_like of shape (n,)
    groups : ndarray of shape (n,), optional

    Returns
    -------
    ids : ndarray of shape (n,)
        Integers that no other sample has, but one of the same rows in the same order.
    series : Series or None
        None where the groups were left as they are.
    """
    rows, starts = check_order(order, groups, len(x))
    if groups is not None and starts.size >= ENOUGH_SERIES:
        return groups, None
    n = rows.size
    block = block_rows(x, rows, starts) if n else 1
    ids = np.empty(n, dtype=np.int64)
    taken = _first_id(x, rows)
    for part in np.split(rows, starts[1:]):
        count = max(1, part.size // block)
        ids[part] = taken + np.arange(part.size) * count // max(part.size, 1)
        taken += count
    return ids, Series(block, None if groups is None else np.unique(groups))


def _first_id(x: NDArray[Any], rows: Index) -> int:
    """Return a number of 62 bits, from some of the rows and their order."""
    some = rows[:: max(1, rows.size // 64)]
    digest = hashlib.blake2b(np.ascontiguousarray(x[some]).tobytes(), digest_size=8)
    digest.update(rows.tobytes())
    return int.from_bytes(digest.digest(), "little") >> 2


def block_rows(x: NDArray[Any], rows: Index, starts: Index) -> int:
    """Return how many rows in a row make a block.

    Parameters
    ----------
    x : ndarray of shape (n, d)
    rows : ndarray of int, shape (n,)
        The rows, sorted by series and place.
    starts : ndarray of int, shape (series,)
        Where each series begins.
    """
    n = rows.size
    lagged = _lagged_products(_columns(x, rows), starts)[: n // 4]
    own = [lagged[:, :-1].sum(axis=1), *lagged.T[: min(LEADING, lagged.shape[1] - 1)], lagged.T[-1]]
    tau = max(correlation_time(products) for products in own)
    if tau < ALONE:
        return 1
    return max(1, min(int(np.ceil(0.8 * np.sqrt(tau * n))), n // FEWEST_BLOCKS))


def correlation_time(products: Float) -> float:
    """Return τ from sums of products at lags 0, 1, …, by Sokal's window."""
    if products.size < 2 or not products[0] > 0.0:
        return 1.0
    times = 1.0 + 2.0 * np.cumsum(products[1:]) / products[0]
    enough = np.flatnonzero(np.arange(1, products.size) >= 5.0 * np.maximum(times, 1.0))
    return max(1.0, float(times[enough[0] if enough.size else -1]))


def _columns(x: NDArray[Any], rows: Index) -> Float:
    """Return what is looked at of the sorted rows, less its mean.

    Their directions, first those in which sums of neighbours vary most, as what is large or slow
    does; last the squared distance from the mean.
    """
    centre = x.mean(axis=0, dtype=np.float64)
    d = centre.size
    turn = np.eye(d)
    if d > COLUMNS:
        turn = np.random.default_rng(0).standard_normal((d, COLUMNS)) / np.sqrt(COLUMNS)
    out = np.empty((len(x), turn.shape[1] + 1))
    for part in row_parts(x):
        check_finite("features", x[part], first_row=part.start)
        y = x[part] - centre
        out[part, :-1], out[part, -1] = y @ turn, (y**2).sum(axis=1)
    out = out[rows]
    sums = out[1:, :-1] + out[:-1, :-1]
    _, vectors = np.linalg.eigh(sums.T @ sums)
    out[:, :-1] = out[:, :-1] @ vectors[:, ::-1]
    out -= out.mean(axis=0)
    return out


def _lagged_products(columns: Float, starts: Index) -> Float:
    """Sum the products of each column with itself, at every lag within a series."""
    parts = np.split(columns, starts[1:])
    out = np.zeros((max(map(len, parts)), columns.shape[1]))
    for part in parts:
        power = np.abs(np.fft.rfft(part, 2 * len(part), axis=0)) ** 2
        out[: len(part)] += np.fft.irfft(power, 2 * len(part), axis=0)[: len(part)]
    return out
