"""Both sides of deterministic inequalities from rational inputs, without rounding to speak of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from genbounds.bounds import _inequalities
from genbounds.bounds._bound import Bound, Constants, Inputs
from genbounds.bounds._numbers import real
from genbounds.validation import check_installed

_DIGITS = 50


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
        None where a side of the statement is no function of this library.
    """
    check_installed("an exact check", "audit", "mpmath")
    from mpmath import mp

    if not (takes_exact(bound.quantity.function) and takes_exact(bound.width_function)):
        return None
    with mp.workdps(_DIGITS):
        numbers = {name: np.array(value, dtype=object) for name, value in inputs.items()}
        constants = {name: _number(value) for name, value in bound.constants.items()}
        error = bound.quantity.function(**{name: numbers[name] for name in bound.error_needs})
        chosen = {name: numbers[name] for name in bound.width_needs}
        width = bound.width_function(Constants(constants, bound.id), **chosen)
        left, right = np.asarray(error).item(), np.asarray(width).item()
        size = max(abs(real(left)), abs(real(right)))
        # Both are zero but for what their terms leave when they cancel.
        largest = max(1, *(abs(value) for array in numbers.values() for value in array.flat))
        nothing = mp.mpf(10) ** (15 - _DIGITS) * real(largest) ** 2
        violation = float((real(left) - real(right)) / size) if size > nothing else 0.0
        return ExactSides(violation=violation, left=_text(left), right=_text(right))


def takes_exact(function: Callable[..., Any]) -> bool:
    """Whether a side is a function of this library that takes exact numbers as well."""
    return vars(_inequalities).get(getattr(function, "__name__", "")) is function


def _number(constant: float) -> Any:
    """Return the number that a printed constant stands for: 1/e, or a short fraction."""
    from mpmath import mp

    if constant == _inequalities.CLIP:
        return 1 / mp.e
    short = Fraction(constant).limit_denominator(1000)
    return short if float(short) == constant else Fraction(constant)


def _text(value: Any) -> str:
    from mpmath import mp

    if isinstance(value, Fraction | int) or value == int(value):
        return str(value if isinstance(value, Fraction) else int(value))
    return str(mp.nstr(value, 20))
