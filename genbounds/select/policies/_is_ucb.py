"""IS-UCB in the forms of both papers: the optimistic scores of the catalogue."""

from __future__ import annotations

import math
from dataclasses import dataclass

from genbounds.estimators import RunningInception
from genbounds.select._state import State
from genbounds.select.policies._catalogue import statement
from genbounds.select.policies._policy import IndexPolicy, check_positive
from genbounds.validation import check_choice

SOURCES = ("m25", "o24")


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
        bound = statement(
            f"{self.source}.is-naive-bound" if self.naive else f"{self.source}.is-bound"
        )
        optimistic = bound.width(
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
