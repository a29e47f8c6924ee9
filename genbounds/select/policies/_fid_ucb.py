"""FID-UCB (O24) and its naive form: plug-in distance minus the bonus of the catalogue."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from genbounds.estimators import RunningFrechet
from genbounds.select._state import GROWTH, Refreshed, State
from genbounds.select.policies._catalogue import CONSTANTS, mean_part, statement
from genbounds.select.policies._fd_ucb import ReferenceSpectrum, running_distance
from genbounds.select.policies._norms import EntryNorms
from genbounds.select.policies._policy import IndexPolicy, check_positive, set_as_published
from genbounds.validation import check_choice, check_not_negative

ESTIMATES = ("appendix", "sample")


@dataclass(frozen=True, slots=True, kw_only=True)
class FidUcb(IndexPolicy):
    """FID-UCB: O24 Algorithm 1.

    Attributes
    ----------
    constants : {"practical", "printed"}
        "printed": the bonus O24 (7), δ undivided as in Algorithm 1. "practical": every factor and
        log-argument of it replaced by one, as `FdUcb` has it.
    estimates : {"appendix", "sample"}
        What stands for the unknown norms of the arm: the estimates of O24 App. D.5, or the norms of
        the sample covariance and the sample's own ``‖μ̂ - μ_r‖``.
    truncation : float
        τ of App. D.5 in units of ``‖Σ_r‖``; there 0.05 to 0.1.
    assumed_gap : float
        Constant in place of ``‖μ - μ_r‖`` (App. D.5: "e.g., 0.5").
    operator_slack, trace_factor : float
        The constants of the O(·) of App. D.5 (`EntryNorms.truncated`).
    refresh : float
        The norms are estimated anew when the sample has grown by this share of itself; 0: at every
        step, as the paper has it.
    burn_in : int
        Samples of every arm before the first choice; 0 (as in the paper): one batch.
    as_published : bool
        Algorithm 1 line by line: printed constants, norms of the sample at every step, divisor n.

    Raises
    ------
    InputError
        If an option is not legal, or `as_published` comes with another one of those that it sets.

    Notes
    -----
    ``‖μ - μ̂‖`` in C_n is unknown to a user; its printed bound (22) stands for it.
    """

    PUBLISHED: ClassVar[dict[str, Any]] = {
        "constants": "printed",
        "estimates": "sample",
        "refresh": 0,
    }

    name = "fid-ucb"
    metrics = ("fd",)
    constants: str = "practical"
    estimates: str = "appendix"
    truncation: float = 0.05
    assumed_gap: float = 0.5
    operator_slack: float = 1.0
    trace_factor: float = 1.0
    refresh: float = GROWTH
    burn_in: int = 0
    as_published: bool = False

    def __post_init__(self) -> None:
        if self.as_published:
            set_as_published(self, self.PUBLISHED)
        check_choice("constants", self.constants, CONSTANTS)
        check_choice("estimates", self.estimates, ESTIMATES)
        IndexPolicy.__post_init__(self)
        check_not_negative("refresh", self.refresh)
        for name in ("truncation", "assumed_gap", "trace_factor"):
            check_positive(name, getattr(self, name))
        check_not_negative("operator_slack", self.operator_slack)

    def index(self, state: State, arm: int) -> float:
        """Plug-in FD minus the bonus."""
        score = running_distance(state, arm)
        if score is None:
            return -math.inf
        norms = self._norms(state, arm)
        if not norms.operator > 0.0:
            return -math.inf
        return score.loss(divisor_n=self.as_published) - self._bonus(state, score, norms)

    def _bonus(self, state: State, score: RunningFrechet, norms: EntryNorms) -> float:
        return self._width("o24.fd-bonus", "o24.mean-norm", state, score, norms)

    def _width(
        self, bonus: str, mean: str, state: State, score: RunningFrechet, norms: EntryNorms
    ) -> float:
        practical = self.constants == "practical"
        quantities = {
            "n": score.n,
            "delta": state.error,
            "d": score.mean.size,
            "absolute_sum": norms.absolute_sum,
            "max_variance": norms.max_variance,
            "mean_gap": self.assumed_gap if self.estimates == "appendix" else score.mean_gap,
            "mean_deviation": norms.mean_deviation,
            "reference_root_trace": ReferenceSpectrum.of(state).trace_root,
            "trace": norms.trace,
            "operator": norms.operator,
            "effective_rank": norms.trace / norms.operator,
        }
        mean_error = mean_part(bonus, mean, practical=practical).width(**quantities)
        bound = statement(bonus, practical=practical)
        return float(bound.width(**quantities, mean_error_norm=mean_error))

    def _norms(self, state: State, arm: int) -> EntryNorms:
        known: Refreshed[EntryNorms] = state.once(EntryNorms, Refreshed)
        n = len(state.rows[arm])
        return known.of(arm, n, lambda: self._estimate(state, arm), growth=self.refresh)[1]

    def _estimate(self, state: State, arm: int) -> EntryNorms:
        rows = state.rows[arm]
        if self.estimates == "sample":
            return EntryNorms.of_sample(rows)
        assert state.reference is not None  # `check` has seen to it
        return EntryNorms.truncated(
            rows,
            reference_cov=state.reference.cov,
            cut=self.truncation * ReferenceSpectrum.of(state).operator,
            operator_slack=self.operator_slack,
            trace_factor=self.trace_factor,
            delta=state.error,
        )


class NaiveFidUcb(FidUcb):
    """O24 (32): the dimension in place of ℐ and of the effective rank."""

    __slots__ = ()
    name = "naive-ucb"

    def _bonus(self, state: State, score: RunningFrechet, norms: EntryNorms) -> float:
        return self._width("o24.fd-naive-bonus", "o24.naive-mean-norm", state, score, norms)
