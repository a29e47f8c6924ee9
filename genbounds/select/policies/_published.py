"""The published policies: FD-UCB and IS-UCB (M25), FID-UCB and IS-UCB (O24), and their naive forms.

Each has the index "plug-in score minus its radius", with a bonus or an optimistic score of the
catalogue of bounds. δ, n and the norms go in; the statement says what comes out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from genbounds.bounds import Bound, catalog
from genbounds.estimators import RunningFrechet, RunningInception
from genbounds.select.policies._norms import Norms, entry_norms, truncated_norms
from genbounds.select.policies._policy import GROWTH, IndexPolicy, Policy, State
from genbounds.validation import InputError, check_choice, check_not_negative, check_positive

CONSTANTS = ("practical", "printed")

EXPONENTS = ("mean_power",)
"""Constants that are exponents: the practical form leaves them as they are."""

MEANS = {
    "m25.fd-bonus": "m25.mean-norm-as-printed",
    "m25.fd-bounded-bonus": "m25.bounded-mean-norm",
    "o24.fd-bonus": "o24.mean-norm",
    "o24.fd-naive-bonus": "o24.naive-mean-norm",
}
"""The statement on ‖μ̂ - μ‖ that each bonus rests on."""

KAPPA_GAUSSIAN = math.sqrt(8.0 / 3.0)
"""ψ2-norm of a standard normal variable: the κ of M25 Lemma 6 for Gaussian features."""

ASSUMED_GAP = 0.5
"""What stands for the unknown ‖μ - μ_r‖ in O24 App. D.5."""

HALF_PRECISION = 1e-3
"""By how much rounding may have lengthened a row that was normalised."""

ESTIMATES = ("appendix", "sample")
"""Of FID-UCB's norms: those of O24 App. D.5, or those of the sample covariance."""

SOURCES = ("m25", "o24")

LARGEST = 1e75
"""Of an option: its fourth power is finite."""


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
        given: dict[str, float] = {
            "n": score.n,
            "d": score.mean.size,
            "delta": state.error,
            "sample_mean_gap": score.mean_gap,
            "reference_root_trace": reference_spectrum(state)[0],
        }
        return score.loss(divisor_n=self.as_published) - self.bonus(state, arm, given)

    def bonus(self, state: State, arm: int, given: dict[str, float]) -> float:
        """Return the bonus of `arm`, of which `given` is what every bonus needs."""
        raise NotImplementedError

    def norms(self, state: State, arm: int) -> dict[str, float]:
        """Return the norms of `arm`, estimated anew once its sample has grown by `refresh`."""
        rows = state.rows[arm]
        return state.refreshed(
            "norms", arm, lambda: self.estimate_norms(state, rows), growth=self.refresh
        )[1]

    def estimate_norms(self, state: State, rows: NDArray[Any]) -> dict[str, float]:
        """Estimate the norms that the bonus takes, named as in the catalogue, from all `rows`."""
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
    given = {"reference_root_trace": reference_trace_root, "delta": delta, "kappa": kappa}
    given |= {"n": n, "sample_mean_gap": mean_gap}
    return _bonus("m25.fd-bonus", constants, norms.quantities | given)


def _bonus(name: str, constants: str, given: Mapping[str, float]) -> float:
    """Return a bonus of the catalogue, infinite where the covariance has no spread yet."""
    if not given["operator"] > 0.0:
        return math.inf
    practical, rank = constants == "practical", given["trace"] / given["operator"]
    bound, error, excess = statement(name, practical=practical), 0.0, 0.0
    if practical or "mean_error_norm" in bound.width_needs:
        error = float(mean_part(name, practical=practical).width(**given))
    if practical and "sample_mean_gap" in bound.width_needs:
        # The program has one also for the 2 of 2Δ_μ(Δ_μ + ‖μ̂ - μ_r‖), which is no constant of the
        # catalogue but part of the formula: one half of that term goes.
        excess = error * (error + given["sample_mean_gap"])
    return float(bound.width(**given, effective_rank=rank, mean_error_norm=error)) - excess


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
                check_positive(name, getattr(self, name), most=LARGEST)

    def bonus(self, state: State, arm: int, given: dict[str, float]) -> float:
        """Bonus M25 (6), or that of Theorem 5."""
        steps = state.horizon
        if self.as_published:
            if given["n"] - state.batch < self.burn_in:
                return math.inf
            # Burn-in is no step.
            steps = max(1, steps - state.n.size * math.ceil(self.burn_in / state.batch))
        gaussian = 1.0
        if self.constants == "printed":
            gaussian, given["delta"] = KAPPA_GAUSSIAN, state.error / steps
        given["kappa"] = gaussian if self.kappa is None else self.kappa
        if self.radius is None:
            return _bonus("m25.fd-bonus", self.constants, given | self.norms(state, arm))
        longest = float(np.linalg.norm(state.rows[arm], axis=1).max())
        if longest > self.radius * (1.0 + HALF_PRECISION):
            raise InputError(
                f"must be at least the norm of every row; got {self.radius:g}, and a row of norm "
                f"{longest:g}.",
                argument="radius",
            )
        # M25 Remark 1: Tr Σ and ‖Σ‖ stand at C², which neither can exceed; the bonus grows in both.
        square = self.radius**2
        given |= {"radius": self.radius, "trace": square, "operator": square}
        return _bonus("m25.fd-bounded-bonus", self.constants, given)

    def estimate_norms(self, state: State, rows: NDArray[Any]) -> dict[str, float]:
        """Norms of the sample covariance."""
        return Norms.of_sample(rows, threshold=self.threshold).quantities


class NaiveFdUcb(FdUcb):
    """M25 App. C.4: the same bonus with dimension in place of data."""

    __slots__ = ()
    name = "naive-ucb"

    def estimate_norms(self, state: State, rows: NDArray[Any]) -> dict[str, float]:
        """Dimension in place of norms."""
        return Norms.without_data(rows.shape[1]).quantities


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
        τ of App. D.5 in units of ``‖Σ_r‖``; there 0.05 to 0.1. ``‖μ - μ_r‖`` is 0.5 as there, and
        every O(·) has the constant 1.
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

    PUBLISHED: ClassVar = {"constants": "printed", "estimates": "sample", "refresh": 0}

    name = "fid-ucb"
    constants: str = "practical"
    estimates: str = "appendix"
    truncation: float = 0.05
    refresh: float = GROWTH
    burn_in: int = 0
    as_published: bool = False

    statement: ClassVar = "o24.fd-bonus"

    def __post_init__(self) -> None:
        FrechetUcb.__post_init__(self)
        check_choice("estimates", self.estimates, ESTIMATES)
        check_positive("truncation", self.truncation, most=LARGEST)

    def bonus(self, state: State, arm: int, given: dict[str, float]) -> float:
        """Bonus O24 (7)."""
        known = self.estimates == "sample"
        given["mean_gap"] = given["sample_mean_gap"] if known else ASSUMED_GAP
        return _bonus(self.statement, self.constants, given | self.norms(state, arm))

    def estimate_norms(self, state: State, rows: NDArray[Any]) -> dict[str, float]:
        """Norms of the sample covariance, or the estimates of App. D.5."""
        if self.estimates == "sample":
            return entry_norms(rows)
        assert state.reference is not None  # `check` has seen to it
        cut = self.truncation * reference_spectrum(state)[1]
        return truncated_norms(rows, state.reference.cov, cut=cut, delta=state.error)


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
            check_positive("entropy_limit", self.entropy_limit, most=LARGEST)

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
            mean_posterior=sums.means[:-1],
            posterior_variance=sums.variances[:-1],
            mean_entropy=float(sums.means[-1]),
            entropy_variance=float(sums.variances[-1]),
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
