"""Online selection: the best model, certified, from as few samples as possible.

`run` is the whole job; `plan` says from pilots how many samples it will take. A policy decides who
draws next, the certificate decides what is proven; the two know nothing of each other, so that any
policy may be used without harm to the guarantee.
Method and measurements: docs/selection.md.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from genbounds.estimators import CustomMetric
from genbounds.select._arms import EncodedArm, FeatureArm
from genbounds.select._boundary import critical_value, crossing_probability, look_sizes
from genbounds.select._certificate import Certificate
from genbounds.select._context_selection import ContextSelection
from genbounds.select._plan import plan
from genbounds.select._run import run
from genbounds.select._selection import ArmStatus, History, Look, Selection
from genbounds.select._selection_plan import SelectionPlan
from genbounds.select._state import State
from genbounds.select.policies import (
    POLICIES,
    CertifyingPolicy,
    DebiasedUcb,
    Elimination,
    EpsilonGreedy,
    FdUcb,
    FidUcb,
    Greedy,
    IndexPolicy,
    IsUcb,
    Lucb,
    NaiveUcb,
    Norms,
    Policy,
    Random,
    Thompson,
    Uniform,
    fd_bonus,
)

if TYPE_CHECKING:
    from genbounds.mixtures import MixtureSelection as MixtureSelection

_MIXTURES = ("MixtureSelection",)

# Mixtures are a leaf above: these documented names are looked up there when they are asked for.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in _MIXTURES:
            return getattr(import_module("genbounds.mixtures"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "run",
    "plan",
    "Selection",
    "SelectionPlan",
    "MixtureSelection",
    "ContextSelection",
    "History",
    "Look",
    "ArmStatus",
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
