"""Verdicts: from evidence on one statement to its row in the report."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from genbounds.bounds import Bound
from genbounds.simulate import _trials as trials
from genbounds.simulate.auditing._results import FALSE_ALARM, AuditRow, CellResult, Check
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

    scenario: trials.Scenario
    exact: Sequence[trials.Exact | None]
    rare: Sequence[trials.MissEstimate | None] | None
    chunks: Sequence[Mapping[str, Any]]


def of_fits(bound: Bound, checks: tuple[Check, ...]) -> AuditRow:
    """Judge a rate by its fits, of which nothing but verdict and text is known."""
    cells = tuple(
        _certain(
            check.refutes, arm=check.claim, d=1, evidence="fit", trivial=check.kind == "vacuous fit"
        )
        for check in checks
    )
    return _decide(bound, cells, checks)


def of_searches(
    bound: Bound, checks: tuple[Check, ...], searched: Mapping[int, SearchResult]
) -> AuditRow:
    """Judge a deterministic claim by the search at each dimension."""
    cells = tuple(
        _certain(
            result.confirmed, arm=bound.setting, d=d, evidence="search", tightness=result.ratio
        )
        for d, result in searched.items()
    )

    def inputs(cell: CellResult) -> str:
        result = searched[cell.d]
        values = ", ".join(f"{name} = {value}" for name, value in result.inputs.items())
        sides = f"{result.left} exceeds the right side {result.right}"
        return f"{values}: {bound.quantity.text} = {sides}".replace("'", "")

    return _decide(bound, cells, checks, inputs)


def of_trials(bound: Bound, checks: tuple[Check, ...], measured: Sequence[Measured]) -> AuditRow:
    """Judge a claim about probabilities: a cell for each scenario and failure probability."""
    # Only probabilities that are not known exactly can convict by chance.
    uncertain = sum(
        miss is None or miss[1] < miss[2] for evidence in measured for miss in evidence.exact
    )
    # Half of the false alarm is for plain samples. Their limits are two-sided at α, and only the
    # lower one refutes: α/2 for each of these.
    alpha = FALSE_ALARM / max(uncertain, 1)
    cells = tuple(
        _trial_cell(bound, evidence, index, alpha)
        for evidence in measured
        for index in range(len(evidence.scenario.deltas))
    )
    edges = _exact_edges(bound, measured)
    return _decide(bound, cells, checks, lambda cell: _case(bound, cell), edges)


def _certain(missed: bool, **more: Any) -> CellResult:
    """Cell of what misses always or never."""
    miss = float(missed)
    return CellResult(miss=miss, miss_low=miss, miss_high=miss, **more)


def _decide(
    bound: Bound,
    cells: tuple[CellResult, ...],
    checks: tuple[Check, ...],
    describe: Callable[[CellResult], str] | None = None,
    edges: Mapping[str, float] = MappingProxyType({}),
) -> AuditRow:
    """Weigh the evidence; `describe` says of a cell that refutes what can be checked by hand.

    `edges` are those of `_exact_edges`.
    """
    against = [cell for cell in cells if cell.refutes]
    contradicting = [check for check in checks if check.refutes]
    verdict = "upheld"
    if against or contradicting:
        verdict = "refuted"
    elif all(cell.trivial for cell in cells):
        verdict = "vacuous"
    refuted_at: dict[str, float] = {}
    for cell in against:
        delta = math.nan if cell.delta is None else cell.delta
        refuted_at[cell.arm] = max(delta, refuted_at.get(cell.arm, 0.0))
    refuted_at |= edges
    counterexample = None
    if against and describe is not None:
        easiest = min(against, key=lambda cell: (-(cell.delta or 0.0), cell.d, cell.n or 0))
        counterexample = describe(easiest)
    elif contradicting:
        counterexample = f"{contradicting[0].claim}; {contradicting[0].found}"
    ratios = [cell.tightness for cell in cells if math.isfinite(cell.tightness)]
    middle = min if bound.form == "deterministic" else np.median
    return AuditRow(
        id=bound.id,
        claim=bound.claim,
        source=bound.source,
        form=bound.form,
        repairs=bound.repairs,
        verdict=verdict,
        cells=len(cells),
        worst=max(cells, key=lambda cell: (cell.excess, cell.miss)),
        tightness=float(middle(ratios)) if ratios else math.nan,
        counterexample=counterexample,
        refuted_from=max(refuted_at.values()) if against and against[0].delta else None,
        refuted_at=refuted_at,
        results=cells,
        checks=checks,
    )


def _exact_edges(bound: Bound, measured: Sequence[Measured]) -> dict[str, float]:
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
            (miss,) = trials.exact_misses(bound, replace(scenario, deltas=(middle,)))
            low, high = (middle, high) if _exceeds(bound, middle, miss) else (low, middle)
        edges[scenario.arm.name] = max(low, edges.get(scenario.arm.name, 0.0))
    return edges


def _exceeds(bound: Bound, delta: float, miss: trials.Exact | None) -> bool:
    """Whether an exact miss probability refutes."""
    if miss is None or miss[1] < miss[2]:
        return False
    return miss[1] > bound.claimed(delta) * (1.0 + trials.TAIL_ACCURACY)


def _trial_cell(bound: Bound, measured: Measured, index: int, alpha: float) -> CellResult:
    arm, delta = measured.scenario.arm, measured.scenario.deltas[index]
    pooled = trials.pool(measured.chunks, index)
    (miss, low, high), evidence = _strongest(measured, index, pooled, alpha)
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
    measured: Measured, index: int, pooled: trials.Pooled, alpha: float
) -> tuple[trials.Exact, str]:
    """Miss probability with its limits, and the kind of evidence: the one that proves the most."""
    exact = measured.exact[index]
    if exact is not None and exact[1] == exact[2]:
        return exact, "exact"
    low, high = trials.miss_limits(pooled.misses, pooled.replications, alpha)
    plain = (pooled.misses / pooled.replications, low, high)
    if exact is not None:
        return (plain, "monte-carlo") if low > exact[1] else (exact, "numerical")
    rare = None if measured.rare is None else measured.rare[index]
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
