"""The published policies: FD-UCB and IS-UCB (M25), FID-UCB and IS-UCB (O24), and their naive forms.

Each has the index "plug-in score minus its radius", with a bonus or an optimistic score of the
catalogue of bounds. δ, n and the norms go in; the statement says what comes out.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np

from genbounds.bounds import Bound, catalog
from genbounds.estimators import RunningFrechet, RunningInception
from genbounds.select.policies._norms import EntryNorms, Norms
from genbounds.select.policies._policy import GROWTH, IndexPolicy, Policy, State, check_positive
from genbounds.validation import InputError, check_choice, check_not_negative

CONSTANTS = ("practical", "printed")

EXPONENTS = ("mean_power",)
"""Constants that are exponents: the practical form leaves them as they are."""

MEANS = {
    "m25.fd-bonus": "m25.mean-norm",
    "m25.fd-bounded-bonus": "m25.bounded-mean-norm",
    "o24.fd-bonus": "o24.mean-norm",
    "o24.fd-naive-bonus": "o24.naive-mean-norm",
}
"""The statement on ‖μ̂ - μ‖ that each bonus rests on."""

KAPPA_GAUSSIAN = math.sqrt(8.0 / 3.0)
"""ψ2-norm of a standard normal variable: the κ of M25 Lemma 6 for Gaussian features."""

HALF_PRECISION = 1e-3
"""By how much rounding may have lengthened a row that was normalised."""

ESTIMATES = ("appendix", "sample")
"""Of FID-UCB's norms: those of O24 App. D.5, or those of the sample covariance."""

SOURCES = ("m25", "o24")


@lru_cache
def statement(name: str, *, practical: bool = False) -> Bound:
    """Return a bound of the catalogue: as printed, or with every constant factor replaced by one.

    The authors' published programs compute the second, "practical" form. A factor that is zero as
    printed stays zero.
    """
    bound = catalog()[name]
    if not practical:
        return bound
    ones = {
        constant: value if constant in EXPONENTS or value == 0.0 else 1.0
        for constant, value in bound.constants.items()
    }
    return replace(bound, constants=ones)


@lru_cache
def mean_part(bonus: str, *, practical: bool = False) -> Bound:
    """Return the bound on ‖μ - μ̂‖ with the constants that it has inside of `bonus`."""
    constants = {
        name.removeprefix("mean_"): value
        for name, value in statement(bonus, practical=practical).constants.items()
        if name.startswith("mean_")
    }
    return replace(catalog()[MEANS[bonus]], constants=constants)


def reference_spectrum(state: State) -> tuple[float, float]:
    """Return Tr Σ_r^(1/2) and ‖Σ_r‖ of the reference of a run."""

    def decomposed() -> tuple[float, float]:
        assert state.reference is not None  # `Policy.check` has seen to it
        eigenvalues = np.linalg.eigvalsh(state.reference.cov)
        return float(np.sqrt(np.clip(eigenvalues, 0.0, None)).sum()), float(eigenvalues[-1])

    return state.once(reference_spectrum, decomposed)


class FrechetUcb(IndexPolicy):
    """What FD-UCB and FID-UCB share: the plug-in distance minus a bonus by norms of the sample."""

    PUBLISHED: ClassVar[dict[str, Any]]
    """Options as the paper has them."""

    metrics = ("fd",)
    constants: str
    refresh: float
    as_published: bool

    def __post_init__(self) -> None:
        for option in fields(self) if self.as_published else ():  # type: ignore[arg-type]
            given = getattr(self, option.name)
            value = self.PUBLISHED.get(option.name, given)
            if given not in (value, option.default):
                raise InputError(
                    f"is {value} as published: leave it out; got {given}.", argument=option.name
                )
            object.__setattr__(self, option.name, value)
        check_choice("constants", self.constants, CONSTANTS)
        IndexPolicy.__post_init__(self)
        check_not_negative("refresh", self.refresh)

    def index(self, state: State, arm: int) -> float:
        """Plug-in FD minus the bonus; -inf while there is no spread."""
        score = state.running(arm)
        if score is None or score.n < 2:
            return -math.inf
        assert isinstance(score, RunningFrechet)  # `Policy.check` has seen to it
        return score.loss(divisor_n=self.as_published) - self.bonus(state, arm, score)

    def bonus(self, state: State, arm: int, score: RunningFrechet) -> float:
        """Return the bonus of `arm`, whose plug-in distance is `score`."""
        raise NotImplementedError

    def _norms(self, state: State, arm: int) -> Any:
        """Return the norms of `arm`, estimated anew once its sample has grown by `refresh`."""
        estimate = partial(self._estimate, state, arm)
        return state.refreshed("norms", arm, estimate, growth=self.refresh)[1]

    def _estimate(self, state: State, arm: int) -> Any:
        """Estimate the norms that the bonus takes from all rows of `arm`."""
        raise NotImplementedError


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
    error = float(mean_part(name, practical=True).width(**quantities))
    if name == "m25.fd-bonus":  # its statement on the mean is about the square
        error = math.sqrt(error)
    # The program has one also for the 2 of 2Δ_μ(Δ_μ + ‖μ̂ - μ_r‖), which is no constant of the
    # catalogue but part of the formula: one half of that term goes.
    return bonus - error * (error + quantities["sample_mean_gap"])


@dataclass(frozen=True, slots=True, kw_only=True)
class FdUcb(FrechetUcb):
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
        FrechetUcb.__post_init__(self)
        for name in ("kappa", "threshold", "radius"):
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name), "or None")

    def bonus(self, state: State, arm: int, score: RunningFrechet) -> float:
        """Bonus M25 (6), or that of Theorem 5."""
        steps = state.horizon
        if self.as_published:
            if score.n - state.batch < self.burn_in:
                return math.inf
            # Burn-in is no step.
            steps = max(1, steps - state.n.size * math.ceil(self.burn_in / state.batch))
        gaussian = 1.0 if self.constants == "practical" else KAPPA_GAUSSIAN
        given: dict[str, float] = {
            "n": score.n,
            "sample_mean_gap": score.mean_gap,
            "reference_root_trace": reference_spectrum(state)[0],
            "delta": state.error / (steps if self.constants == "printed" else 1),
            "kappa": gaussian if self.kappa is None else self.kappa,
        }
        if self.radius is None:
            return _bonus("m25.fd-bonus", self.constants, self._norms(state, arm), **given)
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
        return _bonus("m25.fd-bounded-bonus", self.constants, most, **given)

    def _estimate(self, state: State, arm: int) -> Norms:
        """Norms of the sample covariance."""
        return Norms.of_sample(state.rows[arm], threshold=self.threshold)


class NaiveFdUcb(FdUcb):
    """M25 App. C.4: the same bonus with dimension in place of data."""

    __slots__ = ()
    name = "naive-ucb"

    def _estimate(self, state: State, arm: int) -> Norms:
        """Dimension in place of norms."""
        return Norms.without_data(state.rows[arm].shape[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class FidUcb(FrechetUcb):
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
    constants: str = "practical"
    estimates: str = "appendix"
    truncation: float = 0.05
    assumed_gap: float = 0.5
    operator_slack: float = 1.0
    trace_factor: float = 1.0
    refresh: float = GROWTH
    burn_in: int = 0
    as_published: bool = False

    statement: ClassVar = "o24.fd-bonus"

    def __post_init__(self) -> None:
        FrechetUcb.__post_init__(self)
        check_choice("estimates", self.estimates, ESTIMATES)
        for name in ("truncation", "assumed_gap", "trace_factor"):
            check_positive(name, getattr(self, name))
        check_not_negative("operator_slack", self.operator_slack)

    def bonus(self, state: State, arm: int, score: RunningFrechet) -> float:
        """Bonus O24 (7)."""
        norms = self._norms(state, arm)
        if not norms.operator > 0.0:
            return math.inf
        practical = self.constants == "practical"
        quantities = asdict(norms) | {
            "n": score.n,
            "delta": state.error,
            "d": score.mean.size,
            "mean_gap": self.assumed_gap if self.estimates == "appendix" else score.mean_gap,
            "reference_root_trace": reference_spectrum(state)[0],
            "effective_rank": norms.trace / norms.operator,
        }
        mean_error = mean_part(self.statement, practical=practical).width(**quantities)
        bound = statement(self.statement, practical=practical)
        return float(bound.width(**quantities, mean_error_norm=mean_error))

    def _estimate(self, state: State, arm: int) -> EntryNorms:
        """Norms of the sample covariance, or the estimates of App. D.5."""
        if self.estimates == "sample":
            return EntryNorms.of_sample(state.rows[arm])
        assert state.reference is not None  # `check` has seen to it
        return EntryNorms.truncated(
            state.rows[arm],
            reference_cov=state.reference.cov,
            cut=self.truncation * reference_spectrum(state)[1],
            operator_slack=self.operator_slack,
            trace_factor=self.trace_factor,
            delta=state.error,
        )


class NaiveFidUcb(FidUcb):
    """O24 (32): the dimension in place of ℐ and of the effective rank."""

    __slots__ = ()
    name = "naive-ucb"
    statement = "o24.fd-naive-bonus"


@dataclass(frozen=True, slots=True, kw_only=True)
class IsUcb(IndexPolicy):
    """IS-UCB: M25 Algorithm 2 with the optimistic score (13), or O24 Algorithm 2 with (14).

    Attributes
    ----------
    source : {"m25", "o24"}
        They differ in the logarithm of the entropy terms (4d/δ or 4/δ), in C′, and in δ, which
        M25 divides by the number of steps.
    entropy_limit : float or None
        C′ of O24, a bound on every H(Y|x); None: the logarithm of the number of classes, the
        largest possible value. Not used by "m25".
    naive : bool
        Variances replaced by their largest possible values (M25 App. C.4), or Hoeffding's bonus
        (O24 (33)): the "naive-ucb" of IS.
    burn_in : int
        Samples of every arm before the first choice; 0: one batch.

    Notes
    -----
    Sums of p, p², H and H² are kept, so that a step costs O(classes) whatever the number of
    samples.
    """

    name = "is-ucb"
    metrics = ("is",)
    source: str = "m25"
    entropy_limit: float | None = None
    naive: bool = False
    burn_in: int = 0

    def __post_init__(self) -> None:
        check_choice("source", self.source, SOURCES)
        IndexPolicy.__post_init__(self)
        if self.entropy_limit is not None:
            check_positive("entropy_limit", self.entropy_limit, "or None")

    def index(self, state: State, arm: int) -> float:
        """Minus the logarithm of the optimistic score."""
        sums = state.running(arm)
        if sums is None or sums.n < 2:
            return -math.inf
        assert isinstance(sums, RunningInception)  # `check` has seen to it
        kind = "is-naive-bound" if self.naive else "is-bound"
        optimistic = statement(f"{self.source}.{kind}").width(
            n=sums.n,
            delta=state.error / (state.horizon if self.source == "m25" else 1),
            d=sums.classes,
            mean_posterior=sums.mean,
            posterior_variance=sums.class_variance,
            mean_entropy=sums.entropy,
            entropy_variance=sums.entropy_variance,
            entropy_limit=self.entropy_limit or math.log(sums.classes),
        )
        return -float(optimistic)


class NaiveUcb(Policy):
    """Naive UCB for whichever of FD and IS is the metric: M25 App. C.4, or O24 (32) and (33).

    Parameters
    ----------
    source : {"m25", "o24"}
    constants, kappa, burn_in
        As in `FdUcb` and `FidUcb`; only `source` and `burn_in` concern IS, and `kappa` is M25's.
    """

    name = "naive-ucb"
    metrics = ("fd", "is")

    def __init__(
        self,
        *,
        source: str = "m25",
        constants: str = "practical",
        kappa: float | None = None,
        burn_in: int = 0,
    ) -> None:
        check_choice("source", source, SOURCES)
        self._fd: IndexPolicy = (
            NaiveFdUcb(constants=constants, kappa=kappa, threshold=None, burn_in=burn_in)
            if source == "m25"
            else NaiveFidUcb(constants=constants, burn_in=burn_in)
        )
        self._is = IsUcb(source=source, naive=True, burn_in=burn_in)

    def index(self, state: State, arm: int) -> float:
        """Return the index of the naive form for the metric."""
        return (self._is if state.metric.name == "is" else self._fd).index(state, arm)

    def select(self, state: State) -> tuple[int, ...]:
        """Burn-in first; then the smallest index."""
        return self._fd.select(state)
