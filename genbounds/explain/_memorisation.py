"""Does a generator copy its training rows? An exact test, a lower bound and a list."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from genbounds import validation
from genbounds._drawing import DASHED, Scale, legend, new_axes, series_style, tip
from genbounds._process import threads_for
from genbounds._tables import Line, Warned
from genbounds._text import count, number, percent
from genbounds.diagnostics import warn_of
from genbounds.explain import _checks, _exact
from genbounds.explain._exact import Excess, Suspect
from genbounds.explain._nearest import Index, Mask, Neighbours, Pool, check_rows
from genbounds.origins import compared
from genbounds.results import Diagnostic, hedged
from genbounds.samples import features_of
from genbounds.validation import Float

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Memorisation(Warned):
    """Whether the output of a generator depends on which rows it was trained on, and copies them.

    Attributes
    ----------
    near : Excess
        Of near copies: generated rows whose ratio is at most `closer`.
    every : Excess
        Of all generated rows: any dependence, over-fitting as well.
    suspects : tuple of Suspect
        Training rows that have near copies, nearest first; a share of at most `fdr` is wrong, on
        average.
    level : float
        Confidence of the lower bounds.
    fdr : float
    closer : float
        Largest ratio of a near copy, as used.
    odds : float
        Over-fitting: how many times likelier than a held-out row a training row is hit by generated
        rows that are no near copies; at least 1. Near copies must exceed it.
    n, train_n, heldout_n : int
        Generated, training and held-out rows.
    train_units, heldout_units : int
        Distinct training and held-out rows (groups, if they have some) that are in one file only.
    unit : {"row", "group"}
    least_visible : int
        Copied training rows (groups) below which no such test can be significant.
    ratio : ndarray of shape (n,)
        Of each generated row: distance to the nearest real row over that to the fifth.
    nearest_trained : ndarray of shape (n,)
        Whether the nearest real row was trained on.
    warnings : tuple of Diagnostic
    assumptions : tuple of str
    """

    _json = "* -ratio -nearest_trained pvalue copies_pvalue share_low copies_low copies reliable"

    _names = "Generated rows"

    near: Excess
    every: Excess
    suspects: tuple[Suspect, ...]
    level: float
    fdr: float
    closer: float
    odds: float
    n: int
    train_n: int
    heldout_n: int
    train_units: int
    heldout_units: int
    unit: str
    least_visible: int
    ratio: Float = field(repr=False)
    nearest_trained: Mask = field(repr=False)
    warnings: tuple[Diagnostic, ...] = ()
    assumptions: tuple[str, ...] = ()

    @property
    def pvalue(self) -> float:
        """Of the output not depending on which rows were trained on."""
        return self.every.pvalue

    @property
    def copies_pvalue(self) -> float:
        """The same from near copies alone."""
        return self.near.pvalue

    @property
    def copies_low(self) -> int:
        """Lower confidence bound of the training rows (groups) that have near copies."""
        return self.near.low

    @property
    def share_low(self) -> float:
        """The same as a share of the training rows (groups)."""
        return self.near.low / self.train_units

    @property
    def copies(self) -> bool:
        """Whether near copies are significant at `level`."""
        return self.copies_pvalue <= 1.0 - self.level

    @property
    def diagnostic(self) -> Diagnostic | None:
        """The warning that a score of this generator needs; None if no copies are found."""
        if not self.copies:
            return None
        return warn_of(
            "copies-proved", share=self._share(self.copies_low), level=percent(self.level)
        )

    def _share(self, amount: int) -> str:
        of = count(self.train_units, f"training {self.unit}")
        return f"{number(amount)} of {of} ({percent(round(amount / self.train_units, 3))})"

    def __str__(self) -> str:
        """Return one line for a log."""
        near, every = (number(p, digits=2) for p in (self.copies_pvalue, self.pvalue))
        text = (
            f"no sign of copies (p = {near} for near copies, {every} for any dependence); fewer "
            f"than {count(self.least_visible, f'copied {self.unit}')} would not be seen"
        )
        if self.copies:
            text = (
                f"copies: at least {self._share(self.copies_low)} have near copies "
                f"({percent(self.level)} confidence; p = {near}); "
                f"{count(len(self.suspects), 'is', 'are')} listed"
            )
        elif self.pvalue <= 1.0 - self.level:
            text = (
                f"over-fitted: the output depends on which rows were trained on (p = {every}); "
                f"near copies are not significant (p = {near})"
            )
        return hedged(text, self.warnings)

    def _lines(self) -> list[Line]:
        parts = {f"near copies, ratio up to {self.closer:.3g}": self.near, "all": self.every}
        return [
            Line(
                name=name,
                value=part.estimate / self.train_units,
                low=part.low / self.train_units,
                high=1.0,
                reliable=self.reliable,
                more={
                    f"{self.unit}s hit": part.hit,
                    "trained on": part.trained,
                    "expected": part.expected,
                    "p": part.pvalue,
                },
            )
            for name, part in parts.items()
        ]

    def _caption(self) -> str:
        return (
            f"Share of the training {self.unit}s that the output depends on, with its lower bound "
            f"at {percent(self.level)}"
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the ratios of generated rows, by whether the nearest real row was trained on.

        Both curves agree, up to noise, where the output does not depend on the training rows.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            A new figure's by default.

        Returns
        -------
        matplotlib.axes.Axes
        """
        ax = ax or new_axes(3.4)
        edges, *sides = self.densities()
        styles = [series_style(k) for k in range(2)]
        highest = 1.08 * max(float(heights.max()) for heights in sides)
        Scale(0.0, 1.0).apply(ax, "distance to the nearest real row\nover that to the fifth")
        Scale(0.0, highest).apply(ax, "generated rows per real row", upright=True)
        ax.stairs(sides[0], edges, color=styles[0]["color"], fill=True, alpha=0.3)
        names = "nearest: training", "nearest: held out"
        for name, heights, style in zip(names, sides, styles, strict=True):
            line = ax.stairs(heights, edges, color=style["color"], linewidth=1.8)
            near = float(heights[edges[1:] <= self.closer].sum())
            tip(line, f"{name}: {number(near)} near copies per real row")
        ax.axvline(self.closer, **DASHED)
        legend(ax, list(zip(names, styles, strict=True)))
        return ax

    def densities(self, bins: int = 40) -> tuple[Float, Float, Float]:
        """Return the distribution of ratios for hits of training and of held-out rows.

        Parameters
        ----------
        bins : int

        Returns
        -------
        edges : ndarray of shape (bins + 1,)
        trained, heldout : ndarray of shape (bins,)
            Generated rows in each bin, per training row and per held-out row of the pool.
        """
        edges = np.linspace(0.0, 1.0, bins + 1)
        trained, heldout = (
            np.histogram(self.ratio[side], edges)[0] / units
            for side, units in (
                (self.nearest_trained, self.train_units),
                (~self.nearest_trained, self.heldout_units),
            )
        )
        return edges, trained, heldout


def memorisation(
    fake: Any,
    train: Any,
    heldout: Any,
    *,
    level: float = 0.95,
    fdr: float = 0.1,
    closer: float = 0.6,
    seed: int = 0,
) -> Memorisation:
    """Test whether a generator copies its training rows, say how many at least, and list them.

    Parameters
    ----------
    fake : array_like of shape (m, d) or Sample
        Generated features. They may depend on one another in any way.
    train : array_like of shape (n, d) or Sample
        Features of the rows that the generator was trained on.
    heldout : array_like of shape (n', d) or Sample
        Features of rows of the same source that it was not trained on, split off at random. With
        groups (`Sample`), in both: whole groups are the units, and were split at random.
    level : float
        Confidence of the lower bounds, in (0, 1).
    fdr : float
        Share of the listed rows that may be wrong on average, in (0, 1).
    closer : float
        A generated row is a near copy if its distance to the nearest real row is at most so many
        times that to the fifth, in (0, 1). Where real rows themselves are often that near, in few
        dimensions, less is used: what one real row in a hundred would reach.
    seed : int
        Order of the rows, which breaks ties, and which real rows are looked at for the checks.

    Returns
    -------
    Memorisation

    Raises
    ------
    InputError
        If a sample or an argument is not legal; or the same groups, or only the same rows, are in
        `train` and `heldout`.

    Notes
    -----
    Training and held-out rows are pooled. Each generated row takes the nearest pooled row, and the
    ratio r of the distances to the nearest and to the fifth: blind to which rows were trained on.
    If the output does not depend on *which* rows of the pool these are, then given all of that
    they are a random choice, whatever the quality of the generator and however its rows depend on
    one another. So among the K distinct rows that are hit first, in the order of r, the number of
    training rows is hypergeometric. Distinct rows, because many generated ones may share a
    neighbour: a row that is copied a thousand times is one hit.

    `pvalue` takes all generated rows: over-fitting makes it small as well. `copies_pvalue` takes
    near copies only, and lets training rows be as much likelier as generated rows that are no near
    copies show them to be (`odds`). That over-fitted generators without copies pass it is measured,
    not proved (docs/explanation/memorisation.md).

    Examples
    --------
    >>> import numpy as np, genbounds as gb
    >>> rng = np.random.default_rng(0)
    >>> train, heldout, fresh = rng.normal(size=(3, 300, 32))
    >>> copied = train[:60] + 0.1 * rng.normal(size=(60, 32))
    >>> found = gb.memorisation(np.concatenate([copied, fresh]), train, heldout)
    >>> found.copies, found.copies_low <= 60, found.suspects[0].train_row < 60
    (True, True, True)
    >>> gb.memorisation(fresh, train, heldout).copies
    False
    """
    alpha = 1.0 - validation.check_open_unit("level", level)
    validation.check_open_unit("fdr", fdr)
    validation.check_open_unit("closer", closer)
    generated = validation.check_features("fake", features_of(fake), minimum=1)
    check_rows("fake", generated)
    rng = validation.seeded(validation.check_count("seed", seed, minimum=0), "order")
    pool = Pool(train, heldout, rng)
    validation.check_same_dimension("fake", generated.shape[1], "train", pool.rows.shape[1])
    origins = compared({"`fake`": fake, "`train`": train, "`heldout`": heldout})

    with threads_for(float(len(pool.rows)) * max(generated.size, pool.rows.size)):
        limit, usual, checks = _checks.real_rows(pool, float(closer))
        nearest = Neighbours(generated, pool)
    ratio, unit = nearest.ratio, pool.unit[nearest.row]
    near = ratio <= limit
    total, trained = pool.sizes

    def hit(chosen: Mask) -> Mask:
        """Whether each unit that the chosen rows hit was trained on, nearest first."""
        closeness = _closeness(unit, ratio, pool, chosen)
        order = np.argsort(closeness, kind="stable")
        return pool.trained[order[: int(np.isfinite(closeness).sum())]]

    odds = _exact.over_fitting(hit(ratio >= usual), total, trained)
    near_excess = _exact.careful_excess(hit(near), total, trained, alpha, odds)
    of_all = _exact.excess(hit(near | True), total, trained, alpha)
    return Memorisation(
        near=near_excess,
        every=of_all,
        suspects=tuple(_suspects(nearest, near, pool, fdr, odds)),
        level=level,
        fdr=fdr,
        closer=limit,
        odds=odds,
        n=len(generated),
        train_n=pool.ids[0].size,
        heldout_n=pool.ids[1].size,
        train_units=trained,
        heldout_units=total - trained,
        unit=pool.unit_name,
        least_visible=_exact.least_visible(total, trained, alpha),
        ratio=ratio,
        nearest_trained=pool.trained[unit],
        warnings=(
            *_checks.files(generated, pool),
            *_checks.strata(train, heldout),
            *checks,
            *_checks.swapped(near_excess, of_all, pool),
            *_checks.size(pool, alpha),
            *origins,
        ),
        assumptions=_assumptions(pool, limit),
    )


def _closeness(unit: Index, ratio: Float, pool: Pool, chosen: Mask) -> Float:
    """Return the smallest ratio with which each unit is hit; infinite where it is not."""
    closeness = np.full(pool.trained.size, np.inf)
    np.minimum.at(closeness, unit[chosen], ratio[chosen])
    closeness[~pool.usable] = np.inf
    return closeness


def _suspects(
    found: Neighbours, near: Mask, pool: Pool, fdr: float, odds: float
) -> Iterator[Suspect]:
    """List training rows by the generated row that is nearest to each."""
    unit, ratio = pool.unit[found.row], found.ratio
    closeness = _closeness(unit, ratio, pool, near)
    chosen = _exact.listed(closeness, pool.trained, pool.usable, fdr, odds)
    hits = np.bincount(unit[near], minlength=closeness.size)
    order = np.lexsort((ratio, unit))
    nearest = order[np.searchsorted(unit[order], chosen)]
    for place, row in zip(chosen.tolist(), nearest.tolist(), strict=True):
        yield Suspect(
            fake_row=row,
            train_row=int(pool.source[found.row[row]]),
            distance=float(found.distances[row, 0]) * pool.scale,
            ratio=float(ratio[row]),
            hits=int(hits[place]),
        )


def _assumptions(pool: Pool, limit: float) -> tuple[str, ...]:
    rows = "groups (whole ones)" if pool.unit_name == "group" else "rows"
    return (
        f"training and held-out {rows} are a random split of one data set; the generated rows may "
        "depend on one another in any way",
        f"a near copy has a ratio of at most {limit:.3g}: distance to the nearest real row over "
        "that to the fifth, as rows mixed from a training row and a neighbour or blurred ones have "
        "as well; copies that the encoder does not show are not seen",
    )
