"""Fréchet scores of many Gaussian samples: values, intervals, coverage, with their errors."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import SeedSequence

from genbounds.estimators import FEW_RATIO, student_quantile
from genbounds.simulate._coverage import Coverage, from_ends
from genbounds.simulate._work import Piece, Progress, Workers, chunks, stream, work
from genbounds.simulate.arms import _frechet as engines
from genbounds.simulate.arms._covariance import GaussianArm
from genbounds.simulate.arms._frechet import FrechetArm
from genbounds.validation import Float, InputError, check_choice, check_count, check_open_unit

# Numbers of one array of a batch, which is a piece of work, and of the slice of it that is worked
# on at once: on a CPU 2 MiB, so that what one step leaves is in the cache for the next.
_BATCH_SIZE = 2**22
_SLICE_SIZE = 2**18
_LARGEST_BATCH = 1024

ESTIMATORS = ("debiased", "plugin")


@dataclass(frozen=True, slots=True, kw_only=True)
class FrechetScores:
    """One score a row, of independent samples of one distribution.

    Attributes
    ----------
    arm : str
    n, d : int
    estimator : str
        "debiased" or "plugin".
    level : float
    truth : float
        FD of the distribution to the reference.
    values : ndarray of shape (replications,)
        Not clipped: a debiased value can be negative.
    low, high : ndarray of shape (replications,)
        Ends of the intervals, at least 0; NaN for "plugin", which has none here.
    device : str
        Who computed them.
    """

    arm: str
    n: int
    d: int
    estimator: str
    level: float
    truth: float
    values: Float
    low: Float
    high: Float
    device: str

    @property
    def replications(self) -> int:
        """Number of samples."""
        return self.values.size

    @property
    def bias(self) -> float:
        """Mean of the values minus the truth."""
        return float(self.values.mean()) - self.truth

    @property
    def bias_stderr(self) -> float:
        """Monte-Carlo standard error of `bias`."""
        return self.spread / math.sqrt(self.replications)

    @property
    def spread(self) -> float:
        """Standard deviation of the values."""
        return float(self.values.std(ddof=1))

    @property
    def spread_stderr(self) -> float:
        """Monte-Carlo standard error of `spread`, by the delta method on the fourth moment."""
        squares = (self.values - self.values.mean()) ** 2
        error = float(squares.std(ddof=1)) / math.sqrt(self.replications)
        return error / (2.0 * self.spread) if self.spread > 0.0 else 0.0

    def coverage(self, *, confidence: float = 0.99) -> Coverage:
        """How often the intervals cover the truth.

        Parameters
        ----------
        confidence : float
            Two-sided confidence of the limits of the miss rate.

        Returns
        -------
        Coverage
            `width` is the median length of the intervals; `tightness` compares half of it with
            the quantile at `level` of the absolute error of the values.

        Raises
        ------
        InputError
            For "plugin", which has no intervals here.
        """
        if self.estimator == "plugin":
            raise InputError("the estimator 'plugin' has no intervals here: ask for 'debiased'.")
        confidence = check_open_unit("confidence", confidence)
        what: dict[str, Any] = {"subject": "debiased FD", "arm": self.arm, "n": self.n, "d": self.d}
        ends = np.stack([self.low, self.high])
        return from_ends(ends, self.values, self.truth, self.level, confidence, **what)


def frechet_scores(
    arm: FrechetArm,
    n: int,
    replications: int,
    *,
    seed: int = 0,
    estimator: str = "debiased",
    level: float = 0.95,
    device: str | None = None,
    jobs: int = 1,
    backend: str = "loky",
    scheduler: str | None = None,
    threads: int = 1,
    out: Path | str | None = None,
    progress: Progress | None = None,
) -> FrechetScores:
    """Score many samples of a Gaussian distribution against exact reference moments.

    What `frechet_distance(Moments(mean, cov, n), reference)` gives for each sample, in batches
    and from sufficient statistics, so that the cost does not grow with `n`.

    Parameters
    ----------
    arm : FrechetArm
        Its features must be a `GaussianArm`.
    n : int
        Rows of each sample, at least 2; at least 4 d for "debiased".
    replications : int
        Number of samples.
    seed : int
        Start of all random streams.
    estimator : {"debiased", "plugin"}
        Covariances have divisor n − 1 in both.
    level : float
        Coverage of the intervals, in (0, 1).
    device : str, optional
        A torch device such as "cuda"; NumPy on the CPU without it. Each draws its own random
        numbers: the distribution of the scores is the same, their values are not.
    jobs, backend, scheduler, threads
        Who does the work, as in `Workers`; the result does not depend on it, except on `threads`.
    out : path, optional
        Folder whose store keeps finished batches: the same call goes on where it was interrupted.
    progress : callable, optional
        Called as ``progress(done, total, label)`` after every finished batch.

    Returns
    -------
    FrechetScores

    Raises
    ------
    InputError
        If the features are not Gaussian, `n` is too small, the device cannot be used, the store
        cannot be used or belongs to another version, or workers keep dying.
    """
    if not isinstance(getattr(arm, "features", None), GaussianArm):
        raise InputError("`arm` must be a FrechetArm of a GaussianArm.")
    check_choice("estimator", estimator, ESTIMATORS)
    debias = estimator == "debiased"
    n = check_count("n", n, minimum=max(FEW_RATIO * arm.d, 2) if debias else 2)
    replications = check_count("replications", replications)
    seed = check_count("seed", seed, minimum=0)
    level = check_open_unit("level", level)
    workers = Workers(jobs=jobs, backend=backend, scheduler=scheduler, threads=threads)
    engine = arm.engine(engines.check_device(device))
    size = min(max(_BATCH_SIZE // arm.d**2, 1), _LARGEST_BATCH)
    study = ["frechet-scores", arm.name, arm.facts["distance"], n, estimator, seed, device]
    pieces = []
    for index, count in enumerate(chunks(replications, size)):
        seeds = stream(seed, "frechet-scores", arm.name, n, index)
        batch = (engine, arm.d, n, count, debias, seeds)
        pieces.append(Piece([*study, index, count], f"{arm.name}, n={n}", _batch, batch))
    batches = work(pieces, workers=workers, out=out, progress=progress)
    centre = np.concatenate([batch["values"] for batch in batches])
    stderr = np.concatenate([batch["stderr"] for batch in batches])
    reach = student_quantile(level, n - 1.0) * stderr
    return FrechetScores(
        arm=arm.name,
        n=n,
        d=arm.d,
        estimator=estimator,
        level=level,
        truth=arm.facts["distance"],
        values=centre,
        low=np.maximum(centre - reach, 0.0),
        high=np.maximum(centre + reach, 0.0),
        device=engine.describe(),
    )


def _batch(
    engine: engines.FrechetEngine, d: int, n: int, count: int, debias: bool, seeds: SeedSequence
) -> dict[str, list[float]]:
    """Values and standard errors of `count` samples."""
    drawn: Iterable[engines.White]
    if engine.device is None:
        rng = np.random.default_rng(seeds)
        sizes = chunks(count, max(_SLICE_SIZE // d**2, 1))
        drawn = (engines.draw_white(d, n, size, rng) for size in sizes)
    else:
        drawn = [engines.draw_white_on(engine.device, d, n, count, seeds)]
    values, stderr = list[float](), list[float]()
    for white in drawn:
        parts = engine.evaluate(white, n, debias=debias)
        scores = engine.debiased(parts, n) if debias else engine.plugin(parts)
        values += scores.tolist()
        stderr += (parts.variance**0.5).tolist() if debias else [math.nan] * len(scores)
    return {"values": values, "stderr": stderr}
