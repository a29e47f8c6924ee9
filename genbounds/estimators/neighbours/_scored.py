"""The scores of two samples and of their halves, turned into estimates with their warnings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np

from genbounds._text import listed
from genbounds.estimators._design import drawn
from genbounds.estimators._estimate import Estimate, SampleError, small_sample
from genbounds.estimators._inspect import Inspected, drawing_warnings
from genbounds.estimators.neighbours._counts import expected_coverage
from genbounds.results import Diagnostic, caution, unreliable
from genbounds.validation import Float

TITLES = {
    "precision": "Precision",
    "recall": "Recall",
    "density": "Density",
    "coverage": "Coverage",
    "f_score": "F-score of precision and recall",
}
NAMES = tuple(TITLES)


LARGEST_DRIFT = 0.15
"""Relative change of a score at half the size beyond which halves say nothing of the whole. A
judgement: measured scores whose intervals hold drift by up to 7 %, one that fails by 28 %."""

CENTRAL = 1.5
"""Density from which on generated rows are said to crowd the middle of the data."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class NeighbourScores(Mapping[str, T], Generic[T]):
    """What is counted by neighbours, by attribute or by name.

    Attributes
    ----------
    precision, recall, density, coverage, f_score : object
    """

    precision: T
    recall: T
    density: T
    coverage: T
    f_score: T

    def __getitem__(self, name: str) -> T:
        if name not in NAMES:
            raise KeyError(name)
        found: T = getattr(self, name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)

    @classmethod
    def of(cls, values: Any) -> NeighbourScores[T]:
        """Take the values in order."""
        return cls(*values)


@dataclass(frozen=True)
class Scored:
    """The scores of two samples and of their halves.

    Attributes
    ----------
    four : ndarray of shape (1 + 2 splits, 4)
        Precision, recall, density and coverage of all rows, then of both halves of every cut in
        turns.
    sizes : tuple of ndarray
        Real and generated rows behind each.
    k : int
    given : int
        Generated rows before they were thinned.
    seen : tuple of Inspected
        Both samples.
    """

    four: Float
    sizes: tuple[Float, Float]
    k: int
    given: int
    seen: tuple[Inspected, Inspected]

    @property
    def values(self) -> Float:
        """The `four` and the F-score."""
        return with_f_score(self.four)

    @property
    def n(self) -> int:
        """Real rows."""
        return len(self.seen[0].rows)

    @property
    def m(self) -> int:
        """Generated rows, as used."""
        return len(self.seen[1].rows)

    @property
    def drift(self) -> Float:
        """Mean of the scores at half the size, over those of all rows."""
        return _drift(self.values)

    def estimates(self) -> NeighbourScores[Estimate]:
        """Estimate the scores as published."""
        values = self.values
        stuck = np.ptp(values, axis=0) == 0.0
        return NeighbourScores.of(
            self._estimate(at, values[:, at], bool(stuck[at])) for at in range(len(NAMES))
        )

    def ratios(self, null: Float) -> NeighbourScores[Estimate]:
        """Estimate the scores as multiples of the `null`, of the same shape, in every half."""
        stuck = np.ptp(self.values, axis=0) == 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            values = self.values / null
        return NeighbourScores.of(
            replace(
                self._estimate(at, values[:, at], bool(stuck[at])),
                title=f"{TITLES[NAMES[at]]} relative to real rows",
                statistic="",
                upper_limit=math.inf,
            )
            for at in range(len(NAMES))
        )

    def exact_nulls(self, held: Float) -> Float:
        """Return what real rows get: `held` for precision and recall, known for the others."""
        n, m = self.sizes
        return with_f_score(
            np.stack(
                [held[:, 0], held[:, 1], np.ones_like(n), expected_coverage(n, m, self.k)], axis=1
            )
        )

    def _estimate(self, at: int, values: Float, stuck: bool) -> Estimate:
        name = NAMES[at]
        value, found = float(values[0]), values[1:]
        drift = float(_drift(values[:, None])[0])
        warnings: list[Diagnostic] = []
        if stuck:
            warnings.append(
                unreliable(
                    "no-variation",
                    f"{name} is {value:g} in all rows and in every half: there is no interval",
                    "Use more real rows, or look at the other scores.",
                )
            )
        elif not abs(drift - 1.0) <= LARGEST_DRIFT:
            warnings.append(
                unreliable(
                    "depends-on-n",
                    f"{name} of half the rows is {drift:.2f} times that of all of them; halves "
                    "give the interval, so there is none",
                    "Use more rows of both samples.",
                )
            )
        halves = (found[::2] - found[1::2]) / 2.0
        if warnings:
            halves = np.full_like(halves, math.nan)
        fake = self.seen[1]
        return Estimate(
            title=TITLES[name],
            method="neighbours",
            value=value,
            sample=SampleError(
                n=self.m,
                variance=float(np.mean(halves**2)),
                degrees_of_freedom=float(halves.size),
                units=None if fake.design is None else fake.design.labels,
                row_ids=fake.ids,
            ),
            reference=SampleError(n=self.n),
            halves=halves,
            lower_limit=0.0,
            upper_limit=math.inf if name == "density" else 1.0,
            higher_is_better=True,
            statistic=f"{name} of {self.m} generated and {self.n} real rows with k = {self.k}",
            warnings=(*self._warnings(), *warnings, *self._crowded(name)),
            assumptions=self._assumptions(),
            details=self._details(drift),
        )

    def _warnings(self) -> tuple[Diagnostic, ...]:
        real, fake = self.seen
        few = min(len(one.rows) if one.design is None else one.design.units for one in self.seen)
        return (
            *drawing_warnings(fake, real),
            *small_sample(
                few,
                units=min(
                    math.inf if d is None else d.free_units for d in (fake.design, real.design)
                ),
            ),
        )

    def _crowded(self, name: str) -> tuple[Diagnostic, ...]:
        density = float(self.four[0, 2])
        if density <= CENTRAL or name in ("recall", "f_score"):
            return ()
        return (
            caution(
                "hubs",
                f"a generated row lies in {density:.3g} times as many neighbourhoods of real rows "
                "as a real row does: generated rows crowd the middle of the data, where precision, "
                "density and coverage are high however little of the data they span",
                "Read recall.",
            ),
        )

    def _assumptions(self) -> tuple[str, ...]:
        real, fake = (drawn(one.design) for one in self.seen)
        how = fake if fake == real else f"generated: {fake}; real: {real}"
        thinned = f"a random {self.m} of {self.given} generated rows, as many as real ones"
        return (
            how,
            *([thinned] if self.given > self.m else []),
            f"the interval is for the expected score at these sample sizes with k = {self.k}; at "
            "other sizes, or with another k, it is another score",
        )

    def _details(self, drift: float) -> tuple[str, ...]:
        every = ", ".join(
            f"{name} {value:.4g}" for name, value in zip(NAMES, self.values[0], strict=True)
        )
        cuts = len(self.four) // 2
        return (
            f"all together: {every}",
            f"k = {self.k}, {self.n} real and {self.m} generated rows",
            f"standard error from {cuts} random halvings of both samples",
            *([f"half the rows score {drift:.3f} times as much"] if math.isfinite(drift) else []),
        )


def not_alone(name: str) -> str:
    """Say with which of the four scores another is read."""
    others = listed([other for other in NAMES[:4] if other != name])
    return f"{name} says little alone: read it with {others}"


def with_f_score(four: Float) -> Float:
    """Append the harmonic mean of precision and recall, the first two columns; 0 if both are."""
    precision, recall = four[:, 0], four[:, 1]
    both = precision + recall
    f_score = np.divide(2.0 * precision * recall, both, out=np.zeros_like(both), where=both > 0.0)
    return np.column_stack([four, f_score])


def _drift(values: Float) -> Float:
    with np.errstate(divide="ignore", invalid="ignore"):  # NaN where a score is 0 throughout
        found: Float = values[1:].mean(axis=0) / values[0]
    return found
