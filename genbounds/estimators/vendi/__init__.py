"""The Vendi family: entropies of a kernel's eigenvalues, of every order, with intervals.

Methods: `_exact`, and those that approximate (`_approximations`). `_spectrum` finds eigenvalues,
`_expansion` expands a score in them and how they act on one another (`_coupling`); `_ceiling`
serves near the largest possible score, `_few_samples` below two samples per dimension.
"""

from genbounds.estimators.vendi._metrics import RKE as RKE
from genbounds.estimators.vendi._metrics import VENDI as VENDI
from genbounds.estimators.vendi._metrics import vendi_options as vendi_options
from genbounds.estimators.vendi._score import vendi_estimate as vendi_estimate
