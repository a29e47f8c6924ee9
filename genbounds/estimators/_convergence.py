"""A score at growing numbers of rows: whether it has settled, and where its interval will go."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds import validation
from genbounds.core.design import design_of, row_design
from genbounds.core.moments import BLOCK_BYTES, Moments
from genbounds.estimators._compare import prepare_all
from genbounds.estimators._metric_spec import metric_spec
from genbounds.files import gather
from genbounds.results import Score
from genbounds.samples import Sample
from genbounds.validation import InputError

HALVINGS = 5
"""How often a sample is halved: the parts together hold as many rows as all of it."""

SMALLEST = 50
"""Rows below which no part is scored: fewer have intervals that can miss more often."""


def convergence(
    fakes: Mapping[str, Any],
    real: Any = None,
    *,
    metric: Any = "fd",
    estimator: str = "debiased",
    level: float = 0.95,
    options: Mapping[str, Any] | None = None,
    halvings: int = HALVINGS,
    seed: int = 0,
) -> dict[str, tuple[tuple[int, Score], ...]]:
    """Score growing parts of every model's sample against one reference.

    Parameters
    ----------
    fakes : mapping of str to array_like of shape (n, d)
        Generated features (posteriors for "is") of each model. Sample sizes may differ.
    real : array_like of shape (m, d) or Moments, optional
        The reference, all of it at every size; prepared once. As for `compare`.
    metric : str, MetricSpec, CustomMetric or callable
    estimator : {"debiased", "plugin"}
        "plugin" shows how the usual number falls or rises with n.
    level : float
        Coverage of each interval on its own.
    options : mapping, optional
        As for `compare`.
    halvings, seed : int
        As for `growing_scores`.

    Returns
    -------
    dict of str to tuple of (int, Score)
        For each model, sizes and scores, the whole sample last: what `report.convergence_plot`
        draws.

    Raises
    ------
    InputError
        As `compare`; or if a model is given by its moments, which have no parts.

    Examples
    --------
    >>> import numpy as np, genbounds as gb
    >>> rng = np.random.default_rng(0)
    >>> real, fake = rng.normal(size=(500, 2)), rng.normal(size=(400, 2))
    >>> [n for n, score in gb.estimators.convergence({"a": fake}, real)["a"]]
    [50, 100, 200, 400]
    """
    level = validation.check_open_unit("level", level)
    prepared = prepare_all(metric_spec(metric), fakes, real, options)
    grown = {}
    for name, fake in fakes.items():
        with validation.about_model(str(name)):
            grown[str(name)] = growing_scores(
                fake,
                lambda rows: prepared.estimate(rows, estimator=estimator).score(level),
                halvings=halvings,
                seed=seed,
            )
    return grown


def growing_scores(
    x: Any,
    score: Callable[[Any], Score],
    *,
    whole: Score | None = None,
    halvings: int = HALVINGS,
    seed: int = 0,
) -> tuple[tuple[int, Score], ...]:
    """Score nested random parts of one sample: n, n/2, n/4 and so on, of its rows.

    Parameters
    ----------
    x : array_like of shape (n, d) or Sample
        A `Sample` is divided by its groups, within its strata.
    score : callable
        Takes rows (a `Sample` of them, if `x` is one) and returns their score.
    whole : Score, optional
        That of all rows, where it is known already.
    halvings : int
        How many parts, smallest of 50 rows; each holds half of the next larger one's rows.
    seed : int
        Of the random order in which rows come in.

    Returns
    -------
    tuple of (int, Score)
        Sizes, increasing, with their scores; all rows last. Sizes that `score` refuses as too
        small are left out, and all below them.

    Raises
    ------
    InputError
        If `x` is no array (n, d), all of its rows have no score, or there is no space for a copy of
        half of them: in memory up to 64 MiB, else in ``TMPDIR``.
    """
    if isinstance(x, Moments):
        raise InputError("is given by its moments, which have no parts: pass the features.", "x")
    validation.check_count("halvings", halvings, minimum=0)
    validation.check_count("seed", seed, minimum=0)
    parts_of: Callable[[Any, int, int], Iterator[Any]] = _halves_of_units
    if not isinstance(x, Sample):
        x, parts_of = validation.check_features("x", x), _halves_of_rows
    scores = [(len(x), score(x) if whole is None else whole)]
    for part in parts_of(x, halvings, seed):
        try:
            scores.append((len(part), score(part)))
        except InputError:  # of all rows it would have been raised above: these are too few
            break
    return tuple(reversed(scores))


def _halves_of_rows(rows: NDArray[Any], halvings: int, seed: int) -> Iterator[NDArray[Any]]:
    """Yield a half of the rows, a half of that, and so on: of one copy, as `gather` keeps it.

    It begins with the rows of every smaller part. Within what one size adds to the next smaller
    one, rows keep their order: files read so.
    """
    n = len(rows)
    sizes = [n >> k for k in range(1, halvings + 1) if n >> k >= SMALLEST]
    if not sizes:
        return
    order = np.random.default_rng(seed).permutation(n)[: sizes[0]]
    ends = [0, *reversed(sizes)]
    index = np.concatenate([np.sort(order[a:b]) for a, b in pairwise(ends)])
    step = max(1, BLOCK_BYTES // rows[:1].nbytes)
    blocks = (
        np.ascontiguousarray(rows[index[start : start + step]]).tobytes()
        for start in range(0, len(index), step)
    )
    try:
        largest = gather(blocks, dtype=rows.dtype, shape=(len(index), rows.shape[1]))
    except OSError as error:
        raise InputError(
            f"not enough space for a copy of half of the rows in {tempfile.gettempdir()}: free "
            "some space or point TMPDIR to a larger disk."
        ) from error
    yield from (largest[:size] for size in sizes)


def _halves_of_units(part: Sample, halvings: int, seed: int) -> Iterator[Sample]:
    """Halve a sample by its groups, within its strata: parts are drawn as the whole was."""
    rng = np.random.default_rng(seed)
    for _ in range(halvings):
        design = design_of("x", part) or row_design(len(part))
        half = design.halves(rng)
        rows = None if half is None else design.rows_of_halves(half)[0]
        if rows is None or rows.size < SMALLEST:
            return
        part = part[rows]
        yield part
