"""Both sides of deterministic inequalities from rational inputs, without rounding to speak of."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from genbounds.bounds._bound import Bound, Constants, Inputs
from genbounds.validation import check_installed


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactSides:
    """The two sides of a deterministic inequality at one rational input.

    Attributes
    ----------
    violation : float
        (left − right) over the larger of the two, evaluated before rounding to a float.
    left, right : str
        Fractions where they are rational, else decimals of 20 digits.
    """

    violation: float
    left: str
    right: str


def exact_sides(bound: Bound, inputs: Inputs) -> ExactSides | None:
    """Evaluate a deterministic statement at a rational input.

    Parameters
    ----------
    bound : Bound
        A deterministic statement.
    inputs : mapping of str to Fraction or nested lists of Fraction

    Returns
    -------
    ExactSides or None
        None where a side of the statement is a function that has no exact twin here.
    """
    check_installed("an exact check", "audit", "mpmath")
    from mpmath import mp

    from genbounds.bounds import _twins as twins

    left = twins.twin_of(bound.quantity.function)
    right = twins.twin_of(bound.width_function)
    if left is None or right is None:
        return None
    with mp.workdps(twins.DIGITS):
        values = {name: twins.constant(value) for name, value in bound.constants.items()}
        constants = Constants(values, bound.id)
        sides = left(constants, inputs), right(constants, inputs)
        first, second = (twins.real(side) for side in sides)
        size = max(abs(first), abs(second))
        # Both are zero but for what their terms leave when they cancel.
        largest = max(1, *(abs(number) for name in inputs for number in _flat(inputs[name])))
        nothing = mp.mpf(10) ** (15 - twins.DIGITS) * twins.real(largest) ** 2
        violation = float((first - second) / size) if size > nothing else 0.0
        return ExactSides(violation=violation, left=_text(sides[0]), right=_text(sides[1]))


def _flat(value: Any) -> list[Fraction]:
    if not isinstance(value, list):
        return [Fraction(value)]
    return [number for entry in value for number in _flat(entry)]


def _text(value: Any) -> str:
    from mpmath import mp

    if isinstance(value, Fraction | int) or value == int(value):
        return str(value if isinstance(value, Fraction) else int(value))
    return str(mp.nstr(value, 20))
