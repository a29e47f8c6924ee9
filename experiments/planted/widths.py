"""Planted errors in statements that have a width: too narrow by a factor, a term left out.

One set of samples a scenario serves all the planted errors of a statement, so that hundreds of
them cost what one quick audit does. Tilted samples are left out: an audit sees no less than this.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np

from genbounds.bounds import Bound, _exact
from genbounds.simulate._coverage import Scenario, as_rows, exact_misses, miss_limits
from genbounds.simulate._work import stream
from genbounds.simulate.auditing._checks import exact_checks
from genbounds.simulate.auditing._results import FALSE_ALARM
from genbounds.simulate.auditing._scenarios import scenarios_of
from genbounds.simulate.auditing._search import search

#: Factors of the width, from far too wide to far too narrow.
FACTORS = (10.0, 3.0, 2.0, 1.5, 1.3, 1.1, 1.0, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2,
           0.1, 0.05, 0.02, 0.01)  # fmt: skip

#: Constants without which nothing is left to evaluate.
_NO_TERMS = ("power", "mean_power", "sides", "share", "tuned_for", "bets", "largest")

#: Numbers held at once.
_MOST = 2**22

Refutes = Callable[[Bound], str]
"""``refutes(bound)`` says by what an audit would refute it: empty if by nothing."""


def scaled(bound: Bound, factor: float) -> Bound:
    """Return the statement with `factor` times its width."""

    @functools.wraps(bound.width_function)
    def width(*args: Any, **quantities: Any) -> Any:
        value = np.asarray(bound.width_function(*args, **quantities))
        return (Fraction(str(factor)) if value.dtype == object else factor) * value

    return dataclasses.replace(bound, width_function=width)


def without_terms(bound: Bound) -> dict[str, Bound]:
    """Return the statement without each of its terms: a constant 0, a union bound over nothing."""
    found = {}
    for name, value in bound.constants.items():
        gone = 1.0 if name.endswith("union") else 0.0
        if value not in (gone, 0.0) and name not in _NO_TERMS:
            found[name] = dataclasses.replace(bound, constants={**bound.constants, name: gone})
    return found


def seen_from(bound: Bound, refutes: Refutes) -> tuple[float | None, str]:
    """Return the largest of `FACTORS` at which the statement is refuted, and by what."""
    low, high = 0, len(FACTORS)  # refuted from index `high` on, as far as is known
    by = ""
    while low < high:
        middle = (low + high) // 2
        found = refutes(scaled(bound, FACTORS[middle]))
        if found:
            high, by = middle, found
        else:
            low = middle + 1
    return (FACTORS[high], by) if by else (None, "")


def judge(bound: Bound, replications: int, seed: int) -> Refutes:
    """Return what refutes variants of `bound`; the samples are drawn once, here."""
    if bound.form == "deterministic":
        return functools.partial(_searched, seed)
    cells = [_Cell(bound, scenario, replications, seed) for scenario in scenarios_of(bound)]
    alpha = FALSE_ALARM / sum(len(cell.scenario.deltas) for cell in cells)

    def refutes(variant: Bound) -> str:
        for kind in ("exact", "draws"):
            for cell in cells:
                found = cell.exact(variant) if kind == "exact" else cell.drawn(variant, alpha)
                if found:
                    return found
        try:
            checks = [check for check in exact_checks(variant) if check.refutes]
        except (ZeroDivisionError, ValueError):  # nothing is left of the width: no rate to check
            return ""
        return f"exact check ({checks[0].kind})" if checks else ""

    return refutes


def _searched(seed: int, variant: Bound) -> str:
    # What a search finds is confirmed with 50 digits: a scaled width takes what the width takes.
    takes = _exact.takes_exact
    with mock.patch.object(_exact, "takes_exact", lambda side: takes(inspect.unwrap(side))):
        for d in (1, 2):
            if search(variant, d, stream(seed, variant.id, "planted", d))["confirmed"]:
                return f"search at d = {d}"
    return ""


class _Cell:
    """One scenario: exact probabilities where there are any, and samples drawn when asked for."""

    def __init__(self, bound: Bound, scenario: Scenario, replications: int, seed: int) -> None:
        self.scenario, self.bound, self.seed = scenario, bound, seed
        size = max(scenario.arm.size(bound.needs, scenario.n), 1)
        self.replications = int(min(replications, max(_MOST // size, 20)))
        self.known = True

    def exact(self, variant: Bound) -> str:
        scenario = self.scenario
        if not self.known:
            return ""
        found = exact_misses(variant, scenario)
        self.known = None not in found
        for delta, miss in zip(scenario.deltas, found, strict=True):
            if miss is not None and miss[1] > variant.claimed(delta) * (1.0 + 1e-7):
                return "exact tail"
        return ""

    @functools.cached_property
    def quantities(self) -> Mapping[str, Any]:
        arm, n = self.scenario.arm, self.scenario.n
        rng = np.random.default_rng(stream(self.seed, self.bound.id, self.scenario.label))
        drawn = arm.statistics(self.bound.needs, n, self.replications, rng)
        return dict(arm.facts) | drawn | {"n": n}

    @functools.cached_property
    def error(self) -> Any:
        return as_rows(self.bound.error(**self.quantities), self.replications)

    def drawn(self, variant: Bound, alpha: float) -> str:
        if self.known:
            return ""
        for delta in self.scenario.deltas:
            width = as_rows(variant.width(**self.quantities, delta=delta), self.replications)
            held = (self.error <= width).all(axis=1)
            missed = int(self.replications - np.count_nonzero(held))
            if miss_limits(missed, self.replications, alpha)[0] > variant.claimed(delta):
                return f"{self.replications:,} samples"
        return ""
