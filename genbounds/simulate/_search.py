"""The search for inputs that violate a deterministic claim.

Two attacks at every dimension: Hypothesis draws small inputs and shrinks what violates to the
simplest form that still does; a numerical adversary perturbs the best of many random inputs and
then follows the gradient of the relative violation. What either finds is granted nothing until the
inequality, evaluated again at rational inputs with 50 digits, is violated too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np

from genbounds.bounds import Bound, ExactSides, exact_sides
from genbounds.validation import Float, InputError

# A violation beyond this, relative to the larger side, refutes.
VIOLATION = 1e-12
# The same for sides that are known in double precision only: a thousand times their rounding.
_UNCONFIRMED = 1e-9

_STARTS = 600
_KEPT = 30
_ROUNDS = 40
_ASCENTS = 4  # best points from which the gradient is followed
_ASCENT_STEPS = 15
DIMENSIONS = (1, 2, 3, 5)

_EXAMPLES = 100
_SMALL = 3  # largest dimension at which small inputs are drawn
_BITS = 4  # of each coordinate: its sign, and three of its size
_DENOMINATORS = (1, 2, 10, 100, 1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """The strongest attack found at one dimension.

    Attributes
    ----------
    d : int
        Dimension of the inputs.
    tried : int
        Inputs evaluated by the numerical adversary.
    violation : float
        Relative violation (left − right) / max(|left|, |right|) at `inputs`; the largest found if
        there is none.
    ratio : float
        Smallest right/left found; 1 where the inequality is attained.
    left, right : str
        Both sides at `inputs`: fractions, or 20 digits; 12 digits where only double precision is
        at hand.
    inputs : dict of str to list
        A counterexample in its simplest form, whole numbers and fractions such as ``"1/3"``; else
        the inputs that come nearest, as decimals.
    confirmed : bool
        Whether the inequality is violated.
    """

    d: int
    tried: int
    violation: float
    ratio: float
    left: str
    right: str
    inputs: dict[str, Any]
    confirmed: bool

    @property
    def refutes(self) -> bool:
        """Whether the inequality is violated beyond rounding."""
        return self.confirmed


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counterexample:
    inputs: dict[str, Any]
    sides: ExactSides


def search(bound: Bound, d: int, seeds: np.random.SeedSequence) -> SearchResult:
    """Look for inputs of dimension `d` that violate a deterministic claim.

    Small inputs are drawn and shrunk by Hypothesis where d is small. Then starts are random with
    random scales and zeros; the best are perturbed with shrinking steps, then follow the gradient
    of the relative violation; a violation is simplified by rounding its coordinates as far as it
    survives.

    Raises
    ------
    InputError
        If the setting of the statement is not known.
    """
    if bound.setting not in FAMILIES:
        raise InputError(
            f"`{bound.id}` has the setting {bound.setting!r}; a counterexample can be searched in "
            f"{', '.join(FAMILIES)}."
        )
    small, large = seeds.spawn(2)
    found = _shrunk(bound, d, small) if d <= _SMALL else None
    points, score, tried = _attack(bound, d, np.random.default_rng(large))
    order = np.argsort(-score, kind="stable")
    for index in order[:_ASCENTS]:
        if found is None and score[index] > VIOLATION:
            simple = _simplify(bound, points[[index]], d)
            found = _confirm(bound, simple, d) or _confirm(bound, points[[index]], d)
    _, decode = FAMILIES[bound.setting]
    best = decode(points[order[:1]], d)
    left = float(bound.error(**best)[0])
    right = float(np.broadcast_to(bound.width(**best), (1,))[0])
    single = {name: best[name][0] for name in best}
    broken = bound.violated(single, 1, 0.5)
    if broken:
        raise InputError(f"the inputs searched for `{bound.id}` break: {'; '.join(broken)}.")
    ratio = right / left if left > 0.0 else np.inf
    if found is not None:
        return SearchResult(
            d=d,
            tried=tried,
            violation=found.sides.violation,
            ratio=ratio,
            left=found.sides.left,
            right=found.sides.right,
            inputs={name: _printed(found.inputs[name]) for name in bound.needs},
            confirmed=True,
        )
    return SearchResult(
        d=d,
        tried=tried,
        violation=float(score[order[0]]),
        ratio=ratio,
        left=f"{left:.12g}",
        right=f"{right:.12g}",
        inputs={name: np.round(single[name], 12).tolist() for name in bound.needs},
        confirmed=False,
    )


def _attack(bound: Bound, d: int, rng: np.random.Generator) -> tuple[Float, Float, int]:
    """Random starts, shrinking perturbations, gradient ascent: points, scores, inputs tried."""
    size, decode = FAMILIES[bound.setting]
    points = rng.standard_normal((_STARTS, size(d)))
    points *= 10.0 ** rng.uniform(-1.5, 1.5, points.shape)
    points[rng.random(points.shape) < 0.25] = 0.0
    points[: _STARTS // 4] = np.round(points[: _STARTS // 4])
    score = _score(bound, decode(points, d))
    tried = _STARTS
    for step in np.geomspace(1.0, 1e-3, _ROUNDS):
        keep = np.argsort(-score, kind="stable")[:_KEPT]
        points, score = points[keep], score[keep]
        moved = np.repeat(points, 8, axis=0)
        noise = rng.standard_normal(moved.shape) * (rng.random(moved.shape) < 0.5)
        moved = moved + step * noise * (np.abs(moved) + 0.1)
        points = np.concatenate([points, moved])
        score = np.concatenate([score, _score(bound, decode(moved, d))])
        tried += len(moved)
    leaders = np.argsort(-score, kind="stable")[:_ASCENTS]
    climbed, climbed_score, spent = _ascend(bound, points[leaders], score[leaders], d)
    points, score = np.concatenate([points, climbed]), np.concatenate([score, climbed_score])
    return points, score, tried + spent


def _shrunk(bound: Bound, d: int, seeds: np.random.SeedSequence) -> _Counterexample | None:
    """Let Hypothesis draw small whole-number coordinates, and shrink those that violate."""
    from random import Random

    from hypothesis import Phase, Verbosity, find, settings, target
    from hypothesis import strategies as st
    from hypothesis.errors import NoSuchExample

    size, decode = FAMILIES[bound.setting]
    count = size(d)
    signs = np.array([-1.0, 1.0])
    powers = 2.0 ** np.arange(_BITS - 1)[::-1]  # the last bit is the last to shrink

    def coordinates(bits: list[bool]) -> Float:
        table = np.array(bits, dtype=np.int64).reshape(count, _BITS)
        return np.asarray(signs[1 - table[:, 0]] * (table[:, 1:] @ powers))[None]

    def violates(bits: list[bool]) -> bool:
        point = coordinates(bits)
        score = float(_score(bound, decode(point, d))[0])
        if np.isfinite(score):
            target(score)
        return score > VIOLATION and _confirm(bound, point, d) is not None

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
    bits = st.lists(st.booleans(), min_size=count * _BITS, max_size=count * _BITS)
    seed = int(seeds.generate_state(1, np.uint64)[0])
    try:
        simplest = find(bits, violates, settings=options, random=Random(seed))
    except NoSuchExample:
        return None
    return _confirm(bound, coordinates(simplest), d)


def _confirm(bound: Bound, point: Float, d: int) -> _Counterexample | None:
    """Evaluate a violation again at rational inputs, the simplest that violate."""
    _, decode = FAMILIES[bound.setting]
    single = {name: value[0] for name, value in decode(point, d).items()}
    if exact_sides(bound, _rational(bound.setting, single, None)) is None:
        score = float(_score(bound, decode(point, d))[0])
        if score <= _UNCONFIRMED:
            return None
        sides = ExactSides(
            violation=score,
            left=f"{float(bound.error(**decode(point, d))[0]):.12g}",
            right=f"{float(np.broadcast_to(bound.width(**decode(point, d)), (1,))[0]):.12g}",
        )
        return _Counterexample(inputs=_rational(bound.setting, single, None), sides=sides)
    for denominator in (*_DENOMINATORS, None):
        inputs = _rational(bound.setting, single, denominator)
        if bound.violated(_floats(inputs), 1, 0.5):
            continue
        found = exact_sides(bound, inputs)
        if found is not None and found.violation > VIOLATION:
            return _Counterexample(inputs=inputs, sides=found)
    return None


def _rational(setting: str, single: Mapping[str, Any], denominator: int | None) -> dict[str, Any]:
    """Turn inputs into fractions that meet their conditions exactly: sums to one, A ⪰ B."""

    def near(value: Any) -> Any:
        if np.ndim(value):
            return [near(part) for part in value]
        exact = Fraction(float(value))
        return exact if denominator is None else Fraction(round(exact * denominator), denominator)

    found = {name: near(value) for name, value in single.items()}
    for name in _DISTRIBUTIONS.get(setting, ()):
        total = sum(found[name], Fraction(0))
        if total > 0:
            found[name] = [value / total for value in found[name]]
    if setting == "ordered-pair":
        # What rounding may have taken from A − B.
        unit = Fraction(1, denominator) if denominator else Fraction(1, 10**12)
        largest = max(abs(value) for row in found["larger"] for value in row)
        slack = unit * len(found["larger"]) * (largest if denominator is None else 1)
        for index, row in enumerate(found["larger"]):
            row[index] += slack
    return found


def _floats(inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: np.array(value, dtype=np.float64) for name, value in inputs.items()}


def _printed(value: Any) -> Any:
    """Whole numbers as such, other fractions as text."""
    if isinstance(value, list):
        return [_printed(part) for part in value]
    return value.numerator if value.denominator == 1 else str(value)


def _ascend(bound: Bound, points: Float, score: Float, d: int) -> tuple[Float, Float, int]:
    """Gradient ascent on the relative violation, by central differences and a line search.

    Returns the points, their scores and the number of inputs evaluated. A step is taken only if
    it raises the score; at steps and kinks the gradient may mislead, but cannot harm.
    """
    _, decode = FAMILIES[bound.setting]
    points, score, tried = points.copy(), score.copy(), 0
    lengths = np.geomspace(1.0, 1e-8, 17)
    for index, start in enumerate(points):
        point = start
        for _ in range(_ASCENT_STEPS):
            step = 1e-6 * (np.abs(point) + 1e-3)
            probes = np.concatenate([point + np.diag(step), point - np.diag(step)])
            values = _score(bound, decode(probes, d)).reshape(2, -1)
            change = np.where(np.isfinite(values).all(axis=0), values[0] - values[1], 0.0)
            gradient = change / (2.0 * step)
            norm = float(np.linalg.norm(gradient))
            tried += probes.shape[0]
            if not norm > 0.0:
                break
            reach = max(float(np.linalg.norm(point)), 1e-3)
            line = point + reach * lengths[:, None] * gradient / norm
            found = _score(bound, decode(line, d))
            tried += line.shape[0]
            best = int(np.argmax(found))
            if not found[best] > score[index]:
                break
            point, score[index] = line[best], found[best]
        points[index] = point
    return points, score, tried


def _score(bound: Bound, inputs: Mapping[str, Float]) -> Float:
    """Relative violation; negative where the claim holds."""
    left = bound.error(**inputs)
    right = np.broadcast_to(bound.width(**inputs), left.shape)
    size = np.maximum(np.abs(left), np.abs(right))
    # Both sides zero: attained, not violated. A side that is no number never wins.
    score = np.divide(left - right, size, out=np.zeros_like(size), where=size > 0.0)
    return np.where(np.isfinite(score), score, -np.inf)


def _simplify(bound: Bound, point: Float, d: int) -> Float:
    """Round all coordinates, then one by one, as coarsely as the violation survives."""

    def violates(candidate: Float) -> bool:
        _, decode = FAMILIES[bound.setting]
        return bool(_score(bound, decode(candidate, d))[0] > VIOLATION)

    for digits in (0, 1, 2):
        rounded = np.round(point, digits)
        if violates(rounded):
            point = rounded
            break
    for index in range(point.shape[1]):
        for digits in (0, 1, 2):
            trial = point.copy()
            trial[0, index] = np.round(trial[0, index], digits)
            if violates(trial):
                point = trial
                break
    return point


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


_DISTRIBUTIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"distribution-pair": ("p", "p_estimate"), "simplex-triple": ("v", "w")}
)

Decode = Callable[[Float, int], dict[str, Float]]

FAMILIES: Mapping[str, tuple[Callable[[int], int], Decode]] = MappingProxyType(
    {
        "factor-pair": (lambda d: 2 * d * d, _factor_pair),
        "factor-triple": (lambda d: 3 * d * d, _factor_triple),
        "ordered-pair": (lambda d: 2 * d * d, _ordered_pair),
        "distribution-pair": (lambda d: 2 * (d + 1), _distribution_pair),
        "symmetric-pair": (lambda d: 2 * d * d, _symmetric_pair),
        "simplex-triple": (lambda d: 2 * d + 1, _simplex_triple),
        "vector-order": (lambda d: d + 1, _vector_order),
        "visits": (lambda d: d + 2, _visits),
    }
)
