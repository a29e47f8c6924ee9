"""Online selection: the best model, certified, from as few samples as possible.

`run` is the whole job. A policy decides who draws next, the certificate decides what is proven;
the two know nothing of each other, so that any policy may be used without harm to the guarantee.
Method and measurements: docs/selection.md.
"""

from __future__ import annotations

from genbounds.estimators import CustomMetric
from genbounds.select._arms import EncodedArm, FeatureArm
from genbounds.select._boundary import critical_value, crossing_probability, look_sizes
from genbounds.select._certificate import Certificate
from genbounds.select._debiased import DebiasedUcb, Thompson
from genbounds.select._norms import Norms
from genbounds.select._policies import (
    Elimination,
    EpsilonGreedy,
    Greedy,
    Lucb,
    Random,
    Uniform,
)
from genbounds.select._policy import CertifyingPolicy, IndexPolicy, Policy, State
from genbounds.select._run import POLICIES, run
from genbounds.select._selection import History, Look, Selection
from genbounds.select._ucb_fd import FdUcb, FidUcb, fd_bonus
from genbounds.select._ucb_is import IsUcb, NaiveUcb

__all__ = [
    "run",
    "Selection",
    "History",
    "Look",
    "FeatureArm",
    "EncodedArm",
    "POLICIES",
    "Policy",
    "CertifyingPolicy",
    "IndexPolicy",
    "State",
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
    "CustomMetric",
    "Certificate",
    "look_sizes",
    "crossing_probability",
    "critical_value",
]
