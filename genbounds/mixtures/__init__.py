"""Mixtures of models: the shares with the best score, from samples or from arms that still draw.

`mixture` judges the best shares by rows that did not choose them; `_online` draws until the shares
are certified to be near the best: ``select.run(..., target="mixture")``. `_frechet` and `_kernel`
estimate the score of a mixture, `_frechet_gap` and `_kernel` bound how far it is from that of the
best one. `genbounds.decisions`, `genbounds.select` and `genbounds.estimators` give the same
names (docs/mixtures.md, docs/select_mixture.md).
"""

from genbounds.mixtures._frechet import MixtureDistance as MixtureDistance
from genbounds.mixtures._frechet import frechet_mixture as frechet_mixture
from genbounds.mixtures._frechet import least_distance as least_distance
from genbounds.mixtures._frechet_gap import Potentials as Potentials
from genbounds.mixtures._kernel import mixture_estimate as mixture_estimate
from genbounds.mixtures._mixture import MIXTURE_METRICS as MIXTURE_METRICS
from genbounds.mixtures._mixture import Mixture as Mixture
from genbounds.mixtures._mixture import check_mixture as check_mixture
from genbounds.mixtures._mixture import mixture as mixture
from genbounds.mixtures._online import MixtureSelection as MixtureSelection
