"""The Vendi family: entropies of a kernel's eigenvalues, of every order, with intervals.

`_score` has the public functions, `_methods` those that compute one. `_spectrum` finds eigenvalues,
`_expansion` expands a score in them; `_ceiling` serves near the largest possible score,
`_few_samples` below two samples per dimension.
"""

from genbounds.estimators.vendi._score import RKE as RKE
from genbounds.estimators.vendi._score import VENDI as VENDI
from genbounds.estimators.vendi._score import vendi_estimate as vendi_estimate
from genbounds.estimators.vendi._score import vendi_options as vendi_options
