"""What a concentration statement is made of."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cache, partial, reduce
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from genbounds.validation import Float, InputError, check_choice

Facts = Mapping[str, Any]
"""True quantities of a distribution, such as ``{"variance": 1.0, "families": {"gaussian"}}``."""

# Of an exact side: fractions, or nested lists of them, by name.
Inputs = Mapping[str, Any]

Form = Literal["oracle", "plug-in", "deterministic", "rate"]

# A deterministic claim may be missed by the rounding of both its sides.
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """What a statement bounds: a function of true quantities and of the sample.

    Attributes
    ----------
    name : str
        Also that under which an arm may know its exact distribution; one of your own that has the
        name of another in the catalogue is drawn.
    text : str
        One line of mathematics.
    function : callable
        ``function(**quantities)``; the names of its parameters are the quantities it needs.
    """

    name: str
    text: str
    function: Callable[..., Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """One condition of a statement, in words and as a predicate.

    Attributes
    ----------
    text : str
        The condition as the source states it.
    predicate : callable
        ``predicate(facts, n, delta)`` is True where the condition is met; an unknown fact does
        not meet it.
    """

    text: str
    predicate: Callable[[Facts, int, float], bool]

    def met(self, facts: Facts, n: int, delta: float) -> bool:
        """Whether `facts` meet it at `n` and `delta`; False where one that it takes is missing."""
        try:
            return bool(self.predicate(facts, n, delta))
        except KeyError:
            return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A concentration statement: with probability at least 1 − `failure` · δ, error ≤ width.

    Attributes
    ----------
    id : str
        As in the catalogue, ``"<source>.<name>"``; those of this library are ``"repaired.<name>"``.
    claim, latex : str
        The statement in one line of text, and as LaTeX mathematics.
    source : str
        Paper and equation, or the reference of a repair.
    setting : str
        The family of distributions or inputs that the statement is about.
    form : {"oracle", "plug-in", "deterministic", "rate"}
        Whether the width needs true quantities, only the sample, or holds without probability
        (then `width` is the right side of the inequality and the claimed miss probability is 0);
        "rate" claims an order of growth only, which `width` gives up to a constant.
    assumptions : tuple of Assumption
    quantity : Quantity
        The error that is bounded.
    constants : mapping of str to float
        The constants as printed, read-only. ``dataclasses.replace(bound, constants=...)`` gives
        the same statement with others.
    width_function : callable
        ``width_function(constants, **quantities)``, by the names of the parameters.
    failure : float
        Share of δ that the statement spends: 1/3 where it claims probability 1 − δ/3.
    limit : Quantity or None
        What the error cannot exceed whatever the sample; a width beyond it says nothing.
    repairs : str or None
        Id of the statement that this one replaces.
    """

    id: str
    claim: str
    latex: str
    source: str
    setting: str
    quantity: Quantity
    constants: Mapping[str, float]
    width_function: Callable[..., Any]
    form: Form = "oracle"
    assumptions: tuple[Assumption, ...] = ()
    failure: float = 1.0
    limit: Quantity | None = None
    repairs: str | None = None

    def __post_init__(self) -> None:
        check_choice("form", self.form, ("oracle", "plug-in", "deterministic", "rate"))
        object.__setattr__(self, "constants", MappingProxyType(dict(self.constants)))

    def __reduce__(self) -> tuple[Any, ...]:
        state = {field.name: getattr(self, field.name) for field in fields(self)}
        return partial(Bound, **(state | {"constants": dict(self.constants)})), ()

    @property
    def width_needs(self) -> tuple[str, ...]:
        """Names of the quantities that `width` takes, `n` and `delta` among them."""
        return _parameters(self.width_function)[1:]

    @property
    def error_needs(self) -> tuple[str, ...]:
        """Names of the quantities that `error` takes."""
        return _parameters(self.quantity.function)

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of all quantities but `n` and `delta`, each once."""
        limit = () if self.limit is None else _parameters(self.limit.function)
        names = dict.fromkeys((*self.error_needs, *self.width_needs, *limit))
        return tuple(name for name in names if name not in ("n", "delta"))

    def width(self, **quantities: Any) -> Float:
        """Evaluate the right side of the statement.

        Parameters
        ----------
        **quantities : float or ndarray
            The quantities of `width_needs`, which broadcast against one another: `n` samples,
            `delta` the failure probability, the others by name; superfluous ones are ignored.

        Returns
        -------
        ndarray
            In the unit of the error.

        Raises
        ------
        InputError
            If a quantity is missing, or a constant that the width takes.
        """
        chosen = self._choose(self.width_needs, quantities)
        constants = Constants(self.constants, self.id)
        return np.asarray(self.width_function(constants, **chosen), dtype=np.float64)

    def error(self, **quantities: Any) -> Float:
        """Evaluate the left side of the statement, the error, from the quantities `error_needs`."""
        chosen = self._choose(self.error_needs, quantities)
        return np.asarray(self.quantity.function(**chosen), dtype=np.float64)

    def holds(self, **quantities: Any) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Whether error ≤ width; a deterministic claim is granted its rounding, 1e-12 relative.

        The quantities are those of `width` and `error` together. NaN on either side does not hold.
        """
        error, width = self.error(**quantities), self.width(**quantities)
        slack: Any = 0.0
        if self.form == "deterministic":
            slack = ROUNDING * np.maximum(np.abs(error), np.abs(width))
        return np.asarray(error <= width + slack)

    def most(self, **quantities: Any) -> Float:
        """Evaluate `limit` at these quantities, what the error cannot exceed.

        Infinite if there is no such thing.
        """
        if self.limit is None:
            return np.asarray(np.inf)
        chosen = self._choose(_parameters(self.limit.function), quantities)
        return np.asarray(self.limit.function(**chosen), dtype=np.float64)

    def claimed(self, delta: float) -> float:
        """Probability of a miss that the statement allows at `delta`."""
        return 0.0 if self.form in ("deterministic", "rate") else self.failure * delta

    def violated(self, facts: Facts, n: int, delta: float) -> tuple[str, ...]:
        """Name the assumptions that a distribution does not meet at `n` and `delta`.

        `facts` say what is true of it; nothing is returned if all assumptions are met.
        """
        return tuple(
            assumption.text
            for assumption in self.assumptions
            if not assumption.met(facts, n, delta)
        )

    def _choose(self, names: tuple[str, ...], quantities: Facts) -> dict[str, Any]:
        missing = [name for name in names if name not in quantities]
        if missing:
            raise InputError(
                f"`{self.id}` needs {', '.join(f'`{name}`' for name in missing)}: "
                f"pass {', '.join(f'`{name}`' for name in names)} by name."
            )
        return {name: quantities[name] for name in names}


class Constants(dict[str, float]):
    """The constants of a bound, by name; one that is not there is named as the bound has it.

    Parameters
    ----------
    values : mapping of str to number
    bound : str
        Id of the statement.
    prefix : str
        What the names of the bound have before those of `values`: see `part`.
    """

    def __init__(self, values: Mapping[str, Any], bound: str, prefix: str = "") -> None:
        super().__init__(values)
        self._bound = bound
        self._prefix = prefix

    def part(self, name: str, **shared: float) -> Constants:
        """Constants of one printed sub-formula: those named ``<name>_…``, by what follows.

        `shared` are those that it has from the whole formula.
        """
        prefix = f"{name}_"
        chosen = {
            key.removeprefix(prefix): value for key, value in self.items() if key.startswith(prefix)
        }
        return Constants(chosen | shared, self._bound, self._prefix + prefix)

    def __missing__(self, name: str) -> float:
        raise InputError(
            f"`{self._bound}` has a width that takes the constant {self._prefix + name!r}, which "
            "`constants` does not hold: add it there."
        )


# ``width(constants, **quantities)``, by the names of its parameters.
Width = Callable[..., Any]


class Composed:
    """A width made of others, which takes what they take, by the same names.

    Parameters
    ----------
    *terms : callable
        Widths that are added up, in this order.
    **given : callable
        Widths that stand in the terms for the quantities of these names: a bound on the error of
        the mean, for one, in place of that error.
    """

    def __init__(self, *terms: Width, **given: Width) -> None:
        self._terms, self._given = terms, given
        asked = [name for term in terms for name in _parameters(term)[1:] if name not in given]
        asked = [name for width in given.values() for name in _parameters(width)[1:]] + asked
        self.__signature__ = _signature("c", *dict.fromkeys(asked))

    def __call__(self, c: Constants, **quantities: Any) -> Any:
        made = {name: _evaluate(width, c, quantities) for name, width in self._given.items()}
        terms = (_evaluate(term, c, quantities | made) for term in self._terms)
        return reduce(operator.add, terms)


class Part:
    """A width whose constants are those of one part of a formula; see `Constants.part`.

    Parameters
    ----------
    name : str
    width : callable
    *shared : str
        Constants that it has from the whole formula.
    """

    def __init__(self, name: str, width: Width, *shared: str) -> None:
        self._name, self._width, self._shared = name, width, shared
        self.__signature__ = _signature(*_parameters(width))

    def __call__(self, c: Constants, **quantities: Any) -> Any:
        shared = {name: c[name] for name in self._shared}
        return self._width(c.part(self._name, **shared), **quantities)


@dataclass(frozen=True, slots=True)
class ByName:
    """A function whose parameters are, in their order, the quantities of these `names`."""

    function: Callable[..., Any]
    names: tuple[str, ...]

    @property
    def __signature__(self) -> inspect.Signature:
        return _signature(*self.names)

    def __call__(self, **quantities: Any) -> Any:
        return self.function(*(quantities[name] for name in self.names))


def quantity(name: str, text: str, function: Callable[..., Any], *names: str) -> Quantity:
    """`Quantity` by position; `names` of what `function` takes, if its parameters have others."""
    return Quantity(name=name, text=text, function=ByName(function, names) if names else function)


def gap(a: Any, b: Any) -> Any:
    """Return |a − b|."""
    return np.abs(a - b)


def unit() -> float:
    """Return 1, what a probability cannot exceed."""
    return 1.0


def kind(
    setting: str, error: Quantity, *assumptions: Assumption, **more: Any
) -> Callable[..., Callable[..., Bound]]:
    """Return a maker of statements about one error under the same assumptions.

    Called with what is a statement's own, its id, width and constants, it waits for the claim in
    words and in LaTeX, its source, and what else differs: any field of `Bound` by its name.

    Parameters
    ----------
    setting, error, assumptions
        As in `Bound`.
    **more
        Further fields that the statements share, such as `form` and `limit`.
    """

    def statement(
        name: str, width: Callable[..., Any], /, **constants: float
    ) -> Callable[..., Bound]:
        shared: dict[str, Any] = {"setting": setting, "quantity": error, "assumptions": assumptions}
        return partial(Bound, id=name, width_function=width, constants=constants, **(shared | more))

    return statement


def _evaluate(width: Width, c: Constants, quantities: Facts) -> Any:
    return width(c, **{name: quantities[name] for name in _parameters(width)[1:]})


def _signature(*names: str) -> inspect.Signature:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Signature([inspect.Parameter(name, kind) for name in names])


@cache
def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)
