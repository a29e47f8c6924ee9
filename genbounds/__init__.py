"""genbounds: the statistics of judging generative models."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from genbounds import bounds as bounds
    from genbounds import decisions as decisions
    from genbounds import estimators as estimators
    from genbounds import explain as explain
    from genbounds import features as features
    from genbounds import files as files
    from genbounds import report as report
    from genbounds import select as select
    from genbounds import simulate as simulate
    from genbounds.decisions import Checkpoint as Checkpoint
    from genbounds.decisions import Look as Look
    from genbounds.decisions import Monitor as Monitor
    from genbounds.decisions import Plan as Plan
    from genbounds.decisions import RecipeRanking as RecipeRanking
    from genbounds.decisions import Reproduction as Reproduction
    from genbounds.decisions import Track as Track
    from genbounds.decisions import Verdict as Verdict
    from genbounds.decisions import best_of as best_of
    from genbounds.decisions import compare_recipes as compare_recipes
    from genbounds.decisions import gate as gate
    from genbounds.decisions import plan as plan
    from genbounds.decisions import reproduction as reproduction
    from genbounds.decisions import track as track
    from genbounds.estimators import ByClass as ByClass
    from genbounds.estimators import Ceiling as Ceiling
    from genbounds.estimators import ConditionalVendi as ConditionalVendi
    from genbounds.estimators import EncoderRanking as EncoderRanking
    from genbounds.estimators import Moments as Moments
    from genbounds.estimators import PrecisionRecall as PrecisionRecall
    from genbounds.estimators import SmoothScore as SmoothScore
    from genbounds.estimators import TwoLevel as TwoLevel
    from genbounds.estimators import across as across
    from genbounds.estimators import authpct as authpct
    from genbounds.estimators import check_score as check_score
    from genbounds.estimators import compare as compare
    from genbounds.estimators import conditional_vendi as conditional_vendi
    from genbounds.estimators import fid as fid
    from genbounds.estimators import frechet_by_class as frechet_by_class
    from genbounds.estimators import frechet_distance as frechet_distance
    from genbounds.estimators import inception_score as inception_score
    from genbounds.estimators import kernel_distance as kernel_distance
    from genbounds.estimators import kernel_inception_distance as kernel_inception_distance
    from genbounds.estimators import kid as kid
    from genbounds.estimators import mean_score as mean_score
    from genbounds.estimators import mifid as mifid
    from genbounds.estimators import precision_recall as precision_recall
    from genbounds.estimators import precision_recall_ceiling as precision_recall_ceiling
    from genbounds.estimators import realism as realism
    from genbounds.estimators import score_over_scramblings as score_over_scramblings
    from genbounds.estimators import sliced_distance as sliced_distance
    from genbounds.estimators import sobol_cache as sobol_cache
    from genbounds.estimators import sobol_normal as sobol_normal
    from genbounds.estimators import two_level as two_level
    from genbounds.estimators import vendi_score as vendi_score
    from genbounds.explain import Memorisation as Memorisation
    from genbounds.explain import Modes as Modes
    from genbounds.explain import memorisation as memorisation
    from genbounds.explain import modes as modes
    from genbounds.mixtures import Mixture as Mixture
    from genbounds.mixtures import mixture as mixture
    from genbounds.results import Diagnostic as Diagnostic
    from genbounds.results import Difference as Difference
    from genbounds.results import Ranking as Ranking
    from genbounds.results import Score as Score
    from genbounds.samples import Sample as Sample
    from genbounds.validation import InputError as InputError

__version__ = "0.2.0"

# What stands above, imported when it is first asked for: the program starts at once, and Ctrl-C
# while NumPy is imported is the program's to answer. tests/test_package.py holds the lists equal.
_PACKAGES = "bounds decisions estimators explain features files report select simulate".split()
_NAMES = {
    "genbounds.decisions": "Checkpoint Look Monitor Plan RecipeRanking Reproduction Track Verdict "
    "best_of compare_recipes gate plan reproduction track",
    "genbounds.estimators": "ByClass Ceiling ConditionalVendi EncoderRanking Moments "
    "PrecisionRecall SmoothScore TwoLevel across authpct check_score compare conditional_vendi fid "
    "frechet_by_class frechet_distance inception_score kernel_distance kernel_inception_distance "
    "kid mean_score mifid precision_recall precision_recall_ceiling realism score_over_scramblings "
    "sliced_distance sobol_cache sobol_normal two_level vendi_score",
    "genbounds.explain": "Memorisation Modes memorisation modes",
    "genbounds.mixtures": "Mixture mixture",
    "genbounds.results": "Diagnostic Difference Ranking Score",
    "genbounds.samples": "Sample",
    "genbounds.validation": "InputError",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [*_PACKAGES, *_HOMES]

if not TYPE_CHECKING:  # a type checker is to know the names, and no others

    def __getattr__(name: str) -> Any:
        """Import a public name."""
        if name in _PACKAGES:
            return import_module(f"genbounds.{name}")
        if name not in _HOMES:
            raise AttributeError(f"module 'genbounds' has no attribute {name!r}")
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """List the public names, also those that are not imported yet."""
    return sorted({*globals(), *__all__} - {"Any", "TYPE_CHECKING", "import_module"})
