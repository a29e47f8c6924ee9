"""How often a bound or an interval holds, with exact binomial limits."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from genbounds._tables import AsJson
from genbounds._text import number, percent, quoted
from genbounds.bounds import Bound
from genbounds.simulate import _trials as trials
from genbounds.simulate._pieces import Piece, Progress, chunks, stream, work
from genbounds.simulate._workers import Workers
from genbounds.simulate.arms._arm import SyntheticArm
from genbounds.validation import Float, InputError, check_count, check_open_unit


class IntervalLike(Protocol):
    """Anything with two ends, such as a `Score`."""

    @property
    def low(self) -> float:
        """Lower end."""

    @property
    def high(self) -> float:
        """Upper end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage(AsJson):
    """Measured miss rate of a bound or an interval.

    Attributes
    ----------
    subject, arm : str
        What was tested, and on which distribution.
    n : int or None
        Samples in each replication; None if `draw` alone knows.
    d : int or None
        Features.
    delta : float
        Failure probability asked of the bound; one minus the level of an interval.
    claimed : float
        Miss probability that the statement allows.
    replications, misses : int
    miss, miss_low, miss_high : float
        Miss rate and its exact (Clopper–Pearson) limits.
    confidence : float
        Two-sided confidence of the limits.
    stderr : float
        Monte-Carlo standard error of `miss`.
    exact : tuple of float or None
        The miss probability itself with its numerical limits, where the distribution of the error
        is known.
    width : float
        Median width.
    tightness : float
        Median width over the quantile of the error at one minus `claimed`; 1 is perfect. NaN if
        fewer than ten replications lie beyond that quantile.
    """

    subject: str
    arm: str
    n: int | None
    d: int | None
    delta: float
    claimed: float
    replications: int
    misses: int
    miss: float
    miss_low: float
    miss_high: float
    confidence: float
    stderr: float
    exact: tuple[float, float, float] | None
    width: float
    tightness: float

    def __str__(self) -> str:
        """Return how often it missed, with exact limits, and what it may."""
        verdict = "refuted" if self.refuted else "not refuted"
        low, miss, high, claimed = (
            number(100.0 * x, digits=3)
            for x in (self.miss_low, self.miss, self.miss_high, self.claimed)
        )
        return (
            f"{': '.join(filter(None, [self.subject, self.arm]))}: missed {self.misses} of "
            f"{number(self.replications)}, {miss} % [{low}, {high}] ({percent(self.confidence)}), "
            f"where {claimed} % are allowed: {verdict}; median width {number(self.width)}"
        )

    @property
    def coverage(self) -> float:
        """One minus the miss rate; its limits are one minus those of `miss`."""
        return 1.0 - self.miss

    @property
    def refuted(self) -> bool:
        """Whether more misses than claimed are certain at this confidence, or known exactly."""
        if self.exact is not None:
            return self.exact[1] > self.claimed * (1.0 + trials.TAIL_ACCURACY)
        return self.miss_low > self.claimed


def coverage(
    bound: Bound,
    arm: SyntheticArm,
    n: int,
    delta: float,
    replications: int,
    seed: int,
    *,
    confidence: float = 0.99,
    jobs: int = 1,
    backend: str = "loky",
    scheduler: str | None = None,
    threads: int = 1,
    out: Path | str | None = None,
    progress: Progress | None = None,
) -> Coverage:
    """Measure how often a bound holds on a distribution with known truth.

    Parameters
    ----------
    bound : Bound
        A statement about probabilities.
    arm : SyntheticArm
        Within the assumptions of the bound.
    n : int
        Samples in each replication.
    delta : float
        Failure probability put into the bound.
    replications : int
        Independent samples of size `n`.
    seed : int
        Start of all random streams.
    confidence : float
        Two-sided confidence of the limits of the miss rate.
    jobs, backend, scheduler, threads
        Who does the work, as in `Workers`; the result does not depend on it, except on `threads`.
    out : path, optional
        Folder whose store keeps finished chunks: the same call goes on where it was interrupted.
    progress : callable, optional
        Called as ``progress(done, total, label)`` after every finished chunk.

    Returns
    -------
    Coverage

    Raises
    ------
    InputError
        If `bound` or `arm` is something else, the arm is outside the assumptions or does not
        provide what the bound needs, the statement is deterministic (`audit` searches a
        counterexample to those), the store cannot be used or belongs to another version, or
        workers keep dying.
    """
    n = check_count("n", n)
    delta = check_open_unit("delta", delta)
    replications = check_count("replications", replications)
    seed = check_count("seed", seed, minimum=0)
    confidence = check_open_unit("confidence", confidence)
    workers = Workers(jobs=jobs, backend=backend, scheduler=scheduler, threads=threads)
    _check_study(bound, arm, n, delta)
    scenario = trials.Scenario(arm, n, (delta,))
    study, label = [bound.id, dict(bound.constants), arm.name, n], f"{bound.id}: {scenario.label}"
    pieces = []
    for index, size in enumerate(scenario.chunk_sizes(bound, replications)):
        chunk = (bound, scenario, size, stream(seed, bound.id, arm.name, n, index))
        pieces.append(Piece([*study, delta, seed, index, size], label, trials.run_chunk, chunk))
    results = work(pieces, workers=workers, out=out, progress=progress)
    pooled = trials.pool(results, 0)
    labels: dict[str, Any] = {"subject": bound.id, "arm": arm.name, "n": n, "d": arm.d}
    return make_coverage(
        pooled.misses,
        pooled.replications,
        confidence,
        delta=delta,
        claimed=bound.claimed(delta),
        exact=trials.exact_misses(bound, scenario)[0],
        width=pooled.width,
        tightness=pooled.tightness,
        **labels,
    )


def _check_study(bound: Bound, arm: SyntheticArm, n: int, delta: float) -> None:
    """Raise if `bound` has no miss rate on `arm`."""
    if not isinstance(bound, Bound):
        raise InputError(
            f"`bound` must be a statement such as genbounds.bounds.catalog()['o24.gaussian-mean']; "
            f"got {quoted(bound)}."
        )
    if not isinstance(arm, SyntheticArm):
        raise InputError(
            "`arm` must be an arm of known truth such as genbounds.simulate.GaussianArm(mean, cov);"
            f" got {type(arm).__name__}."
        )
    if bound.form in ("deterministic", "rate"):
        kind = "deterministic" if bound.form == "deterministic" else "a rate"
        raise InputError(
            f"`{bound.id}` is {kind} and has no miss rate: use genbounds.simulate.audit."
        )
    violated = bound.violated(arm.facts, n, delta)
    if violated:
        raise InputError(
            f"`{bound.id}` says nothing about {arm.name} at n={n}, delta={delta:g}: "
            f"it assumes {'; '.join(violated)}."
        )


def interval_coverage(
    make_interval: Callable[[Any], IntervalLike],
    draw: Callable[[np.random.Generator], Any],
    truth: float,
    *,
    replications: int,
    seed: int,
    level: float,
    confidence: float = 0.99,
    chunk: int = 100,
    jobs: int = 1,
    backend: str = "loky",
    scheduler: str | None = None,
    threads: int = 1,
    out: Path | str | None = None,
    progress: Progress | None = None,
    subject: str = "interval",
    arm: str = "",
) -> Coverage:
    """Measure how often an interval covers the truth.

    Parameters
    ----------
    make_interval : callable
        ``make_interval(data)`` returns something with ``.low`` and ``.high``.
    draw : callable
        ``draw(rng)`` returns the data of one replication.
    truth : float
        What the intervals should cover.
    replications : int
    seed : int
        Start of all random streams.
    level : float
        Nominal coverage of the intervals, in (0, 1).
    confidence : float
        Two-sided confidence of the limits of the miss rate.
    chunk : int
        Replications of a piece of work, which is the most that one process can lose; the random
        numbers depend on it.
    jobs, backend, scheduler, threads
        Who does the work, as in `Workers`; the result does not depend on it, except on `threads`.
        In other processes both callables must be importable or self-contained.
    out : path, optional
        Folder whose store keeps finished chunks under `subject` and `arm`, which must then name
        the study: the same call goes on where it was interrupted.
    progress : callable, optional
        Called as ``progress(done, total, label)`` after every finished chunk.
    subject, arm : str
        Labels of the result.

    Returns
    -------
    Coverage
        `width` is the median length of the intervals; `tightness` compares half of it with the
        quantile at `level` of the absolute error of their midpoints.
    """
    replications = check_count("replications", replications)
    level = check_open_unit("level", level)
    confidence = check_open_unit("confidence", confidence)
    seed = check_count("seed", seed, minimum=0)
    chunk = check_count("chunk", chunk)
    if out is not None and not arm:
        raise InputError(
            "`arm` must name the distribution if `out` is given: stored results are found by it."
        )
    workers = Workers(jobs=jobs, backend=backend, scheduler=scheduler, threads=threads)
    label, study = f"{subject}: {arm}" if arm else subject, ["interval", subject, arm, level, seed]
    pieces = []
    for index, size in enumerate(chunks(replications, chunk)):
        part = (make_interval, draw, size, stream(seed, "interval", index))
        pieces.append(Piece([*study, index, size, chunk], label, _intervals, part))
    results = work(pieces, workers=workers, out=out, progress=progress)
    ends = np.array([pair for result in results for pair in result["ends"]]).T
    what: dict[str, Any] = {"subject": subject, "arm": arm, "n": None, "d": None}
    return from_ends(ends, 0.5 * ends.sum(axis=0), truth, level, confidence, **what)


def _intervals(
    make_interval: Callable[..., IntervalLike], draw: Callable[..., Any], count: int, seeds: Any
) -> dict[str, Any]:
    rng = np.random.default_rng(seeds)
    made = (make_interval(draw(rng)) for _ in range(count))
    return {"ends": [(float(interval.low), float(interval.high)) for interval in made]}


def from_ends(
    ends: Float, middle: Float, truth: float, level: float, confidence: float, **what: Any
) -> Coverage:
    """Count how often intervals hold `truth`; half their width against the errors of `middle`.

    `ends` has shape (2, replications). `what` was tested: subject, arm, n and d of `Coverage`.
    """
    low, high = ends
    replications = low.size
    hits = (low <= truth) & (truth <= high)  # NaN covers nothing
    width = float(np.median(high - low))
    # The quantile at `level` is reported where ten replications lie beyond it.
    enough = replications * (1.0 - level) >= 10.0
    quantile = float(np.quantile(np.abs(middle - truth), level)) if enough else math.nan
    return make_coverage(
        int(replications - np.count_nonzero(hits)),
        replications,
        confidence,
        delta=1.0 - level,
        claimed=1.0 - level,
        exact=None,
        width=width,
        tightness=trials.tightness(0.5 * width, quantile),
        **what,
    )


def make_coverage(misses: int, replications: int, confidence: float, **fields: Any) -> Coverage:
    """Miss rate with its exact limits and its standard error, beside the other fields."""
    low, high = trials.miss_limits(misses, replications, 1.0 - confidence)
    miss = misses / replications
    return Coverage(
        misses=misses,
        replications=replications,
        confidence=confidence,
        miss=miss,
        miss_low=low,
        miss_high=high,
        stderr=math.sqrt(miss * (1.0 - miss) / replications),
        **fields,
    )
