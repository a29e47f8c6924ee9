"""What a sample shows of how it was drawn, where its user says nothing.

Identical rows, nearly identical ones, equally large groups and rows like their neighbours in the
file are signs that rows are not independent; rows of the sample that are rows of the reference,
that there is nothing to compare. All checks together cost some hundredths of the time of a Fréchet
distance of wide features; of narrow ones, whose distance takes a tenth of a second, up to a third.
A `Sample` is taken at its word: ``gb.Sample(x)`` says that the rows are independent. Of groups and
strata only this is asked: are rows of one id more alike than others?
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds._text import display
from genbounds.core.close_rows import LARGEST_GROUP, SEED, close_rows
from genbounds.core.coincidences import LEAK_SHARE, judge_common_rows
from genbounds.core.design import Design, Index, design_of
from genbounds.core.moments import Moments
from genbounds.core.shared_seeds import FALSE_ALARM, shared_places_pvalue
from genbounds.diagnostics import Severity, warn_of
from genbounds.results import Diagnostic
from genbounds.samples import Sample, features_of
from genbounds.validation import InputError, check_features

CHANCE_ROWS = 256
"""Distinct rows that tell how often rows coincide by chance."""

HALF_REPEATS = 1.25
"""Rows that repeat others in half of the columns, for one that does in all, beyond which rows of
correlated counts, answers or fingerprints repeat by chance: of copies hardly more do. Chosen on
nine such distributions of 400 and of 2,000 rows; no command measures it yet."""

ORDER_PAIRS = 2000
"""Neighbours in file order that are compared with random pairs."""

LEAST_LIKENESS = 3.0
"""Standard errors by which rows of one group or stratum should be more alike than others. Shuffled
ids pass in one of 700 samples; rows that are alike by 6 standard errors fail as often."""

LARGEST_NOISE = 0.04
"""Standard error of that likeness from which on a likeness that matters would not be seen."""

ID_WORDS = 1 << 15
"""Words of eight bytes that are digested at a time: half as many bytes would be slower as well."""


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

    @cached_property
    def single_ids(self) -> NDArray[np.uint64]:
        """Digests of the rows in single precision, in which a copy may have been kept."""
        return self.ids if is_single(self.rows) else row_ids(self.rows, single=True)


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
        x.check_unchanged(name)
        design = design_of(name, x)
        if design is not None and design.independent and (np.diff(design.unit) < 0).any():
            # Of such a sample each row's influence is known by its place: that of its name.
            order = np.argsort(design.unit)
            rows, ids = rows[order], ids[order]
            design = replace(design, unit=design.unit[order])
            return Inspected(rows, design, True, ids)
        warnings = _unrelated(rows, x, ids, what, posteriors) + _shared_seeds(rows, x, what)
        return Inspected(rows, design, True, ids, warnings)
    # A distance from constant rows is the mistake of an encoder; no diversity is a finding.
    if what and len(rows) > 1 and (ids == ids[0]).all():
        warning = warn_of("constant-rows", n=len(rows), what=what)
        return Inspected(rows, None, False, ids, (warning,))
    design, warnings = _signs(rows, ids, what, posteriors)
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


def _signs(
    rows: NDArray[Any], ids: NDArray[np.uint64], what: str, posteriors: bool
) -> tuple[Design | None, tuple[Diagnostic, ...]]:
    """Look for signs of dependence; identical rows are returned as groups."""
    distinct = _distinct(ids)
    design, warnings = _repeated(rows, ids, distinct.size, what)
    if design is None:
        if not posteriors:
            warnings += close_rows(rows, distinct, what)
        if not warnings:
            warnings += alike_in_order(rows, what)
    return design, warnings


def _unrelated(
    rows: NDArray[Any], x: Sample, ids: NDArray[np.uint64], what: str, posteriors: bool
) -> tuple[Diagnostic, ...]:
    """Notice groups or strata that the rows know nothing of: ids in another order, another file's.

    Then what a plain array shows counts. If it shows nothing either, rows may be independent.
    """
    found: tuple[Diagnostic, ...] = ()
    for kind, one, labels in (("groups", "group", x.groups), ("strata", "stratum", x.strata)):
        z = math.inf if labels is None else _likeness_within(rows, labels)
        if z >= LEAST_LIKENESS:
            continue
        signs = _signs(rows, ids, what, posteriors)[1]
        severity: Severity = "unreliable" if signs else "caution"
        seen = f"; but {signs[0].message}" if signs else ""
        whose = f"{what} " if what else ""
        found += (
            warn_of(
                "unrelated-labels",
                severity=severity,
                whose=whose,
                one=one,
                z=z,
                seen=seen,
                kind=kind,
            ),
        )
    return found


def _shared_seeds(rows: NDArray[Any], x: Sample, what: str) -> tuple[Diagnostic, ...]:
    """Notice groups whose k-th rows are alike: all were drawn from the same seeds."""
    if x.groups is None or shared_places_pvalue(rows, x.groups) > FALSE_ALARM:
        return ()
    whose = f"{what} rows" if what else "rows"
    return (warn_of("shared-seeds", whose=whose),)


def _likeness_within(rows: NDArray[Any], labels: NDArray[Any]) -> float:
    """By how many standard errors rows with one label are alike; infinite if that is not known."""
    _, number, counts = np.unique(labels, return_inverse=True, return_counts=True)
    several = np.flatnonzero(counts[number] > 1)
    if not several.size or counts.size < 2:
        return math.inf
    rng = np.random.default_rng(SEED)
    order = np.argsort(number, kind="stable")
    place = np.empty(number.size, dtype=np.intp)
    place[order] = np.arange(number.size)
    first = (np.cumsum(counts) - counts)[number]
    one = np.sort(place[rng.choice(several, ORDER_PAIRS)])  # half a list on is another label
    size, start = counts[number][order[one]], first[order[one]]
    other = start + (one - start + rng.integers(1, size)) % size
    likeness, noise = _likeness(rows[order[one]], rows[order[other]])
    pairs = 0.5 * float((counts * (counts - 1.0)).sum())
    noise *= math.sqrt(1.0 + ORDER_PAIRS / pairs)  # pairs are drawn with replacement from so many
    return _z_if_known(likeness, noise)


def is_single(rows: NDArray[Any]) -> bool:
    """Whether rows are digested in single precision."""
    return rows.dtype.itemsize <= 4


def row_ids(rows: NDArray[Any], *, single: bool = False) -> NDArray[np.uint64]:
    """Digest every row to 64 bits; equal rows have equal digests.

    `single`: as rounded to single precision, whatever they come in.
    """
    n, d = rows.shape
    kind = np.float32 if single or is_single(rows) else np.float64
    words = math.ceil(d * np.dtype(kind).itemsize / 8)  # two single-precision features a word
    factors = _odd_numbers(words)
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


@lru_cache(maxsize=4)
def _odd_numbers(n: int) -> NDArray[np.uint64]:
    return np.random.default_rng(SEED).integers(1 << 63, size=n, dtype=np.uint64) * 2 + 1


def _distinct(ids: NDArray[np.uint64]) -> Index:
    """Return the place of the first of every set of equal rows, in their order."""
    ordered = np.sort(ids)
    if (ordered[1:] != ordered[:-1]).all():
        return np.arange(ids.size)
    return np.sort(np.unique(ids, return_index=True)[1])


def _repeated(
    rows: NDArray[Any], ids: NDArray[np.uint64], distinct: int, what: str
) -> tuple[Design | None, tuple[Diagnostic, ...]]:
    """Take identical rows for one draw, unless rows coincide by chance."""
    n, repeated = len(rows), len(rows) - distinct
    if not repeated or distinct < 2:
        return None, ()
    _, unit, times = np.unique(ids, return_inverse=True, return_counts=True)
    # A single value that stands often, as rows of zeros do, is what a distribution is made of.
    if LARGEST_GROUP <= repeated == times.max() - 1 or not _surprising(rows, repeated):
        return None, ()
    whose = f"{what} " if what else ""
    warning = warn_of("repeats-as-one", repeated=repeated, n=n, whose=whose)
    stratum = np.zeros(distinct, dtype=np.intp)
    return Design(unit.astype(np.intp), stratum, np.full(n, 1.0 / n), of_repeats=True), (warning,)


def _surprising(rows: NDArray[Any], repeated: int) -> bool:
    """Whether so many coincidences are more than chance, as discrete features would give.

    Not if rows that agree in half of their columns often differ in the rest; else by the
    probability that two draws agree in every column, were columns independent.
    """
    n = len(rows)
    rng = np.random.default_rng(SEED)
    some = np.asarray(rows[np.sort(rng.choice(n, min(n, CHANCE_ROWS), replace=False))])
    varied = np.flatnonzero((some != some[0]).any(axis=0))
    halves = np.array_split(rng.permutation(varied), 2)
    if varied.size < 2 or min(_repeats_in(rows, k) for k in halves) > HALF_REPEATS * repeated:
        return False
    pairs = 0.5 * n * (n - 1.0)
    for column in some.T:
        counts = np.unique(column, return_counts=True)[1]
        pairs *= float((counts * (counts - 1.0)).sum()) / (len(some) * (len(some) - 1.0))
        if repeated > 10.0 * pairs:
            return True
    return False


def _repeats_in(rows: NDArray[Any], columns: Index) -> int:
    """Count the rows that repeat others in these columns."""
    starts = range(0, len(rows), ID_WORDS)
    ids = np.concatenate([row_ids(rows[k : k + ID_WORDS, columns]) for k in starts])
    return len(rows) - _distinct(ids).size


def alike_in_order(rows: NDArray[Any], what: str) -> tuple[Diagnostic, ...]:
    """Compare the angle between neighbours in file order with that of random pairs."""
    n = len(rows)
    if n < 50:
        return ()
    some = _some(n - 1)
    z = _z(*_likeness(rows[:-1][some], rows[1:][some]))
    if z < Z_LIMIT:
        return ()
    whose = f"{what} " if what else ""
    return (warn_of("alike-in-order", whose=whose, z=z),)


def _some(n: int) -> slice | Index:
    """Choose `ORDER_PAIRS` of n pairs at random, in their order; all of few."""
    if n <= ORDER_PAIRS:
        return slice(None)
    return np.sort(np.random.default_rng(SEED).choice(n, ORDER_PAIRS, replace=False))


def _likeness(ones: NDArray[Any], twos: NDArray[Any]) -> tuple[float, float]:
    """Return how much more alike rows of one place are than others, and its standard error.

    The cosine of their angle as seen from the mean; zeros where a row is beyond floating point.
    """
    one, two = (np.array(part, dtype=np.float64) for part in (ones, twos))
    for part in (one, two):
        centre = part.mean(axis=0)
        if not np.isfinite(centre).all():
            return 0.0, 0.0
        part -= centre
        norms = np.sqrt(np.einsum("ij,ij->i", part, part))
        norms[norms == 0.0] = 1.0
        part *= (1.0 / norms)[:, None]
    half = len(two) // 2
    alike = np.einsum("ij,ij->i", one, two)
    apart = np.empty_like(alike)  # with the row half of the list away
    np.einsum("ij,ij->i", one[:half], two[len(two) - half :], out=apart[:half])
    np.einsum("ij,ij->i", one[half:], two[: len(two) - half], out=apart[half:])
    noise = math.sqrt((float(alike.var()) + float(apart.var())) / len(alike))
    return float(alike.mean()) - float(apart.mean()), noise


def _z(likeness: float, noise: float) -> float:
    return likeness / noise if noise > 0.0 else 0.0


def _z_if_known(likeness: float, noise: float) -> float:
    """Return the standard errors of a likeness, infinite where one that matters may be missed."""
    return likeness / noise if 0.0 < noise < LARGEST_NOISE else math.inf


Z_LIMIT = 5.0
"""Standard errors by which neighbours must be more alike than random pairs: 3e-7 by chance."""


def drawing_warnings(fake: Inspected, real: Inspected) -> tuple[Diagnostic, ...]:
    """Say what the rows of two samples show of how they were drawn."""
    found = (*fake.warnings, *real.warnings, *leaked(fake, real))
    if not (fake.told or real.told):
        return (*found, *_alike_by_place(fake.rows, real.rows))
    if fake.design is None or real.design is None:
        return found
    return (*found, *_unlike_by_name(fake.rows, fake.design, real.rows, real.design))


def _alike_by_place(fake: NDArray[Any], real: NDArray[Any]) -> tuple[Diagnostic, ...]:
    """Warn of two plain samples whose rows are alike place by place: of the same prompts."""
    n = len(fake)
    if fake.shape != real.shape or n < 50:
        return ()
    some = _some(n)
    z = _z(*_likeness(fake[some], real[some]))
    if z < Z_LIMIT:
        return ()
    return (warn_of("alike-by-place", z=z),)


def _unlike_by_name(
    fake: NDArray[Any], one: Design, real: NDArray[Any], two: Design
) -> tuple[Diagnostic, ...]:
    """Notice ids that two samples share and whose rows are not alike: ids in another order."""
    if one.labels is None or two.labels is None:
        return ()
    _, ours, theirs = np.intersect1d(one.labels, two.labels, return_indices=True)
    if ours.size < 2:
        return ()
    some = _some(ours.size)
    first, others = (
        np.unique(design.unit, return_index=True)[1][units[some]]
        for design, units in ((one, ours), (two, theirs))
    )
    z = _z_if_known(*_likeness(fake[first], real[others]))
    if z >= LEAST_LIKENESS:
        return ()
    return (warn_of("unlike-by-name", z=z),)


def leaked(fake: Inspected, real: Inspected) -> tuple[Diagnostic, ...]:
    """Warn of generated rows that are rows of the reference, in whichever precision."""
    one_precision = is_single(fake.rows) == is_single(real.rows)
    ids, others = (fake.ids, real.ids) if one_precision else (fake.single_ids, real.single_ids)
    common, severity = judge_common_rows(ids, others, (fake.rows, real.rows))
    if severity is None:
        return ()
    return (warn_of("leak", severity=severity, common=common, rows=ids.size),)


def shared_rows(samples: Mapping[str, NDArray[np.uint64] | None]) -> tuple[Diagnostic, ...]:
    """Warn of rows that two models have in common; `samples`: the digests of each one's rows."""
    found = []
    known = {name: ids for name, ids in samples.items() if ids is not None}
    for (one, ids), (two, others) in combinations(known.items(), 2):
        common, severity = judge_common_rows(ids, others)
        if severity is not None and common >= LEAK_SHARE * ids.size:
            found.append(
                warn_of(
                    "same-rows",
                    severity=severity,
                    common=common,
                    rows=ids.size,
                    one=display(one, limit=60),
                    two=display(two, limit=60),
                )
            )
    return tuple(found)
