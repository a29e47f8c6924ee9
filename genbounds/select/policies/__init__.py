"""Which arm to draw from next: a file for each family of policies, and their names."""

from __future__ import annotations

from collections.abc import Callable

from genbounds.select.policies._certifying import Elimination, Lucb, Uniform
from genbounds.select.policies._debiased import DebiasedUcb, Thompson
from genbounds.select.policies._fd_ucb import FdUcb, fd_bonus
from genbounds.select.policies._fid_ucb import FidUcb
from genbounds.select.policies._greedy import EpsilonGreedy, Greedy, Random
from genbounds.select.policies._is_ucb import IsUcb
from genbounds.select.policies._naive_ucb import NaiveUcb
from genbounds.select.policies._norms import Norms
from genbounds.select.policies._policy import CertifyingPolicy, IndexPolicy, Policy

POLICIES: dict[str, Callable[[], Policy]] = {
    "lucb": Lucb,
    "elimination": Elimination,
    "uniform": Uniform,
    "random": Random,
    "greedy": Greedy,
    "epsilon-greedy": EpsilonGreedy,
    "fd-ucb": FdUcb,
    "fid-ucb": FidUcb,
    "is-ucb": IsUcb,
    "naive-ucb": NaiveUcb,
    "thompson": Thompson,
    "debiased-ucb": DebiasedUcb,
}

__all__ = [
    "POLICIES",
    "Policy",
    "CertifyingPolicy",
    "IndexPolicy",
    "Lucb",
    "Elimination",
    "Uniform",
    "Random",
    "Greedy",
    "EpsilonGreedy",
    "Thompson",
    "DebiasedUcb",
    "FdUcb",
    "FidUcb",
    "IsUcb",
    "NaiveUcb",
    "fd_bonus",
    "Norms",
]
