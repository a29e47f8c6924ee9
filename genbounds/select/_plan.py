"""How many samples a certificate will take, from a pilot of every model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from genbounds._text import number, shown
from genbounds.diagnostics import warn_of
from genbounds.estimators import (
    Estimate,
    Moments,
    Prepared,
    estimate_each,
    from_few,
    metric_spec,
    prepare_all,
    shared_rows,
)
from genbounds.results import Diagnostic
from genbounds.select._boundary import critical_value, look_sizes
from genbounds.select._first_look import choose_first_look, earliest_look
from genbounds.select._foreseen import foresee
from genbounds.select._selection_plan import SelectionPlan
from genbounds.select._settings import SAMPLES_PER_ARM
from genbounds.validation import (
    InputError,
    calling,
    check_confidence,
    check_count,
    check_not_negative,
    check_power,
)

SEEN = 2.0
"""Standard errors by which the pilots of the last winner and the first loser should differ."""


def plan(
    pilots: Mapping[str, Any],
    reference: Any = None,
    metric: Any = "fd",
    confidence: float = 0.95,
    *,
    power: float = 0.8,
    options: Mapping[str, Any] | None = None,
    top: int = 1,
    tolerance: float = 0.0,
    limit: int | None = None,
    seed: int = 0,
) -> SelectionPlan:
    """Say how many samples `run` will draw until the best model is certified.

    Parameters
    ----------
    pilots : mapping of str to array_like of shape (n, d) or Sample
        A few samples of each model; the run will draw others.
    reference : array_like of shape (m, d) or Moments, optional
        As for `run`: the one that will be used.
    metric, confidence
        As for `run`.
    power : float
        Probability with which the run shall end with a certificate, at least 0.5.
    options, top, tolerance
        As for `run`.
    limit : int, optional
        Most samples of a model, as for `run`; where models are files, rows of the shortest.
    seed : int
        Of the simulated runs.

    Returns
    -------
    SelectionPlan

    Raises
    ------
    InputError
        As `compare` and `run`; or if there are fewer than two pilots, or not enough for `top`.

    Notes
    -----
    The run is simulated 1,000 times with policy "elimination" ("lucb" ends at the same looks):
    centres drawn from the pilots' estimates and standard errors, paths of the scores with the
    variances of the pilots at every look. Shares are thus known to 3 points. Measured against
    runs: docs/selection_plan.md.

    Examples
    --------
    >>> import numpy as np, genbounds as gb
    >>> rng = np.random.default_rng(0)
    >>> pilots = {"a": 1.2 * rng.normal(size=(300, 4)), "b": 1.5 * rng.normal(size=(300, 4))}
    >>> gb.select.plan(pilots, gb.Moments(np.zeros(4), np.eye(4))).feasible
    True
    """
    spec = metric_spec(metric)
    spec.check_growing("planning")
    check_line_up(pilots, top)
    check_power(power)
    with calling("real", "reference"):
        prepared = prepare_all(spec, pilots, reference, options)
    return plan_selection(
        estimate_each(spec, prepared, pilots),
        pilots,
        prepared,
        confidence=confidence,
        power=power,
        top=top,
        tolerance=tolerance,
        limit=limit,
        seed=seed,
    )


def check_line_up(pilots: Mapping[str, Any], top: int) -> None:
    """Check that there are models to choose between."""
    given: object = pilots  # callers are not type-checked
    if not isinstance(given, Mapping) or len(given) <= check_count("top", top):
        given = len(given) if isinstance(given, Mapping) else type(given).__name__
        raise InputError(
            f"must map the names of more than {top} models to samples; got {given}.",
            argument="pilots",
        )


def plan_selection(
    estimates: Mapping[str, Estimate],
    pilots: Mapping[str, Any],
    prepared: Prepared,
    *,
    confidence: float,
    power: float = 0.8,
    top: int = 1,
    tolerance: float = 0.0,
    limit: int | None = None,
    seed: int = 0,
) -> SelectionPlan:
    """Plan from the estimates of the pilots; see `plan`."""
    _check_sampled(estimates)
    check_confidence("confidence", confidence)
    reach = math.inf if limit is None else check_count("limit", limit, minimum=2)
    columns = max(x.d if isinstance(x, Moments) else np.shape(x)[1] for x in pilots.values())
    first = choose_first_look(prepared, columns, [reach])
    most = max(SAMPLES_PER_ARM, 4 * first) if limit is None else limit
    sizes = look_sizes(first, most)
    names = list(estimates)
    error = (1.0 - confidence) / (top * (len(names) - top))
    runs = foresee(
        list(estimates.values()),
        sizes,
        critical=critical_value(error, sizes, order=2),
        top=top,
        tolerance=check_not_negative("tolerance", tolerance),
        rng=np.random.default_rng(seed),
    )
    totals = np.where(runs.certified, runs.drawn.sum(axis=1), math.inf)
    budget, median = (
        None if math.isinf(total) else int(total)
        for total in np.quantile(totals, (power, 0.5), method="higher")
    )
    order = sorted(names, key=lambda name: estimates[name].loss)
    short = limit is None and earliest_look(prepared, columns) < first
    return SelectionPlan(
        budget=budget,
        feasible=budget is not None,
        median=median,
        certified=float(runs.certified.mean()),
        ended={
            "certified": float(runs.certified.mean()),
            "reference": float(runs.hopeless.mean()),
            "limit": float((~runs.certified & ~runs.hopeless).mean()),
        },
        samples=dict(zip(names, np.median(runs.drawn, axis=0).astype(int).tolist(), strict=True)),
        scores={name: estimates[name].score(confidence) for name in order},
        best=tuple(order[:top]),
        confidence=confidence,
        power=power,
        tolerance=tolerance,
        first_look=first,
        limit=most,
        metric=prepared.name,
        warnings=_warnings(estimates, *order[top - 1 : top + 1]),
        assumptions=_assumptions(first, short=short),
    )


def _check_sampled(estimates: Mapping[str, Estimate]) -> None:
    """Refuse pilots of which only exact moments are known."""
    for name, estimate in estimates.items():
        if estimate.n is None:
            raise InputError(
                f"{shown(name)} is given by exact moments, which have no sampling error: pass "
                "samples.",
                argument="pilots",
            )


def _warnings(estimates: Mapping[str, Estimate], best: str, rival: str) -> tuple[Diagnostic, ...]:
    """Return what the pilots warn of, unreliable first; `rival`: the best that is not named."""
    warnings = dict.fromkeys(
        w.of(name) for name, pilot in estimates.items() for w in pilot.warnings
    )
    warnings |= dict.fromkeys(shared_rows({k: x.sample.row_ids for k, x in estimates.items()}))
    warnings |= dict.fromkeys(from_few(estimates.values()))
    warnings |= dict.fromkeys(_unseen_gap(estimates, best, rival))
    return tuple(sorted(warnings, key=lambda warning: warning.severity != "unreliable"))


def _assumptions(first: int, *, short: bool) -> tuple[str, ...]:
    """Say what the plan assumes; `short`: where files are short, the first look comes earlier."""
    assumed = (
        "the run draws its samples as those of the pilots were drawn, but new ones",
        "the scores of the pilots are normal about the true ones, with their standard errors",
    )
    if not short:
        return assumed
    return (
        *assumed,
        f"each model can give the {number(first)} samples at which it is scored first; "
        "where one cannot (a short file), all are scored earlier: set the limit",
    )


def _unseen_gap(estimates: Mapping[str, Estimate], best: str, rival: str) -> tuple[Diagnostic, ...]:
    """Warn where the pilots do not see the gap that decides how long the run is.

    Noise then makes up most of the gaps that runs are simulated with, and true ones are smaller.
    """
    winner, loser = estimates[best], estimates[rival]
    noise = math.sqrt(winner.sample.variance + loser.sample.variance)
    if loser.loss - winner.loss >= SEEN * noise:
        return ()
    return (warn_of("pilots-too-close", best=shown(best), rival=shown(rival)),)
