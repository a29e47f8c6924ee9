"""Which of thirty published sanity checks scores by neighbours pass, and certified ceilings.

    python -m experiments.accuracy.sanity_checks [--repeats 8]

Records two tables in docs/evidence/precision_recall.md. The checks are those of Räisä, van Breugel
and van der Schaar, "Position: All current generative fidelity and diversity metrics are flawed",
ICML 2025: fifteen pairs of distributions with one thing that varies, and two criteria for each. A
criterion reads the curve of a score, averaged over repeats; it is passed if all its rules hold in
all dimensions.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from zlib import crc32

import numpy as np
from scipy.spatial.distance import cdist
from threadpoolctl import threadpool_limits

import genbounds as gb
from experiments.record import record, stamp, table

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "precision_recall.md"

Float = np.ndarray
Rng = np.random.Generator
Draws = Iterator[tuple[str, float, Float, Float]]
"""Of each point: the curve it is on, its place there, real rows, generated rows."""

# ------------------------------------------------------------------------------------- the checks


def mean_difference(rng: Rng, n: int) -> Draws:
    """Shift the generated normal distribution, in every feature."""
    for d, end in ((1, 6.0), (8, 3.0), (64, 1.0)):
        real = rng.normal(size=(n, d))
        for mean in np.linspace(-end, end, 51):
            yield f"d = {d}", mean, real, mean + rng.normal(size=(n, d))


def outlier(rng: Rng, n: int) -> Draws:
    """Shift it with one row of either sample far off."""
    for d, end in ((1, 6.0), (8, 3.0), (64, 1.0)):
        real, far = rng.normal(size=(n, d)), np.full((1, d), end)
        with_far = np.concatenate([real, far])
        for mean in np.linspace(-end, end, 51):
            fake = mean + rng.normal(size=(n, d))
            yield f"d = {d}, real outlier", mean, with_far, fake
            yield f"d = {d}, generated outlier", mean, real, np.concatenate([fake, far])


def heavy_feature(rng: Rng, n: int) -> Draws:
    """Shift it beside a feature that has hardly a mean."""

    def pareto() -> Float:
        return 1.0 + rng.pareto(1.01, n)

    real = np.stack([rng.normal(size=n), pareto()], axis=1)
    for mean in np.linspace(-6.0, 6.0, 51):
        yield "", mean, real, np.stack([mean + rng.normal(size=n), pareto()], axis=1)


def spread(rng: Rng, n: int) -> Draws:
    """Widen the generated normal distribution."""
    for d, decades in ((1, 3.0), (8, 1.0), (64, 0.5)):
        real = rng.normal(size=(n, d))
        for scale in np.logspace(-decades, decades, 51):
            yield f"d = {d}", scale, real, scale * rng.normal(size=(n, d))


def ten_modes(weights: Float, d: int, rng: Rng, n: int) -> Float:
    """Ten modes on the diagonal."""
    centres = np.linspace(0.0, 10.0, 10)[rng.choice(10, n, p=weights / weights.sum())]
    return centres[:, None] + {1: 1 / 6, 8: 1 / 3, 64: 1.0}[d] * rng.normal(size=(n, d))


def thinned_modes(rng: Rng, n: int) -> Draws:
    """Thin nine of ten generated modes together."""
    for d in (1, 8, 64):
        real = ten_modes(np.ones(10), d, rng, n)
        for dropped in np.linspace(0.0, 1.0, 50):
            weights = np.append(1.0, np.full(9, 1.0 - dropped))
            yield f"d = {d}", dropped, real, ten_modes(weights, d, rng, n)


def dropped_modes(rng: Rng, n: int) -> Draws:
    """Drop nine of ten generated modes, one by one."""
    for d in (1, 8, 64):
        real = ten_modes(np.ones(10), d, rng, n)
        for dropped in range(10):
            weights = (np.arange(10) < 10 - dropped).astype(float)
            yield f"d = {d}", dropped, real, ten_modes(weights, d, rng, n)


def dropped_or_invented(rng: Rng, n: int) -> Draws:
    """Let the generated sample have one to ten modes, of which five are real."""
    turn = 2.0 * np.pi * np.arange(10) * 3 / 10  # neighbours in number are apart on the circle
    centres = 15.0 * np.stack([np.cos(turn), np.sin(turn)], axis=1)

    def rows(modes: int) -> Float:
        return centres[rng.integers(modes, size=n)] + 0.25 * rng.normal(size=(n, 2))

    real = rows(5)
    for modes in range(1, 11):
        yield "", modes, real, rows(modes)


def one_mode_for_two(rng: Rng, n: int) -> Draws:
    """Fit one normal distribution to two modes that part."""
    for d in (1, 8, 64):
        for gap in np.linspace(0.0, 5.0, 20):
            real = gap * (rng.integers(2, size=(n, 1)) - 0.5) + rng.normal(size=(n, d))
            yield f"d = {d}", gap, real, np.hypot(1.0, gap) * rng.normal(size=(n, d))


def directions(rng: Rng, n: int, d: int) -> Float:
    """Rows on the unit sphere."""
    rows = rng.normal(size=(n, d))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def sphere(rng: Rng, n: int) -> Draws:
    """Let a generated sphere grow through the real one."""
    for d in (2, 16, 128):
        real = directions(rng, n, d)
        for radius in np.linspace(0.1, 1.9, 51):
            yield f"d = {d}", radius, real, radius * directions(rng, n, d)


def sizes(n: int) -> Iterator[int]:
    """Twenty sizes from a tenth to ten times n."""
    return (int(size) for size in np.logspace(-1.0, 1.0, 20) * n)


def cube_start(d: int) -> float:
    """Where a unit cube begins that has a fifth of its volume in another at the origin."""
    return float(1.0 - 0.2 ** (1.0 / d))


def cubes(rng: Rng, n: int) -> Draws:
    """Two cubes that share a fifth of their volumes, of more and more rows."""
    for d in (1, 8, 64):
        for size in sizes(n):
            yield f"d = {d}", size, rng.random((size, d)), cube_start(d) + rng.random((size, d))


def cubes_unequal(rng: Rng, n: int) -> Draws:
    """Draw the same cubes, where only the generated sample grows."""
    for d in (1, 8, 64):
        real = rng.random((n, d))
        for size in sizes(n):
            yield f"d = {d}", size, real, cube_start(d) + rng.random((size, d))


def ball_and_torus(rng: Rng, n: int) -> Draws:
    """Put a ball into the hole of a torus, either of them real; the generated one grows."""

    def ball(size: int) -> Float:
        return 0.8 * rng.random((size, 1)) ** (1 / 3) * directions(rng, size, 3)

    def torus(size: int) -> Float:
        tube = 0.1 * np.sqrt(rng.random((size, 1))) * directions(rng, size, 2)
        turn = 2.0 * np.pi * rng.random(size)
        far = 1.0 + tube[:, 0]
        return np.stack([far * np.cos(turn), far * np.sin(turn), tube[:, 1]], axis=1)

    for name, real, rows in (("real ball", ball(n), torus), ("real torus", torus(n), ball)):
        for size in sizes(n):
            yield name, size, real, rows(size)


def scaled_feature(rng: Rng, n: int) -> Draws:
    """Change the unit of one feature; the other tells the samples apart."""
    for scale in np.logspace(-3.0, 3.0, 20):
        unit = np.array([1.0, scale])
        fake = rng.normal(size=(n, 2)) + np.array([6.0, 0.0])
        yield "", scale, unit * rng.normal(size=(n, 2)), unit * fake


def disjoint_feature(rng: Rng, n: int) -> Draws:
    """One feature tells the samples apart, among more and more that are equal."""
    for others in np.unique(np.logspace(0.0, 3.0, 20).astype(int)):
        fake = rng.normal(size=(n, others + 1))
        fake[:, 0] += 6.0
        yield "", others, rng.normal(size=(n, others + 1)), fake


def rounded(rng: Rng, n: int) -> Draws:
    """Whole numbers on one side, others on the other."""
    for name in ("real rounded", "generated rounded"):
        for scale in np.logspace(0.0, 3.0, 20):
            real, fake = scale * rng.normal(size=(2, n, 1))
            if name == "real rounded":
                real = np.round(real)
            else:
                fake = np.round(fake)
            yield name, scale, real, fake


# ------------------------------------------------------------------------------------- the rules


@dataclass(frozen=True)
class Curve:
    """Values of one score at increasing places."""

    name: str
    x: Float
    y: Float

    def at(self, place: Place) -> float:
        """Value at the first, the last or the nearest place."""
        if isinstance(place, str):
            return float(self.y[0 if place == "first" else -1])
        return float(self.y[np.abs(self.x - place).argmin()])

    @property
    def first(self) -> float:
        """Value at the first place."""
        return float(self.y[0])

    @property
    def last(self) -> float:
        """Value at the last place."""
        return float(self.y[-1])


Place = float | Literal["first", "last"]
Reading = bool | Literal["low", "high"]
"""Diversity of rows that are spread too widely may be read as low or as high, but always so."""
Rule = Callable[[Curve], Reading]


def near(place: Place, target: float) -> Rule:
    """Expect this value, to 0.05."""
    return lambda curve: abs(curve.at(place) - target) <= 0.05


def wide(place: Place) -> Rule:
    """Expect 1 ("high") or 0 ("low")."""
    low, high = near(place, 0.0), near(place, 1.0)
    return lambda curve: "high" if high(curve) else "low" if low(curve) else False


def bell(middle: float) -> Rule:
    """Expect a summit in the middle, at least 0.2 above both ends, one of which is lowest."""

    def holds(curve: Curve) -> bool:
        summit, ends = curve.at(middle), (curve.first, curve.last)
        return bool(
            summit - max(ends) >= 0.2
            and curve.y.max() - summit <= 0.1
            and min(ends) - curve.y.min() <= 0.1
        )

    return holds


def falls(curve: Curve) -> bool:
    """Expect a fall of 0.2 or more from the highest value to the lowest."""
    return bool(
        curve.first - curve.last >= 0.2
        and curve.last - curve.y.min() <= 0.1
        and curve.y.max() - curve.first <= 0.1
    )


def rises(curve: Curve) -> bool:
    """Expect a fall, from the other end."""
    return falls(Curve(curve.name, curve.x, curve.y[::-1]))


def falls_by(share: float) -> Rule:
    """Expect a fall, of which 0.1 or more within this share of the places."""
    return lambda curve: (
        falls(curve) and curve.first - curve.y[round(share * (len(curve.x) - 1))] >= 0.1
    )


def flat(curve: Curve) -> bool:
    """Expect values within 0.05 of one another."""
    return bool(np.ptp(curve.y) <= 0.05)


def settles(curve: Curve) -> bool:
    """Expect values within 0.05 of one another in the upper half of the places."""
    return bool(np.ptp(curve.y[curve.x >= np.median(curve.x)]) <= 0.05)


def either(*, low: Rule, high: Rule) -> Rule:
    """Expect one of two shapes."""
    return lambda curve: "low" if low(curve) else "high" if high(curve) else False


def on(name: str, *rules: Rule) -> tuple[Rule, ...]:
    """Rules for one of the curves."""

    def only(rule: Rule) -> Rule:
        return lambda curve: rule(curve) if curve.name == name else True

    return tuple(only(rule) for rule in rules)


@dataclass(frozen=True)
class Criterion:
    """What a score must do in one check.

    Attributes
    ----------
    check : str
    asks : str
        What it is about: the "values" that a user reads, the "shape" of the curve, the number of
        "rows", or the "unit" of a feature.
    fidelity, diversity : tuple of Rule
        For precision and density; for recall and coverage.
    """

    check: str
    asks: str
    fidelity: tuple[Rule, ...]
    diversity: tuple[Rule, ...]

    def passed(self, score: str, curves: Iterable[Curve]) -> bool:
        """Whether all rules hold on all curves; low here and high there is a failure."""
        rules = self.fidelity if score in FIDELITY else self.diversity
        readings = [rule(curve) for curve in curves for rule in rules]
        return all(readings) and not {"low", "high"} <= set(readings)


def both(check: str, asks: str, *rules: Rule) -> Criterion:
    """Ask the same of fidelity and diversity."""
    return Criterion(check, asks, rules, rules)


FIDELITY = ("precision", "density", "precision and density", "precision@10")
"""The other scores are of diversity."""

CHECKS: dict[str, Callable[[Rng, int], Draws]] = {
    "mean shifted": mean_difference,
    "mean shifted, one outlier": outlier,
    "mean shifted, one heavy-tailed feature": heavy_feature,
    "wider and narrower": spread,
    "nine modes thinned together": thinned_modes,
    "nine modes dropped in turn": dropped_modes,
    "modes dropped or invented": dropped_or_invented,
    "one mode for two": one_mode_for_two,
    "sphere in a sphere": sphere,
    "overlapping cubes": cubes,
    "overlapping cubes, unequal numbers": cubes_unequal,
    "ball in a torus": ball_and_torus,
    "one feature scaled": scaled_feature,
    "one disjoint feature among many": disjoint_feature,
    "one sample rounded": rounded,
}

GROWING = (cubes, cubes_unequal, ball_and_torus)
"""Up to ten times as many rows: a quarter of the repeats."""

IDENTICAL, LOW_FIRST, LOW_LAST = near("first", 1.0), near("first", 0.0), near("last", 0.0)

CRITERIA = (
    *(
        criterion
        for check, middle in {
            "mean shifted": 0.0,
            "mean shifted, one outlier": 0.0,
            "mean shifted, one heavy-tailed feature": 0.0,
            "sphere in a sphere": 1.0,
        }.items()
        for criterion in (
            both(check, "values", near(middle, 1.0), LOW_FIRST, LOW_LAST),
            both(check, "shape", bell(middle)),
        )
    ),
    Criterion(
        "wider and narrower",
        "values",
        (near(1.0, 1.0), near("first", 1.0), LOW_LAST),
        (near(1.0, 1.0), LOW_FIRST, wide("last")),
    ),
    Criterion("wider and narrower", "shape", (falls,), (either(low=bell(1.0), high=rises),)),
    *(
        criterion
        for check, share in {
            "nine modes thinned together": 0.95,
            "nine modes dropped in turn": 0.5,
        }.items()
        for criterion in (
            Criterion(check, "values", (IDENTICAL, near("last", 1.0)), (IDENTICAL,)),
            Criterion(check, "shape", (flat,), (falls_by(share),)),
        )
    ),
    Criterion(
        "modes dropped or invented",
        "values",
        (near(5.0, 1.0), near("first", 1.0)),
        (near(5.0, 1.0), near("last", 1.0)),
    ),
    Criterion("modes dropped or invented", "shape", (falls,), (rises,)),
    both("one mode for two", "values", IDENTICAL),
    Criterion("one mode for two", "shape", (falls,), (either(low=falls, high=flat),)),
    both("overlapping cubes", "values", near("last", 0.2)),
    both("overlapping cubes", "rows", settles),
    both("overlapping cubes, unequal numbers", "values", near("last", 0.2)),
    both("overlapping cubes, unequal numbers", "rows", settles),
    both("ball in a torus", "values", LOW_LAST),
    both("ball in a torus", "rows", settles),
    both("one feature scaled", "values", LOW_FIRST, LOW_LAST),
    both("one feature scaled", "unit", flat),
    both("one disjoint feature among many", "values", LOW_FIRST, LOW_LAST),
    both("one disjoint feature among many", "shape", flat),
    Criterion(
        "one sample rounded",
        "values",
        (
            *on("real rounded", LOW_FIRST, LOW_LAST),
            *on("generated rounded", IDENTICAL, near("last", 1.0)),
        ),
        (
            *on("real rounded", wide("first"), wide("last")),
            *on("generated rounded", LOW_FIRST, LOW_LAST),
        ),
    ),
    both("one sample rounded", "shape", flat),
)

# ------------------------------------------------------------------------------------- the scores

FOUR = ("precision", "recall", "density", "coverage")
PAIRS = ("precision and density", "recall and coverage")
"""The smaller of two."""

CEILINGS = ("precision@10", "recall@10")
WAYS = {
    "as published": FOUR,
    "calibrated": FOUR,
    "at most 1": (*FOUR, *PAIRS),
    "ceiling": CEILINGS,
}
SYMBOLS = dict(
    zip((*FOUR, *PAIRS, *CEILINGS), ("P", "R", "D", "C", "PD", "RC", "P@10", "R@10"), strict=True)
)
COLUMNS = [(way, score) for way, scores in WAYS.items() for score in scores]
K = (3, 5)
"""Neighbours, as in the suite: of precision and recall; of density and coverage."""

BLOCK = 1024


def squared(x: Float, y: Float) -> Float:
    """Squared distances; of few features from differences, so that ties are ties."""
    if x.shape[1] <= 8:
        return cdist(x, y, "sqeuclidean")
    return (x**2).sum(1)[:, None] + (y**2).sum(1) - 2.0 * x @ y.T


def blocks(x: Float, y: Float) -> Iterator[tuple[slice, Float]]:
    """Squared distances of some rows of x at a time."""
    for start in range(0, len(x), BLOCK):
        part = slice(start, start + BLOCK)
        yield part, squared(x[part], y)


def radii(rows: Float) -> Float:
    """Squared distances to the third and the fifth nearest other row, shape (n, 2)."""
    found = np.empty((len(rows), 2))
    for part, squares in blocks(rows, rows):
        at = np.arange(len(squares))
        squares[at, part.start + at] = np.inf
        found[part] = np.partition(squares, [k - 1 for k in K], axis=1)[:, [k - 1 for k in K]]
    return found


def held_by_others(rows: Float, radius: Float) -> float:
    """Share of rows in the ball of another."""
    held = np.zeros(len(rows), dtype=bool)
    for part, squares in blocks(rows, rows):
        at = np.arange(len(squares))
        squares[at, part.start + at] = np.inf
        held |= (squares <= radius[part, None]).any(axis=0)
    return float(held.mean())


class Against:
    """Scores against one real sample, in units of its standard deviations as in the suite.

    Whole matrices of distances are counted: the same as `genbounds.precision_recall` finds, without
    intervals.
    """

    def __init__(self, real: Float) -> None:
        self.centre, self.unit = real.mean(axis=0), real.std(axis=0)
        self.real = (real - self.centre) / self.unit
        self.radii = radii(self.real)
        self.precision = held_by_others(self.real, self.radii[:, 0])

    def values(self, fake: Float) -> Float:
        """One value for each of COLUMNS."""
        fake = (fake - self.centre) / self.unit
        n = len(self.real)
        published = self.published(fake)
        few = published if len(fake) <= n else self.published(fake[:n])
        ratios = few / self.null(min(len(fake), n))
        capped = np.minimum(ratios, 1.0)
        pairs = np.minimum(capped[:2], capped[2:])
        return np.concatenate([published, ratios, capped, pairs, self.ceilings(fake)])

    def published(self, fake: Float) -> Float:
        """Score as first published, by name."""
        around_fake = radii(fake)[:, 0]
        n, m = len(self.real), len(fake)
        near_real, near_fake = np.zeros(m, dtype=bool), np.zeros(n, dtype=bool)
        inside = np.zeros(n)
        for part, squares in blocks(self.real, fake):
            near_real |= (squares <= self.radii[part, :1]).any(axis=0)
            near_fake[part] = (squares <= around_fake).any(axis=1)
            inside[part] = (squares <= self.radii[part, 1:]).sum(axis=1)
        return np.array(
            [near_real.mean(), near_fake.mean(), inside.sum() / (K[1] * m), (inside > 0).mean()]
        )

    def null(self, m: int) -> Float:
        """Score real rows."""
        n, recall = len(self.real), self.precision
        if m < n:
            recall = held_by_others(self.real[:m], radii(self.real[:m])[:, 0])
        i = np.arange(K[1])
        coverage = 1.0 - np.prod((n - 1.0 - i) / (n - 1.0 + m - i))
        return np.array([self.precision, recall, 1.0, coverage])

    def ceilings(self, fake: Float) -> Float:
        """Certified ceilings; of fewer rows than they take, NaN."""
        if min(len(fake), len(self.real)) < 200:
            return np.full(len(CEILINGS), np.nan)
        found = gb.precision_recall_ceiling(gb.Sample(fake), gb.Sample(self.real), lam=(10.0, 0.1))
        return np.array([found[name] for name in CEILINGS])


Score = Callable[[Float], Callable[[Float], Float]]
"""Of real rows; then of generated ones."""


def against(real: Float) -> Callable[[Float], Float]:
    """All scores in the order of COLUMNS."""
    return Against(real).values


def curves(check: str, score: Score, *, repeats: int, rows: int, seed: int) -> list[list[Curve]]:
    """Curves of a check, averaged over repeats: one list for each value of the score."""
    sums: dict[str, dict[float, Any]] = {}
    for repeat in range(repeats):
        rng = np.random.default_rng([seed, crc32(check.encode()), repeat])
        prepared: dict[int, Any] = {}
        for name, x, real, fake in CHECKS[check](rng, rows):
            if id(real) not in prepared:
                # The rows are kept with the function, lest another sample gets their id.
                prepared = dict(list(prepared.items())[-1:]) | {id(real): (score(real), real)}
            points = sums.setdefault(name, {})
            points[float(x)] = points.get(float(x), 0.0) + prepared[id(real)][0](fake) / repeats
    found = [(name, np.array(list(points)), list(points.values())) for name, points in sums.items()]
    width = len(np.atleast_1d(found[0][2][0]))
    return [
        [Curve(name, x, np.array([np.atleast_1d(y)[at] for y in ys])) for name, x, ys in found]
        for at in range(width)
    ]


Verdicts = Mapping[tuple[str, str], list[bool]]
"""Of each column, whether each of CRITERIA is passed."""


def counted(verdicts: Verdicts) -> list[list[str]]:
    """Rows of the table of counts."""
    return [
        [
            score,
            *(str(sum(verdicts[way, score])) if (way, score) in verdicts else "–" for way in WAYS),
        ]
        for score in SYMBOLS
    ]


def failed(verdicts: Verdicts) -> list[list[str]]:
    """Rows of the table of failures: which scores fail each criterion."""
    return [
        [
            criterion.check,
            criterion.asks,
            *(
                " ".join(SYMBOLS[score] for score in scores if not verdicts[way, score][number])
                or "–"
                for way, scores in WAYS.items()
            ),
        ]
        for number, criterion in enumerate(CRITERIA)
    ]


def main(argv: list[str] | None = None) -> int:
    """Run all checks and record what is passed."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.accuracy.sanity_checks",
        description=(__doc__ or "").splitlines()[0],
    )
    parser.add_argument("--repeats", type=int, default=8)
    parser.add_argument("--rows", type=int, default=1000, help="of either sample, where fixed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args(argv)
    few = max(1, options.repeats // 4)
    drawn: dict[str, list[list[Curve]]] = {}
    with threadpool_limits(1):
        for check in CHECKS:
            start = time.process_time()
            repeats = few if CHECKS[check] in GROWING else options.repeats
            drawn[check] = curves(
                check, against, repeats=repeats, rows=options.rows, seed=options.seed
            )
            seconds = time.process_time() - start
            print(f"{check}: {seconds:.0f} s", file=sys.stderr, flush=True)
    verdicts = {
        column: [one.passed(column[1], drawn[one.check][at]) for one in CRITERIA]
        for at, column in enumerate(COLUMNS)
    }
    head = (
        f"{stamp()} Seed {options.seed}; {options.repeats} repeats, {few} where samples grow; "
        f"{options.rows:,} rows where their number is fixed."
    )
    lines = [
        f"{head} Criteria passed, of {len(CRITERIA)}:",
        "",
        *table(["", *WAYS], counted(verdicts)),
        "",
        "Who fails which:",
        "",
        *table(["check", "asks about", *WAYS], failed(verdicts)),
    ]
    record("sanity", lines, page=options.page)
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
