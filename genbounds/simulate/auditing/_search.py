"""The search for inputs that violate a deterministic claim, and the families of inputs to search.

Two attacks at every dimension: Hypothesis draws small inputs and shrinks what violates to the
simplest form that still does; a numerical adversary perturbs the best of many random inputs and
then follows the gradient of the relative violation. What either finds is granted nothing until the
inequality, evaluated again at rational inputs with 50 digits, is violated too.

A family of inputs turns any point of some space ℝ^k into inputs that meet the conditions of its
claims, so that a search may move freely; and it turns inputs into fractions that meet them exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator, SeedSequence

from genbounds.bounds import Bound, ExactSides, exact_sides
from genbounds.validation import Float, InputError

# Of the inputs: 1, where claims degenerate, and a few more; three matrices at d = 5 already have 75
# free coordinates.
DIMENSIONS = (1, 2, 3, 5)

# A violation beyond this, relative to the larger side, refutes.
VIOLATION = 1e-12
# The same for sides that are known in double precision only: a thousand times their rounding.
_UNCONFIRMED = 1e-9

# The adversary: enough to find every error planted in tests/simulate/test_search.py, which are
# near the smallest changes of a constant that make a true inequality false.
_STARTS = 600
_KEPT = 30  # best points that are perturbed
_CHILDREN = 8  # of each in a round
_ROUNDS = 40
_ASCENTS = 4  # best points from which the gradient is followed
_ASCENT_STEPS = 15

# Hypothesis.
_EXAMPLES = 100
_SMALL = 3  # largest dimension at which small inputs are drawn
_BITS = 4  # of each coordinate: its sign, and three of its size
_DENOMINATORS = (1, 2, 10, 100, 1000)


# Inputs as fractions, and both sides at them.
Counterexample = tuple[dict[str, Any], ExactSides]


def search(bound: Bound, d: int, seeds: SeedSequence) -> dict[str, Any]:
    """Look for inputs of dimension `d` that violate a deterministic claim.

    Small inputs are drawn and shrunk by Hypothesis where d is small. Then starts are random with
    random scales and zeros; the best are perturbed with shrinking steps, then follow the gradient
    of the relative violation; a violation is simplified by rounding its coordinates as far as it
    survives.

    Returns
    -------
    dict
        The strongest attack found: ``d``; ``tried``, inputs evaluated by the numerical adversary;
        ``violation``, (left − right) / max(|left|, |right|) at ``inputs``, the largest found if
        there is none; ``ratio``, the smallest right/left found, 1 where the inequality is attained;
        ``left`` and ``right`` at ``inputs``: fractions, or 20 digits; 12 digits where they are
        known in double precision only; ``inputs``, a counterexample in its simplest form, whole
        numbers and fractions such as ``"1/3"``, else the inputs that come nearest, as decimals;
        ``confirmed``, whether the inequality is violated beyond rounding.

    Raises
    ------
    InputError
        If the setting of the statement is not known.
    """
    target = Target(bound, d)
    small, large = seeds.spawn(2)
    violation = shrunk(target, small) if d <= _SMALL else None
    points, score, tried = _attack(target, np.random.default_rng(large))
    order = np.argsort(-score, kind="stable")
    for index in order[:_ASCENTS]:
        if violation is None and score[index] > VIOLATION:
            simple = _simplify(target, points[[index]])
            violation = target.confirm(simple) or target.confirm(points[[index]])
    best = points[order[:1]]
    single, sides, ratio = target.single(best), *target.sides(best)
    broken = bound.violated(single, 1, 0.5)
    if broken:
        raise InputError(f"the inputs searched for `{bound.id}` break: {'; '.join(broken)}.")
    inputs = {name: np.round(single[name], 12).tolist() for name in bound.needs}
    if violation is not None:
        fractions, sides = violation
        inputs = {name: as_text(fractions[name]) for name in bound.needs}
    found = {"d": d, "tried": tried, "ratio": ratio, "inputs": inputs}
    return found | {"confirmed": violation is not None} | asdict(sides)


class Target:
    """A deterministic claim at one dimension, as a function of free coordinates.

    Raises
    ------
    InputError
        If the setting of the statement is not known.
    """

    def __init__(self, bound: Bound, d: int) -> None:
        if bound.setting not in FAMILIES:
            raise InputError(
                f"`{bound.id}` has the setting {bound.setting!r}; a counterexample can be searched "
                f"in {', '.join(FAMILIES)}."
            )
        self.bound, self.family = bound, FAMILIES[bound.setting]
        # d, classes or points, dimensions of a point, jumps of a step function.
        lengths = {"d": d, "c": d + 1, "s": min(d, 2), "j": 2}
        self.shapes = [tuple(lengths[axis] for axis in shape) for shape in self.family.shapes]
        *self.ends, self.size = np.cumsum([math.prod(shape) for shape in self.shapes]).tolist()

    def decode(self, points: Float) -> dict[str, Float]:
        """Turn points of shape (m, size) into inputs by name, m of each."""
        pairs = zip(np.split(points, self.ends, axis=1), self.shapes, strict=True)
        return self.family.inputs(*(array.reshape(-1, *shape) for array, shape in pairs))

    def single(self, point: Float) -> dict[str, Any]:
        """Return the inputs at one point."""
        return {name: value[0] for name, value in self.decode(point).items()}

    def _evaluate(self, points: Float) -> tuple[Float, Float, Float]:
        """Both sides at each of the points, and by how much the left one is larger."""
        inputs = self.decode(points)
        left = self.bound.error(**inputs)
        right = np.broadcast_to(self.bound.width(**inputs), left.shape)
        size = np.maximum(np.abs(left), np.abs(right))
        # Both sides zero: attained, not violated. A side that is no number never wins.
        score = np.divide(left - right, size, out=np.zeros_like(size), where=size > 0.0)
        return left, right, np.where(np.isfinite(score), score, -np.inf)

    def score(self, points: Float) -> Float:
        """Relative violation at each of the points; negative where the claim holds."""
        return self._evaluate(points)[2]

    def sides(self, point: Float) -> tuple[ExactSides, float]:
        """Both sides at one point, in double precision, and right over left."""
        left, right, violation = (float(values[0]) for values in self._evaluate(point))
        sides = ExactSides(violation=violation, left=f"{left:.12g}", right=f"{right:.12g}")
        return sides, right / left if left > 0.0 else np.inf

    def confirm(self, point: Float) -> Counterexample | None:
        """Evaluate a violation again at rational inputs, the simplest that violate."""
        single = self.single(point)
        as_is = self.family.rational(single, None)
        if exact_sides(self.bound, as_is) is None:  # known in double precision only
            sides, _ = self.sides(point)
            return (as_is, sides) if sides.violation > _UNCONFIRMED else None
        for denominator in (*_DENOMINATORS, None):
            inputs = self.family.rational(single, denominator)
            floats = {name: np.array(value, dtype=np.float64) for name, value in inputs.items()}
            if self.bound.violated(floats, 1, 0.5):
                continue
            exact = exact_sides(self.bound, inputs)
            if exact is not None and exact.violation > VIOLATION:
                return inputs, exact
        return None


def shrunk(target: Target, seeds: SeedSequence) -> Counterexample | None:
    """Let Hypothesis draw small whole-number coordinates, and shrink those that violate."""
    from random import Random

    from hypothesis import Phase, Verbosity, find, settings
    from hypothesis import strategies as st
    from hypothesis import target as guide
    from hypothesis.errors import NoSuchExample

    signs = np.array([-1.0, 1.0])
    powers = 2.0 ** np.arange(_BITS - 1)[::-1]  # the last bit is the last to shrink

    def coordinates(bits: list[bool]) -> Float:
        table = np.array(bits, dtype=np.int64).reshape(target.size, _BITS)
        return np.asarray(signs[1 - table[:, 0]] * (table[:, 1:] @ powers))[None]

    def violates(bits: list[bool]) -> bool:
        point = coordinates(bits)
        score = float(target.score(point)[0])
        if np.isfinite(score):
            guide(score)
        return score > VIOLATION and target.confirm(point) is not None

    # Bits only: what Hypothesis draws for numbers depends on the modules that happen to be loaded.
    # Every setting that an outer profile might change is given.
    options = settings(
        max_examples=_EXAMPLES,
        database=None,
        deadline=None,
        derandomize=False,
        phases=(Phase.generate, Phase.target, Phase.shrink),
        verbosity=Verbosity.quiet,
        print_blob=False,
        backend="hypothesis",
    )
    count = target.size * _BITS
    bits = st.lists(st.booleans(), min_size=count, max_size=count)
    seed = int(seeds.generate_state(1, np.uint64)[0])
    try:
        simplest = find(bits, violates, settings=options, random=Random(seed))
    except NoSuchExample:
        return None
    return target.confirm(coordinates(simplest))


def _attack(target: Target, rng: Generator) -> tuple[Float, Float, int]:
    """Random starts, shrinking perturbations, gradient ascent: points, scores, inputs tried."""
    points = rng.standard_normal((_STARTS, target.size))
    # Scales over three decades, zeros, and whole numbers: where inequalities tend to be tight.
    points *= 10.0 ** rng.uniform(-1.5, 1.5, points.shape)
    points[rng.random(points.shape) < 0.25] = 0.0
    points[: _STARTS // 4] = np.round(points[: _STARTS // 4])
    score = target.score(points)
    tried = _STARTS
    for step in np.geomspace(1.0, 1e-3, _ROUNDS):
        keep = np.argsort(-score, kind="stable")[:_KEPT]
        points, score = points[keep], score[keep]
        moved = np.repeat(points, _CHILDREN, axis=0)
        noise = rng.standard_normal(moved.shape) * (rng.random(moved.shape) < 0.5)
        moved = moved + step * noise * (np.abs(moved) + 0.1)
        points = np.concatenate([points, moved])
        score = np.concatenate([score, target.score(moved)])
        tried += len(moved)
    leaders = np.argsort(-score, kind="stable")[:_ASCENTS]
    climbed, climbed_score, spent = ascend(target, points[leaders], score[leaders])
    points, score = np.concatenate([points, climbed]), np.concatenate([score, climbed_score])
    return points, score, tried + spent


def ascend(target: Target, points: Float, score: Float) -> tuple[Float, Float, int]:
    """Gradient ascent on the relative violation, by central differences and a line search.

    Returns the points, their scores and the number of inputs evaluated. A step is taken only if
    it raises the score; at steps and kinks the gradient may mislead, but cannot harm.
    """
    points, score, tried = points.copy(), score.copy(), 0
    lengths = np.geomspace(1.0, 1e-8, 17)
    for index, start in enumerate(points):
        point = start
        for _ in range(_ASCENT_STEPS):
            step = 1e-6 * (np.abs(point) + 1e-3)
            probes = np.concatenate([point + np.diag(step), point - np.diag(step)])
            values = target.score(probes).reshape(2, -1)
            change = np.where(np.isfinite(values).all(axis=0), values[0] - values[1], 0.0)
            gradient = change / (2.0 * step)
            norm = float(np.linalg.norm(gradient))
            tried += probes.shape[0]
            if not norm > 0.0:
                break
            reach = max(float(np.linalg.norm(point)), 1e-3)
            line = point + reach * lengths[:, None] * gradient / norm
            scores = target.score(line)
            tried += line.shape[0]
            best = int(np.argmax(scores))
            if not scores[best] > score[index]:
                break
            point, score[index] = line[best], scores[best]
        points[index] = point
    return points, score, tried


def _simplify(target: Target, point: Float) -> Float:
    """Round all coordinates, then one by one, as coarsely as the violation survives."""
    for chosen in (slice(None), *range(point.shape[1])):
        for digits in (0, 1, 2):
            trial = point.copy()
            trial[0, chosen] = np.round(trial[0, chosen], digits)
            if target.score(trial)[0] > VIOLATION:
                point = trial
                break
    return point


# --- families of inputs --------------------------------------------------------------------------


class InputFamily(NamedTuple):
    """Inputs of one kind.

    Attributes
    ----------
    shapes : tuple of str
        Of the arrays that free coordinates fill, one after the other: a letter for each axis, see
        `Target`; none for a number.
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
            # To the diagonal is added what rounding may have taken from the eigenvalues.
            matrix = fractions[self.larger]
            largest = max(abs(value) for row in matrix for value in row)
            unit = largest / 10**12 if denominator is None else Fraction(1, denominator)
            for index, row in enumerate(matrix):
                row[index] += unit * len(matrix)
        return fractions


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


def _factors(factor: Float, other: Float, reference: Float) -> dict[str, Float]:
    # Invertible, as the claims ask: far enough from singular by its diagonal.
    scale, d = np.abs(reference).max(axis=(1, 2), keepdims=True) + 1e-3, reference.shape[1]
    reference = reference + 3.0 * d * scale * np.eye(d)
    return {"factor": factor, "other_factor": other, "reference_factor": reference}


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


def _visits(
    picks: Float, batch: Float, alpha: Float, burn_in: Float | None = None
) -> dict[str, Float]:
    picks, batch = _whole(picks, 60.0), _whole(batch, 20.0)
    visits = {"picks": picks, "batch": batch, "alpha": 0.999 * _unit(alpha)}
    return visits if burn_in is None else visits | {"burn_in": _whole(burn_in, 200.0)}


def _visits_long_burn_in(*theta: Float) -> dict[str, Float]:
    visits = _visits(*theta)
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


FAMILIES: Mapping[str, InputFamily] = {
    "factor-pair": InputFamily(("dd", "dd"), lambda a, b: {"factor": a, "other_factor": b}),
    "factor-triple": InputFamily(("dd", "dd", "dd"), _factors),
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
    "visits-burn-in": InputFamily(("d", "", "", ""), _visits),
    "visits-long-burn-in": InputFamily(("d", "", "", ""), _visits_long_burn_in),
}
