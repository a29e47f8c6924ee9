"""How many samples a certificate will take, from a pilot of every model.

Runs are simulated as they may come. A run compares the scores of arms at the planned looks. Those
scores are their arm's true one, the noise of the arm's own rows, and that of the reference, which
the pilots have in common with the run. So paths of the scores are simulated about the pilots'
estimates, and the comparisons of `Certificate` are made on them, without a single row being drawn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from genbounds import estimators, validation
from genbounds._tables import Line, Warned
from genbounds._text import number, percent, shown
from genbounds.diagnostics import warn_of
from genbounds.estimators import Estimate, Moments, Prepared, difference, shared_rows
from genbounds.results import Diagnostic, Score, hedged, titled
from genbounds.select import _certificate as proof
from genbounds.select._certificate import Bools, Certificate, Evidence
from genbounds.select._looks import choose_first_look, earliest_look, look_sizes
from genbounds.select._loop import SAMPLES_PER_ARM
from genbounds.validation import Float, InputError

RUNS = 1000

ASSUMED = (
    "the run draws its samples as those of the pilots were drawn, but new ones",
    "the scores of the pilots are normal about the true ones, with their standard errors",
)

SEEN = 2.0
"""Standard errors by which the pilots of the last winner and the first loser should differ."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class SelectionPlan(Warned):
    """How many samples `run` will draw until the best model is certified.

    Attributes
    ----------
    budget : int or None
        Samples of all models together that suffice with probability `power`; None where the best
        is certified with a smaller probability, whatever the budget.
    feasible : bool
        Whether there is such a budget.
    median : int or None
        Samples that suffice with probability 50 %; None where no number does.
    certified : float
        Probability that a run without a budget ends with a certificate.
    ended : dict of str to float
        Probability of every reason to end: "certified", "reference" (the reference is too small),
        "limit" (samples of a model).
    samples : dict of str to int
        Median number of samples of each model.
    scores : dict of str to Score
        Of the pilots, best first, each with its own interval at `confidence`.
    best : tuple of str
        Models with the best pilots, as many as asked for.
    confidence, power, tolerance : float
        As asked for.
    first_look, limit : int
        Samples of a model at which it is scored first, and at most.
    metric : str
    warnings : tuple of Diagnostic
        Of the pilots.
    assumptions : tuple of str
    """

    _json = "target * reliable"

    _names = "Model"

    target: ClassVar = "best"
    budget: int | None
    feasible: bool
    median: int | None
    certified: float
    ended: dict[str, float]
    samples: dict[str, int]
    scores: dict[str, Score]
    best: tuple[str, ...]
    confidence: float
    power: float
    tolerance: float
    first_look: int
    limit: int
    metric: str
    warnings: tuple[Diagnostic, ...] = ()
    assumptions: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the answer as one line."""
        return hedged(self._answer(), self.warnings)

    def _answer(self) -> str:
        what = f"the best {len(self.best)}" if len(self.best) > 1 else "the best"
        of = f"{what} of {len(self.samples)} models, certified at {percent(self.confidence)}"
        if self.budget is not None:
            return (
                f"{of}: {number(self.budget)} samples in all suffice with probability "
                f"{percent(self.power)} (median {number(self.median)})"
            )
        reasons = {
            "reference": "the reference is too small",
            "limit": f"{number(self.limit)} samples of a model are not enough",
        }
        otherwise = [
            f"{reason} ({percent(round(self.ended[end], 3))})"
            for end, reason in reasons.items()
            if self.ended[end] > 0.0
        ]
        return (
            f"{of}: with probability {percent(round(self.certified, 3))} only; otherwise "
            f"{', or '.join(otherwise)}"
        )

    def _lines(self) -> list[Line]:
        return [
            Line.of(name, score, samples=self.samples[name]) for name, score in self.scores.items()
        ]

    def _caption(self) -> str:
        title = titled(self.scores.values(), self.metric)
        at = f"{percent(self.confidence)} interval"
        return f"{title} of the pilots, {at}, and samples of each model until it is out"


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
    spec = estimators.metric_spec(metric)
    spec.check_growing("planning")
    given: object = pilots  # callers are not type-checked
    if not isinstance(given, Mapping) or len(given) <= validation.check_count("top", top):
        given = len(given) if isinstance(given, Mapping) else type(given).__name__
        raise InputError(
            f"must map the names of more than {top} models to samples; got {given}.",
            argument="pilots",
        )
    validation.check_power(power)
    with validation.calling("real", "reference"):
        prepared = estimators.prepare_all(spec, pilots, reference, options)
    estimates = estimators.estimate_each(spec, prepared, pilots)
    asked = {"confidence": confidence, "power": power, "tolerance": tolerance}
    return plan_selection(estimates, pilots, prepared, **asked, top=top, limit=limit, seed=seed)


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
    validation.check_confidence("confidence", confidence)
    validation.check_not_negative("tolerance", tolerance)
    reach = math.inf if limit is None else validation.check_count("limit", limit, minimum=2)
    columns = max(x.d if isinstance(x, Moments) else np.shape(x)[1] for x in pilots.values())
    first = choose_first_look(prepared, columns, [reach])
    most = max(SAMPLES_PER_ARM, 4 * first) if limit is None else limit
    names = list(estimates)
    sizes, error = look_sizes(first, most), 1.0 - confidence
    certificate = Certificate(len(names), sizes, error=error, top=top, tolerance=tolerance)
    rng = np.random.default_rng(seed)
    drawn, certified, hopeless = _foresee(list(estimates.values()), certificate, rng)
    totals = np.where(certified, drawn.sum(axis=1), math.inf)
    budget, median = (
        None if math.isinf(total) else int(total)
        for total in np.quantile(totals, (power, 0.5), method="higher")
    )
    order = sorted(names, key=lambda name: estimates[name].loss)
    assumed: tuple[str, ...] = ASSUMED
    if limit is None and earliest_look(prepared, columns) < first:
        assumed += (
            f"each model can give the {number(first)} samples at which it is scored first; where "
            "one cannot (a short file), all are scored earlier: set the limit",
        )
    ends = {"certified": certified, "reference": hopeless, "limit": ~certified & ~hopeless}
    ended = {end: float(runs.mean()) for end, runs in ends.items()}
    return SelectionPlan(
        budget=budget,
        feasible=budget is not None,
        median=median,
        certified=ended["certified"],
        ended=ended,
        samples=dict(zip(names, np.median(drawn, axis=0).astype(int).tolist(), strict=True)),
        scores={name: estimates[name].score(confidence) for name in order},
        best=tuple(order[:top]),
        confidence=confidence,
        power=power,
        tolerance=tolerance,
        first_look=first,
        limit=most,
        metric=prepared.name,
        warnings=_warnings(estimates, *order[top - 1 : top + 1]),
        assumptions=assumed,
    )


def _check_sampled(estimates: Mapping[str, Estimate]) -> None:
    """Refuse pilots of which only exact moments are known."""
    exact = [shown(name) for name, estimate in estimates.items() if estimate.n is None]
    if exact:
        whose = f"{exact[0]} is given by exact moments, which have no sampling error"
        raise InputError(f"{whose}: pass samples.", argument="pilots")


def _warnings(estimates: Mapping[str, Estimate], best: str, rival: str) -> tuple[Diagnostic, ...]:
    """Return what the pilots warn of, unreliable first; `rival`: the best that is not named."""
    warnings = [w.of(name) for name, pilot in estimates.items() for w in pilot.warnings]
    warnings += shared_rows({name: pilot.sample.row_ids for name, pilot in estimates.items()})
    warnings += estimators.from_few(estimates.values())
    winner, loser = estimates[best], estimates[rival]
    noise = math.sqrt(winner.sample.variance + loser.sample.variance)
    if loser.loss - winner.loss < SEEN * noise:
        # Noise then makes up most of the gaps that runs are simulated with; true ones are smaller.
        warnings.append(warn_of("pilots-too-close", best=shown(best), rival=shown(rival)))
    return tuple(
        sorted(dict.fromkeys(warnings), key=lambda warning: warning.severity != "unreliable")
    )


# --- runs as they may come ------------------------------------------------------------------------


def _foresee(
    pilots: Sequence[Estimate], certificate: Certificate, rng: np.random.Generator
) -> tuple[Float, Bools, Bools]:
    """Simulate runs with policy "elimination".

    Parameters
    ----------
    pilots : sequence of Estimate
        Of the K arms, against the reference of the run.
    certificate : Certificate
        An empty one: sizes of the looks, critical value of each comparison, and what is asked.
    rng : Generator

    Returns
    -------
    drawn : ndarray of int, shape (runs, K)
        Samples of each arm.
    certified, hopeless : ndarray of bool, shape (runs,)
        Whether the run ended with a certificate, or because the reference is too small.
    """
    sizes, critical, tolerance = certificate.sizes, certificate.critical, certificate.tolerance
    arms, n = len(pilots), np.array(sizes, dtype=float)[:, None]
    linear, quadratic = np.array([_parts(pilot) for pilot in pilots]).T
    own = linear / n + quadratic / n**2
    losses = _paths(pilots, n, linear, quadratic, rng)
    looks = [Evidence.of(pilot) for pilot in pilots]
    # At each look: leads that are proof for the arm of the row, standard errors of the reference.
    reach = np.full((len(sizes), arms, arms), math.inf)
    reference = np.zeros(reach.shape)
    for a, b in combinations(range(arms), 2):
        proofs = np.array(_proofs(looks[a], looks[b], sizes, critical))
        reach[:, a, b], reach[:, b, a], reference[:, a, b] = proofs.T
    reference += reference.swapaxes(1, 2)
    drawn = np.zeros((RUNS, arms))
    racing = np.ones((RUNS, arms), dtype=bool)
    direct, near, closed = np.zeros((3, RUNS, arms, arms), dtype=bool)
    certified, hopeless = np.zeros((2, RUNS), dtype=bool)
    for level, size in enumerate(sizes):
        drawn[racing] = size
        loss = losses[:, level]
        both = racing[:, :, None] & racing[:, None, :]
        lead = loss[:, None, :] - loss[:, :, None]  # positive: the arm of the row is better
        direct |= both & (lead > reach[level])
        if tolerance > 0.0:
            near |= both & (lead + tolerance > reach[level])
        # What `Certificate` calls hopeless: the reference's own noise is larger than any gap.
        apart = np.sqrt(own[level][:, None] + own[level][None, :])
        widest = np.abs(lead) + tolerance + critical * apart
        closed = np.where(both, widest < critical * reference[level], closed)
        beats = proof.transitive(direct)
        running = racing.any(axis=1)
        done = running & proof.leaders(beats | near, loss, top=certificate.top)[1]
        open_ = proof.undecided(beats, top=certificate.top, arms=arms)
        settled = beats | beats.swapaxes(1, 2) | closed | np.eye(arms, dtype=bool)
        rivals = open_[:, :, None] & open_[:, None, :] & ~settled
        racing = rivals.any(axis=2) & (running & ~done)[:, None]
        certified |= done
        hopeless |= running & ~done & ~racing.any(axis=1)
    return drawn, certified, hopeless


def _parts(estimate: Estimate) -> tuple[float, float]:
    """Coefficients a, b of the own variance a/n + b/n² at n samples, for the given reference."""
    own = estimate.sample
    assert own.n is not None
    quadratic = min(own.quadratic_variance, own.variance)
    return (own.variance - quadratic) * own.n, quadratic * own.n**2


def _paths(
    pilots: Sequence[Estimate], n: Float, linear: Float, quadratic: Float, rng: np.random.Generator
) -> Float:
    """Losses at the looks, shape (runs, looks, K).

    Both parts of the noise are sums with independent steps, divided by n and by n².
    """
    shape = (RUNS, len(n), len(pilots))
    first = np.sqrt(np.diff(n, axis=0, prepend=0.0)) * rng.standard_normal(shape)
    second = np.sqrt(np.diff(n**2, axis=0, prepend=0.0)) * rng.standard_normal(shape)
    noise = np.sqrt(linear) * first.cumsum(axis=1) / n
    noise += np.sqrt(quadratic) * second.cumsum(axis=1) / n**2
    spread = np.sqrt([pilot.sample.variance for pilot in pilots])
    centres = np.array([pilot.loss for pilot in pilots])
    losses: Float = centres + spread * rng.standard_normal((RUNS, 1, len(pilots))) + noise
    return losses


def _proofs(
    first: Evidence, second: Evidence, sizes: tuple[int, ...], critical: float
) -> list[tuple[float, float, float]]:
    """Return the leads that are proof for either arm at each look, and the reference's std. error.

    The latter is 0 where it is not known how much of the noise both share.
    """
    one, two = first.estimate, second.estimate
    n, m = one.sample.n, two.sample.n
    assert n is not None
    assert m is not None
    sign = -1.0 if one.higher_is_better else 1.0
    shared = proof.shared_third(first, second)
    variance = difference(one, two).stderr ** 2 - one.sample.variance - two.sample.variance
    common = max(variance, 0.0)
    mixed = min(one.reference.mixed_variance + two.reference.mixed_variance, common)
    found = []
    for size in sizes:
        own = [a / size + b / size**2 for a, b in map(_parts, (one, two))]
        reference = common - mixed * (1.0 - max(n, m) / size)
        stderr = math.sqrt(sum(own) + reference)
        if not stderr > 0.0:
            found.append((math.inf, math.inf, 0.0))  # without any noise there is no test
            continue
        near, far = (n / size) ** 2, (m / size) ** 2
        third = sign * (shared + second.third * far - first.third * near)
        curvature = sign * (two.sample.curvature * far - one.sample.curvature * near)
        degrees = estimators.welch_degrees_of_freedom(
            (own[0], one.sample.degrees_of_freedom * size / n),
            (own[1], two.sample.degrees_of_freedom * size / m),
            (reference, min(one.reference.degrees_of_freedom, two.reference.degrees_of_freedom)),
        )
        level = proof.studentised(critical, degrees)
        proofs = proof.leads_that_prove(level, stderr, third=third, curvature=curvature)
        known = first.cancels and second.cancels
        found.append((*proofs, math.sqrt(reference) if known else 0.0))
    return found
