"""Studies of claimed rates: orders of growth, ratios of variances, regret."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import MappingProxyType

import numpy as np
from numpy.random import Generator, SeedSequence

from genbounds.bounds import Bound
from genbounds.simulate.auditing import _c20, _nystrom
from genbounds.simulate.auditing._regret import fd_ucb, is_ucb
from genbounds.simulate.auditing._results import Check
from genbounds.validation import InputError

Study = Callable[[Bound, int, Generator], Iterable[Check]]

_STUDIES: Mapping[str, Study] = MappingProxyType(
    {
        "c20.fid-bias": _c20.fid_bias,
        "c20.fid-variance": _c20.fid_variance,
        "c20.is-bias": _c20.is_bias,
        "c20.rank-flip": _c20.rank_flip,
        "c20.fid-infinity": _c20.fid_infinity,
        "c20.fid-infinity-with-replacement": _c20.fid_infinity,
        "c20.spacing": _c20.spacing,
        "c20.sobol": _c20.sobol_variances,
        "c20.sobol-mean": _c20.sobol_means,
        "c20.sobol-rate": _c20.sobol_integrals,
        "v24.nystrom": _nystrom.nystrom,
        "v24.nystrom-product": _nystrom.nystrom_product,
        "v24.nystrom-proof": _nystrom.nystrom_proof,
        "o24.fid-ucb-regret": partial(fd_ucb, "o24.fd-bonus"),
        "m25.fd-ucb-regret": partial(fd_ucb, "m25.fd-bonus"),
        "o24.is-ucb-regret": partial(is_ucb, "o24.is-bound"),
        "m25.is-ucb-regret": partial(is_ucb, "m25.is-bound"),
    }
)


def fit_rate(bound: Bound, replications: int, seeds: SeedSequence) -> tuple[Check, ...]:
    """Judge a claimed rate.

    Raises
    ------
    InputError
        If there is no study of the statement.
    """
    if bound.id not in _STUDIES:
        raise InputError(
            f"`{bound.id}` claims a rate, and there is no study of it: only {', '.join(_STUDIES)} "
            "can be audited."
        )
    return tuple(_STUDIES[bound.id](bound, replications, np.random.default_rng(seeds)))
