"""Kernels, and the scores that are U-statistics of them: kernel distances and RKE.

Distances: `_distance` has the public functions and the reference that many models are scored
against, `_estimate` the mathematics, however rows were drawn, `_pair_kernels` the kernels;
`_crossed` compares many models at once.
Kernels with k(x, x) = 1 on one sample, for the Vendi family and RKE (`_rke`): `_kernel_rows`.
"""

from genbounds.estimators.kernels._cross_fitted import folded as folded
from genbounds.estimators.kernels._distance import KernelReference as KernelReference
