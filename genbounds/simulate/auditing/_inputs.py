"""Families of inputs on which deterministic claims are attacked, each a map from free coordinates.

A family turns any point of some space ℝ^k into inputs that meet the conditions of its claims, so
that a search may move freely; and it turns inputs into fractions that meet them exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np

from genbounds.validation import Float


@dataclass(frozen=True, slots=True)
class InputFamily:
    """Inputs of one kind.

    Attributes
    ----------
    size : callable
        Number of coordinates at dimension d.
    decode : callable
        ``decode(points, d)``, points of shape (m, size(d)), returns inputs by name, m of each.
    distributions : tuple of str
        Inputs that sum to one.
    larger : str or None
        The matrix that is at least another one in the Loewner order.
    """

    size: Callable[[int], int]
    decode: Callable[[Float, int], dict[str, Float]]
    distributions: tuple[str, ...] = ()
    larger: str | None = None

    def rational(self, inputs: Mapping[str, Any], denominator: int | None) -> dict[str, Any]:
        """Turn inputs into fractions that meet their conditions exactly: sums to one, A ⪰ B.

        With a `denominator` they are rounded to multiples of 1/denominator.
        """

        def near(value: Any) -> Any:
            if np.ndim(value):
                return [near(entry) for entry in value]
            exact = Fraction(float(value))
            if denominator is None:
                return exact
            return Fraction(round(exact * denominator), denominator)

        fractions = {name: near(value) for name, value in inputs.items()}
        for name in self.distributions:
            total = sum(fractions[name], Fraction(0))
            if total > 0:
                fractions[name] = [value / total for value in fractions[name]]
        if self.larger is not None:
            _enlarge(fractions[self.larger], denominator)
        return fractions


def _enlarge(matrix: list[list[Fraction]], denominator: int | None) -> None:
    """Add to the diagonal what rounding may have taken from the eigenvalues, in place."""
    if denominator is None:
        largest = max(abs(value) for row in matrix for value in row)
        slack = Fraction(1, 10**12) * len(matrix) * largest
    else:
        slack = Fraction(1, denominator) * len(matrix)
    for index, row in enumerate(matrix):
        row[index] += slack


def as_floats(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Turn fractions into arrays."""
    return {name: np.array(value, dtype=np.float64) for name, value in inputs.items()}


def as_text(value: Any) -> Any:
    """Whole numbers as such, other fractions as text."""
    if isinstance(value, list):
        return [as_text(entry) for entry in value]
    return value.numerator if value.denominator == 1 else str(value)


def _matrix(theta: Float, index: int, d: int) -> Float:
    return theta[:, index * d * d : (index + 1) * d * d].reshape(-1, d, d)


def _distribution(theta: Float) -> Float:
    """Squares, normalised: any distribution, zeros included."""
    weights = np.square(theta) + np.where((theta == 0.0).all(axis=1), 1.0, 0.0)[:, None]
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _unit(theta: Float) -> Float:
    """Map the real line onto (0, 1)."""
    return 0.5 * (1.0 + theta / (1.0 + np.abs(theta)))


def _factor_pair(theta: Float, d: int) -> dict[str, Float]:
    return {"factor": _matrix(theta, 0, d), "other_factor": _matrix(theta, 1, d)}


def _factor_triple(theta: Float, d: int) -> dict[str, Float]:
    reference = _matrix(theta, 2, d)
    # Invertible, as the claims ask: far enough from singular by its diagonal.
    scale = np.abs(reference).max(axis=(1, 2), keepdims=True) + 1e-3
    return _factor_pair(theta, d) | {"reference_factor": reference + 3.0 * d * scale * np.eye(d)}


def _ordered_pair(theta: Float, d: int) -> dict[str, Float]:
    root, more = _matrix(theta, 0, d), _matrix(theta, 1, d)
    smaller = root @ np.swapaxes(root, 1, 2)
    # Well conditioned, so that inverting them costs no more than two digits.
    ridge = 0.05 * np.trace(smaller, axis1=1, axis2=2) + 1e-3
    smaller = smaller + ridge[:, None, None] * np.eye(d)
    return {"smaller": smaller, "larger": smaller + more @ np.swapaxes(more, 1, 2)}


def _distribution_pair(theta: Float, d: int) -> dict[str, Float]:
    classes = d + 1
    return {
        "p": _distribution(theta[:, :classes]),
        "p_estimate": _distribution(theta[:, classes:]),
    }


def _symmetric_pair(theta: Float, d: int) -> dict[str, Float]:
    a, b = _matrix(theta, 0, d), _matrix(theta, 1, d)
    return {"a": a + np.swapaxes(a, 1, 2), "b": b + np.swapaxes(b, 1, 2)}


def _simplex_triple(theta: Float, d: int) -> dict[str, Float]:
    v = np.sort(_distribution(theta[:, :d]), axis=1)[:, ::-1]
    t = 1 + np.floor(_unit(theta[:, -1]) * d).astype(int)
    inside = np.where(np.arange(d) < t[:, None], theta[:, d : 2 * d], 0.0)
    inside[:, 0] += np.where((inside == 0.0).all(axis=1), 1.0, 0.0)
    return {"v": v, "t": t, "w": _distribution(inside)}


def _vector_order(theta: Float, d: int) -> dict[str, Float]:
    return {"v": theta[:, :d], "alpha": 1.0 + 0.999999 * _unit(theta[:, d])}


def _visits(theta: Float, d: int) -> dict[str, Float]:
    picks = 1.0 + np.floor(np.minimum(np.abs(theta[:, :d]), 60.0))
    batch = 1.0 + np.floor(np.minimum(np.abs(theta[:, d]), 20.0))
    return {"picks": picks, "batch": batch, "alpha": 0.999 * _unit(theta[:, d + 1])}


def _visits_burn_in(theta: Float, d: int) -> dict[str, Float]:
    burn_in = 1.0 + np.floor(np.minimum(np.abs(theta[:, d + 2]), 200.0))
    return _visits(theta, d) | {"burn_in": burn_in}


def _visits_long_burn_in(theta: Float, d: int) -> dict[str, Float]:
    visits = _visits_burn_in(theta, d)
    return visits | {"burn_in": visits["batch"] + visits["burn_in"] - 1.0}


def _independent_sums(theta: Float, d: int) -> dict[str, Float]:
    sizes = np.abs(theta[:, : 4 * d]).reshape(-1, 4, d)
    names = ("weights", "shapes", "scales", "deviations")
    terms = {name: sizes[:, index] for index, name in enumerate(names)}
    return terms | {"position": 2.0 * _unit(theta[:, -1]) - 1.0}


_JUMPS = 2  # of each step function


def _step_products(theta: Float, d: int) -> dict[str, Float]:
    """Make d + 1 points, on a line at d = 1 and in a square beyond."""
    s = min(d, 2)
    points, knots, steps = np.split(theta, [(d + 1) * s, (d + 1 + _JUMPS) * s], axis=1)
    steps = steps.reshape(-1, s, _JUMPS)
    # The first jump is 1: constants, with 0 on both sides, would be nearest to a violation.
    jumps = np.concatenate([steps[..., :1], np.ones_like(steps[..., :1]), steps[..., 1:]], axis=2)
    return {
        # Below 1 by more than rounding to thousandths may add.
        "points": np.minimum(_unit(points), 0.999).reshape(-1, d + 1, s),
        "knots": np.sort(_unit(knots).reshape(-1, s, _JUMPS), axis=2),
        "levels": jumps.cumsum(axis=2),
    }


def _step_product_size(d: int) -> int:
    return (d + 1 + 2 * _JUMPS) * min(d, 2)


def _two_matrices(d: int) -> int:
    return 2 * d * d


FAMILIES: Mapping[str, InputFamily] = MappingProxyType(
    {
        "factor-pair": InputFamily(_two_matrices, _factor_pair),
        "factor-triple": InputFamily(lambda d: 3 * d * d, _factor_triple),
        "ordered-pair": InputFamily(_two_matrices, _ordered_pair, larger="larger"),
        "distribution-pair": InputFamily(
            lambda d: 2 * (d + 1), _distribution_pair, ("p", "p_estimate")
        ),
        "symmetric-pair": InputFamily(_two_matrices, _symmetric_pair),
        "simplex-triple": InputFamily(lambda d: 2 * d + 1, _simplex_triple, ("v", "w")),
        "vector-order": InputFamily(lambda d: d + 1, _vector_order),
        "independent-sums": InputFamily(lambda d: 4 * d + 1, _independent_sums),
        "step-products": InputFamily(_step_product_size, _step_products),
        "visits": InputFamily(lambda d: d + 2, _visits),
        "visits-burn-in": InputFamily(lambda d: d + 3, _visits_burn_in),
        "visits-long-burn-in": InputFamily(lambda d: d + 3, _visits_long_burn_in),
    }
)
