"""The Vendi family: entropies of a kernel's eigenvalues, of every order, with intervals.

`_spectrum` finds eigenvalues by each method, `_terms` expands a score in them and how they act on
one another (`_coupling`), `_routes` chooses; `_ceiling` serves near the largest possible score,
`_few_samples` below two rows a dimension.
"""

from genbounds.estimators.vendi._score import vendi_expansion as vendi_expansion
from genbounds.estimators.vendi._score import vendi_metric as vendi_metric
from genbounds.estimators.vendi._score import vendi_options as vendi_options
from genbounds.estimators.vendi._score import vendi_score as vendi_score
