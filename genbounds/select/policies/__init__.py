"""Which arm to draw from next: a file for each family of policies, and their names."""

from __future__ import annotations

from collections.abc import Callable

from genbounds.select.policies._certifying import Elimination, Lucb, Uniform
from genbounds.select.policies._debiased import DebiasedUcb, Thompson
from genbounds.select.policies._fd_ucb import FdUcb
from genbounds.select.policies._fid_ucb import FidUcb
from genbounds.select.policies._greedy import EpsilonGreedy, Greedy, Random
from genbounds.select.policies._is_ucb import IsUcb
from genbounds.select.policies._naive_ucb import NaiveUcb
from genbounds.select.policies._policy import Policy

_CERTIFYING = (Lucb, Elimination, Uniform)
_OTHERS = (Random, Greedy, EpsilonGreedy, FdUcb, FidUcb, IsUcb, NaiveUcb, Thompson, DebiasedUcb)

POLICIES: dict[str, Callable[[], Policy]] = {
    policy.name: policy for policy in (*_CERTIFYING, *_OTHERS)
}
