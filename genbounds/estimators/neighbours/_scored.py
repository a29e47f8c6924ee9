"""The four scores of two samples and of their halves, turned into estimates with their warnings."""

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

NAMES = ("precision", "recall", "density", "coverage")


LARGEST_DRIFT = 0.15
"""Relative change of a score at half the size beyond which halves say nothing of the whole. A
judgement: measured scores whose intervals hold drift by up to 7 %, one that fails by 28 %."""

CENTRAL = 1.5
"""Density from which on generated rows are said to crowd the middle of the data."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Four(Mapping[str, T], Generic[T]):
    """The four scores, by attribute or by name.

    Attributes
    ----------
    precision, recall, density, coverage : object
    """

    precision: T
    recall: T
    density: T
    coverage: T

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
    def of(cls, values: Any) -> Four[T]:
        """Take four values in order."""
        precision, recall, density, coverage = values
        return cls(precision, recall, density, coverage)


@dataclass(frozen=True)
class Scored:
    """The four scores of two samples and of their halves.

    Attributes
    ----------
    values : ndarray of shape (1 + 2 splits, 4)
        Of all rows, then of both halves of every cut in turns.
    sizes : tuple of ndarray
        Real and generated rows behind each.
    k : int
    given : int
        Generated rows before they were thinned.
    seen : tuple of Inspected
        Both samples.
    """

    values: Float
    sizes: tuple[Float, Float]
    k: int
    given: int
    seen: tuple[Inspected, Inspected]

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

    def estimates(self) -> Four[Estimate]:
        """Estimate the scores as published."""
        stuck = np.ptp(self.values, axis=0) == 0.0
        return Four.of(self._estimate(at, self.values[:, at], bool(stuck[at])) for at in range(4))

    def ratios(self, null: Float) -> Four[Estimate]:
        """Estimate the scores as multiples of the `null`, of the same shape, in every half."""
        stuck = np.ptp(self.values, axis=0) == 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            values = self.values / null
        return Four.of(
            replace(
                self._estimate(at, values[:, at], bool(stuck[at])),
                title=f"{NAMES[at].capitalize()} relative to real rows",
                statistic="",
                upper_limit=math.inf,
            )
            for at in range(4)
        )

    def exact_nulls(self, held: Float) -> Float:
        """Return what real rows get: `held` for precision and recall, known for the others."""
        n, m = self.sizes
        return np.stack(
            [held[:, 0], held[:, 1], np.ones_like(n), expected_coverage(n, m, self.k)], axis=1
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
                    f"{name} is {self.values[0, at]:g} in all rows and in every half: there is no "
                    "interval",
                    "Use more real rows, or look at the other three scores.",
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
            title=name.capitalize(),
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
        density = float(self.values[0, 2])
        if density <= CENTRAL or name == "recall":
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
        four = ", ".join(
            f"{name} {value:.4g}" for name, value in zip(NAMES, self.values[0], strict=True)
        )
        cuts = len(self.values) // 2
        return (
            f"all four: {four}",
            f"k = {self.k}, {self.n} real and {self.m} generated rows",
            f"standard error from {cuts} random halvings of both samples",
            *([f"half the rows score {drift:.3f} times as much"] if math.isfinite(drift) else []),
        )


def not_alone(name: str) -> str:
    """Say with which scores one of the four is read."""
    others = listed([other for other in NAMES if other != name])
    return f"{name} says little alone: read it with {others}"


def _drift(values: Float) -> Float:
    with np.errstate(divide="ignore", invalid="ignore"):  # NaN where a score is 0 throughout
        found: Float = values[1:].mean(axis=0) / values[0]
    return found
