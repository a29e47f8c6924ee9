"""The published optimistic policies: plug-in score minus a proven (or tuned) bonus."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.estimators import Moments
from genbounds.select._metric import Metric
from genbounds.select._policies import plugin_loss
from genbounds.select._policy import IndexPolicy, Policy, State
from genbounds.validation import Float, InputError, check_choice, check_count

CONSTANTS = ("practical", "printed")

KAPPA_GAUSSIAN = math.sqrt(8.0 / 3.0)
"""ψ2-norm of a standard normal variable: the κ of M25 Lemma 6 for Gaussian features."""

#: Norms of a covariance are estimated anew when the sample has grown by this part of itself.
_NORMS_GROWTH = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Norms:
    """Norms of one arm's covariance that the bonuses need.

    Attributes
    ----------
    trace, trace_of_square, operator : float
        Tr Σ, Tr Σ², ‖Σ‖.
    """

    trace: float
    trace_of_square: float
    operator: float

    @classmethod
    def of_sample(cls, rows: NDArray[Any], *, threshold: float | None = None) -> Norms:
        """Norms of the sample covariance (divisor n, as in M25), optionally thresholded.

        Parameters
        ----------
        rows : ndarray of shape (n, d)
        threshold : float or None
            M of Cai & Liu (2011) as M25 App. C.3 uses it: off-diagonal entries below
            ``M sqrt(2 σ_ii σ_jj log(d) / n)`` become zero. None keeps every entry.
        """
        n, d = rows.shape
        centred = rows - rows.mean(axis=0, dtype=np.float64)
        if threshold is None:  # the smaller of the two Gram sides has the same spectrum
            gram = (centred @ centred.T if n < d else centred.T @ centred) / n
        else:
            gram = centred.T @ centred / n
            variances = np.diagonal(gram).copy()
            cut = threshold * np.sqrt(2.0 * np.outer(variances, variances) * math.log(d) / n)
            np.fill_diagonal(cut, 0.0)
            gram[np.abs(gram) < cut] = 0.0
        eigenvalues = np.linalg.eigvalsh(gram)
        return cls(
            trace=float(np.trace(gram)),
            trace_of_square=float((gram * gram).sum()),
            operator=float(eigenvalues[-1]),
        )

    @classmethod
    def without_data(cls, d: int) -> Norms:
        """Dimension in place of data (M25 App. C.4): Tr Σ = Tr Σ² = d, ‖Σ‖ = 1."""
        return cls(trace=float(d), trace_of_square=float(d), operator=1.0)


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
            if value is not None and not (math.isfinite(value) and value > 0.0):
                raise InputError(f"`{name}` must be a positive number or None; got {value!r}.")

    def check(self, metric: Metric) -> None:
        """Refuse every metric but FD."""
        _check_metric(self.name, metric, ("fd",))

    def index(self, state: State, arm: int) -> float:
        """Plug-in FD minus the bonus."""
        rows = state.rows[arm]
        if rows.shape[0] < 2:
            return -math.inf
        reference = state.reference
        assert reference is not None  # `check` has seen to it
        kappa = self.kappa
        if kappa is None:
            kappa = 1.0 if self.constants == "practical" else KAPPA_GAUSSIAN
        bonus = fd_bonus(
            self._norms(state, arm),
            n=rows.shape[0],
            mean_gap=float(np.linalg.norm(rows.mean(axis=0, dtype=np.float64) - reference.mean)),
            reference_trace_root=_trace_root(state, reference),
            delta=state.error / (state.horizon if self.constants == "printed" else 1),
            kappa=kappa,
            constants=self.constants,
        )
        return plugin_loss(state, arm) - bonus

    def _norms(self, state: State, arm: int) -> Norms:
        rows = state.rows[arm]
        known = state.memory.get(("norms", arm))
        if known is None or rows.shape[0] - known[0] >= _NORMS_GROWTH * known[0]:
            known = rows.shape[0], Norms.of_sample(rows, threshold=self.threshold)
            state.memory["norms", arm] = known
        norms: Norms = known[1]
        return norms


class _NaiveFdUcb(FdUcb):
    """M25 App. C.4: the same bonus with dimension in place of data."""

    __slots__ = ()
    name = "naive-ucb"

    def _norms(self, state: State, arm: int) -> Norms:
        return Norms.without_data(state.rows[arm].shape[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class IsUcb(IndexPolicy):
    """IS-UCB: M25 Algorithm 2 with the optimistic score (13).

    Attributes
    ----------
    naive : bool
        Variances replaced by their largest possible values (M25 App. C.4): the "naive-ucb" of IS.
    burn_in : int
        Samples of every arm before the first choice; 0: one batch.

    Notes
    -----
    δ is divided by the number of steps, as Algorithm 2 says. Sums of p, p², H and H² are kept, so
    that a step costs O(classes) whatever the number of samples.
    """

    name = "is-ucb"
    naive: bool = False
    burn_in: int = 0

    def __post_init__(self) -> None:
        check_count("burn_in", self.burn_in, minimum=0)

    def check(self, metric: Metric) -> None:
        """Refuse every metric but IS."""
        _check_metric(self.name, metric, ("is",))

    def index(self, state: State, arm: int) -> float:
        """Minus the logarithm of the optimistic score."""
        sums = state.memory.get(("sums", arm))
        if sums is None:
            sums = state.memory["sums", arm] = PosteriorSums(state.rows[arm].shape[1])
        sums.absorb(state.rows[arm][sums.n :])
        if sums.n < 2:
            return -math.inf
        return -sums.optimistic_log_score(delta=state.error / state.horizon, naive=self.naive)


class PosteriorSums:
    """Running sums of the posteriors of one arm and of their entropies."""

    def __init__(self, classes: int) -> None:
        self.n = 0
        self._first: Float | None = None
        self._p = np.zeros(classes)
        self._p2 = np.zeros(classes)
        self._h = 0.0
        self._h2 = 0.0

    def absorb(self, posteriors: NDArray[Any]) -> None:
        """Add rows of shape (b, classes) that sum to one."""
        from scipy.special import entr

        if posteriors.shape[0] == 0:
            return
        p = np.asarray(posteriors, dtype=np.float64)
        if self._first is None:  # an origin near the mean keeps the variances from cancelling
            self._first = p[0].copy()
        shifted = p - self._first
        entropies = entr(p).sum(axis=1)
        self.n += p.shape[0]
        self._p += shifted.sum(axis=0)
        self._p2 += (shifted * shifted).sum(axis=0)
        self._h += float(entropies.sum())
        self._h2 += float(entropies @ entropies)

    def optimistic_log_score(self, *, delta: float, naive: bool = False) -> float:
        """Logarithm of M25 (13)."""
        from scipy.special import entr

        assert self._first is not None
        n, classes = self.n, self._p.size
        mean = self._first + self._p / n
        entropy = self._h / n
        if naive:
            class_variance = np.ones(classes)
            entropy_variance = math.log(classes) ** 2
        else:
            class_variance = np.maximum(self._p2 - self._p**2 / n, 0.0) / (n - 1)
            entropy_variance = max(self._h2 - self._h**2 / n, 0.0) / (n - 1)
        log = math.log(4.0 * classes / delta)
        reach = np.sqrt(2.0 * class_variance * log / n) + 7.0 * log / (3.0 * (n - 1))
        optimistic = toward_peak(mean, reach)
        return float(
            entr(optimistic).sum()
            - entropy
            + math.sqrt(2.0 * entropy_variance * log / n)
            + 7.0 * math.log(classes) * log / (3.0 * (n - 1))
        )


def toward_peak(p: Float, reach: Float) -> Float:
    """Move every entry by `reach` towards 1/e, where -x log x peaks: M25 (12)."""
    peak = math.exp(-1.0)
    step = np.clip(peak - p, -reach, reach)
    moved: Float = p + step
    return moved


class NaiveUcb(Policy):
    """Naive UCB (M25 App. C.4) for whichever of FD and IS is the metric.

    Parameters
    ----------
    constants, kappa, burn_in
        As in `FdUcb`; only `burn_in` concerns IS.
    """

    name = "naive-ucb"

    def __init__(
        self, *, constants: str = "practical", kappa: float | None = None, burn_in: int = 0
    ) -> None:
        self._fd = _NaiveFdUcb(constants=constants, kappa=kappa, threshold=None, burn_in=burn_in)
        self._is = IsUcb(naive=True, burn_in=burn_in)

    def check(self, metric: Metric) -> None:
        """Refuse a metric of the user's own."""
        _check_metric(self.name, metric, ("fd", "is"))

    def index(self, state: State, arm: int) -> float:
        """Return the index of the naive form for the metric."""
        return (self._is if state.metric.name == "is" else self._fd).index(state, arm)

    def select(self, state: State) -> tuple[int, ...]:
        """Burn-in first; then the smallest index."""
        return self._fd.select(state)


def _check_metric(policy: str, metric: Metric, legal: tuple[str, ...]) -> None:
    if metric.name not in legal:
        names = " or ".join(repr(name) for name in legal)
        raise InputError(f"policy {policy!r} needs metric {names}; got {metric.name!r}.")


def _trace_root(state: State, reference: Moments) -> float:
    if "trace_root" not in state.memory:
        eigenvalues = np.linalg.eigvalsh(reference.cov)
        state.memory["trace_root"] = float(np.sqrt(np.clip(eigenvalues, 0.0, None)).sum())
    root: float = state.memory["trace_root"]
    return root
