"""What a sample shows of how it was drawn, where its user says nothing.

Identical rows, nearly identical ones and rows like their neighbours in the file are signs that rows
are not independent; rows of the sample that are rows of the reference, that there is nothing to
compare. All checks together cost a few hundredths of the time of a score. A `Sample` is taken at
its word: ``gb.Sample(x)`` says that the rows are independent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds._text import display
from genbounds.estimators._design import Design, Index, design_of
from genbounds.results import Diagnostic, caution, unreliable
from genbounds.samples import Sample, features_of
from genbounds.validation import Float, check_features

SEED = 20_261_122
"""Of the rows that are looked at, so that a result repeats."""

CHANCE_ROWS = 256
"""Distinct rows that tell how often rows coincide by chance."""

NEIGHBOUR_ROWS = (128, 4096)
"""At least and at most so many rows are looked at for near duplicates: as many as cost some
hundredths of the time of a Fréchet distance of the same sample."""

LARGEST_GROUP = 25
"""Rows of one source that are looked for: larger clusters are taken for what the distribution is
made of."""

FALSE_ALARM = 1e-6
"""Probability of a warning about independent rows, for each of these checks."""

NEAR_TWINS = (0.02, 0.1)
"""Near duplicates that a row has on average, from which on a caution is given, and from which on
the interval is called unreliable: bias and variance grow by about that share."""

LEAST_GAP = math.log(2.0)
"""Near duplicates are closer to one another than half of the way to the next row."""

NEAR_ROWS = 5
"""Rows with near duplicates without which no warning is given: real images have some."""

ORDER_PAIRS = 2000
"""Neighbours in file order that are compared with random pairs."""

LEAK_SHARE = 0.01
"""Share of rows common to sample and reference from which on a score is no comparison."""

ROW_BLOCK = 1 << 18
"""Entries that are worked on at a time: they stay in the cache."""

MOSTLY_DISTINCT = 0.5
"""Share of distinct rows of a sample below which equal rows in another one are no sign of anything:
posteriors that are sure, features of few values."""


@dataclass(frozen=True)
class Inspected:
    """A sample as given, how it was drawn as far as is known, and what that is known from.

    Attributes
    ----------
    rows : ndarray of shape (n, d)
    design : Design or None
        As told, or identical rows as groups; None for independent rows.
    told : bool
        Whether the user said how the rows were drawn.
    ids : ndarray of shape (n,)
        64-bit digests of the rows.
    warnings : tuple of Diagnostic
    """

    rows: NDArray[Any]
    design: Design | None
    told: bool
    ids: NDArray[np.uint64]
    warnings: tuple[Diagnostic, ...] = ()


def inspect(
    name: str, x: Any, *, minimum: int = 2, what: str = "", posteriors: bool = False
) -> Inspected:
    """Check a sample and look for signs of dependence.

    Parameters
    ----------
    name : str
        Of the argument, for errors.
    x : array_like of shape (n, d) or Sample
    minimum : int
        Minimum number of rows.
    what : str
        "generated" or "reference", for warnings; empty where there is one sample only.
    posteriors : bool
        Rows are class probabilities, of which sure ones are all alike: no near duplicates are
        looked for.
    """
    rows = check_features(name, features_of(x), minimum=minimum)
    ids = row_ids(rows)
    if isinstance(x, Sample):
        return Inspected(rows, design_of(name, x), True, ids)
    # A distance from constant rows is the mistake of an encoder; no diversity is a finding.
    if what and len(rows) > 1 and (ids == ids[0]).all():
        return Inspected(rows, None, False, ids, (_constant(len(rows), what),))
    design, warnings = _repeated(rows, ids, what)
    if design is None:
        if not posteriors:
            warnings += _near_duplicates(rows, ids, what)
        if not warnings:
            warnings += _alike_in_order(rows, what)
    return Inspected(rows, design, False, ids, warnings)


def _constant(n: int, what: str) -> Diagnostic:
    return unreliable(
        "no-variation",
        f"all {n} {what} rows are the same",
        "Check that they are the features of different samples.",
    )


def row_ids(rows: NDArray[Any]) -> NDArray[np.uint64]:
    """Digest every row to 64 bits; equal rows have equal digests."""
    n, d = rows.shape
    narrow = rows.dtype.itemsize <= 4
    factors = np.random.default_rng(SEED).integers(1 << 63, size=d, dtype=np.uint64) * 2 + 1
    ids = np.zeros(n, dtype=np.uint64)
    step = max(1, ROW_BLOCK // d)
    for start in range(0, n, step):
        block: NDArray[Any] = np.array(
            rows[start : start + step], dtype=np.float32 if narrow else np.float64
        )
        with np.errstate(over="ignore", invalid="ignore"):
            block += 0.0  # -0 and 0 are equal
            bits = block.view(np.uint32 if narrow else np.uint64).astype(np.uint64)
            bits ^= bits >> np.uint64(17)
            bits *= factors
            bits ^= bits >> np.uint64(29)
            ids[start : start + step] = bits.sum(axis=1, dtype=np.uint64)
    return ids


def _repeated(
    rows: NDArray[Any], ids: NDArray[np.uint64], what: str
) -> tuple[Design | None, tuple[Diagnostic, ...]]:
    """Take identical rows for one draw, unless rows coincide by chance."""
    distinct, first, unit = np.unique(ids, return_index=True, return_inverse=True)
    n, repeated = len(rows), len(rows) - distinct.size
    if not repeated or distinct.size < 2 or not _surprising(rows, first, repeated):
        return None, ()
    whose = f"{what} " if what else ""
    warning = caution(
        "duplicates",
        f"{repeated} of {n} {whose}rows repeat others, and count as one draw each",
        "Drop repeated files. If equal rows are independent draws, pass genbounds.Sample(x) "
        "(--iid).",
    )
    stratum = np.zeros(distinct.size, dtype=np.intp)
    return Design(unit.astype(np.intp), stratum, np.full(n, 1.0 / n), found=True), (warning,)


def _surprising(rows: NDArray[Any], first: Index, repeated: int) -> bool:
    """Whether so many coincidences are more than chance, as discrete features would give.

    The probability that two draws agree in every feature, from how often they agree in each.
    """
    n = len(rows)
    rng = np.random.default_rng(SEED)
    chosen = rng.choice(n, min(n, CHANCE_ROWS), replace=False)
    columns = np.sort(np.asarray(rows[np.sort(chosen)], dtype=np.float64), axis=0)
    m = len(columns)
    changes = columns[1:] != columns[:-1]
    # Runs of equal values of lengths l give Σ l (l - 1) of the m (m - 1) ordered pairs.
    logarithm = 0.0
    for column in changes.T:
        ends = np.concatenate([[-1], np.flatnonzero(column), [m - 1]])
        lengths = np.diff(ends)
        agree = float((lengths * (lengths - 1)).sum()) / (m * (m - 1))
        if agree == 0.0:
            return True
        logarithm += math.log(agree)
        if logarithm < -60.0:
            return True
    return repeated > 10.0 * n * (n - 1) / 2.0 * math.exp(logarithm)


def _near_duplicates(
    rows: NDArray[Any], ids: NDArray[np.uint64], what: str
) -> tuple[Diagnostic, ...]:
    """Look for rows that lie far closer to some others than to the rest.

    Around a row of a distribution with k local dimensions, k j log(r_{j+1} / r_j) of its j-th and
    next nearest distances is exponential (E. Levina and P. Bickel, NeurIPS 2004): a gap that is far
    too wide for that ends a group of near duplicates. Distances are relative to the longer row, so
    that short rows of a distribution with heavy tails are not near to one another.
    """
    n, d = rows.shape
    _, distinct = np.unique(ids, return_index=True)
    if d < 2 or distinct.size < max(8, n // 2):  # rows of few values coincide by chance
        return ()
    least, most = NEIGHBOUR_ROWS
    size = int(np.clip(math.sqrt((0.6 * n * d * d + 2e7) / (2.0 * d + 50.0)), least, most))
    rng = np.random.default_rng(SEED)
    chosen = np.sort(rng.choice(distinct, min(distinct.size, size), replace=False))
    kind = np.float32 if rows.dtype.itemsize <= 4 else np.float64
    x: NDArray[np.floating[Any]] = np.array(rows[chosen], dtype=kind)
    x = x - np.median(x[:CHANCE_ROWS], axis=0).astype(kind)  # outliers would move a mean
    squares = np.einsum("ij,ij->i", x, x).astype(np.float64)
    if not (np.isfinite(squares).all() and squares.all()):  # said better where rows are read
        return ()
    seen = len(x) / n
    logs = _log_distances(x, squares, int(np.clip(LARGEST_GROUP * seen, 1, len(x) - 3)))
    gaps = np.diff(logs, axis=1)
    order = np.arange(1, gaps.shape[1] + 1)
    dimension = math.log(2.0) / max(float(np.median(gaps[:, 0])), 1e-300)
    wide = gaps * order * dimension > math.log(gaps.size / FALSE_ALARM)
    wide &= gaps > LEAST_GAP
    twins = float((order * wide).max(axis=1).sum()) / len(x) / seen
    if wide.any(axis=1).sum() < NEAR_ROWS or twins < NEAR_TWINS[0]:
        return ()
    warn = unreliable if twins >= NEAR_TWINS[1] else caution
    whose = f"{what} " if what else ""
    return (
        warn(
            "near-duplicates",
            f"{whose}rows have {twins:.2g} nearly identical ones each, on average",
            "Give rows of one source one id: genbounds.Sample(x, groups=...) (--groups); or drop "
            "copies.",
        ),
    )


def _log_distances(x: NDArray[Any], squares: Float, neighbours: int) -> Float:
    """Logarithms of the distances to the nearest neighbours and one more.

    ‖x - y‖² / max(‖x‖², ‖y‖²), for centred rows with these squared norms.
    """
    found = []
    step = max(1, ROW_BLOCK // len(x))
    floor = 8.0 * float(np.finfo(x.dtype).eps)  # below it the product is all rounding
    for start in range(0, len(x), step):
        own = squares[start : start + step, None]
        distances = own + squares - 2.0 * (x[start : start + step] @ x.T)
        distances /= np.maximum(own, squares)
        rows = np.arange(len(own))
        distances[rows, start + rows] = np.inf
        nearest = np.partition(distances, neighbours, axis=1)[:, : neighbours + 1]
        nearest.sort(axis=1)
        found.append(0.5 * np.log(np.maximum(nearest, floor)))
    return np.concatenate(found)


def _alike_in_order(rows: NDArray[Any], what: str) -> tuple[Diagnostic, ...]:
    """Compare the angle between neighbours in file order with that of random pairs."""
    n = len(rows)
    if n < 50:
        return ()
    rng = np.random.default_rng(SEED)
    at = np.sort(rng.choice(n - 1, min(n - 1, ORDER_PAIRS), replace=False))
    one, two = (np.array(rows[index], dtype=np.float64) for index in (at, at + 1))
    centre = one.mean(axis=0)
    if not np.isfinite(centre).all():
        return ()
    for part in (one, two):
        part -= centre
        norms = np.sqrt(np.einsum("ij,ij->i", part, part))
        part /= np.where(norms > 0.0, norms, 1.0)[:, None]
    alike = np.einsum("ij,ij->i", one, two)
    shift = len(at) // 2
    apart = np.einsum("ij,ij->i", one, np.roll(two, shift, axis=0))
    noise = math.sqrt((float(alike.var()) + float(apart.var())) / len(at))
    z = (float(alike.mean()) - float(apart.mean())) / noise if noise > 0.0 else 0.0
    if z < Z_LIMIT:
        return ()
    whose = f"{what} " if what else ""
    return (
        unreliable(
            "dependent-rows",
            f"neighbouring {whose}rows are alike (z = {z:.0f}): they are sorted by class, or "
            "several come from one source",
            "If the number of rows per class was fixed, pass genbounds.Sample(x, strata=classes) "
            "(--strata); if rows share a source, groups=sources (--groups); if they are only "
            "sorted, genbounds.Sample(x) (--iid).",
        ),
    )


Z_LIMIT = 5.0
"""Standard errors by which neighbours must be more alike than random pairs: 3e-7 by chance."""


def leaked(fake: NDArray[np.uint64], real: NDArray[np.uint64]) -> tuple[Diagnostic, ...]:
    """Warn of generated rows that are rows of the reference."""
    common = _common(fake, real)
    if not common:
        return ()
    warn = unreliable if common >= LEAK_SHARE * fake.size else caution
    return (
        warn(
            "leak",
            f"{common} of {fake.size} generated rows are rows of the reference",
            "Score samples that the reference does not hold.",
        ),
    )


def _common(ids: NDArray[np.uint64], others: NDArray[np.uint64]) -> int:
    """Count the rows of one sample that are in another; 0 where rows coincide by chance.

    Posteriors that are sure and features of few values repeat within one sample already.
    """
    if np.unique(ids).size < MOSTLY_DISTINCT * ids.size:
        return 0
    return int(np.isin(ids, others).sum())


def shared_rows(samples: Mapping[str, NDArray[np.uint64] | None]) -> tuple[Diagnostic, ...]:
    """Warn of rows that two models have in common, each model given by the digests of its rows."""
    found = []
    known = {name: ids for name, ids in samples.items() if ids is not None}
    for (one, ids), (two, others) in combinations(known.items(), 2):
        common = _common(ids, others)
        if common >= max(2, LEAK_SHARE * ids.size):
            found.append(
                unreliable(
                    "same-rows",
                    f"{common} of {ids.size} rows of {display(one, limit=60)} are also rows of "
                    f"{display(two, limit=60)}: their difference is not that of two models",
                    "Check that every model has its own file.",
                )
            )
    return tuple(found)
