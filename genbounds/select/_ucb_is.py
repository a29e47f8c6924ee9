"""IS-UCB in the forms of both papers, and the naive form for either metric."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy  # its submodules are loaded at their first use

from genbounds.estimators import Prepared, RunningInception
from genbounds.select._policy import IndexPolicy, Policy, State
from genbounds.select._ucb_fd import NaiveFdUcb, NaiveFidUcb, check_metric, check_positive
from genbounds.validation import Float, check_choice, check_count

SOURCES = ("m25", "o24")

PEAK = math.exp(-1.0)
"""Where -x log x is largest."""


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
    source: str = "m25"
    entropy_limit: float | None = None
    naive: bool = False
    burn_in: int = 0

    def __post_init__(self) -> None:
        check_choice("source", self.source, SOURCES)
        check_count("burn_in", self.burn_in, minimum=0)
        if self.entropy_limit is not None:
            check_positive("entropy_limit", self.entropy_limit, "or None")

    def check(self, metric: Prepared) -> None:
        """Refuse every metric but IS."""
        check_metric(self.name, metric, ("is",))

    def index(self, state: State, arm: int) -> float:
        """Minus the logarithm of the optimistic score."""
        sums = state.running(arm)
        if sums is None or sums.n < 2:
            return -math.inf
        assert isinstance(sums, RunningInception)  # `check` has seen to it
        if self.source == "m25":
            delta = state.error / state.horizon
            return -m25_log_score(sums, delta=delta, naive=self.naive)
        limit = self.entropy_limit or math.log(sums.classes)
        return -o24_log_score(sums, delta=state.error, entropy_limit=limit, naive=self.naive)


def m25_log_score(sums: RunningInception, *, delta: float, naive: bool = False) -> float:
    """Logarithm of M25 (13); `naive`: with the largest possible variances (M25 App. C.4)."""
    classes = sums.classes
    log = math.log(4.0 * classes / delta)
    spread = 1.0 if naive else sums.class_variance
    variance = math.log(classes) ** 2 if naive else sums.entropy_variance
    reach = _bernstein(spread, sums.n, log, 1.0)
    return _optimistic(sums, reach) + float(_bernstein(variance, sums.n, log, math.log(classes)))


def o24_log_score(
    sums: RunningInception, *, delta: float, entropy_limit: float, naive: bool = False
) -> float:
    """Logarithm of O24 (14); `naive`: O24 (33)."""
    log_classes, log = math.log(4.0 * sums.classes / delta), math.log(4.0 / delta)
    if naive:
        reach = np.full(1, math.sqrt(log_classes / (2.0 * sums.n)))
        return _optimistic(sums, reach) + entropy_limit * math.sqrt(log / (2.0 * sums.n))
    reach = _bernstein(sums.class_variance, sums.n, log_classes, 1.0)
    entropy = _bernstein(sums.entropy_variance, sums.n, log, entropy_limit)
    return _optimistic(sums, reach) + float(entropy)


def _bernstein(variance: Float | float, n: int, log: float, scale: float) -> Float:
    """Empirical Bernstein: √(2 V log / n) + 7 scale log / (3 (n - 1))."""
    reach: Float = np.sqrt((2.0 * log / n) * np.asarray(variance))
    return reach + 7.0 * scale * log / (3.0 * (n - 1))


def _optimistic(sums: RunningInception, reach: Float) -> float:
    return float(scipy.special.entr(toward_peak(sums.mean, reach)).sum()) - sums.entropy


def toward_peak(p: Float, reach: Float) -> Float:
    """Move every entry by `reach` towards 1/e, where -x log x peaks: M25 (12)."""
    step = np.minimum(np.maximum(PEAK - p, -reach), reach)
    moved: Float = p + step
    return moved


class NaiveUcb(Policy):
    """Naive UCB for whichever of FD and IS is the metric: M25 App. C.4, or O24 (32) and (33).

    Parameters
    ----------
    source : {"m25", "o24"}
    constants, kappa, burn_in
        As in `FdUcb` and `FidUcb`; only `source` and `burn_in` concern IS, and `kappa` is M25's.
    """

    name = "naive-ucb"

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

    def check(self, metric: Prepared) -> None:
        """Refuse a metric of the user's own."""
        check_metric(self.name, metric, ("fd", "is"))

    def index(self, state: State, arm: int) -> float:
        """Return the index of the naive form for the metric."""
        return (self._is if state.metric.name == "is" else self._fd).index(state, arm)

    def select(self, state: State) -> tuple[int, ...]:
        """Burn-in first; then the smallest index."""
        return self._fd.select(state)
