"""Exact checks of a statement: its units, its growth as δ → 0 and n → ∞, the steps of its proof.

Nothing is drawn at random. Three checks are decisive, because a failure alone refutes: a width
that vanishes against its error when the features are scaled, one that grows too slowly as δ → 0,
and one that shrinks too fast as n → ∞, for a distribution that the statement admits. The steps of
a proof (`_proofs`) are not: a wrong step may leave a true claim.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from genbounds.bounds import Bound, catalog
from genbounds.bounds._catalog import borrows_name
from genbounds.simulate.arms._covariance import EMBEDDING_NORMS, embedding_spectrum
from genbounds.simulate.auditing._results import Check


def exact_checks(bound: Bound) -> tuple[Check, ...]:
    """Run every check that applies to a statement; what applies depends on its constants too."""
    from genbounds.simulate.auditing._proofs import proof_steps  # needs SymPy

    steps = (*_embeddings(bound), *proof_steps(bound))
    orders = _orders(bound)
    if orders is None:
        return steps
    unit, tail, samples = orders
    return (*_units(bound, unit), *_growth(bound, tail), *_large_samples(bound, samples), *steps)


# How an error scales: the power of the unit of the features; that of log(1/δ) with which its
# quantile grows as δ → 0 for Gaussian features and n fixed, 1/2 for a normal variable and 1 for a
# square of one; that of n with which it shrinks as n → ∞.
_Orders = tuple[int, float, float]

_ERRORS: Mapping[str, _Orders] = {
    "mean-error": (1, 0.5, -0.5),
    "mean-norm": (1, 0.5, -0.5),
    "mean-norm-squared": (2, 1.0, -1.0),
    "squared-norm-error": (2, 1.0, -0.5),
    "square-error": (0, 1.0, -0.5),
    "squared-mean": (0, 1.0, -1.0),
    "mean-product": (0, 1.0, -1.0),
    "raw-covariance-error": (2, 1.0, -0.5),
    "covariance-error": (2, 1.0, -0.5),
    "distance-excess": (2, 1.0, -0.5),
    "distance-error": (2, 1.0, -0.5),
}

# A generic distribution (values of no meaning, no two alike), and the power of the unit in each.
_GENERIC: Mapping[str, tuple[float, int]] = {
    "d": (2.0, 0),
    "variance": (1.7, 2),
    "trace": (2.3, 2),
    "trace_square": (3.1, 4),
    "operator": (1.7, 2),
    "effective_rank": (2.3 / 1.7, 0),
    "max_variance": (1.4, 2),
    "absolute_sum": (2.9, 2),
    "kappa": ((8.0 / 3.0) ** 0.5, 0),
    "radius": (1.9, 1),
    "mean_error_norm": (0.37, 1),
    "mean_gap": (0.83, 1),
    "sample_mean_gap": (0.91, 1),
    "mean_deviation": (1.1, 1),
    "covariance_error": (0.71, 2),
    "reference_root_trace": (1.3, 1),
    "trace_root": (1.9, 2),
    "product_trace": (2.2, 4),
}


_OF_SAMPLE = ("mean_error_norm", "sample_mean_gap", "mean_deviation", "covariance_error")


def _generic(scale: float) -> dict[str, float]:
    """Quantities of the generic distribution at one scale of the features."""
    return {name: value * scale**power for name, (value, power) in _GENERIC.items()}


def _orders(bound: Bound) -> _Orders | None:
    """How the bounded error scales; None unless the width takes generic quantities only."""
    if borrows_name(bound.quantity) or not {*bound.width_needs} <= {*_GENERIC, "n", "delta"}:
        return None
    return _ERRORS.get(bound.quantity.name)


def _units(bound: Bound, power: int) -> Iterator[Check]:
    """Compare how width and error scale with the features."""
    if power == 0:
        return
    unit = float(bound.width(**_generic(1.0), n=50.0, delta=0.05))
    ratios = {
        scale: float(bound.width(**_generic(scale), n=50.0, delta=0.05)) / (unit * scale**power)
        for scale in (1e-6, 1e6)
    }
    tiny = (_generic(1e-6), 50, 0.05)
    # Where an assumption that tiny features meet, such as ‖Σ‖ ≤ 1, fails, nothing is claimed.
    vanishing = [
        scale
        for scale, ratio in ratios.items()
        if ratio < 1e-3 and not _asks(bound, tiny, (_generic(scale), 50, 0.05))
    ]
    yield Check(
        kind="units",
        claim=f"features scaled by s: error scales by s^{power}, so must the width",
        holds=all(abs(ratio - 1.0) < 1e-9 for ratio in ratios.values()),
        found=", ".join(
            f"width/s^{power} changes by the factor {ratio:.6g} at s = {scale:g}"
            for scale, ratio in ratios.items()
        ),
        decisive=bool(vanishing),
    )


# Facts, a sample size, and a failure probability.
_Case = tuple[dict[str, Any], int, float]


def _asks(bound: Bound, case: _Case, other: _Case) -> bool:
    """Whether some assumption is met in one case and not in the other."""
    return any(asked.met(*case) and not asked.met(*other) for asked in bound.assumptions)


_NORMAL = {"d": 1, "mean": 0.0, "variance": 1.0, "families": {"gaussian"}}
_NO_FAMILY = _NORMAL | {"families": set()}


def _growth(bound: Bound, tail: float) -> Iterator[Check]:
    """Compare the width with the error's quantile as δ → 0 at fixed n."""
    generic = _generic(1.0)
    if bound.form != "oracle":
        return
    gaussian_only = _asks(bound, (_NORMAL, 100, 0.5), (_NO_FAMILY, 100, 0.5))
    if not gaussian_only or _asks(bound, (generic, 100, 0.5), (generic, 100, 1e-300)):
        return
    if "covariance_error" in bound.width_needs:
        return  # grows with the error itself
    if bound.constants.keys() & {"share", "sides"}:
        return  # the quantile itself, in double precision only

    def at(log: float) -> dict[str, Any]:
        # Quantities of the sample grow too: at most like a normal variable.
        sample = ("mean_error_norm", "sample_mean_gap", "mean_deviation")
        grown = {name: generic[name] * math.sqrt(log) for name in sample}
        # Longer than doubles: δ down to e^(-1e4).
        return generic | grown | {"n": 3.0, "delta": np.exp(-np.longdouble(log))}

    slope = _slope(bound, at, 1e3, 1e4)
    yield Check(
        kind="growth",
        claim=f"as δ → 0 at fixed n the error's quantile grows as log(1/δ)^{tail:g}",
        holds=slope > tail - 0.1,
        found=f"the width grows as log(1/δ)^{slope:.3f} between δ = e^-1000 and e^-10000",
        decisive=True,
    )


def _large_samples(bound: Bound, power: float) -> Iterator[Check]:
    """Compare the width with the error's quantile as n → ∞ at fixed δ."""
    if "n" not in bound.width_needs:
        return
    generic = _generic(1.0)

    def at(n: float) -> dict[str, Any]:
        # Errors of the sample shrink as they do for a distribution with these moments.
        sample = ("mean_error_norm", "covariance_error")
        shrunk = {name: generic[name] / math.sqrt(n) for name in sample}
        return generic | shrunk | {"n": n, "delta": 0.05}

    slope = _slope(bound, at, 1e9, 1e12)
    yield Check(
        kind="samples",
        claim=f"as n → ∞ at fixed δ the error's quantile shrinks as n^{power:g}, and the "
        "width must vanish, but no faster",
        holds=power - 0.01 < slope < -0.01,
        found=f"the width shrinks as n^{slope:.3f} between n = 1e9 and 1e12",
        decisive=slope <= power - 0.01,
    )


def _slope(bound: Bound, at: Callable[[float], dict[str, Any]], x: float, y: float) -> float:
    """With which power of a number the width grows, from its quantities at two such numbers."""
    return math.log(float(bound.width(**at(y))) / float(bound.width(**at(x)))) / math.log(y / x)


# Statements that are true wherever their width is at least that of the proven one beside them.
_PROVEN: Mapping[str, str] = {
    "m25.fd-decomposition": "repaired.fd-decomposition",
    "o24.fd-decomposition": "repaired.fd-decomposition",
    "m25.fd-bonus": "repaired.fd-bonus-sharp",
    "o24.fd-bonus": "repaired.fd-bonus-sharp",
    "o24.fd-naive-bonus": "repaired.fd-bonus-sharp",
}
_EMBEDDING_SIZES = (5, 10, 100, 1000, 5000)
_EMBEDDING_DELTAS = (0.2, 0.01, 1e-8, 1e-20)


def _embeddings(bound: Bound) -> Iterator[Check]:
    """Compare with a proven width at the norms that the papers print for real embeddings.

    The reference has the same spectrum, its mean is equal or √Tr Σ away. The printed width stands
    at its smallest: the axes such that max Σ_ii = Tr Σ/d and Σ|Σ_jl| = Tr Σ, which no axes have
    both, and quantities of the sample at 0; in the decompositions both widths have these, the
    proven one with the smaller factors.
    """
    rival = catalog().get(_PROVEN.get(bound.id, ""))
    if rival is None:
        return
    smallest = {name: _smallest_ratio(bound, rival, name) for name in EMBEDDING_NORMS}
    yield Check(
        kind="embeddings",
        claim=f"at the norms of real embeddings the width is at least that of {rival.id}, n from "
        f"{_EMBEDDING_SIZES[0]} to {_EMBEDDING_SIZES[-1]}, δ down to {_EMBEDDING_DELTAS[-1]:g}",
        holds=all(ratio >= 1.0 for ratio in smallest.values()),
        found="smallest ratio "
        + ", ".join(f"{ratio:.3g} ({name})" for name, ratio in smallest.items()),
    )


def _smallest_ratio(bound: Bound, rival: Bound, name: str) -> float:
    """Smallest ratio of the two widths at the norms of one embedding."""
    d, trace, frobenius, operator = EMBEDDING_NORMS[name]
    facts = {
        "families": frozenset({"gaussian"}),
        "reference_definite": True,
        "d": d,
        "trace": trace,
        "trace_square": frobenius**2,
        "operator": operator,
        "effective_rank": trace / operator,
        "max_variance": trace / d,
        "absolute_sum": trace,
        "kappa": (8.0 / 3.0) ** 0.5,
        "reference_root_trace": float(np.sqrt(embedding_spectrum(name)).sum()),
        "trace_root": trace,
        "product_trace": frobenius**2,
    } | dict.fromkeys(_OF_SAMPLE, 0.0)

    def ratio(gap: float, n: int, delta: float) -> float:
        values = facts | {"mean_gap": gap, "n": float(n), "delta": delta}
        return float(bound.width(**values) / rival.width(**values))

    return min(
        ratio(gap, n, delta)
        for gap in (0.0, math.sqrt(trace))
        for n in _EMBEDDING_SIZES
        for delta in _EMBEDDING_DELTAS
        if not bound.violated(facts, n, delta)
    )
