"""Verdicts: from evidence on one statement to its row in the report."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from genbounds.bounds import Bound
from genbounds.simulate._trials import (
    TAIL_ACCURACY,
    Exact,
    Pooled,
    exact_misses,
    miss_limits,
    pool,
)
from genbounds.simulate.auditing._importance import MissEstimate
from genbounds.simulate.auditing._results import FALSE_ALARM, AuditRow, CellResult, Check
from genbounds.simulate.auditing._scenarios import Scenario
from genbounds.simulate.auditing._search import SearchResult


@dataclass(frozen=True, slots=True)
class Measured:
    """What was found in one scenario, each list with an entry for each failure probability.

    Attributes
    ----------
    scenario : Scenario
    exact : list of Exact or None
    rare : list of MissEstimate or None, or None
        From tilted samples; None where all miss probabilities are exact.
    chunks : list of mapping
        Of `run_chunk`.
    """

    scenario: Scenario
    exact: Sequence[Exact | None]
    rare: Sequence[MissEstimate | None] | None
    chunks: Sequence[Mapping[str, Any]]


def decide(
    bound: Bound,
    cells: tuple[CellResult, ...],
    checks: tuple[Check, ...],
    searched: tuple[SearchResult, ...],
    edges: Mapping[str, float],
) -> AuditRow:
    """Weigh the evidence: `searched`, if there are any, stand behind `cells` one by one.

    `edges` are those of `exact_edges`.
    """
    against = [index for index, cell in enumerate(cells) if cell.refutes]
    contradicting = [check for check in checks if check.refutes]
    verdict = "upheld"
    if against or contradicting:
        verdict = "refuted"
    elif all(cell.trivial for cell in cells):
        verdict = "vacuous"
    counterexample = refuted_from = None
    refuted_at = {**_refuted_at([cells[index] for index in against]), **edges}
    if contradicting:
        counterexample = f"{contradicting[0].claim}; {contradicting[0].found}"
    if against and bound.form != "rate":
        simplest = min(against, key=lambda index: _complexity(cells[index]))
        refuted_from = None if searched else max(refuted_at.values())
        counterexample = (
            _inputs(bound, searched[simplest]) if searched else _case(bound, cells[simplest])
        )
    return AuditRow(
        id=bound.id,
        claim=bound.claim,
        source=bound.source,
        form=bound.form,
        repairs=bound.repairs,
        verdict=verdict,
        cells=len(cells),
        worst=max(cells, key=lambda cell: (cell.excess, cell.miss)),
        tightness=_tightness(bound, cells),
        counterexample=counterexample,
        refuted_from=refuted_from,
        refuted_at=refuted_at,
        results=cells,
        checks=checks,
    )


def _tightness(bound: Bound, cells: Sequence[CellResult]) -> float:
    """Median over the cells where it is known; for inequalities the smallest right/left found."""
    if bound.form == "deterministic":
        return min(cell.tightness for cell in cells)
    finite = [cell.tightness for cell in cells if math.isfinite(cell.tightness)]
    return float(np.median(finite)) if finite else math.nan


def _refuted_at(against: Sequence[CellResult]) -> dict[str, float]:
    """Largest failure probability by distribution; NaN where there is none."""
    largest: dict[str, float] = {}
    for cell in against:
        delta = math.nan if cell.delta is None else cell.delta
        largest[cell.arm] = max(delta, largest.get(cell.arm, 0.0))
    return largest


def _complexity(cell: CellResult) -> tuple[float, int, int]:
    """Smallest for the case that is easiest to check by hand."""
    return (-(cell.delta or 0.0), cell.d, cell.n or 0)


def fitted_cell(check: Check) -> CellResult:
    """Turn a fitted rate into a cell; nothing but its verdict and text is known."""
    empty = check.kind == "vacuous fit"
    return _decided(check.refutes, arm=check.claim, d=1, evidence="fit", trivial=empty)


def searched_cell(bound: Bound, result: SearchResult) -> CellResult:
    """Turn the search at one dimension into a cell."""
    more = {"arm": bound.setting, "d": result.d, "tightness": result.ratio}
    return _decided(result.confirmed, evidence="search", **more)


def _decided(refuted: bool, **more: Any) -> CellResult:
    """Cell of what misses always or never."""
    miss = float(refuted)
    return CellResult(miss=miss, miss_low=miss, miss_high=miss, **more)


def trial_cells(bound: Bound, measured: Sequence[Measured]) -> tuple[CellResult, ...]:
    """Make a cell of each scenario and failure probability."""
    # Only probabilities that are not known exactly can convict by chance.
    uncertain = sum(
        miss is None or miss[1] < miss[2] for evidence in measured for miss in evidence.exact
    )
    # Half of the false alarm is for plain samples. Their limits are two-sided at α, and only the
    # lower one refutes: α/2 for each of these.
    alpha = FALSE_ALARM / max(uncertain, 1)
    return tuple(
        _trial_cell(bound, evidence, index, alpha)
        for evidence in measured
        for index in range(len(evidence.scenario.deltas))
    )


def exact_edges(bound: Bound, measured: Sequence[Measured]) -> dict[str, float]:
    """Bisect where refutation begins, by distribution: exact tails say so between the deltas tried.

    Each is the largest failure probability of three digits for which the tail exceeds the claim, or
    the largest one tried.
    """
    edges: dict[str, float] = {}
    for evidence in measured:
        scenario, deltas = evidence.scenario, evidence.scenario.deltas
        tried = zip(deltas, evidence.exact, strict=True)
        beyond = [_exceeds(bound, delta, miss) for delta, miss in tried]
        if True not in beyond:
            continue
        first = beyond.index(True)
        low, high = deltas[first], deltas[max(first - 1, 0)]
        while low < (middle := float(f"{math.sqrt(low * high):.3g}")) < high:
            (miss,) = exact_misses(bound, scenario.arm, scenario.n, (middle,))
            low, high = (middle, high) if _exceeds(bound, middle, miss) else (low, middle)
        edges[scenario.arm.name] = max(low, edges.get(scenario.arm.name, 0.0))
    return edges


def _exceeds(bound: Bound, delta: float, miss: Exact | None) -> bool:
    """Whether an exact miss probability refutes."""
    if miss is None or miss[1] < miss[2]:
        return False
    return miss[1] > bound.claimed(delta) * (1.0 + TAIL_ACCURACY)


def _trial_cell(bound: Bound, measured: Measured, index: int, alpha: float) -> CellResult:
    arm, delta = measured.scenario.arm, measured.scenario.deltas[index]
    pooled = pool(measured.chunks, index)
    rare = None if measured.rare is None else measured.rare[index]
    (miss, low, high), evidence = _strongest(measured.exact[index], rare, pooled, alpha)
    return CellResult(
        arm=arm.name,
        n=measured.scenario.n,
        d=arm.d,
        delta=delta,
        claimed=bound.claimed(delta),
        miss=miss,
        miss_low=low,
        miss_high=high,
        evidence=evidence,
        width=pooled.width,
        tightness=pooled.tightness,
        trivial=pooled.trivial,
    )


def _strongest(
    exact: Exact | None, rare: MissEstimate | None, pooled: Pooled, alpha: float
) -> tuple[Exact, str]:
    """Miss probability with its limits, and the kind of evidence: the one that proves the most."""
    if exact is not None and exact[1] == exact[2]:
        return exact, "exact"
    low, high = miss_limits(pooled.misses, pooled.replications, alpha)
    plain = (pooled.misses / pooled.replications, low, high)
    if exact is not None:
        return (plain, "monte-carlo") if low > exact[1] else (exact, "numerical")
    if rare is None or low > rare[1]:
        return plain, "monte-carlo"
    return (rare[0], rare[1], max(high, rare[0])), "importance"


def _case(bound: Bound, cell: CellResult) -> str:
    how = {
        "exact": f"with probability {cell.miss:.6g} (exact)",
        "numerical": f"with probability {cell.miss_low:.6g} or more (numerical)",
        "monte-carlo": f"in {cell.miss:.6g} of the samples (at least {cell.miss_low:.6g})",
        "importance": f"with probability {cell.miss:.3g} (importance sampling; at least "
        f"{cell.miss_low:.3g})",
    }[cell.evidence]
    return (
        f"{cell.arm}, n = {cell.n}, δ = {cell.delta:g}: {bound.quantity.text} exceeds the width "
        f"{cell.width:.6g} {how}; claimed at most {cell.claimed:.6g}"
    )


def _inputs(bound: Bound, result: SearchResult) -> str:
    inputs = ", ".join(f"{name} = {value}" for name, value in result.inputs.items())
    inputs = inputs.replace("'", "")
    return f"{inputs}: {bound.quantity.text} = {result.left} exceeds the right side {result.right}"
