"""Policies that stop by themselves, once the best arm is certified."""

from __future__ import annotations

import numpy as np

from genbounds.select._state import Bools, State
from genbounds.select.policies._policy import CertifyingPolicy, least_sampled


class Uniform(CertifyingPolicy):
    """All arms equally often until the best is certified; the others are compared with it."""

    name = "uniform"

    def select(self, state: State) -> tuple[int, ...]:
        """Every available arm with the smallest number of samples."""
        return least_sampled(state, np.flatnonzero(state.available))


class Elimination(CertifyingPolicy):
    """All arms alike, but an arm leaves as soon as it is decided.

    Stops no later than `Uniform` on the same samples, up to evidence that uniform sampling
    gathers between arms that are already out.
    """

    name = "elimination"

    def select(self, state: State) -> tuple[int, ...]:
        """Of the arms in an open pair, those with the smallest number of samples."""
        open_pairs = state.certificate.open_pairs(state.available)
        return least_sampled(state, np.flatnonzero(open_pairs.any(axis=1) & state.available))


class LucbMemory:
    """The pair in question, and the open pairs that it was chosen from."""

    def __init__(self) -> None:
        self.open_pairs: Bools | None = None
        self.pair = (0, 0)


class Lucb(CertifyingPolicy):
    """The leader against its strongest rival (Kalyanakrishnan et al. 2012).

    Looks are compared at equal sizes only, so that of the two the one with fewer samples is
    pulled, and both where they are level.
    """

    name = "lucb"

    def select(self, state: State) -> tuple[int, ...]:
        """First every arm up to its first look; then leader and rival."""
        certificate = state.certificate
        open_pairs = certificate.open_pairs(state.available)
        unscored = (certificate.levels == 0) & open_pairs.any(axis=1) & state.available
        if unscored.any():
            return least_sampled(state, np.flatnonzero(unscored))
        memory = state.memory(LucbMemory)
        if memory.open_pairs is not open_pairs:  # a new one after every look
            memory.open_pairs, memory.pair = open_pairs, self._pair(state, open_pairs)
        return least_sampled(state, np.array(memory.pair))

    @staticmethod
    def _pair(state: State, open_pairs: np.ndarray) -> tuple[int, int]:
        """Worst plausible leader and best plausible rival among the open pairs."""
        certificate = state.certificate
        reach = certificate.critical * certificate.stderr
        live = np.flatnonzero(certificate.live)
        ranked = live[np.argsort(certificate.loss[live], kind="stable")]
        leads = np.zeros(certificate.arms, dtype=bool)
        leads[ranked[: certificate.top]] = True
        across = open_pairs & leads[:, None] & ~leads[None, :] & ~certificate.near
        if not across.any():  # the leaders are decided, others are not: any open pair serves
            across = open_pairs
        rivals = across.any(axis=0)
        if state.cost is not None:  # the cheapest first; among equals the strongest
            rivals &= state.cost == state.cost[rivals].min()
        optimistic = np.where(rivals, certificate.loss - reach, np.inf)
        rival = int(np.argmin(optimistic))
        pessimistic = np.where(across[:, rival], certificate.loss + reach, -np.inf)
        return int(np.argmax(pessimistic)), rival
