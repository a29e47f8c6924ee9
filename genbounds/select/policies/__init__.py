"""Which arm to draw from next: a file for each family of policies, and their names."""

from __future__ import annotations

from collections.abc import Callable

from genbounds.select.policies._debiased import DebiasedUcb, Thompson
from genbounds.select.policies._policy import (
    Elimination,
    EpsilonGreedy,
    Greedy,
    Lucb,
    Policy,
    Random,
    Uniform,
)
from genbounds.select.policies._published import FdUcb, FidUcb, IsUcb, NaiveUcb

_CERTIFYING = (Lucb, Elimination, Uniform)
_OTHERS = (Random, Greedy, EpsilonGreedy, FdUcb, FidUcb, IsUcb, NaiveUcb, Thompson, DebiasedUcb)

POLICIES: dict[str, Callable[[], Policy]] = {
    policy.name: policy for policy in (*_CERTIFYING, *_OTHERS)
}
