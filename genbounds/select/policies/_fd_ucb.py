"""FD-UCB (M25) and its naive form: plug-in distance minus the bonus of the catalogue."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np

from genbounds.estimators import Prepared, RunningFrechet
from genbounds.select._state import GROWTH, Refreshed, State
from genbounds.select.policies._catalogue import CONSTANTS, mean_part, statement
from genbounds.select.policies._norms import Norms
from genbounds.select.policies._policy import IndexPolicy, check_metric, check_positive
from genbounds.validation import InputError, check_choice, check_count, check_not_negative

KAPPA_GAUSSIAN = math.sqrt(8.0 / 3.0)
"""ψ2-norm of a standard normal variable: the κ of M25 Lemma 6 for Gaussian features."""

HALF_PRECISION = 1e-3
"""By how much rounding may have lengthened a row that was normalised."""


def fd_bonus(
    norms: Norms,
    *,
    n: int,
    mean_gap: float,
    reference_trace_root: float,
    delta: float,
    kappa: float,
    constants: str = "printed",
) -> float:
    """Bonus of FD-UCB.

    Parameters
    ----------
    norms : Norms
    n : int
        Samples of the arm.
    mean_gap : float
        ``‖μ̂ - μ_r‖``.
    reference_trace_root : float
        ``Tr Σ_r^(1/2)``.
    delta : float
        Failure probability.
    kappa : float
        κ of M25 Lemma 6.
    constants : {"printed", "practical"}
        "printed": M25 (6) with Δ_μ (23) and Δ_Σ (24), "m25.fd-bonus" of the catalogue.
        "practical": the same form with every absolute factor replaced by one, as the authors'
        published program has it (with κ = 1).

    Returns
    -------
    float
        In the unit of FD; infinite where the covariance has no spread yet.
    """
    if not norms.operator > 0.0:
        return math.inf
    practical = constants == "practical"
    quantities = {
        "n": n,
        "delta": delta,
        "sample_mean_gap": mean_gap,
        "reference_root_trace": reference_trace_root,
        "trace": norms.trace,
        "trace_square": norms.trace_of_square,
        "operator": norms.operator,
        "effective_rank": norms.trace / norms.operator,
        "kappa": kappa,
    }
    squared = mean_part("m25.fd-bonus", "m25.mean-norm", practical=practical).width(**quantities)
    return _bonus("m25.fd-bonus", math.sqrt(float(squared)), quantities, practical)


def bounded_bonus(
    radius: float,
    *,
    n: int,
    d: int,
    mean_gap: float,
    reference_trace_root: float,
    delta: float,
    kappa: float,
    constants: str = "printed",
) -> float:
    """Bonus of FD-UCB for features of a known largest norm: M25 Remark 1, Theorem 5.

    Tr Σ and ‖Σ‖ stand at the square of `radius`, which neither can exceed; ``‖Σ‖ sqrt(4 r(Σ) + …)``
    grows with both, so that the effective rank is 1 there. `d` is the number of features; the
    rest is that of `fd_bonus`.
    """
    practical = constants == "practical"
    quantities = {
        "n": n,
        "d": d,
        "delta": delta,
        "sample_mean_gap": mean_gap,
        "reference_root_trace": reference_trace_root,
        "radius": radius,
        "trace": radius**2,
        "operator": radius**2,
        "effective_rank": 1.0,
        "kappa": kappa,
    }
    name = "m25.fd-bounded-bonus"
    mean = mean_part(name, "m25.bounded-mean-norm", practical=practical).width(**quantities)
    return _bonus(name, float(mean), quantities, practical)


def _bonus(name: str, mean_error: float, quantities: dict[str, float], practical: bool) -> float:
    bonus = float(statement(name, practical=practical).width(**quantities))
    if practical:
        # The program has one also for the 2 of 2Δ_μ(Δ_μ + ‖μ̂ - μ_r‖), which is no constant of the
        # catalogue but part of the formula: one half of that term goes.
        bonus -= mean_error * (mean_error + quantities["sample_mean_gap"])
    return bonus


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceSpectrum:
    """Tr Σ_r^(1/2) and ‖Σ_r‖ of a reference."""

    trace_root: float
    operator: float

    @classmethod
    def of(cls, state: State) -> ReferenceSpectrum:
        """Decompose the reference of a run at the first call, remember it for the others."""
        memory = state.memory(ReferenceMemory)
        if memory.spectrum is None:
            assert state.reference is not None  # `check_metric` has seen to it
            eigenvalues = np.linalg.eigvalsh(state.reference.cov)
            memory.spectrum = cls(
                trace_root=float(np.sqrt(np.clip(eigenvalues, 0.0, None)).sum()),
                operator=float(eigenvalues[-1]),
            )
        return memory.spectrum


@dataclass(slots=True)
class ReferenceMemory:
    """The spectrum of a run's reference, once it is wanted."""

    spectrum: ReferenceSpectrum | None = None


@dataclass(slots=True)
class NormsMemory:
    """Norms of every arm's covariance."""

    norms: Refreshed[Norms] = field(default_factory=Refreshed)


def running_distance(state: State, arm: int) -> RunningFrechet | None:
    """Return the running distance of an arm that has two rows."""
    score = state.running(arm)
    if score is None or score.n < 2:
        return None
    assert isinstance(score, RunningFrechet)  # `check_metric` has seen to it
    return score


@dataclass(frozen=True, slots=True, kw_only=True)
class FdUcb(IndexPolicy):
    """FD-UCB: M25 Algorithm 1.

    Attributes
    ----------
    constants : {"practical", "printed"}
        See `fd_bonus`.
    kappa : float or None
        None: 1 with practical, sqrt(8/3) (Gaussian features) with printed constants.
    threshold : float or None
        M of the thresholded covariance (`Norms.of_sample`); None for the plain sample covariance.
    radius : float or None
        Largest norm that a row of features can have, where it is known, as 1 for normalised
        embeddings: the bonus of M25 Theorem 5 (`m25.fd-bounded-bonus`), with nothing estimated but
        ``‖μ̂ - μ_r‖``. An arm with a longer row is set aside. None: the bonus (6).
    refresh : float
        The norms are estimated anew when the sample has grown by this share of itself; 0: at every
        step, as the paper has it.
    burn_in : int
        Samples of every arm before the first choice, in whole batches; 0 (as in the paper's
        experiments): one batch.
    as_published : bool
        Algorithm 1 line by line: printed constants, no threshold, norms at every step, divisor n,
        and no score of the burn-in, so that each arm draws one batch more before the first choice,
        and T is the number of steps after it.

    Raises
    ------
    InputError
        If an option is not legal, or `as_published` comes with another one of those that it sets.

    Notes
    -----
    With printed constants δ is divided by the number of steps, as Algorithm 1 says. n in the bonus
    is always the present one. A known `radius` says nothing of κ, nor whether
    n ≥ 4 r(Σ) + log(3/δ), as the theorem asks.
    """

    PUBLISHED: ClassVar[dict[str, Any]] = {"constants": "printed", "threshold": None, "refresh": 0}

    name = "fd-ucb"
    constants: str = "practical"
    kappa: float | None = None
    threshold: float | None = 2.0
    radius: float | None = None
    refresh: float = GROWTH
    burn_in: int = 0
    as_published: bool = False

    def __post_init__(self) -> None:
        for option in fields(self) if self.as_published else ():
            given = getattr(self, option.name)
            published = self.PUBLISHED.get(option.name, given)
            if given not in (published, option.default):
                raise InputError(
                    f"is {published} as published: leave it out; got {given}.", argument=option.name
                )
            object.__setattr__(self, option.name, published)
        check_choice("constants", self.constants, CONSTANTS)
        check_count("burn_in", self.burn_in, minimum=0)
        check_not_negative("refresh", self.refresh)
        for name in ("kappa", "threshold", "radius"):
            value = getattr(self, name)
            if value is not None:
                check_positive(name, value, "or None")

    def check(self, metric: Prepared) -> None:
        """Refuse every metric but FD."""
        check_metric(self.name, metric, ("fd",))

    def index(self, state: State, arm: int) -> float:
        """Plug-in FD minus the bonus."""
        score = running_distance(state, arm)
        if score is None or (self.as_published and score.n - state.batch < self.burn_in):
            return -math.inf
        loss, steps = score.loss(), state.horizon
        if self.as_published:  # covariances have divisor n there; burn-in is no step
            n = score.n
            loss += 2.0 * score.root * (1.0 - math.sqrt(1.0 - 1.0 / n)) - score.trace / n
            steps = max(1, steps - state.n.size * math.ceil(self.burn_in / state.batch))
        kappa = self.kappa
        if kappa is None:
            kappa = 1.0 if self.constants == "practical" else KAPPA_GAUSSIAN
        given: dict[str, Any] = {
            "n": score.n,
            "mean_gap": score.mean_gap,
            "reference_trace_root": ReferenceSpectrum.of(state).trace_root,
            "delta": state.error / (steps if self.constants == "printed" else 1),
            "kappa": kappa,
            "constants": self.constants,
        }
        if self.radius is None:
            return loss - fd_bonus(self._norms(state, arm), **given)
        longest = float(np.linalg.norm(state.rows[arm], axis=1).max())
        if longest > self.radius * (1.0 + HALF_PRECISION):
            raise InputError(
                f"must be at least the norm of every row; got {self.radius:g}, and a row of norm "
                f"{longest:g}.",
                argument="radius",
            )
        return loss - bounded_bonus(self.radius, d=score.mean.size, **given)

    def _norms(self, state: State, arm: int) -> Norms:
        rows = state.rows[arm]
        _, norms = state.memory(NormsMemory).norms.of(
            arm,
            len(rows),
            lambda: Norms.of_sample(rows, threshold=self.threshold),
            growth=self.refresh,
        )
        return norms


class NaiveFdUcb(FdUcb):
    """M25 App. C.4: the same bonus with dimension in place of data."""

    __slots__ = ()
    name = "naive-ucb"

    def _norms(self, state: State, arm: int) -> Norms:
        return Norms.without_data(state.rows[arm].shape[1])
