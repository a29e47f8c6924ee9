"""Kernels, and the scores that are U-statistics of them: kernel distances and RKE.

Distances: `_distance` has the public functions, `_reference` scores many models against
one reference, `_pair_kernels` has the kernels and fits one to it, `_rows` and `_designed` are the
mathematics, of independent rows and of others, `_folds` and `_crossed` compare many models
at once.
Kernels with k(x, x) = 1 on one sample, for the Vendi family and RKE (`_rke`): `_kernel_rows`.
"""

from genbounds.estimators.kernels._crossed import CrossedMeans as CrossedMeans
from genbounds.estimators.kernels._crossed import FoldedSample as FoldedSample
from genbounds.estimators.kernels._crossed import Quadratic as Quadratic
from genbounds.estimators.kernels._folds import crossed_distances as crossed_distances
from genbounds.estimators.kernels._folds import crossed_squares as crossed_squares
from genbounds.estimators.kernels._folds import folded as folded
from genbounds.estimators.kernels._folds import inspected_models as inspected_models
from genbounds.estimators.kernels._folds import warnings_of as warnings_of
from genbounds.estimators.kernels._metrics import CMMD as CMMD
from genbounds.estimators.kernels._metrics import ENERGY as ENERGY
from genbounds.estimators.kernels._metrics import KAD as KAD
from genbounds.estimators.kernels._metrics import KID as KID
from genbounds.estimators.kernels._pair_kernels import unit_rows as unit_rows
from genbounds.estimators.kernels._parameters import median_bandwidth as median_bandwidth
from genbounds.estimators.kernels._reference import KernelReference as KernelReference
from genbounds.estimators.kernels._rke import squared_kernel_sum as squared_kernel_sum
from genbounds.estimators.kernels._running import RunningRke as RunningRke
