"""Decisions from scores: may a model replace another, how many samples does it take, what to keep.

`gate` holds a candidate against a baseline with a margin; `plan` says how many samples an interval
of some width, or a difference of some size, needs (docs/decisions.md). `track` and `Monitor` follow
a training run (docs/tracking.md); `compare_recipes` compares recipes over their seeds
(docs/recipes.md); `best_of` and `reproduction` say what a published score tells.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from genbounds.decisions._gate import Margin as Margin
from genbounds.decisions._gate import Verdict as Verdict
from genbounds.decisions._gate import check_gate as check_gate
from genbounds.decisions._gate import decide as decide
from genbounds.decisions._gate import gate as gate
from genbounds.decisions._looks import Checkpoint as Checkpoint
from genbounds.decisions._looks import Look as Look
from genbounds.decisions._looks import Track as Track
from genbounds.decisions._plan import Plan as Plan
from genbounds.decisions._plan import check_partner as check_partner
from genbounds.decisions._plan import check_targets as check_targets
from genbounds.decisions._plan import plan as plan
from genbounds.decisions._plan import plan_from as plan_from
from genbounds.decisions._plan import with_partner as with_partner
from genbounds.decisions._published import Reproduction as Reproduction
from genbounds.decisions._published import best_of as best_of
from genbounds.decisions._published import reproduction as reproduction
from genbounds.decisions._recipes import RecipeRanking as RecipeRanking
from genbounds.decisions._recipes import SeedNoise as SeedNoise
from genbounds.decisions._recipes import compare_recipes as compare_recipes
from genbounds.decisions._recipes import rank_recipes as rank_recipes
from genbounds.decisions._track import Monitor as Monitor
from genbounds.decisions._track import track as track
from genbounds.decisions._track import track_estimates as track_estimates

if TYPE_CHECKING:
    from genbounds.mixtures import MIXTURE_METRICS as MIXTURE_METRICS
    from genbounds.mixtures import Mixture as Mixture
    from genbounds.mixtures import check_mixture as check_mixture
    from genbounds.mixtures import mixture as mixture

_MIXTURES = ("MIXTURE_METRICS", "Mixture", "check_mixture", "mixture")

# Mixtures are a leaf above: these documented names are looked up there when they are asked for.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in _MIXTURES:
            return getattr(import_module("genbounds.mixtures"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
