"""Naive UCB, for whichever of FD and IS is the metric."""

from __future__ import annotations

from genbounds.select._state import State
from genbounds.select.policies._fd_ucb import NaiveFdUcb
from genbounds.select.policies._fid_ucb import NaiveFidUcb
from genbounds.select.policies._is_ucb import SOURCES, IsUcb
from genbounds.select.policies._policy import IndexPolicy, Policy
from genbounds.validation import check_choice


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
