"""FD-UCB (M25), FID-UCB (O24) and the naive forms: plug-in distance minus a bonus."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from genbounds.bounds import Bound, catalog
from genbounds.estimators import Prepared, RunningFrechet
from genbounds.select._norms import EntryNorms, Norms
from genbounds.select._policy import IndexPolicy, State
from genbounds.validation import InputError, check_choice, check_count

CONSTANTS = ("practical", "printed")
ESTIMATES = ("appendix", "sample")

KAPPA_GAUSSIAN = math.sqrt(8.0 / 3.0)
"""ψ2-norm of a standard normal variable: the κ of M25 Lemma 6 for Gaussian features."""

NORMS_GROWTH = 0.1
"""Norms of a covariance are estimated anew when the sample has grown by this part of itself."""

NOT_FACTORS = ("mean_power",)
"""Constants of a bonus that are exponents: the practical form leaves them as they are."""


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
        "printed": M25 (6) with Δ_μ (23) and Δ_Σ (24). "practical": the same form with every
        absolute factor replaced by one, as the authors' published program has it (with κ = 1).

    Returns
    -------
    float
        In the unit of FD; infinite where the covariance has no spread yet.
    """
    if constants == "printed":
        mean_log, cov_log = math.log(6.0 / delta), math.log(3.0 / delta)
        eight, twenty, four, two = 8.0, 20.0, 4.0, 2.0
    else:
        mean_log = cov_log = math.log(1.0 / delta)
        eight = twenty = four = two = 1.0
    if not norms.operator > 0.0:
        return math.inf
    effective_rank = norms.trace / norms.operator
    mean_error_squared = (
        math.sqrt(eight * norms.trace_of_square * mean_log) + eight * norms.operator * mean_log
    ) / n
    mean_error = math.sqrt(mean_error_squared)
    cov_error = (
        twenty * kappa**2 * norms.operator * math.sqrt((four * effective_rank + cov_log) / n)
        + mean_error_squared
    )
    return (
        two * mean_error * (mean_error + mean_gap)
        + reference_trace_root * math.sqrt(eight * cov_error)
        + norms.trace * math.sqrt(eight * mean_log / n)
        + eight * norms.operator * mean_log / n
    )


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
    burn_in : int
        Samples of every arm before the first choice; 0 (as in the paper's experiments): one batch.

    Notes
    -----
    With printed constants δ is divided by the number of steps, as Algorithm 1 says. The norms are
    estimated anew whenever the sample has grown by a tenth; n in the bonus is always the present
    one.
    """

    name = "fd-ucb"
    constants: str = "practical"
    kappa: float | None = None
    threshold: float | None = 2.0
    burn_in: int = 0

    def __post_init__(self) -> None:
        check_choice("constants", self.constants, CONSTANTS)
        check_count("burn_in", self.burn_in, minimum=0)
        for name in ("kappa", "threshold"):
            value = getattr(self, name)
            if value is not None:
                check_positive(name, value, "or None")

    def check(self, metric: Prepared) -> None:
        """Refuse every metric but FD."""
        check_metric(self.name, metric, ("fd",))

    def index(self, state: State, arm: int) -> float:
        """Plug-in FD minus the bonus."""
        score = _score(state, arm)
        if score is None:
            return -math.inf
        kappa = self.kappa
        if kappa is None:
            kappa = 1.0 if self.constants == "practical" else KAPPA_GAUSSIAN
        bonus = fd_bonus(
            self._norms(state, arm),
            n=score.n,
            mean_gap=score.mean_gap,
            reference_trace_root=_trace_root(state),
            delta=state.error / (state.horizon if self.constants == "printed" else 1),
            kappa=kappa,
            constants=self.constants,
        )
        return score.loss() - bonus

    def _norms(self, state: State, arm: int) -> Norms:
        rows = state.rows[arm]
        known = state.memory.get(("norms", arm))
        if known is None or rows.shape[0] - known[0] >= NORMS_GROWTH * known[0]:
            known = rows.shape[0], Norms.of_sample(rows, threshold=self.threshold)
            state.memory["norms", arm] = known
        norms: Norms = known[1]
        return norms


class NaiveFdUcb(FdUcb):
    """M25 App. C.4: the same bonus with dimension in place of data."""

    __slots__ = ()
    name = "naive-ucb"

    def _norms(self, state: State, arm: int) -> Norms:
        return Norms.without_data(state.rows[arm].shape[1])


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
    burn_in : int
        Samples of every arm before the first choice; 0 (as in the paper): one batch.

    Notes
    -----
    ``‖μ - μ̂‖`` in C_n is unknown to a user; its printed bound (22) stands for it. Norms are
    estimated anew whenever the sample has grown by a tenth.
    """

    name = "fid-ucb"
    constants: str = "practical"
    estimates: str = "appendix"
    truncation: float = 0.05
    assumed_gap: float = 0.5
    operator_slack: float = 1.0
    trace_factor: float = 1.0
    burn_in: int = 0

    def __post_init__(self) -> None:
        check_choice("constants", self.constants, CONSTANTS)
        check_choice("estimates", self.estimates, ESTIMATES)
        check_count("burn_in", self.burn_in, minimum=0)
        for name in ("truncation", "assumed_gap", "trace_factor"):
            check_positive(name, getattr(self, name))
        if not (math.isfinite(self.operator_slack) and self.operator_slack >= 0.0):
            raise InputError(
                f"must be a number of at least 0; got {self.operator_slack!r}.",
                argument="operator_slack",
            )

    def check(self, metric: Prepared) -> None:
        """Refuse every metric but FD."""
        check_metric(self.name, metric, ("fd",))

    def index(self, state: State, arm: int) -> float:
        """Plug-in FD minus the bonus."""
        score = _score(state, arm)
        if score is None:
            return -math.inf
        norms = self._norms(state, arm)
        if not norms.operator > 0.0:
            return -math.inf
        return score.loss() - self._bonus(state, score, norms)

    def _bonus(self, state: State, score: RunningFrechet, norms: EntryNorms) -> float:
        return self._width("o24.fd-bonus", state, score, norms)

    def _width(self, bound: str, state: State, score: RunningFrechet, norms: EntryNorms) -> float:
        form, mean_form = _forms(bound, self.constants)
        d = score.mean.size
        common = {"n": score.n, "delta": state.error, "d": d}
        sizes = {"absolute_sum": norms.absolute_sum, "max_variance": norms.max_variance}
        mean_error = mean_form.width(**common, **sizes)
        return float(
            form.width(
                **common,
                **sizes,
                mean_gap=self.assumed_gap if self.estimates == "appendix" else score.mean_gap,
                mean_error_norm=mean_error,
                mean_deviation=norms.mean_deviation,
                reference_root_trace=_trace_root(state),
                trace=norms.trace,
                operator=norms.operator,
                effective_rank=norms.trace / norms.operator,
            )
        )

    def _norms(self, state: State, arm: int) -> EntryNorms:
        rows = state.rows[arm]
        known = state.memory.get(("norms", arm))
        if known is None or rows.shape[0] - known[0] >= NORMS_GROWTH * known[0]:
            known = rows.shape[0], self._estimate(state, arm)
            state.memory["norms", arm] = known
        norms: EntryNorms = known[1]
        return norms

    def _estimate(self, state: State, arm: int) -> EntryNorms:
        rows = state.rows[arm]
        if self.estimates == "sample":
            return EntryNorms.of_sample(rows)
        assert state.reference is not None  # `check` has seen to it
        return EntryNorms.truncated(
            rows,
            reference_cov=state.reference.cov,
            cut=self.truncation * _reference_spectrum(state)[1],
            operator_slack=self.operator_slack,
            trace_factor=self.trace_factor,
            delta=state.error,
        )


class NaiveFidUcb(FidUcb):
    """O24 (32): the dimension in place of ℐ and of the effective rank."""

    __slots__ = ()
    name = "naive-ucb"

    def _bonus(self, state: State, score: RunningFrechet, norms: EntryNorms) -> float:
        return self._width("o24.fd-naive-bonus", state, score, norms)


@lru_cache
def _forms(bound: str, constants: str) -> tuple[Bound, Bound]:
    """Return a bonus of the catalogue, and the bound on ‖μ - μ̂‖ that is part of it.

    As printed, or with every factor and every factor in a logarithm replaced by one.
    """
    printed = catalog()[bound]
    chosen = dict(printed.constants)
    if constants == "practical":
        for name, value in chosen.items():
            if name not in NOT_FACTORS and value != 0.0:
                chosen[name] = 1.0
    mean = catalog()["o24.mean-norm" if bound == "o24.fd-bonus" else "o24.naive-mean-norm"]
    own = {
        name.removeprefix("mean_"): value
        for name, value in chosen.items()
        if name.startswith("mean_")
    }
    return replace(printed, constants=chosen), replace(mean, constants=own)


def check_positive(name: str, value: float, alternative: str = "") -> None:
    """Refuse anything but a positive finite number."""
    if not (math.isfinite(value) and value > 0.0):
        what = " ".join(("a positive number", *filter(None, (alternative,))))
        raise InputError(f"must be {what}; got {value!r}.", argument=name)


def check_metric(policy: str, metric: Prepared, legal: tuple[str, ...]) -> None:
    """Refuse a metric that a policy has no formula for."""
    if metric.name not in legal:
        names = " or ".join(repr(name) for name in legal)
        raise InputError(f"policy {policy!r} needs metric {names}; got {metric.name!r}.")


def _score(state: State, arm: int) -> RunningFrechet | None:
    """Return the running distance of an arm that has two rows."""
    score = state.running(arm)
    if score is None or score.n < 2:
        return None
    assert isinstance(score, RunningFrechet)  # `check` has seen to it
    return score


def _trace_root(state: State) -> float:
    return _reference_spectrum(state)[0]


def _reference_spectrum(state: State) -> tuple[float, float]:
    """Tr Σ_r^(1/2) and ‖Σ_r‖."""
    if "reference_spectrum" not in state.memory:
        assert state.reference is not None  # `check` has seen to it
        eigenvalues = np.linalg.eigvalsh(state.reference.cov)
        root = float(np.sqrt(np.clip(eigenvalues, 0.0, None)).sum())
        state.memory["reference_spectrum"] = root, float(eigenvalues[-1])
    spectrum: tuple[float, float] = state.memory["reference_spectrum"]
    return spectrum
