"""FD-UCB (M25) and its naive form: plug-in distance minus the bonus of the catalogue."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from genbounds.estimators import RunningFrechet
from genbounds.select._state import GROWTH, Refreshed, State
from genbounds.select.policies._catalogue import CONSTANTS, mean_part, statement
from genbounds.select.policies._norms import Norms
from genbounds.select.policies._policy import IndexPolicy, check_positive, set_as_published
from genbounds.validation import InputError, check_choice, check_not_negative

MEANS = {"m25.fd-bonus": "m25.mean-norm", "m25.fd-bounded-bonus": "m25.bounded-mean-norm"}
"""The statement on ‖μ̂ - μ‖ that each bonus rests on."""

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
    return _bonus(
        "m25.fd-bonus",
        constants,
        norms,
        n=n,
        sample_mean_gap=mean_gap,
        reference_root_trace=reference_trace_root,
        delta=delta,
        kappa=kappa,
    )


def _bonus(name: str, constants: str, norms: Norms, **quantities: float) -> float:
    """Return a bonus of the catalogue, infinite where the covariance has no spread yet."""
    if not norms.operator > 0.0:
        return math.inf
    quantities |= {
        "trace": norms.trace,
        "trace_square": norms.trace_of_square,
        "operator": norms.operator,
        "effective_rank": norms.trace / norms.operator,
    }
    if constants == "printed":
        return float(statement(name).width(**quantities))
    bonus = float(statement(name, practical=True).width(**quantities))
    error = float(mean_part(name, MEANS[name], practical=True).width(**quantities))
    if name == "m25.fd-bonus":  # its statement on the mean is about the square
        error = math.sqrt(error)
    # The program has one also for the 2 of 2Δ_μ(Δ_μ + ‖μ̂ - μ_r‖), which is no constant of the
    # catalogue but part of the formula: one half of that term goes.
    return bonus - error * (error + quantities["sample_mean_gap"])


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceSpectrum:
    """Tr Σ_r^(1/2) and ‖Σ_r‖ of a reference."""

    trace_root: float
    operator: float

    @classmethod
    def of(cls, state: State) -> ReferenceSpectrum:
        """Decompose the reference of a run at the first call, remember it for the others."""
        assert state.reference is not None  # `Policy.check` has seen to it
        cov = state.reference.cov

        def decomposed() -> ReferenceSpectrum:
            eigenvalues = np.linalg.eigvalsh(cov)
            return cls(
                trace_root=float(np.sqrt(np.clip(eigenvalues, 0.0, None)).sum()),
                operator=float(eigenvalues[-1]),
            )

        return state.once(cls, decomposed)


def running_distance(state: State, arm: int) -> RunningFrechet | None:
    """Return the running distance of an arm that has two rows."""
    score = state.running(arm)
    if score is None or score.n < 2:
        return None
    assert isinstance(score, RunningFrechet)  # `Policy.check` has seen to it
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
    metrics = ("fd",)
    constants: str = "practical"
    kappa: float | None = None
    threshold: float | None = 2.0
    radius: float | None = None
    refresh: float = GROWTH
    burn_in: int = 0
    as_published: bool = False

    def __post_init__(self) -> None:
        if self.as_published:
            set_as_published(self, self.PUBLISHED)
        check_choice("constants", self.constants, CONSTANTS)
        IndexPolicy.__post_init__(self)
        check_not_negative("refresh", self.refresh)
        for name in ("kappa", "threshold", "radius"):
            value = getattr(self, name)
            if value is not None:
                check_positive(name, value, "or None")

    def index(self, state: State, arm: int) -> float:
        """Plug-in FD minus the bonus."""
        score = running_distance(state, arm)
        if score is None or (self.as_published and score.n - state.batch < self.burn_in):
            return -math.inf
        loss, steps = score.loss(divisor_n=self.as_published), state.horizon
        if self.as_published:  # burn-in is no step
            steps = max(1, steps - state.n.size * math.ceil(self.burn_in / state.batch))
        kappa = self.kappa
        if kappa is None:
            kappa = 1.0 if self.constants == "practical" else KAPPA_GAUSSIAN
        given: dict[str, float] = {
            "n": score.n,
            "sample_mean_gap": score.mean_gap,
            "reference_root_trace": ReferenceSpectrum.of(state).trace_root,
            "delta": state.error / (steps if self.constants == "printed" else 1),
            "kappa": kappa,
        }
        if self.radius is None:
            return loss - _bonus("m25.fd-bonus", self.constants, self._norms(state, arm), **given)
        longest = float(np.linalg.norm(state.rows[arm], axis=1).max())
        if longest > self.radius * (1.0 + HALF_PRECISION):
            raise InputError(
                f"must be at least the norm of every row; got {self.radius:g}, and a row of norm "
                f"{longest:g}.",
                argument="radius",
            )
        # M25 Remark 1: Tr Σ and ‖Σ‖ stand at C², which neither can exceed; the bonus grows in both.
        square = self.radius**2
        most = Norms(trace=square, trace_of_square=square**2, operator=square)
        given |= {"d": score.mean.size, "radius": self.radius}
        return loss - _bonus("m25.fd-bounded-bonus", self.constants, most, **given)

    def _norms(self, state: State, arm: int) -> Norms:
        rows = state.rows[arm]
        known: Refreshed[Norms] = state.once(Norms, Refreshed)
        return known.of(
            arm,
            len(rows),
            lambda: Norms.of_sample(rows, threshold=self.threshold),
            growth=self.refresh,
        )[1]


class NaiveFdUcb(FdUcb):
    """M25 App. C.4: the same bonus with dimension in place of data."""

    __slots__ = ()
    name = "naive-ucb"

    def _norms(self, state: State, arm: int) -> Norms:
        return Norms.without_data(state.rows[arm].shape[1])
