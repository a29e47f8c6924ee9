"""Families of inputs on which deterministic claims are attacked, each a map from free coordinates.

A family turns any point of some space ℝ^k into inputs that meet the conditions of its claims, so
that a search may move freely; and it turns inputs into fractions that meet them exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np

from genbounds.validation import Float

# Lengths of axes: d, classes or points, dimensions of a point, jumps of a step function.
_LENGTHS: Mapping[str, Callable[[int], int]] = MappingProxyType(
    {"d": lambda d: d, "c": lambda d: d + 1, "s": lambda d: min(d, 2), "j": lambda d: 2}
)


@dataclass(frozen=True, slots=True)
class InputFamily:
    """Inputs of one kind.

    Attributes
    ----------
    shapes : tuple of str
        Of the arrays that free coordinates fill, one after the other: a letter of `_LENGTHS` for
        each axis, none for a number.
    inputs : callable
        ``inputs(*arrays)`` returns inputs by name from these arrays, m of each.
    distributions : tuple of str
        Inputs that sum to one.
    larger : str or None
        The matrix that is at least another one in the Loewner order.
    """

    shapes: tuple[str, ...]
    inputs: Callable[..., dict[str, Float]]
    distributions: tuple[str, ...] = ()
    larger: str | None = None

    def size(self, d: int) -> int:
        """Return the number of coordinates at dimension d."""
        return sum(math.prod(shape) for shape in self._shapes_at(d))

    def decode(self, points: Float, d: int) -> dict[str, Float]:
        """Turn points of shape (m, size(d)) into inputs by name, m of each."""
        shapes = self._shapes_at(d)
        arrays = np.split(points, np.cumsum([math.prod(shape) for shape in shapes])[:-1], axis=1)
        pairs = zip(arrays, shapes, strict=True)
        return self.inputs(*(array.reshape(-1, *shape) for array, shape in pairs))

    def _shapes_at(self, d: int) -> list[tuple[int, ...]]:
        return [tuple(_LENGTHS[axis](d) for axis in shape) for shape in self.shapes]

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


def _distribution(theta: Float) -> Float:
    """Squares, normalised: any distribution, zeros included."""
    weights = np.square(theta) + np.where((theta == 0.0).all(axis=1), 1.0, 0.0)[:, None]
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _unit(theta: Float) -> Float:
    """Map the real line onto (0, 1)."""
    return 0.5 * (1.0 + theta / (1.0 + np.abs(theta)))


def _whole(theta: Float, most: float) -> Float:
    """Map the real line onto whole numbers from 1 to 1 + `most`."""
    return 1.0 + np.floor(np.minimum(np.abs(theta), most))


def _factors(factor: Float, other_factor: Float) -> dict[str, Float]:
    return {"factor": factor, "other_factor": other_factor}


def _factors_and_reference(
    factor: Float, other_factor: Float, reference: Float
) -> dict[str, Float]:
    # Invertible, as the claims ask: far enough from singular by its diagonal.
    scale, d = np.abs(reference).max(axis=(1, 2), keepdims=True) + 1e-3, reference.shape[1]
    reference_factor = reference + 3.0 * d * scale * np.eye(d)
    return _factors(factor, other_factor) | {"reference_factor": reference_factor}


def _ordered(root: Float, more: Float) -> dict[str, Float]:
    smaller = root @ root.mT
    # Well conditioned, so that inverting them costs no more than two digits.
    ridge = 0.05 * np.trace(smaller, axis1=1, axis2=2) + 1e-3
    smaller = smaller + ridge[:, None, None] * np.eye(root.shape[1])
    return {"smaller": smaller, "larger": smaller + more @ more.mT}


def _simplex(v: Float, w: Float, t: Float) -> dict[str, Float]:
    d = v.shape[1]
    kept = 1 + np.floor(_unit(t) * d).astype(int)
    inside = np.where(np.arange(d) < kept[:, None], w, 0.0)
    inside[:, 0] += np.where((inside == 0.0).all(axis=1), 1.0, 0.0)
    ordered = np.sort(_distribution(v), axis=1)[:, ::-1]
    return {"v": ordered, "t": kept, "w": _distribution(inside)}


def _visits(picks: Float, batch: Float, alpha: Float) -> dict[str, Float]:
    return {
        "picks": _whole(picks, 60.0),
        "batch": _whole(batch, 20.0),
        "alpha": 0.999 * _unit(alpha),
    }


def _visits_burn_in(*theta: Float) -> dict[str, Float]:
    return _visits(*theta[:3]) | {"burn_in": _whole(theta[3], 200.0)}


def _visits_long_burn_in(*theta: Float) -> dict[str, Float]:
    visits = _visits_burn_in(*theta)
    return visits | {"burn_in": visits["batch"] + visits["burn_in"] - 1.0}


def _independent_sums(*theta: Float) -> dict[str, Float]:
    names = ("weights", "shapes", "scales", "deviations")
    terms = {name: np.abs(sizes) for name, sizes in zip(names, theta, strict=False)}
    return terms | {"position": 2.0 * _unit(theta[-1]) - 1.0}


def _step_products(points: Float, knots: Float, steps: Float) -> dict[str, Float]:
    """Points, on a line at d = 1 and in a square beyond, and a step function of each axis."""
    # The first jump is 1: constants, with 0 on both sides, would be nearest to a violation.
    jumps = np.concatenate([steps[..., :1], np.ones_like(steps[..., :1]), steps[..., 1:]], axis=2)
    return {
        # Below 1 by more than rounding to thousandths may add.
        "points": np.minimum(_unit(points), 0.999),
        "knots": np.sort(_unit(knots), axis=2),
        "levels": jumps.cumsum(axis=2),
    }


FAMILIES: Mapping[str, InputFamily] = MappingProxyType(
    {
        "factor-pair": InputFamily(("dd", "dd"), _factors),
        "factor-triple": InputFamily(("dd", "dd", "dd"), _factors_and_reference),
        "ordered-pair": InputFamily(("dd", "dd"), _ordered, larger="larger"),
        "distribution-pair": InputFamily(
            ("c", "c"),
            lambda p, q: {"p": _distribution(p), "p_estimate": _distribution(q)},
            ("p", "p_estimate"),
        ),
        "symmetric-pair": InputFamily(("dd", "dd"), lambda a, b: {"a": a + a.mT, "b": b + b.mT}),
        "simplex-triple": InputFamily(("d", "d", ""), _simplex, ("v", "w")),
        "vector-order": InputFamily(
            ("d", ""), lambda v, x: {"v": v, "alpha": 1.0 + 0.999999 * _unit(x)}
        ),
        "independent-sums": InputFamily(("d", "d", "d", "d", ""), _independent_sums),
        "step-products": InputFamily(("cs", "sj", "sj"), _step_products),
        "visits": InputFamily(("d", "", ""), _visits),
        "visits-burn-in": InputFamily(("d", "", "", ""), _visits_burn_in),
        "visits-long-burn-in": InputFamily(("d", "", "", ""), _visits_long_burn_in),
    }
)
