"""What a test for copies of training rows says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from genbounds._tables import Line, Warned, new_axes
from genbounds._text import count, number, percent
from genbounds.diagnostics import warn_of
from genbounds.explain._nearest import Mask
from genbounds.explain._tests import Excess, Suspect
from genbounds.results import Diagnostic, hedged
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
        return hedged(self._verdict(), self.warnings)

    def _verdict(self) -> str:
        near, every = (number(p, digits=2) for p in (self.copies_pvalue, self.pvalue))
        if self.copies:
            named = count(len(self.suspects), "is", "are")
            return (
                f"copies: at least {self._share(self.copies_low)} have near copies "
                f"({percent(self.level)} confidence; p = {near}); {named} listed"
            )
        if self.pvalue <= 1.0 - self.level:
            return (
                f"over-fitted: the output depends on which rows were trained on (p = {every}); "
                f"near copies are not significant (p = {near})"
            )
        return (
            f"no sign of copies (p = {near} for near copies, {every} for any dependence); fewer "
            f"than {count(self.least_visible, f'copied {self.unit}')} would not be seen"
        )

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
        edges, trained, held = self.densities()
        ax.stairs(trained, edges, color="C3", label="nearest real row trained on")
        ax.stairs(held, edges, color="C0", label="nearest real row held out")
        ax.axvline(self.closer, color="0.5", linestyle="--", linewidth=1.0)
        ax.set_xlabel("distance to the nearest real row / to the fifth")
        ax.set_ylabel("generated rows per real row")
        ax.legend(frameon=False)
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
