"""Online selection: the best model, certified, from as few samples as possible.

`run` is the whole job; `plan` says from pilots how many samples it will take. A policy decides who
draws next, the certificate decides what is proven; the two know nothing of each other, so that any
policy may be used without harm to the guarantee.
Method and measurements: docs/selection.md.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from genbounds.estimators import CustomMetric as CustomMetric
from genbounds.select._arms import EncodedArm as EncodedArm
from genbounds.select._arms import FeatureArm as FeatureArm
from genbounds.select._certificate import Certificate as Certificate
from genbounds.select._looks import critical_value as critical_value
from genbounds.select._looks import crossing_probability as crossing_probability
from genbounds.select._looks import look_sizes as look_sizes
from genbounds.select._plan import SelectionPlan as SelectionPlan
from genbounds.select._plan import plan as plan
from genbounds.select._run import run as run
from genbounds.select._selection import ArmStatus as ArmStatus
from genbounds.select._selection import ContextSelection as ContextSelection
from genbounds.select._selection import History as History
from genbounds.select._selection import Look as Look
from genbounds.select._selection import Selection as Selection
from genbounds.select.policies import POLICIES as POLICIES
from genbounds.select.policies._debiased import DebiasedUcb as DebiasedUcb
from genbounds.select.policies._debiased import Thompson as Thompson
from genbounds.select.policies._norms import Norms as Norms
from genbounds.select.policies._policy import CertifyingPolicy as CertifyingPolicy
from genbounds.select.policies._policy import Elimination as Elimination
from genbounds.select.policies._policy import EpsilonGreedy as EpsilonGreedy
from genbounds.select.policies._policy import Greedy as Greedy
from genbounds.select.policies._policy import IndexPolicy as IndexPolicy
from genbounds.select.policies._policy import Lucb as Lucb
from genbounds.select.policies._policy import Policy as Policy
from genbounds.select.policies._policy import Random as Random
from genbounds.select.policies._policy import State as State
from genbounds.select.policies._policy import Uniform as Uniform
from genbounds.select.policies._published import FdUcb as FdUcb
from genbounds.select.policies._published import FidUcb as FidUcb
from genbounds.select.policies._published import IsUcb as IsUcb
from genbounds.select.policies._published import NaiveUcb as NaiveUcb
from genbounds.select.policies._published import fd_bonus as fd_bonus

if TYPE_CHECKING:
    from genbounds.mixtures import MixtureSelection as MixtureSelection

_MIXTURES = ("MixtureSelection",)

# Mixtures are a leaf above: these documented names are looked up there when they are asked for.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in _MIXTURES:
            return getattr(import_module("genbounds.mixtures"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
