"""Which kinds of rows a model misses, invents, makes too rarely or too often."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from genbounds import validation
from genbounds._process import silenced, threads_for
from genbounds._tables import AsJson, Line, Warned
from genbounds._text import count, interval, listed, number, percent
from genbounds.core.checks import Checked, check_sample, drawn, leaked, row_ids
from genbounds.core.design import Design, design_of
from genbounds.core.difference import any_shared
from genbounds.explain._exact import Index, Mask, fisher, holm, ratio_interval
from genbounds.origins import compared
from genbounds.results import Diagnostic, hedged
from genbounds.samples import Sample, features_of, refuse_weights
from genbounds.validation import Float, InputError

Kind = Literal["missing", "rare", "over", "invented", "even"]
KINDS: tuple[Kind, ...] = get_args(Kind)

LEAST_ROWS = 40
"""Independent rows of either sample: from fewer no cell could be found and then confirmed."""

NEARLY_NONE = 0.1
"""Observed ratio of the shares from which on down, or one over it up, a kind is (nearly) absent."""

AT_LEAST = 2.0
"""Factor between the shares of which the interval must be sure for that."""

EXAMPLES = 8
"""Rows of either sample that show a region."""

CELLS = (10, 20, 40)
"""Numbers of cells: large kinds of rows are seen by few cells, small ones by many."""

REGIONS = 10
"""Cells that are kept: the more are tested, the less each of them can show."""

CHANCES = 2
"""Cells that may show the same: the second is for where the first was an accident."""

OVERLAP = 0.5
"""Share of the rows of the smaller of two cells from which on they show the same."""

FITTED_ROWS = 20_000
"""Rows that k-means is fitted to, at most; all rows are assigned to its cells."""

LEAST_PER_CELL = 4
"""Rows per cell on average, without which so many cells are not tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Region(AsJson):
    """A kind of rows: a cell of the feature space, and how much of either sample lies in it.

    Attributes
    ----------
    kind : {"missing", "rare", "over", "invented", "even"}
        "rare" and "over": the share of generated rows is smaller, or larger, than that of real
        ones. "missing": rare, (nearly) none of the generated rows that were counted lies here, and
        the ratio is surely below a half. "invented": over, (nearly) none of the real rows that were
        counted lies here, and the ratio is surely above two. "even": neither could be shown.
    share_real, share_fake : float
        Of the rows that were counted; they did not help to find the region.
    low, high : float
        Interval of the ratio share_fake / share_real; those of all regions hold together. `high`
        may be infinite.
    pvalue : float
        Of no difference in the direction that the other half of the rows showed: Fisher's exact
        test, one-sided.
    pvalue_adjusted : float
        The same for all regions together (Holm).
    rows : dict of str to tuple of int
        "real" and "fake": numbers of rows that lie in the region, the most typical first.
    """

    _json = "* ratio"

    kind: Kind
    share_real: float
    share_fake: float
    low: float
    high: float
    pvalue: float
    pvalue_adjusted: float
    rows: dict[str, tuple[int, ...]]

    @property
    def ratio(self) -> float:
        """share_fake / share_real; infinite, or NaN, where no real row was counted."""
        if self.share_real > 0.0:
            return self.share_fake / self.share_real
        return math.inf if self.share_fake > 0.0 else math.nan

    def __str__(self) -> str:
        shares = f"{_share(self.share_fake)} of the generated rows, {_share(self.share_real)}"
        return f"{self.kind}: {shares} of the real ones (ratio in {interval(self.low, self.high)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Modes(Warned):
    """Kinds of rows of which a model makes too few or too many.

    Attributes
    ----------
    regions : tuple of Region
        Those of a kind other than "even" first, then by p-value.
    level : float
        With this probability every kind that is named is true, and every interval holds.
    n_fake, n_real : int
        Rows of either sample.
    counted_fake, counted_real : int
        Rows that the shares are of: about half, one of every group.
    warnings : tuple of Diagnostic
    assumptions : tuple of str
    seed : int
        Of the halves and of the cells.
    """

    _json = "* reliable"

    _names = "Region"

    regions: tuple[Region, ...]
    level: float
    n_fake: int
    n_real: int
    counted_fake: int
    counted_real: int
    warnings: tuple[Diagnostic, ...] = ()
    assumptions: tuple[str, ...] = ()
    seed: int = 0

    @property
    def found(self) -> tuple[Region, ...]:
        """Regions of a kind other than "even"."""
        return tuple(region for region in self.regions if region.kind != "even")

    def __str__(self) -> str:
        """Return one line for a log."""
        found = [region.kind for region in self.found]
        text = f"no region differs ({percent(self.level)})"
        if found:
            kinds = [f"{found.count(kind)} {kind}" for kind in KINDS if kind in found]
            verb = "differs" if len(found) == 1 else "differ"
            text = f"{count(len(found), 'region')} {verb} ({percent(self.level)}): {listed(kinds)}"
        return hedged(text, self.warnings)

    def __repr__(self) -> str:
        return "\n  ".join((f"Modes({self})", *map(str, self.found), *map(str, self.warnings)))

    def _lines(self) -> list[Line]:
        return [
            Line(
                name=f"{place} {region.kind}",
                value=region.ratio,
                low=region.low,
                high=region.high,
                reliable=self.reliable,
                more={
                    "generated": region.share_fake,
                    "real": region.share_real,
                    "p, adjusted": region.pvalue_adjusted,
                },
            )
            for place, region in enumerate(self.regions, 1)
        ]

    def _caption(self) -> str:
        return f"Generated over real share, simultaneous {percent(self.level)} intervals"


def modes(fake: Any, real: Any, *, level: float = 0.95, seed: int = 0) -> Modes:
    """Find kinds of rows that a model misses, invents, makes too rarely or too often.

    One half of the rows finds regions in which the samples look different; the other half counts
    how many rows of either lie there. A false claim, about any region, has probability ``1 -
    level`` at most.

    Parameters
    ----------
    fake : array_like of shape (n, d) or Sample
        Features of generated rows. For "where is A better than B" see docs/modes.md.
    real : array_like of shape (m, d) or Sample
        Of the real rows, from the same encoder.
    level : float
        In (0, 1).
    seed : int
        Of the halves and of the cells.

    Returns
    -------
    Modes

    Raises
    ------
    InputError
        If the features cannot be compared, a sample has fewer than 40 independent rows or has
        weights, or a stratum cannot be halved.

    Notes
    -----
    Regions are cells of k-means (10, 20 and 40 of them) of the discovery rows, the ten whose shares
    differ most in standard errors. Each is tested in the direction that the discovery rows show:
    Fisher's exact test, one-sided, Holm over the ten. Given the discovery rows the regions are
    fixed, so this is exact whatever they are. The interval of a ratio of shares is conservative: an
    exact one of the odds ratio and an upper bound of the smaller share, at a tenth of the error. A
    kind is named where both say so. A region that repeats a more significant one, because it
    consists of the same rows, is then left out (docs/modes.md).

    Groups are halved whole, and one row of each, drawn at random, is counted: these are
    independent. A group that stands in both samples is counted in one. Within strata counts vary
    less than the test assumes (W. Hoeffding, Ann. Math. Stat. 27, 1956).

    Examples
    --------
    >>> import numpy as np, genbounds as gb
    >>> rng = np.random.default_rng(0)
    >>> centres = 6.0 * np.eye(5)
    >>> real = centres[rng.integers(5, size=1000)] + rng.normal(size=(1000, 5))
    >>> fake = centres[rng.integers(1, 5, size=1000)] + rng.normal(size=(1000, 5))
    >>> print(gb.modes(fake, real).found[0].kind)
    missing
    """
    level = validation.check_open_unit("level", level)
    seed = validation.check_count("seed", seed, minimum=0)
    ours, theirs = _side("fake", fake), _side("real", real)
    origins = compared({"`fake`": fake, "`real`": real})
    x, y = ours.rows, theirs.rows
    validation.check_same_dimension("fake", x.shape[1], "real", y.shape[1])
    designs = [side.drawing for side in (ours, theirs)]
    discovery, counted = _divided(designs[0], designs[1], validation.seeded(seed, "halves"))
    with threads_for(float(len(x)) * y.size):
        cells = find_cells(x, y, discovery, seed)
    warnings = (*ours.warnings, *theirs.warnings, *leaked(ours, theirs), *origins)
    return Modes(
        regions=tuple(_tested(cells, counted, 1.0 - level)),
        level=level,
        n_fake=len(x),
        n_real=len(y),
        counted_fake=counted[0].size,
        counted_real=counted[1].size,
        warnings=tuple(dict.fromkeys(warnings)),
        assumptions=_assumptions(designs),
        seed=seed,
    )


def _side(name: str, x: Any) -> Checked:
    """Return one sample with its rows in the order in which they were given."""
    rows = validation.check_features(name, features_of(x), minimum=LEAST_ROWS)
    refuse_weights(name, x, ", but here rows are counted: pass a Sample without them.")
    if isinstance(x, Sample):  # `check_sample` may put rows in another order
        side = Checked(rows, design_of(name, x), True, row_ids(rows, name=name))
    else:
        side = check_sample(name, x, what={"fake": "generated", "real": "reference"}[name])
    if side.drawing.units < LEAST_ROWS:
        raise InputError(
            f"has {side.drawing.units} independent groups of rows: it needs at least {LEAST_ROWS}.",
            argument=name,
        )
    return side


def _divided(
    fake: Design, real: Design, rng: np.random.Generator
) -> tuple[list[Index], list[Index]]:
    """Return the rows of either sample that find regions, and those that are counted.

    Groups, and those that both samples share, are on one side of the division. Of a group one row
    is counted, drawn at random.
    """
    labels = [design.labels for design in (fake, real) if design.labels is not None]
    shared = len(labels) == 2 and any_shared(labels)
    of_real = _halves("real", real, rng)
    of_fake = _halves("fake", fake, rng, (real.labels, of_real) if shared else None)
    found, counted = [], []
    for design, half in ((fake, of_fake), (real, of_real)):
        rows, others = design.rows_of_halves(half)
        others = rng.permutation(others)
        _, first = np.unique(design.unit[others], return_index=True)
        found.append(rows)
        counted.append(np.sort(others[first]))
    if shared:  # what both samples share counts in one of them: counts are independent
        names = np.intersect1d(labels[0], labels[1])
        in_fake = rng.random(names.size) < 0.5
        for k, (design, left) in enumerate(((fake, names[~in_fake]), (real, names[in_fake]))):
            counted[k] = counted[k][~np.isin(labels[k][design.unit[counted[k]]], left)]
    return found, counted


def _halves(name: str, design: Design, rng: np.random.Generator, named: Any = None) -> Index:
    half = design.halves(rng, named)
    if half is None:
        raise InputError(
            "has a stratum with too few rows or groups to be halved: merge strata, or draw "
            "at least four of each.",
            argument=name,
        )
    return half


def _tested(cells: list[Cell], counted: Sequence[Index], error: float) -> list[Region]:
    """Compare the shares of the counted rows in every cell."""
    n, n0 = (rows.size for rows in counted)
    tables = []
    for cell in cells:
        k, k0 = (int(part[of].sum()) for part, of in zip(cell.parts, counted, strict=True))
        # That which is to have more of it first.
        tables.append((k, n, k0, n0) if cell.more else (k0, n0, k, n))
    pvalues = [fisher(*table) for table in tables]
    regions = []
    for cell, table, p, adjusted in zip(cells, tables, pvalues, holm(pvalues), strict=True):
        fake, real = table[0] / table[1], table[2] / table[3]
        low, high = ratio_interval(*table, error / len(cells))
        if not cell.more:
            fake, real = real, fake
            low, high = (math.inf if end == 0.0 else 1.0 / end for end in (high, low))
        sure = adjusted <= error and (low > 1.0 if cell.more else high < 1.0)
        region = Region(
            kind=_kind(fake, real, low, high) if sure else "even",
            share_real=real,
            share_fake=fake,
            low=low,
            high=high,
            pvalue=p,
            pvalue_adjusted=adjusted,
            rows={s: tuple(cell.nearest[s][:EXAMPLES].tolist()) for s in ("real", "fake")},
        )
        regions.append((region, cell))
    regions.sort(key=lambda pair: (pair[0].kind == "even", pair[0].pvalue))
    shown: list[tuple[Region, Cell]] = []
    for region, cell in regions:  # to leave out what repeats another one makes no claim
        if not any(cell.repeats(other) for _, other in shown):
            shown.append((region, cell))
    return [region for region, _ in shown]


def _kind(fake: float, real: float, low: float, high: float) -> Kind:
    """Name a region whose ratio is surely not one."""
    if low > 1.0:
        return "invented" if real <= NEARLY_NONE * fake and low >= AT_LEAST else "over"
    return "missing" if fake <= NEARLY_NONE * real and high <= 1.0 / AT_LEAST else "rare"


def _assumptions(designs: list[Design]) -> tuple[str, ...]:
    assumptions = [
        f"in the {what} sample {drawn(design)}"
        for what, design in zip(("generated", "real"), designs, strict=True)
    ]
    if any(design.units < design.n for design in designs):
        assumptions.append("every group counts the same, by one row of it drawn at random")
    if any(design.stratified for design in designs):
        assumptions.append(
            "the shares of the strata are those of the study: a class of which fewer rows were "
            "asked for is rare by design"
        )
    return tuple(assumptions)


def _share(value: float) -> str:
    return f"{number(100.0 * value, digits=2)} %"


@dataclass(frozen=True, slots=True)
class Cell:
    """A region: which rows of either sample lie in it, and what the discovery rows show.

    Attributes
    ----------
    parts : tuple of ndarray of bool
        Of all generated rows and of all real ones, also of those that did not help to find it.
    more : bool
        Whether the discovery rows show more generated rows there than real ones.
    nearest : dict of str to ndarray of int
        Rows of "fake" and of "real" in it, the nearest to its centre first.
    """

    parts: tuple[Mask, Mask]
    more: bool
    nearest: dict[str, Index] = field(default_factory=dict)

    def repeats(self, other: Cell) -> bool:
        """Whether it shows what `other` shows: most rows of one of them are in both."""
        mine, its = (np.concatenate(cell.parts) for cell in (self, other))
        common = (mine & its).sum()
        return bool(self.more == other.more and common > OVERLAP * min(mine.sum(), its.sum()))


def find_cells(
    fake: NDArray[Any], real: NDArray[Any], halves: Sequence[Index], seed: int
) -> list[Cell]:
    """Return the cells whose shares differ most among the discovery rows, those first.

    Parameters
    ----------
    fake, real : ndarray of shape (n, d)
    halves : sequence of ndarray
        The discovery rows of each. Nothing else decides what the cells are.
    seed : int
    """
    parts = _scaled(fake, real, halves)
    candidates: list[tuple[float, tuple[Mask, Mask], Float]] = []
    for k, model in _fitted(parts, halves, validation.seeded(seed, "cells")):
        ours, theirs = (model.predict(rows) for rows in parts)
        n, n0 = (half.size for half in halves)
        in_fake = np.bincount(ours[halves[0]], minlength=k)
        in_real = np.bincount(theirs[halves[1]], minlength=k)
        p = (in_fake + in_real) / (n + n0)
        error = np.sqrt(np.maximum(p * (1.0 - p), 1e-12) * (1.0 / n + 1.0 / n0))
        z = (in_fake / n - in_real / n0) / error
        pairs = ((ours == j, theirs == j) for j in range(k))
        candidates += zip(z, pairs, model.cluster_centers_, strict=True)
    candidates.sort(key=lambda candidate: -abs(candidate[0]))
    cells: list[Cell] = []
    for apart, members, centre in candidates:
        cell = Cell(members, bool(apart > 0.0))
        # Pieces of one strong change must not take the places of all others.
        if sum(cell.repeats(other) for other in cells) < CHANCES:
            for name, rows, member in zip(("fake", "real"), parts, members, strict=True):
                inside = np.flatnonzero(member)
                gaps = ((rows[inside] - centre) ** 2).sum(axis=1)
                cell.nearest[name] = inside[np.argsort(gaps, kind="stable")]
            cells.append(cell)
        if len(cells) == REGIONS:
            break
    return cells


def _scaled(
    fake: NDArray[Any], real: NDArray[Any], halves: Sequence[Index]
) -> list[NDArray[np.float32]]:
    """Return all rows centred, in single precision, divided so that none overflows there."""
    seen = np.concatenate([fake[halves[0]], real[halves[1]]])
    centre = seen.mean(axis=0, dtype=np.float64)
    scale = float(np.abs(seen - centre).max()) or 1.0
    return [((rows - centre) / scale).astype(np.float32) for rows in (fake, real)]


def _fitted(
    parts: list[NDArray[np.float32]], seen: Sequence[Index], rng: np.random.Generator
) -> list[tuple[int, Any]]:
    from sklearn.cluster import KMeans

    rows = np.concatenate([part[of] for part, of in zip(parts, seen, strict=True)])
    # Either sample counts the same, however many rows it has.
    weights = np.concatenate([np.full(of.size, 1.0 / of.size) for of in seen])
    if len(rows) > FITTED_ROWS:
        chosen = rng.choice(len(rows), FITTED_ROWS, replace=False)
        rows, weights = rows[chosen], weights[chosen]
    weights = weights / weights.mean()
    models = []
    for k in CELLS:
        if LEAST_PER_CELL * k > len(rows):
            break
        model = KMeans(k, n_init=1, max_iter=50, random_state=int(rng.integers(2**31)))
        with silenced(Warning):  # fewer distinct rows than cells: some stay empty
            models.append((k, model.fit(rows, sample_weight=weights)))
    return models
