"""How often a bound or an interval holds, with exact binomial limits.

Misses of a bound are counted in plain samples, known exactly, or estimated by tilted samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.random import SeedSequence

from genbounds._betting import betting_lower_limit
from genbounds._tables import AsJson
from genbounds._text import number, percent, quoted
from genbounds.bounds import Bound
from genbounds.bounds._catalog import borrows_name
from genbounds.simulate._work import Piece, Progress, Workers, chunks, stream, work
from genbounds.simulate.arms._arm import SyntheticArm
from genbounds.validation import Float, InputError, check_count, check_open_unit

# Numbers held at once by one chunk: 2²² doubles are 32 MiB.
_CHUNK_SIZE = 2**22
_LARGEST_CHUNK = 20_000

# A quantile is reported where at least so many replications of a chunk lie beyond it.
_BEYOND = 10.0

# Failure probabilities below this are examined by tilted samples.
RARE = 1e-4

# Relative accuracy of exact tails, granted to the statement.
TAIL_ACCURACY = 1e-7


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
            return self.exact[1] > self.claimed * (1.0 + TAIL_ACCURACY)
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
    scenario = Scenario(arm, n, (delta,))
    study, label = [bound.id, dict(bound.constants), arm.name, n], f"{bound.id}: {scenario.label}"
    pieces = []
    for index, size in enumerate(scenario.chunk_sizes(bound, replications)):
        chunk = (bound, scenario, size, stream(seed, bound.id, arm.name, n, index))
        pieces.append(Piece([*study, delta, seed, index, size], label, run_chunk, chunk))
    pooled = pool(work(pieces, workers=workers, out=out, progress=progress), 0)
    del pooled["trivial"]
    pooled |= {"subject": bound.id, "arm": arm.name, "n": n, "d": arm.d, "delta": delta}
    exact, claimed = exact_misses(bound, scenario)[0], bound.claimed(delta)
    return make_coverage(confidence=confidence, claimed=claimed, exact=exact, **pooled)


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
    hits = (low <= truth) & (truth <= high)  # NaN covers nothing
    width = float(np.median(high - low))
    # The quantile at `level` is reported where ten replications lie beyond it.
    enough = low.size * (1.0 - level) >= _BEYOND
    quantile = float(np.quantile(np.abs(middle - truth), level)) if enough else math.nan
    found = {"misses": int(np.count_nonzero(~hits)), "replications": low.size, "width": width}
    share, tight = 1.0 - level, tightness(0.5 * width, quantile)
    what |= {"delta": share, "claimed": share, "exact": None, "tightness": tight}
    return make_coverage(confidence=confidence, **found, **what)


def make_coverage(misses: int, replications: int, confidence: float, **fields: Any) -> Coverage:
    """Miss rate with its exact limits and its standard error, beside the other fields."""
    miss = misses / replications
    low, high = miss_limits(misses, replications, 1.0 - confidence)
    fields |= {"misses": misses, "replications": replications, "confidence": confidence}
    stderr = math.sqrt(miss * (1.0 - miss) / replications)
    return Coverage(miss=miss, miss_low=low, miss_high=high, stderr=stderr, **fields)


# --- misses of a bound ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scenario:
    """One distribution at one sample size, with the failure probabilities that are tried."""

    arm: SyntheticArm
    n: int
    deltas: tuple[float, ...]

    @property
    def label(self) -> str:
        """Names the scenario in stores and reports."""
        return f"{self.arm.name}, n={self.n}"

    def chunk_sizes(self, bound: Bound, replications: int) -> tuple[int, ...]:
        """Cut `replications` into chunks that fit in memory, whatever the number of workers."""
        most = _CHUNK_SIZE // max(self.arm.size(bound.needs, self.n), 1)
        return chunks(replications, min(max(most, 1), _LARGEST_CHUNK))


def run_chunk(bound: Bound, scenario: Scenario, count: int, seeds: SeedSequence) -> dict[str, Any]:
    """Draw `count` samples and count how often the bound misses.

    Returns
    -------
    dict
        ``replications``, and in ``found`` for each failure probability: ``misses``; ``width``, the
        median; ``quantile`` of the error at one minus the claimed miss probability, NaN with fewer
        than ten replications beyond it; ``trivial``, the number of replications whose width is no
        less than what the error can be at most.
    """
    arm, n, rng = scenario.arm, scenario.n, np.random.default_rng(seeds)
    quantities = dict(arm.facts) | arm.statistics(bound.needs, n, count, rng) | {"n": n}
    error = as_rows(bound.error(**quantities), count)
    if np.isnan(error).any():
        raise InputError(
            f"`{bound.id}` bounds a quantity that is NaN at n = {n}: say in an assumption, such as "
            "n ≥ 2, where it exists."
        )
    most = as_rows(bound.most(**quantities), count)
    largest = error.max(axis=1)
    found = []
    for delta in scenario.deltas:
        width = as_rows(bound.width(**quantities, delta=delta), count)
        hits = (error <= width).all(axis=1)  # not error > width: NaN on either side is a miss
        claimed = bound.claimed(delta)
        enough = count * claimed >= _BEYOND
        found.append(
            {
                "misses": int(count - np.count_nonzero(hits)),
                "width": float(np.median(width.max(axis=1))),
                "quantile": float(np.quantile(largest, 1.0 - claimed)) if enough else math.nan,
                "trivial": int(np.count_nonzero((width >= most).all(axis=1))),
            }
        )
    return {"replications": count, "found": found}


def pool(chunks: Sequence[Mapping[str, Any]], index: int) -> dict[str, Any]:
    """Put chunks of `run_chunk` together at one failure probability.

    Returns
    -------
    dict
        Sums of ``replications`` and ``misses``; ``width`` and ``tightness`` from averages over
        chunks by their numbers of replications; whether every width was ``trivial``.
    """
    counts = [chunk["replications"] for chunk in chunks]
    found = [chunk["found"][index] for chunk in chunks]
    width, quantile = (
        float(np.average([each[key] for each in found], weights=counts))
        for key in ("width", "quantile")
    )
    return {
        "replications": sum(counts),
        "misses": sum(each["misses"] for each in found),
        "width": width,
        "tightness": tightness(width, quantile),
        "trivial": sum(each["trivial"] for each in found) == sum(counts),
    }


# A probability with its numerical limits.
Exact = tuple[float, float, float]


def exact_misses(bound: Bound, scenario: Scenario) -> list[Exact | None]:
    """Probability of a miss from the exact distribution of the error, for each delta.

    Either the arm knows that distribution and the width is no function of the sample, or the arm
    can list the outcomes; None where neither is so.
    """
    arm, n, deltas = scenario.arm, scenario.n, scenario.deltas
    facts: dict[str, Any] = dict(arm.facts) | {"n": n}
    name = bound.quantity.name
    known = not borrows_name(bound.quantity)
    if known and {*bound.width_needs} <= facts.keys() | {"delta"}:
        widths = [bound.width(**facts, delta=delta) for delta in deltas]
        tails = [arm.tail(name, n, float(width)) if width.ndim == 0 else None for width in widths]
        if None not in tails:
            return [None if tail is None else (tail, tail, tail) for tail in tails]
    listed = arm.outcomes(bound.needs, n)
    if listed is None:
        return [None] * len(deltas)
    facts |= listed.statistics
    if not {*bound.width_needs, *bound.error_needs} <= facts.keys() | {"delta"}:
        return [None] * len(deltas)
    error, exact = bound.error(**facts), list[Exact | None]()
    for delta in deltas:
        width = bound.width(**facts, delta=delta)
        # An outcome on the very edge of the bound is decided by rounding: granted to the bound.
        missed = ~(error <= width + 1e-12 * np.abs(width))
        probabilities = listed.probabilities
        miss = float(probabilities[np.broadcast_to(missed, probabilities.shape)].sum())
        high = 1.0 if listed.lower_only else min(miss * (1.0 + listed.accuracy), 1.0)
        exact.append((miss, miss / (1.0 + listed.accuracy), high))
    return exact


# A probability and its lower limit.
MissEstimate = tuple[float, float]


def rare_misses(
    bound: Bound, scenario: Scenario, count: int, seeds: SeedSequence, alpha: float
) -> list[MissEstimate | None]:
    """Estimate the probability of a miss at each delta below `RARE` by importance sampling.

    Parameters
    ----------
    bound : Bound
    scenario : Scenario
    count : int
        Tilted samples.
    seeds : numpy.random.SeedSequence
    alpha : float
        False alarm of each lower limit.

    Returns
    -------
    list
        None where the failure probability is larger, or no tilt of the distribution is known.
    """
    arm, n, deltas = scenario.arm, scenario.n, scenario.deltas
    estimates: list[MissEstimate | None] = [None] * len(deltas)
    logs: dict[int, list[Float]] = {i: [] for i, delta in enumerate(deltas) if delta < RARE}
    rng = np.random.default_rng(seeds)
    for size in scenario.chunk_sizes(bound, count) if logs else ():
        drawn = arm.tilted(bound.needs, n, size, rng)
        if drawn is None:
            return estimates
        quantities = dict(arm.facts) | drawn.statistics | {"n": n}
        error = as_rows(bound.error(**quantities), size)
        for index, values in logs.items():
            width = as_rows(bound.width(**quantities, delta=deltas[index]), size)
            # Not "not error ≤ width", as for plain samples: NaN must not refute here.
            missed = (error > width).any(axis=1)
            values.append(np.where(missed, drawn.log_weights, -np.inf))
    for index, values in logs.items():
        joined = np.concatenate(values)
        miss = min(float(np.exp(joined).mean()), 1.0)
        estimates[index] = miss, min(lower_limit(joined, alpha), miss)
    return estimates


def lower_limit(log_values: Float, alpha: float) -> float:
    """Lower limit of the mean of a non-negative variable, wrong with probability at most `alpha`.

    Parameters
    ----------
    log_values : ndarray of shape (k,)
        Logarithms of independent draws; −∞ is a draw of 0. No upper limit of them is needed.
    alpha : float
        False alarm, in (0, 1).

    Returns
    -------
    float
        The largest mean m that bets reject: Π (1 + θ(Y_i/m − 1)) has expectation at most 1 for
        θ ∈ [0, 1] if E Y ≤ m, and so has the average over ten stakes θ; it exceeds 1/α with
        probability at most α (Markov). Valid for every number of draws, however heavy the tail
        of Y.
    """
    stakes = 0.5 ** np.arange(1.0, 11.0)
    values = np.exp(log_values)[None]
    return float(betting_lower_limit(values, -np.log(alpha), stakes)[0])


def miss_limits(misses: int, replications: int, alpha: float) -> tuple[float, float]:
    """Clopper–Pearson limits of a miss rate, each wrong with probability at most alpha/2."""
    from scipy.special import betainccinv, betaincinv

    hits = replications - misses
    # Equal to statsmodels.stats.proportion.proportion_confint(method="beta") to the last bit.
    low = float(betaincinv(misses, hits + 1, alpha / 2.0)) if misses else 0.0
    high = float(betainccinv(misses + 1, hits, alpha / 2.0)) if hits else 1.0
    return low, high


def tightness(width: float, quantile: float) -> float:
    """Width over the quantile of the error; NaN where the error is nothing but rounding."""
    return width / quantile if quantile > 1e-12 * width else math.nan


def as_rows(values: Float, replications: int) -> Float:
    """One row a replication; several columns where a statement bounds several errors at once."""
    if values.ndim < 2:
        return np.broadcast_to(values, (replications,))[:, None]
    return values
