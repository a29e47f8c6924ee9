"""Kernels, and the scores that are U-statistics of them: kernel distances and RKE.

Distances: `_distance` has the public functions and the reference that many models are scored
against, `_estimate` the mathematics, however rows were drawn, `_pair_kernels` the kernels;
`_crossed` compares many models at once.
Kernels with k(x, x) = 1 on one sample, for the Vendi family and RKE (`_rke`): `_kernel_rows`.
"""

from genbounds.estimators.kernels._cross_fitted import FoldedSample as FoldedSample
from genbounds.estimators.kernels._cross_fitted import folded as folded
from genbounds.estimators.kernels._cross_fitted import inspected_models as inspected_models
from genbounds.estimators.kernels._cross_fitted import warnings_of as warnings_of
from genbounds.estimators.kernels._distance import CMMD as CMMD
from genbounds.estimators.kernels._distance import ENERGY as ENERGY
from genbounds.estimators.kernels._distance import KAD as KAD
from genbounds.estimators.kernels._distance import KID as KID
from genbounds.estimators.kernels._distance import KernelReference as KernelReference
from genbounds.estimators.kernels._pair_kernels import check_directions as check_directions
from genbounds.estimators.kernels._pair_kernels import unit_rows as unit_rows
