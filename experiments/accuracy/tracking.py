"""How often a followed training run raises a false alarm, and what the kept checkpoint is worth.

    python -m experiments.accuracy.tracking [--curves 2000] [--runs 1000] [--only 'curves*']

The table of docs/evidence/tracking.md. Rows "curves" draw the values of a run as normal ones, with
the covariance that one run with drawn features had; rows "runs" draw all features anew. An alarm is
false if any step that a look names as worse, or as better, is not so. ``--only`` takes a shell
pattern of row names; rows that were not asked for stay as they are on the page.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

import genbounds as gb
from experiments.record import rate, record_briefly, recorded_rows, stamp, table
from genbounds.decisions import Track, track_estimates
from genbounds.decisions._follow import Following
from genbounds.estimators import EXACT, Estimate, SampleError, difference, estimate_all
from genbounds.validation import Float

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "tracking.md"
LOOKS = 30
Rng = np.random.Generator


@dataclass
class Tally:
    """What came out so far.

    Attributes
    ----------
    runs : int
    false, naive : int
        Runs with a false alarm; the same for the best value so far and 1.96 standard errors.
    banded : int
        Runs whose bands all cover.
    kept : int
        Runs in which the interval of the kept checkpoint covers.
    gained : int
        Runs in which every look gained no more than its `gain_high`.
    improved : int
        Looks called improved.
    bias, chosen : list of float
        Error of the kept checkpoint's value, corrected and as chosen, in standard errors.
    delay : list of int
        Looks from the first checkpoint that is worse than an earlier one to the first called so.
    """

    runs: int = 0
    false: int = 0
    naive: int = 0
    banded: int = 0
    kept: int = 0
    gained: int = 0
    improved: int = 0
    bias: list[float] = field(default_factory=list)
    chosen: list[float] = field(default_factory=list)
    delay: list[int] = field(default_factory=list)

    def add(self, run: Track, truth: Float) -> None:
        """Judge one run; `truth`: true scores by look, on the scale of the values."""
        loss = -truth if run.higher_is_better else truth
        at = {look.step: t for t, look in enumerate(run.looks)}
        named = [
            loss[at[step]] > loss[t] if better else loss[at[step]] < loss[t]
            for t, look in enumerate(run.looks)
            for better, steps in ((True, look.better_than), (False, look.worse_than))
            for step in steps
        ]
        gains = [
            max(loss[t - run.patience : t]) - loss[t] <= look.gain_high
            for t, look in enumerate(run.looks)
            if look.gain_high is not None
        ]
        scores = [look.score for look in run.looks]
        kept, true = run.kept, truth[at[run.best]]
        sign = -1.0 if run.higher_is_better else 1.0
        self.runs += 1
        self.false += not all(named)
        self.naive += naive_alarm(scores, loss, sign)
        self.banded += all(s.low <= x <= s.high for s, x in zip(scores, truth, strict=True))
        self.kept += kept.score.low <= true <= kept.score.high
        self.gained += all(gains)
        self.improved += sum(look.improved for look in run.looks)
        self.bias.append(sign * (kept.score.value - true) / kept.score.stderr)
        self.chosen.append(sign * (kept.as_chosen - true) / kept.score.stderr)
        onset = next((t for t in range(1, len(loss)) if loss[t] > loss[:t].min() + 1e-12), None)
        first = next((t for t, look in enumerate(run.looks) if look.collapsed), None)
        if onset is not None and first is not None and first >= onset:
            self.delay.append(first - onset)

    def cells(self) -> list[str]:
        """Return the cells of a row."""
        return [
            f"{self.runs:,}",
            rate(self.false, self.runs),
            f"{self.naive / self.runs:.0%}",
            f"{self.improved / self.runs:.1f}",
            f"{np.median(self.delay):.0f}" if self.delay else "–",
            rate(self.banded, self.runs),
            rate(self.gained, self.runs),
            f"{np.mean(self.chosen):+.2f}",
            f"{np.mean(self.bias):+.2f}",
            rate(self.kept, self.runs),
        ]


COLUMNS = (
    "run",
    "runs",
    "false alarm",
    "naive",
    "improved, times",
    "delay",
    "all bands cover",
    "gain bounded",
    "least value, sd off",
    "corrected",
    "its interval covers",
)


def naive_alarm(scores: list[gb.Score], loss: Float, sign: float) -> bool:
    """Compare with the best value so far at 1.96 standard errors, as is usual."""
    best = 0
    for t in range(1, len(scores)):
        apart = sign * (scores[t].value - scores[best].value)
        error = np.hypot(scores[t].stderr, scores[best].stderr)
        if apart > 1.96 * error and loss[t] <= loss[:t].min():
            return True
        if apart < -1.96 * error and loss[t] >= loss[:t].min():
            return True
        best = t if apart < 0.0 else best
    return False


# Runs -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """A training run: how far every checkpoint is, and how it is looked at.

    Attributes
    ----------
    scales : ndarray of shape (looks,)
        Every checkpoint generates the reference's rows times this.
    d, n, m : int
        Features, rows per look, rows of the reference.
    latents : bool
        Whether all looks share latents (correlation 0.7).
    """

    scales: Float
    d: int
    n: int
    m: int
    latents: bool = False

    @property
    def spectrum(self) -> Float:
        """Standard deviations of the reference's features."""
        return np.arange(1, self.d + 1) ** -0.5

    @property
    def truth(self) -> Float:
        """Fréchet distance of every checkpoint."""
        return (self.scales - 1.0) ** 2 * float((self.spectrum**2).sum())

    def estimates(self, rng: Rng) -> dict[int, Estimate]:
        """Draw reference and samples, and score them."""
        real = rng.normal(size=(self.m, self.d)) * self.spectrum
        common = rng.normal(size=(self.n, self.d))
        samples: dict[str, Any] = {}
        for t, scale in enumerate(self.scales):
            z = rng.normal(size=(self.n, self.d))
            if self.latents:
                z = np.sqrt(0.7) * common + np.sqrt(0.3) * z
            x = scale * self.spectrum * z
            # Told either way: the checks of plain rows are no part of this.
            samples[str(t)] = gb.Sample(x, groups=np.arange(self.n) if self.latents else None)
        found = estimate_all(samples, gb.Sample(real))
        return {int(t): estimate for t, estimate in found.items()}


def plateau(looks: int = LOOKS) -> Float:
    return np.full(looks, 1.3)


def falls_rises(looks: int = LOOKS, *, step: float = 0.02) -> Float:
    """Improve over the first half, stay, and collapse from two thirds on."""
    t = np.arange(looks)
    return (
        1.3
        + 0.3 * np.maximum(0.0, 1.0 - 2.0 * t / looks)
        + step * np.maximum(0, t - 2 * looks // 3)
    )


def curves(run: Run) -> Callable[[Rng], tuple[Track, Float]]:
    """Return a function that draws normal values with the covariance of one measured run."""
    measured = run.estimates(np.random.default_rng(7))
    steps = list(measured)
    own = np.array([measured[t].variance for t in steps])
    cov = np.diag(own)
    for i in range(len(steps)):
        for j in range(i):
            apart = difference(measured[i], measured[j]).stderr ** 2
            cov[i, j] = cov[j, i] = (own[i] + own[j] - apart) / 2.0
    values, vectors = np.linalg.eigh(cov)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    looks = [normal(row) for row in root]
    limits: list[float] = []

    def follow(found: Float) -> Track:
        following = Following(
            metric="fd", looks=len(steps), level=0.95, patience=3, min_delta=None, rng=0
        )
        simulate = following._limits.next

        def limit(variances: Float) -> float:
            # The covariance is the same in every run: so are the simulated limits.
            if len(limits) <= variances.size:
                limits.append(simulate(variances))
            return limits[variances.size]

        following._limits.next = limit  # type: ignore[method-assign]
        for t in steps:
            following.add(t, replace(looks[t], value=float(found[t])))
        return following.track()

    return lambda rng: (follow(run.truth + root @ rng.normal(size=len(steps))), run.truth)


def normal(row: Float) -> Estimate:
    """Return an estimate with normal errors, row @ z with z shared by all looks."""
    size = 500
    influence = np.zeros(size)  # centred, with the variance of that sum
    scale = np.sqrt(size * (size - 1.0) / 2.0)
    influence[: 2 * row.size] = scale * np.concatenate([row, -row])
    reference = SampleError(n=size, variance=float(row @ row), influence=influence)
    return Estimate(value=0.0, sample=EXACT, reference=reference)


def drawn(run: Run) -> Callable[[Rng], tuple[Track, Float]]:
    return lambda rng: (track_estimates(run.estimates(rng), metric="fd", rng=rng), run.truth)


def inception(looks: int, n: int) -> Callable[[Rng], tuple[Track, Float]]:
    """Return draws of a plateau of an Inception score: larger is better, values are logarithms."""
    alpha = np.full(10, 0.3)
    many = np.random.default_rng(1).dirichlet(alpha, size=2_000_000)
    entropy = -np.where(many > 0.0, many * np.log(np.maximum(many, 1e-300)), 0.0).sum(axis=1)
    truth = np.full(looks, 10.0 * np.exp(-entropy.mean()))

    def draw(rng: Rng) -> tuple[Track, Float]:
        samples = {t: gb.Sample(rng.dirichlet(alpha, size=n)) for t in range(looks)}
        return gb.track(samples, metric="is", rng=rng), truth

    return draw


def kernel(looks: int, n: int) -> Callable[[Rng], tuple[Track, Float]]:
    """Return draws of a plateau of a KID with a linear kernel, the distance of two means."""
    d, shift = 8, 0.2

    def draw(rng: Rng) -> tuple[Track, Float]:
        real = gb.Sample(rng.normal(size=(4 * n, d)))
        samples = {t: gb.Sample(shift + rng.normal(size=(n, d))) for t in range(looks)}
        options = {"degree": 1, "gamma": 1.0, "offset": 0.0}
        run = gb.track(samples, real, metric="kid", options=options, rng=rng)
        return run, np.full(looks, d * shift**2)

    return draw


def rows() -> Iterator[tuple[str, Callable[[], Callable[[Rng], tuple[Track, Float]]]]]:
    """Yield names of rows, and what makes the function that draws a run."""
    for name, scales in (("plateau", plateau()), ("falls, then rises", falls_rises(step=0.006))):
        for latents in (False, True):
            run = Run(scales, d=32, n=1000, m=5000, latents=latents)
            how = "same latents" if latents else "latents of their own"
            yield f"curves: {name}, {LOOKS} looks, {how}", lambda run=run: curves(run)
    for name, scales in (("plateau", plateau(10)), ("falls, then rises", falls_rises(10))):
        for latents in (False, True):
            run = Run(scales, d=8, n=400, m=1600, latents=latents)
            how = "same latents" if latents else "latents of their own"
            yield f"runs: FD, {name}, 10 looks, {how}", lambda run=run: drawn(run)
    yield (
        "runs: FD, plateau, 30 looks, d = 32, n = 1,000",
        lambda: drawn(Run(plateau(), d=32, n=1000, m=5000)),
    )
    yield "runs: Inception score, plateau, 10 looks, n = 1,000", lambda: inception(10, 1000)
    yield "runs: KID, plateau, 10 looks, n = 300", lambda: kernel(10, 300)


def main(argv: list[str] | None = None) -> int:
    """Measure every row and write the table after each."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.accuracy.tracking", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--curves", type=int, default=2000)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="*")
    options = parser.parse_args(argv)
    for name, make in rows():
        if not fnmatch(name, options.only):
            continue
        draw, tally = make(), Tally()
        count = options.curves if name.startswith("curves") else options.runs
        for number in range(count):
            tally.add(*draw(np.random.default_rng([options.seed, crc32(name.encode()), number])))
        write(name, tally, options.seed)
        print(name, *tally.cells(), sep=" | ", file=sys.stderr, flush=True)
    return 0


def write(name: str, tally: Tally, seed: int) -> None:
    """Replace one row of the table."""
    known = recorded_rows("tracking", key=1, page=PAGE)
    (line,) = table(COLUMNS, [[name, *tally.cells()]])[2:]
    known[(name,)] = line
    lines = [known[(label,)] for label, _ in rows() if (label,) in known]
    record_briefly("tracking", f"Seed {seed}; {stamp()}", [*table(COLUMNS, []), *lines], page=PAGE)


if __name__ == "__main__":
    raise SystemExit(main())
