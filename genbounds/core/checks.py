"""What a sample is, and what its rows show of how they were drawn: looked at once, as numbers.

Identical rows, nearly identical ones, equally large groups and rows like their neighbours in the
file are signs that rows are not independent; rows of the sample that are rows of the reference,
that there is nothing to compare. All checks together cost some hundredths of the time of a Fréchet
distance of wide features; of narrow ones, whose distance takes a tenth of a second, up to a third.
A `Sample` is taken at its word: ``gb.Sample(x)`` says that the rows are independent. Of groups and
strata only this is asked: are rows of one id more alike than others?

`check_sample` prepares; what follows from its findings stands in `Checked.warnings` and
`drawing_warnings`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations
from typing import Any

import numpy as np
import scipy  # its submodules are loaded at their first use
from numpy.typing import NDArray

from genbounds._text import display
from genbounds.core import close_rows
from genbounds.core.close_rows import SEED
from genbounds.core.design import Design, Index, design_of, row_design
from genbounds.core.estimate import small_sample
from genbounds.core.moments import Moments, is_narrow, spread_rows
from genbounds.diagnostics import Severity, warn_of
from genbounds.results import Diagnostic
from genbounds.samples import Sample
from genbounds.validation import Float, InputError, check_features, check_finite

CHANCE_ROWS = 256
"""Distinct rows that tell how often rows coincide by chance."""

HALF_REPEATS = 1.25
"""Rows that repeat others in half of the columns, for one that does in all, beyond which rows of
correlated counts, answers or fingerprints repeat by chance: of copies hardly more do. Chosen on
nine such distributions; ``python -m experiments.accuracy.repeats`` shows 1.2 to 11 for six of them,
1.0 for copies."""

DOUBLED_SHARE = 0.1
"""Rows that repeat others, as a share, from which on moments that count them all are unreliable."""

LIKENESS_PAIRS = (49, 2000)
"""Pairs of rows, of neighbours in the file or of one id, whose likeness is looked at: none of
fewer, so many of more."""

LIKENESS_ROWS = 32
"""Rows of one id that are looked at, at least, where there are more than can be."""

LIKENESS_LIMIT = 5.0
"""Standard errors by which neighbours must be more alike than random pairs: 3e-7 by chance."""

LEAST_LIKENESS = 3.0
"""Standard errors by which rows of one group or stratum should be more alike than others. Shuffled
ids pass in 14 of 5,400 samples; rows that are alike by 6 standard errors hardly fail."""

LARGEST_NOISE = 0.04
"""Standard error of that likeness from which on a likeness that matters would not be seen."""

EXTREME_DECADES = 20.0
"""Powers of ten from 1 beyond which the size of features is said: no encoder gives such."""

COARSE = 0.1
"""Steps of the floating type, in standard deviations, from which on features have lost digits."""

FEW_SEEDS = 10
"""Seeds, fewer than which make an interval long: Student's t of 9 degrees of freedom is 2.26."""

LEAST_SEEDS = 4
"""Seeds, fewer than which say too little of how they vary: Student's t does not make up for it."""

ID_WORDS = 1 << 15
"""Words of eight bytes that are digested at a time: half as many bytes would be slower as well."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Findings:
    """What rows show of how they were drawn.

    Attributes
    ----------
    size : float
        Largest entry of a row, at the median of some.
    step : float
        Of the floating type where the features lie, in their standard deviations.
    constant : bool
        All rows are the same.
    repeated : int
        Rows that repeat others more often than chance would have it. Nothing else is looked for.
    twins : float
        Nearly identical rows that a row has on average.
    mates : int
        Rows of one source that most rows have near to them; 0 if no number stands out.
    order_z : float
        Standard errors by which neighbours in the file are alike.
    alone_z : float
        The same where groups were told and every row is one of its own.
    group_z, stratum_z : float
        The same for rows of one group or stratum; infinite where that is not known. If it is small,
        what a plain array of the rows shows counts as well.
    seeds : int
        That were told; 0 if none were.
    place_p : float
        p-value of "the rows at one place of all groups are no more alike than others".
    """

    size: float = 1.0
    step: float = 0.0
    constant: bool = False
    repeated: int = 0
    twins: float = 0.0
    mates: int = 0
    order_z: float = 0.0
    alone_z: float = 0.0
    group_z: float = math.inf
    stratum_z: float = math.inf
    seeds: int = 0
    place_p: float = 1.0


@dataclass(frozen=True)
class Checked:
    """A sample of which nothing has to be asked again.

    Attributes
    ----------
    rows : ndarray of shape (n, d)
        Finite.
    design : Design or None
        As told, or identical rows as groups; None for independent rows.
    told : bool
        Whether the user said how the rows were drawn.
    ids : ndarray of shape (n,)
        64-bit digests of the rows.
    what : str
        "generated" or "reference", for warnings; empty where there is one sample only.
    findings : Findings
    """

    rows: NDArray[Any]
    design: Design | None
    told: bool
    ids: NDArray[np.uint64]
    what: str = ""
    findings: Findings = Findings()

    @cached_property
    def drawing(self) -> Design:
        """Its design; of independent rows, that each is a unit of its own."""
        return self.design or row_design(len(self.rows))

    @cached_property
    def single_ids(self) -> NDArray[np.uint64]:
        """Digests of the rows in single precision, in which a copy may have been kept."""
        return self.ids if is_narrow(self.rows) else row_ids(self.rows, single=True)

    @cached_property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """What follows from the findings."""
        found, n, whose = self.findings, len(self.rows), f"{self.what} " if self.what else ""
        said = []
        # A distance from constant rows is the mistake of an encoder; no diversity is a finding.
        if found.constant and self.what:
            said.append(warn_of("constant-rows", n=n, what=self.what))
        merged = self.design is None  # into moments, which count each row as often as it came
        if found.repeated and not merged:
            said.append(warn_of("repeats-as-one", repeated=found.repeated, n=n, whose=whose))
        few, many = close_rows.NEAR_TWINS
        if found.twins >= few:
            severe: Severity = "unreliable" if found.twins >= many else "caution"
            said.append(warn_of("near-duplicates", severity=severe, whose=whose, twins=found.twins))
        if found.mates:
            said.append(warn_of("equal-groups", whose=whose, others=found.mates))
        # Rows that have twins are alike in order for that reason alone.
        if found.order_z >= LIKENESS_LIMIT and not said:
            said.append(warn_of("alike-in-order", whose=whose, z=found.order_z))
        signs = list(_label_warnings(found, whose, said) if self.told else said)
        if found.repeated and merged:
            often: Severity = "unreliable" if found.repeated >= DOUBLED_SHARE * n else "caution"
            signs.append(
                warn_of("rows-twice", severity=often, repeated=found.repeated, n=n, whose=whose)
            )
        if found.size and abs(math.log10(found.size)) > EXTREME_DECADES:
            signs.append(warn_of("extreme-size", whose=whose, size=found.size))
        if found.step > COARSE:
            signs.append(warn_of("rounded-features", whose=whose, step=found.step))
        return tuple(signs)


def few_rows(*samples: Checked) -> tuple[Diagnostic, ...]:
    """Warn of samples with few rows or few independent groups of them."""
    return tuple(
        warning
        for one in samples
        for warning in small_sample(
            one.drawing.effective,
            name=one.what if len(samples) > 1 else "",
            units=one.drawing.free_units,
        )
    )


def few_seeds(seeds: int) -> tuple[Diagnostic, ...]:
    """Warn of seeds so few that the interval is long, or not to be relied on; 0: none were told."""
    if seeds == 0 or seeds >= FEW_SEEDS:
        return ()
    severity: Severity = "caution" if seeds >= LEAST_SEEDS else "unreliable"
    return (warn_of("few-seeds", severity=severity, seeds=seeds),)


def _label_warnings(found: Findings, whose: str, signs: list[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Say what is wrong with groups and strata; `signs`: what a plain array would show."""
    severe: Severity = "unreliable" if signs else "caution"
    seen = f"; but {signs[0].message}" if signs else ""
    labels = ("groups", "group", found.group_z), ("strata", "stratum", found.stratum_z)
    said = [
        warn_of(
            "unrelated-labels", severity=severe, whose=whose, one=one, z=z, seen=seen, kind=kind
        )
        for kind, one, z in labels
        if z < LEAST_LIKENESS
    ]
    if found.alone_z >= LIKENESS_LIMIT:
        said.append(warn_of("alike-though-alone", whose=whose, z=found.alone_z))
    if found.place_p <= FALSE_ALARM:
        said.append(warn_of("shared-seeds", whose=f"{whose}rows"))
    return (*said, *few_seeds(found.seeds))


def check_sample(
    name: str,
    x: Any,
    *,
    minimum: int = 2,
    what: str = "",
    posteriors: bool = False,
    crossed: bool = False,
) -> Checked:
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
    crossed : bool
        Whether the score has an error for seeds that cross groups.
    """
    told = isinstance(x, Sample)
    rows = check_features(name, x.features if told else x, minimum=minimum)
    ids = row_ids(rows, name=name)
    size = float(np.median(np.abs(spread_rows(rows, CHANCE_ROWS)).max(axis=1)))
    step = 0.0 if posteriors else rounding_step(rows)
    if not told:
        design, found = _signs(rows, ids, posteriors)
        return Checked(rows, design, told, ids, what, replace(found, size=size, step=step))
    x.check_unchanged(name)
    design = design_of(name, x, crossed=crossed)
    found = Findings(size=size, step=step)
    if x.groups is not None and x.strata is None and design is not None and design.units == len(x):
        # Each row is said to be a group of its own; of strata, neighbours may be alike.
        found = replace(found, alone_z=likeness_z(rows[:-1], rows[1:])[0])
    if design is not None and design.independent and (np.diff(design.unit) < 0).any():
        # Of such a sample each row's influence is known by its place: that of its name.
        order = np.argsort(design.unit)
        design = replace(design, unit=design.unit[order])
        return Checked(rows[order], design, told, ids[order], what, found)
    group_z = stratum_z = math.inf
    groups = x.groups if x.series is None else None  # blocks look like nothing of their own
    if groups is not None:
        group_z = _likeness_within(rows, groups)
    if x.strata is not None:
        # Rows of one group would count as many rows of a stratum.
        one = slice(None) if x.groups is None else np.unique(x.groups, return_index=True)[1]
        stratum_z = _likeness_within(rows[one], x.strata[one])
    if min(group_z, stratum_z) < LEAST_LIKENESS:  # then what a plain array shows counts as well
        found = replace(_signs(rows, ids, posteriors)[1], size=size, step=step)
    place_p = 1.0
    if groups is not None and x.seeds is None and not x.in_order:
        place_p = shared_places_pvalue(rows, groups)
    seeds = 0 if x.seeds is None else np.unique(x.seeds).size
    found = replace(found, group_z=group_z, stratum_z=stratum_z, seeds=seeds, place_p=place_p)
    return Checked(rows, design, told, ids, what, found)


def check_kept(moments: Moments, what: str) -> Checked | None:
    """Look at the rows kept beside moments for copies; of their order nothing is known."""
    if (rows := moments.rows) is None:
        return None
    ids = row_ids(rows)
    repeated = _signs(rows, ids, posteriors=True)[1].repeated
    return Checked(rows, None, True, ids, what, Findings(repeated=repeated))


def refuse_moments(name: str, x: Any, needs: str) -> None:
    """Refuse moments; `needs`: subject and verb of what cannot do with them."""
    if isinstance(x, Moments):
        raise InputError(f"is given by its moments; {needs} the features themselves.", name)


def check_rows(name: str, x: Any, *, needs: str, **options: Any) -> Checked:
    """Check one of two samples, of which the rows themselves are needed.

    `needs` as for `refuse_moments`; `options`: as for `check_sample`.
    """
    refuse_moments(name, x, needs)
    what = "generated" if name == "fake" else "reference"
    return check_sample(name, x, what=what, **options)


def rounding_step(rows: NDArray[Any]) -> float:
    """Return the step of the floating type where these features lie, in standard deviations.

    The root of both mean squares over features, of some rows; one that does not vary loses nothing.
    """
    some = spread_rows(rows, CHANCE_ROWS)
    steps = np.spacing(np.median(np.abs(some), axis=0)).astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        variances = some.astype(np.float64).var(axis=0)
        total = float(variances.sum())
    if not 0.0 < total < math.inf:
        return 0.0
    return math.sqrt(float((steps[variances > 0.0] ** 2).sum()) / total)


def _signs(
    rows: NDArray[Any], ids: NDArray[np.uint64], posteriors: bool
) -> tuple[Design | None, Findings]:
    """Look for signs of dependence; identical rows are returned as groups."""
    _, first, unit, times = np.unique(
        ids, return_index=True, return_inverse=True, return_counts=True
    )
    n, distinct = ids.size, first.size
    repeated = n - distinct
    if repeated and distinct == 1:
        return None, Findings(constant=True)
    # A single value that stands often, as rows of zeros do, is what a distribution is made of.
    often = close_rows.LARGEST_GROUP <= repeated == times.max() - 1
    if repeated and not often and _surprising(rows, repeated):
        stratum = np.zeros(distinct, dtype=np.intp)
        design = Design(unit, stratum, np.full(n, 1.0 / n), of_repeats=True)
        return design, Findings(repeated=repeated)
    found = Findings(order_z=likeness_z(rows[:-1], rows[1:])[0])
    logs = None if posteriors else close_rows.log_distances(rows, np.sort(first))
    if logs is None:
        return None, found
    twins, mates = close_rows.clusters(logs, distinct)
    return None, replace(found, twins=twins, mates=mates)


def _likeness_within(rows: NDArray[Any], labels: NDArray[Any]) -> float:
    """By how many standard errors rows with one label are alike; infinite if that is not known.

    The mean cosine of pairs with one label, as seen from the middle of all rows. Of labels that
    mean nothing these are like any pairs: their mean has the mean square over their number.
    """
    _, number, counts = np.unique(labels, return_inverse=True, return_counts=True)
    several = np.flatnonzero(counts[number] > 1)
    if not several.size or counts.size < 2:
        return math.inf
    rng, most = np.random.default_rng(SEED), LIKENESS_PAIRS[1]
    order = several[
        np.lexsort((rng.random(several.size), rng.permutation(counts.size)[number[several]]))
    ]
    starts = np.flatnonzero(np.diff(number[order], prepend=-1))
    place = np.arange(order.size) - np.repeat(starts, np.diff(starts, append=order.size))
    order = order[place < max(LIKENESS_ROWS, most // int((counts > 1).sum()))][:most]
    all_rows = np.array(spread_rows(rows, most), dtype=np.float64)
    centre = all_rows.mean(axis=0)
    mean = _unit_rows(all_rows - centre).mean(axis=0)
    some = _unit_rows(spread_rows(rows, CHANCE_ROWS) - centre) - mean
    squares = (some @ some.T) ** 2
    square = float((squares.sum() - np.trace(squares)) / (len(some) * (len(some) - 1.0)))
    units = _unit_rows(rows[order] - centre) - mean
    starts = np.flatnonzero(np.diff(number[order], prepend=-1))
    sums, sizes = np.add.reduceat(units, starts), np.diff(starts, append=order.size)
    own, pairs = float((units**2).sum()), 0.5 * float((sizes * (sizes - 1.0)).sum())
    if not pairs:
        return math.inf
    likeness = 0.5 * (float((sums**2).sum()) - own) / pairs
    by_chance = -own / order.size / (len(rows) - 1.0)  # deviations from a mean are opposed
    noise = math.sqrt(square / pairs)
    return (likeness - by_chance) / noise if 0.0 < noise < LARGEST_NOISE else math.inf


def _unit_rows(rows: NDArray[np.floating]) -> Float:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(norms > 0.0, norms, 1.0), dtype=np.float64)


def row_ids(
    rows: NDArray[Any], *, single: bool = False, name: str | None = None
) -> NDArray[np.uint64]:
    """Digest every row to 64 bits; equal rows have equal digests.

    `single`: as rounded to single precision, whatever they come in. `name`: of the argument, whose
    entries are still to be checked.
    """
    n, d = rows.shape
    kind = np.float32 if single or is_narrow(rows) else np.float64
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
        if name is not None:
            check_finite(name, block[:size], first_row=start)
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
    return len(rows) - np.unique(ids).size


def likeness_z(
    ones: NDArray[Any], twos: NDArray[Any], *, least: int = LIKENESS_PAIRS[0]
) -> tuple[float, float]:
    """How much more alike rows of one place are than others, in standard errors, and one of these.

    The cosine of their angle as seen from the mean; 0 of fewer pairs than `least`.
    """
    n, most = len(ones), LIKENESS_PAIRS[1]
    if n < least:
        return 0.0, 0.0
    some = np.sort(np.random.default_rng(SEED).choice(n, min(n, most), replace=False))
    one, two = (np.array(part[some], dtype=np.float64) for part in (ones, twos))
    for part in (one, two):
        part -= part.mean(axis=0)
        norms = np.sqrt(np.einsum("ij,ij->i", part, part))
        norms[norms == 0.0] = 1.0
        part *= (1.0 / norms)[:, None]
    half = len(two) // 2
    alike = np.einsum("ij,ij->i", one, two)
    apart = np.empty_like(alike)  # with the row half of the list away
    np.einsum("ij,ij->i", one[:half], two[len(two) - half :], out=apart[:half])
    np.einsum("ij,ij->i", one[half:], two[: len(two) - half], out=apart[half:])
    noise = math.sqrt((float(alike.var()) + float(apart.var())) / len(alike))
    return (float(alike.mean() - apart.mean()) / noise if noise > 0.0 else 0.0), noise


def drawn(design: Design | None) -> str:
    """Say in words what is assumed of how a sample was drawn."""
    if design is None:
        return "the rows are independent of one another"
    unit = "rows" if design.units == design.n else "groups of rows"
    if design.series is not None and design.units < design.n:
        unit = f"blocks of {design.series.block} rows or more in succession"
    text = f"the {unit} are independent of one another"
    if design.seed_labels is not None:
        text += f" but for the {design.seed_labels.size} seeds that they share"
    if design.stratified:
        text += f", within {design.sizes.size} classes whose numbers were fixed"
    if design.weighted:
        text += f"; their weights count for {design.effective:.4g} equal ones"
    return text


def drawing_warnings(fake: Checked | None, real: Checked | None) -> tuple[Diagnostic, ...]:
    """Say what the rows of two samples show of how they were drawn; None: known by moments."""
    if fake is None or real is None:
        return tuple(warning for one in (fake, real) if one is not None for warning in one.warnings)
    found = (*fake.warnings, *real.warnings, *leaked(fake, real))
    if not (fake.told or real.told):
        # Of the same prompts, or both in the same order.
        alike = fake.rows.shape == real.rows.shape
        z = likeness_z(fake.rows, real.rows)[0] if alike else 0.0
        return (*found, warn_of("alike-by-place", z=z)) if z >= LIKENESS_LIMIT else found
    if fake.design is None or real.design is None:
        return found
    return (*found, *_unlike_by_name(fake.rows, fake.design, real.rows, real.design))


def _unlike_by_name(
    fake: NDArray[Any], one: Design, real: NDArray[Any], two: Design
) -> tuple[Diagnostic, ...]:
    """Notice ids that two samples share and whose rows are not alike: ids in another order."""
    if one.labels is None or two.labels is None:
        return ()
    _, ours, theirs = np.intersect1d(one.labels, two.labels, return_indices=True)
    if ours.size < 2:
        return ()
    most = min(ours.size, LIKENESS_PAIRS[1])
    some = np.sort(np.random.default_rng(SEED).choice(ours.size, most, replace=False))
    first, others = (
        np.unique(design.unit, return_index=True)[1][units[some]]
        for design, units in ((one, ours), (two, theirs))
    )
    z, noise = likeness_z(fake[first], real[others], least=2)
    if z >= LEAST_LIKENESS or not 0.0 < noise < LARGEST_NOISE:
        return ()
    return (warn_of("unlike-by-name", z=z),)


def leaked(fake: Checked, real: Checked) -> tuple[Diagnostic, ...]:
    """Warn of generated rows that are rows of the reference, in whichever precision."""
    one_precision = is_narrow(fake.rows) == is_narrow(real.rows)
    ids, others = (fake.ids, real.ids) if one_precision else (fake.single_ids, real.single_ids)
    common, severity = close_rows.judge_common_rows(ids, others, (fake.rows, real.rows))
    if severity is None:
        return ()
    return (warn_of("leak", severity=severity, common=common, rows=ids.size),)


def shared_rows(samples: Mapping[str, NDArray[np.uint64] | None]) -> tuple[Diagnostic, ...]:
    """Warn of rows that two models have in common; `samples`: the digests of each one's rows."""
    found = []
    known = {name: ids for name, ids in samples.items() if ids is not None}
    for (one, ids), (two, others) in combinations(known.items(), 2):
        common, severity = close_rows.judge_common_rows(ids, others)
        if severity is not None and common >= close_rows.LEAK_SHARE * ids.size:
            warning = warn_of(
                "same-rows",
                severity=severity,
                common=common,
                rows=ids.size,
                one=display(one, limit=60),
                two=display(two, limit=60),
            )
            found.append(warning)
    return tuple(found)


# --- Whether all groups share what their k-th rows were drawn from: the same seeds ----------------
# Let u_g be all rows of group g less their mean, one long vector. Groups that share nothing are
# independent, whatever the rows of one share with their neighbours (frames of a clip do), and
# where places mean nothing u_g has mean 0. Then W = Σ_{g≠h} u_g·u_h has mean 0, and nearly the
# distribution of a weighted sum of centred χ²(1) whose weights are the eigenvalues of the matrix
# K of these products, its diagonal 0: that of a gamma variable with the same variance 2 tr K² and
# third cumulant 8 tr K³.
#
# Seeds are drawn one by one. Groups that drift alike (clips) have means that move little from place
# to place, and are not accused.
#
# Rows are first drawn towards their group's mean to at most the median distance, so that none
# decides (a centre of all rows would be something that groups share).


FALSE_ALARM = 1e-3
"""Probability, at most, that groups that share nothing are accused."""

LEAST_GROUPS = 20
"""So few sums are not normal."""

LEAST_ROUGHNESS = 1.0
"""Mean square of steps from place to place, over that of the places' means: 2 where places are
seeds, 12 / (T (T + 1)) for a linear drift over T. Of less, neighbouring places are alike."""

LEAST_SKEWNESS = 0.01
"""Of W, as tr K³ / (tr K²)^1.5: of less it is as good as normal."""

FEATURES_COMPARED = 64
"""Features, evenly spaced, that are looked at where there are more."""


def shared_places_pvalue(rows: NDArray[np.floating], groups: NDArray[np.generic]) -> float:
    """p-value of "rows at one place of all groups are no more alike than others".

    Parameters
    ----------
    rows : ndarray of shape (n, d)
    groups : ndarray of shape (n,)

    Returns
    -------
    float
        1 for groups of unequal sizes, of single rows, or fewer than `LEAST_GROUPS`; or if they
        drift.
    """
    counts = np.unique(groups, return_counts=True)[1]
    size = int(counts[0])
    if counts.size < LEAST_GROUPS or size < 2 or (counts != size).any():
        return 1.0
    order = np.argsort(groups, kind="stable")
    d = rows.shape[1]
    columns = np.unique(np.linspace(0, d - 1, min(d, FEATURES_COMPARED)).astype(int))
    x = rows[:, columns][order].astype(np.float64).reshape(counts.size, size, columns.size)
    x -= x.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(x, axis=2, keepdims=True)
    limit = float(np.median(norms) or norms.max() or 1.0)
    x *= limit / np.maximum(norms, limit)
    u = (x - x.mean(axis=1, keepdims=True)).reshape(counts.size, -1)
    own = (u**2).sum(axis=1)  # the diagonal, which is taken off
    if len(u) <= u.shape[1]:
        products = u @ u.T
        weighted = float(own @ (products**2).sum(axis=1))
    else:  # the smaller matrix, of the same eigenvalues
        products, scaled = u.T @ u, u * np.sqrt(own)[:, None]
        weighted = float(((scaled.T @ scaled) * products).sum())
    second = float((products**2).sum() - own @ own)
    third = float(
        ((products @ products.T) * products).sum() - 3.0 * weighted + 2.0 * (own**3).sum()
    )
    if not second > 0.0:
        return 1.0
    common = _common(u)
    steps = np.diff(u.reshape(x.shape), axis=1).reshape(len(u), -1)
    if _common(steps) < LEAST_ROUGHNESS * common:
        return 1.0
    z = common / math.sqrt(2.0 * second)
    shape = 0.5 / max(third / second**1.5, LEAST_SKEWNESS) ** 2
    return float(scipy.special.gammaincc(shape, max(shape + z * math.sqrt(shape), 0.0)))


def _common(u: Float) -> float:
    """Return Σ u_g·u_h over all pairs of different groups."""
    return float((u.sum(axis=0) ** 2).sum() - (u**2).sum())
