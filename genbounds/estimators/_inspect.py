"""What a sample shows of how it was drawn, where its user says nothing.

Identical rows, nearly identical ones, equally large groups and rows like their neighbours in the
file are signs that rows are not independent; rows of the sample that are rows of the reference,
that there is nothing to compare. All checks together cost some hundredths of the time of a Fréchet
distance of wide features; of narrow ones, whose distance takes a tenth of a second, up to a third.
A `Sample` is taken at its word: ``gb.Sample(x)`` says that the rows are independent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import scipy  # its submodules are loaded at their first use
from numpy.typing import NDArray

from genbounds._text import display
from genbounds.estimators._design import Design, Index, design_of
from genbounds.estimators._moments import Moments
from genbounds.results import Diagnostic, caution, unreliable
from genbounds.samples import Sample, features_of
from genbounds.validation import Float, InputError, check_features

SEED = 20_261_122
"""Of the rows that are looked at, so that a result repeats."""

CHANCE_ROWS = 256
"""Distinct rows that tell how often rows coincide by chance."""

NEIGHBOUR_ROWS = (32, 1024)
"""The nearest neighbours of at least and at most so many rows are looked for: of as many as cost
some hundredths of the time of a Fréchet distance of the same sample."""

LARGEST_GROUP = 25
"""Rows of one source that are looked for: larger clusters are taken for what the distribution is
made of."""

FALSE_ALARM = 1e-6
"""Probability of a warning about independent rows, for each of these checks."""

NEAR_TWINS = (0.02, 0.1)
"""Near duplicates that a row has on average, from which on a caution is given, and from which on
the interval is called unreliable: bias and variance grow by about that share."""

LARGEST_TWINS = 4
MOST_TWINS = 2.0
"""Near duplicates of one row, and of all rows on average, beyond which these are clusters, of which
a distribution may well be made: independent rows of twelve kinds that lie far apart look the same.
Only `_equal_groups` tells then."""

LARGEST_PEAK = 2.0
"""p(j)² / p(j-1) p(j+1) for p(j) the share of rows with j others in their cluster times j, if sizes
are Poisson: 2 at j = 2, less beyond."""

LEAST_GAP = math.log(2.0)
"""Near duplicates are closer to one another than half of the way to the next row."""

NEAR_ROWS, NEAR_PART = 5, 0.1
"""Rows with near duplicates, or their part of few rows, without which no warning is given: real
images have some."""

ORDER_PAIRS = 2000
"""Neighbours in file order that are compared with random pairs."""

LEAK_SHARE = 0.01
"""Share of rows common to sample and reference from which on a score is no comparison."""

ROW_BLOCK = 1 << 18
"""Entries that are worked on at a time: they stay in the cache."""

ID_WORDS = 1 << 15
"""Words of eight bytes that are digested at a time: half as many bytes would be slower as well."""

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
        design = design_of(name, x)
        if design is not None and design.independent and (np.diff(design.unit) < 0).any():
            # Of such a sample each row's influence is known by its place: that of its name.
            order = np.argsort(design.unit)
            rows, ids = rows[order], ids[order]
            design = replace(design, unit=design.unit[order])
        return Inspected(rows, design, True, ids)
    # A distance from constant rows is the mistake of an encoder; no diversity is a finding.
    if what and len(rows) > 1 and (ids == ids[0]).all():
        return Inspected(rows, None, False, ids, (_constant(len(rows), what),))
    design, warnings = _repeated(rows, ids, what)
    if design is None:
        if not posteriors:
            warnings += _close_rows(rows, ids, what)
        if not warnings:
            warnings += _alike_in_order(rows, what)
    return Inspected(rows, design, False, ids, warnings)


def inspect_rows(
    name: str, x: Any, *, needs: str, minimum: int = 2, posteriors: bool = False
) -> Inspected:
    """Inspect one of two samples, of which the rows themselves are needed.

    `needs`: subject and verb of what cannot do with moments; the others as for `inspect`.
    """
    if isinstance(x, Moments):
        raise InputError(
            f"is given by its moments; {needs} the features themselves.", argument=name
        )
    what = "generated" if name == "fake" else "reference"
    return inspect(name, x, minimum=minimum, what=what, posteriors=posteriors)


def _constant(n: int, what: str) -> Diagnostic:
    return unreliable(
        "no-variation",
        f"all {n} {what} rows are the same",
        "Check that they are the features of different samples.",
    )


def row_ids(rows: NDArray[Any]) -> NDArray[np.uint64]:
    """Digest every row to 64 bits; equal rows have equal digests."""
    n, d = rows.shape
    kind = np.float32 if rows.dtype.itemsize <= 4 else np.float64
    words = math.ceil(d * np.dtype(kind).itemsize / 8)  # two single-precision features a word
    factors = np.random.default_rng(SEED).integers(1 << 63, size=words, dtype=np.uint64) * 2 + 1
    ids = np.empty(n, dtype=np.uint64)
    step = max(1, ID_WORDS // words)
    block = np.zeros((min(n, step), words * 8 // np.dtype(kind).itemsize), dtype=kind)
    shifted = np.empty((len(block), words), dtype=np.uint64)
    for start in range(0, n, step):
        size = min(step, n - start)
        with np.errstate(over="ignore", invalid="ignore"):
            # -0 and 0 are equal
            np.add(rows[start : start + size], 0.0, out=block[:size, :d], casting="unsafe")
        # Low bits, which are alike in many numbers, take in high ones before and after.
        bits, high = block[:size].view(np.uint64), shifted[:size]
        bits ^= np.right_shift(bits, np.uint64(17), out=high)
        bits *= factors
        bits ^= np.right_shift(bits, np.uint64(29), out=high)
        bits.sum(axis=1, out=ids[start : start + size])
        block[:size, d:] = 0.0
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


def _close_rows(rows: NDArray[Any], ids: NDArray[np.uint64], what: str) -> tuple[Diagnostic, ...]:
    """Look for rows that lie closer to some others than to the rest.

    Around a row of a distribution with k local dimensions, k j log(r_{j+1} / r_j) of its j-th and
    next nearest distances are independent and exponential (E. Levina and P. Bickel, NeurIPS 2004).
    Two things do not agree with that: a gap that is far too wide ends a group of near duplicates;
    and if gaps are widest after the same j for many rows, so many share a source.
    Distances are relative to the longer row, so that short rows of a distribution with heavy tails
    are not near to one another.
    """
    n, d = rows.shape
    _, distinct = np.unique(ids, return_index=True)
    if d < 2 or distinct.size < max(8, n // 2):  # rows of few values coincide by chance
        return ()
    logs = _log_distances(rows, np.sort(distinct))
    if logs is None:
        return ()
    gaps = np.diff(logs, axis=1)
    order = np.arange(1, gaps.shape[1] + 1)
    whose = f"{what} " if what else ""
    near = _near_duplicates(gaps, order, whose)
    return near + _equal_groups(gaps * order, distinct.size, whose)


def _near_duplicates(gaps: Float, order: Index, whose: str) -> tuple[Diagnostic, ...]:
    # Gaps beyond the near duplicates: with these, a median of the first ones sees no dimension.
    beyond = (gaps * order)[:, LARGEST_TWINS:]
    dimension = math.log(2.0) / max(float(np.median(beyond)), 1e-300)
    wide = gaps * order * dimension > math.log(gaps.size / FALSE_ALARM)
    wide &= gaps > LEAST_GAP
    near = (order * wide).max(axis=1)
    if near.mean() > MOST_TWINS:
        return ()
    near = np.where(near <= LARGEST_TWINS, near, 0)
    twins = float(near.mean())
    if (near > 0).sum() < min(NEAR_ROWS, NEAR_PART * len(near)) or twins < NEAR_TWINS[0]:
        return ()
    warn = unreliable if twins >= NEAR_TWINS[1] else caution
    return (
        warn(
            "near-duplicates",
            f"{whose}rows have {twins:.2g} nearly identical ones each, on average",
            "Give rows of one source one id: genbounds.Sample(x, groups=...) (--groups); or drop "
            "copies.",
        ),
    )


def _equal_groups(spacings: Float, n: int, whose: str) -> tuple[Diagnostic, ...]:
    """Notice that more rows have exactly j others near to them than have one more or less.

    Clusters that are part of a distribution differ in size from sample to sample: their sizes are
    Poisson, and give no peak above `LARGEST_PEAK`.
    """
    spacings = spacings[(spacings > 0.0).all(axis=1)]  # equal distances: features of few values
    if len(spacings) < 2 or spacings.shape[1] < 3:
        return ()
    mean = spacings.mean(axis=0)
    others = np.arange(1, mean.size + 1)
    seen = np.minimum(len(spacings), n / (others + 1.0))  # rows of one group are one observation
    error = spacings.var(axis=0, ddof=1) / (mean**2 * seen)
    noise = np.sqrt(4.0 * error[1:-1] + error[:-2] + error[2:])
    if not (noise > 0.0).all():  # rows on a regular grid
        return ()
    level = np.log(mean)
    peak = 2.0 * level[1:-1] - level[:-2] - level[2:] - math.log(LARGEST_PEAK)
    z = peak / noise
    highest = int(z.argmax())
    if z[highest] <= scipy.special.ndtri(1.0 - FALSE_ALARM / z.size):
        return ()
    return (
        unreliable(
            "dependent-rows",
            f"{whose}rows tend to have exactly {others[highest + 1]} others near to them: these "
            "come from one source, or the number of rows of each class was fixed",
            "Pass genbounds.Sample(x, groups=sources) (--groups) or strata=classes (--strata); if "
            "all rows are independent, genbounds.Sample(x) (--iid).",
        ),
    )


def _log_distances(rows: NDArray[Any], distinct: Index) -> Float | None:
    """Logarithms of the distances from some rows to their nearest neighbours and one more.

    ‖x - y‖² / max(‖x‖², ‖y‖²), for centred rows with these squared norms. None where a row is the
    centre or beyond floating point, which is said better where rows are read.
    """
    n, d = distinct.size, rows.shape[1]
    rng = np.random.default_rng(SEED)
    size = int(np.clip(0.15 * d + 4e7 / (n * (2.0 * d + 50.0)), *NEIGHBOUR_ROWS))
    chosen = np.sort(rng.choice(n, min(n, size), replace=False))
    kind = np.float32 if rows.dtype.itemsize <= 4 else np.float64
    x: NDArray[np.floating[Any]] = np.array(rows[distinct[chosen]], dtype=kind)
    centre: NDArray[np.floating[Any]] = np.median(x[:CHANCE_ROWS], axis=0).astype(
        kind
    )  # outliers would move a mean
    x = x - centre
    own = np.einsum("ij,ij->i", x, x).astype(np.float64)[:, None]
    floor = 8.0 * float(np.finfo(kind).eps)  # below it the product is all rounding
    kept = min(LARGEST_GROUP, n - 3) + 1
    nearest = np.full((len(x), kept), np.inf)
    step = max(kept, 2 * ROW_BLOCK // max(d, len(x)))
    for start in range(0, n, step):
        block: NDArray[np.floating[Any]] = np.array(
            rows[distinct[start : start + step]], dtype=kind
        )
        block -= centre
        squares = np.einsum("ij,ij->i", block, block).astype(np.float64)
        if not (np.isfinite(squares).all() and squares.all()):
            return None
        distances = own + squares - 2.0 * (x @ block.T)
        distances /= np.maximum(own, squares)
        here = np.flatnonzero((chosen >= start) & (chosen < start + step))
        distances[here, chosen[here] - start] = np.inf
        joined = np.concatenate([nearest, distances], axis=1)
        nearest = np.partition(joined, kept - 1, axis=1)[:, :kept]
    nearest.sort(axis=1)
    logs: Float = 0.5 * np.log(np.maximum(nearest, floor))
    return logs


def _alike_in_order(rows: NDArray[Any], what: str) -> tuple[Diagnostic, ...]:
    """Compare the angle between neighbours in file order with that of random pairs."""
    n = len(rows)
    if n < 50:
        return ()
    rng = np.random.default_rng(SEED)
    at = np.sort(rng.choice(n - 1, min(n - 1, ORDER_PAIRS), replace=False))
    z = _likeness(rows[at], rows[at + 1])
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


def _likeness(ones: NDArray[Any], twos: NDArray[Any]) -> float:
    """Return by how many standard errors rows of one place are more alike than others, or 0."""
    one, two = (np.array(part, dtype=np.float64) for part in (ones, twos))
    for part in (one, two):
        centre = part.mean(axis=0)
        if not np.isfinite(centre).all():
            return 0.0
        part -= centre
        norms = np.sqrt(np.einsum("ij,ij->i", part, part))
        part /= np.where(norms > 0.0, norms, 1.0)[:, None]
    alike = np.einsum("ij,ij->i", one, two)
    apart = np.einsum("ij,ij->i", one, np.roll(two, len(two) // 2, axis=0))
    noise = math.sqrt((float(alike.var()) + float(apart.var())) / len(alike))
    return (float(alike.mean()) - float(apart.mean())) / noise if noise > 0.0 else 0.0


Z_LIMIT = 5.0
"""Standard errors by which neighbours must be more alike than random pairs: 3e-7 by chance."""


def alike_by_place(fake: Inspected, real: Inspected) -> tuple[Diagnostic, ...]:
    """Warn of two plain samples whose rows are alike place by place: of the same prompts."""
    n = len(fake.rows)
    if fake.told or real.told or fake.rows.shape != real.rows.shape or n < 50:
        return ()
    rng = np.random.default_rng(SEED)
    at = np.sort(rng.choice(n, min(n, ORDER_PAIRS), replace=False))
    z = _likeness(fake.rows[at], real.rows[at])
    if z < Z_LIMIT:
        return ()
    return (
        unreliable(
            "dependent-rows",
            f"generated and reference rows of one place are alike (z = {z:.0f}): they come from "
            "the same prompts, or both files are sorted",
            "Pass genbounds.Sample(x, groups=prompts) for both samples, with the same ids "
            "(--groups); if they are only sorted, genbounds.Sample(x) (--iid).",
        ),
    )


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
    """Warn of rows that two models have in common; `samples`: the digests of each one's rows."""
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
