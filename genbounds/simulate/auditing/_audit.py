"""The audit: every statement is tested.

What is to be done is cut into pieces of work, which know nothing of one another; what comes back
is put together as evidence, and a verdict follows from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from genbounds._process import versions
from genbounds.bounds import Bound, catalog
from genbounds.simulate import _coverage as trials
from genbounds.simulate._coverage import Scenario
from genbounds.simulate._work import AUDIT, Piece, Progress, Workers, stream, work
from genbounds.simulate.auditing import _results
from genbounds.simulate.auditing._checks import exact_checks
from genbounds.simulate.auditing._results import AuditReport, AuditRow, CellResult, Check
from genbounds.simulate.auditing._scenarios import scenarios_of
from genbounds.simulate.auditing._search import DIMENSIONS, search
from genbounds.validation import InputError, check_count, check_installed

DEFAULT_REPLICATIONS = 10_000
QUICK_REPLICATIONS = 1_000

# One tilted sample for so many plain ones, and no fewer than this: a tilted sample costs more, and
# a few thousand of them see a tail of 1e-12 (tests/simulate/test_importance.py).
_TILTED_SHARE = 5
_LEAST_TILTED = 100


def audit(
    patterns: Iterable[str] = (),
    *,
    replications: int | None = None,
    seed: int = 0,
    jobs: int = 1,
    backend: str = "loky",
    scheduler: str | None = None,
    threads: int = 1,
    quick: bool = False,
    out: Path | str | None = None,
    progress: Progress | None = None,
    catalogue: Mapping[str, Bound] | None = None,
) -> AuditReport:
    """Test statements.

    Each is refuted, empty ("vacuous"), or neither ("upheld": not refuted by the evidence).

    Parameters
    ----------
    patterns : iterable of str
        Ids or shell patterns such as ``"o24.*"``; empty means all.
    replications : int, optional
        Samples in each cell; 10,000, or 1,000 if `quick`.
    seed : int
        Start of all random streams.
    jobs, backend, scheduler, threads
        Who does the work, as in `Workers`; results do not depend on it, except on `threads`.
    quick : bool
        Fewer replications: the same verdict wherever a refutation is not a rare event.
    out : path, optional
        Folder whose store keeps finished pieces, so that the same call goes on where an
        interrupted one stopped and ends with the same results.
    progress : callable, optional
        Called as ``progress(done, total, label)`` after every finished piece of work.
    catalogue : mapping of str to Bound, optional
        Statements to choose from instead of `genbounds.bounds.catalog`.

    Returns
    -------
    AuditReport

    Raises
    ------
    InputError
        If a pattern matches no statement, no distribution meets a statement's assumptions, the
        store cannot be used or belongs to another configuration, or workers keep dying.
    """
    default = QUICK_REPLICATIONS if quick else DEFAULT_REPLICATIONS
    count = check_count("replications", default if replications is None else replications)
    seed = check_count("seed", seed, minimum=0)
    check_installed("the audit", "audit", "sympy", "mpmath", "hypothesis")
    workers = Workers(jobs=jobs, backend=backend, scheduler=scheduler, threads=threads)
    bounds = _chosen(patterns, catalog() if catalogue is None else catalogue)
    plans = [_pieces(bound, count, seed) for bound in bounds]
    results = work(
        [piece for plan in plans for piece in plan],
        workers=workers,
        out=out,
        progress=progress,
        name=AUDIT,
        configuration={"seed": seed, "replications": count},
    )
    remaining = iter(results)
    rows = tuple(
        _row(bound, count, islice(remaining, len(plan)))
        for bound, plan in zip(bounds, plans, strict=True)
    )
    version = versions()["genbounds"]
    return AuditReport(rows=rows, seed=seed, replications=count, version=version)


def _chosen(patterns: Iterable[str], catalogue: Mapping[str, Bound]) -> list[Bound]:
    chosen: set[str] = set()
    for pattern in patterns:
        matching = {name for name in catalogue if fnmatchcase(name, pattern)}
        if not matching:
            raise InputError(
                f"no statement matches {pattern!r}: `genbounds bounds` lists the catalogue."
            )
        chosen |= matching
    return [bound for name, bound in catalogue.items() if name in chosen or not chosen]


def _piece(
    bound: Bound, parts: Sequence[object], label: str, function: Callable[..., Any], *more: object
) -> Piece:
    """One piece of the work on a statement: with other constants it is other work."""
    study = [bound.id, dict(bound.constants), *parts]
    return Piece(study, f"{bound.id}: {label}", function, (bound, *more))


def _pieces(bound: Bound, replications: int, seed: int) -> list[Piece]:
    """All the work on one statement."""
    if bound.form == "rate":
        from genbounds.simulate.auditing._rates import fit_rate  # needs scipy.stats

        study = (fit_rate, replications, stream(seed, bound.id, "fit"))
        return [_piece(bound, ["fit", replications], "fitted rates", _checks, *study)]
    pieces = [_piece(bound, ["symbolic"], "exact checks", _checks, exact_checks)]
    if bound.form != "deterministic":
        return pieces + _trials(bound, replications, seed)
    for d in DIMENSIONS:
        seeds = stream(seed, bound.id, "search", d)
        pieces.append(_piece(bound, ["search", d], f"search at d={d}", search, d, seeds))
    return pieces


def _trials(bound: Bound, replications: int, seed: int) -> list[Piece]:
    """For each scenario exact or rare miss probabilities, and plain samples in chunks."""
    scenarios = scenarios_of(bound)
    # Plain and tilted samples share the false alarm.
    alpha = 0.5 * _results.FALSE_ALARM / sum(len(scenario.deltas) for scenario in scenarios)
    tilts = max(replications // _TILTED_SHARE, _LEAST_TILTED)
    pieces = []
    for scenario in scenarios:
        name = scenario.label
        rare = (scenario, tilts, stream(seed, bound.id, name, "rare"), alpha)
        pieces.append(_piece(bound, [name, "exact"], name, _exact_or_rare, *rare))
        for index, size in enumerate(scenario.chunk_sizes(bound, replications)):
            chunk = (trials.run_chunk, scenario, size, stream(seed, bound.id, name, index))
            pieces.append(_piece(bound, [name, index], name, *chunk))
    return pieces


def _exact_or_rare(bound: Bound, scenario: Scenario, *tilting: Any) -> dict[str, Any]:
    """Exact miss probabilities, and where there are none those of rare misses by tilted samples."""
    miss = trials.exact_misses(bound, scenario)
    known = None not in miss
    rare = [None] * len(miss) if known else trials.rare_misses(bound, scenario, *tilting)
    return {"miss": miss, "rare": rare}


def _checks(bound: Bound, examine: Callable[..., Iterable[Check]], *given: Any) -> dict[str, Any]:
    return {"checks": [check.to_dict() for check in examine(bound, *given)]}


# --- verdicts: from evidence on one statement to its row in the report --------------------------

# One cell of evidence, and what can be checked by hand where it refutes.
Evidence = tuple[CellResult, str]

# A scenario; its exact miss probabilities and those of rare misses, by failure probability; chunks.
Measured = tuple[Scenario, Sequence[Any], Sequence[Any], Sequence[Mapping[str, Any]]]


def _row(bound: Bound, replications: int, results: Iterator[dict[str, Any]]) -> AuditRow:
    """Make the row of one statement from the results of its pieces, in their order."""
    checks = tuple(Check(**check) for check in next(results)["checks"])
    edges: dict[str, float] = {}
    if bound.form == "rate":
        # Of a fit nothing but verdict and text is known.
        fits = [(check, check.kind == "vacuous fit") for check in checks]
        found = [(_certain(x.claim, 1, "fit", x.refutes, trivial=y), "") for x, y in fits]
    elif bound.form == "deterministic":
        found = [_of_search(bound, result) for result in results]
    else:
        measured = []
        for scenario in scenarios_of(bound):
            exact = next(results)
            count = len(scenario.chunk_sizes(bound, replications))
            measured.append((scenario, exact["miss"], exact["rare"], [*islice(results, count)]))
        found, edges = _of_trials(bound, measured), _exact_edges(bound, measured)
    return _decide(bound, found, checks, edges)


def _of_search(bound: Bound, result: Mapping[str, Any]) -> Evidence:
    """Judge a deterministic claim by the search at one dimension."""
    d, broken, ratio = result["d"], result["confirmed"], result["ratio"]
    values = ", ".join(f"{name} = {value}" for name, value in result["inputs"].items())
    sides = f"{result['left']} exceeds the right side {result['right']}"
    case = f"{values}: {bound.quantity.text} = {sides}".replace("'", "")
    return _certain(bound.setting, d, "search", broken, tightness=ratio), case


def _of_trials(bound: Bound, measured: Sequence[Measured]) -> list[Evidence]:
    """Judge a claim about probabilities: a cell for each scenario and failure probability."""
    # Only probabilities that are not known exactly can convict by chance.
    known = (miss for _, exact, *_ in measured for miss in exact)
    uncertain = sum(miss is None or miss[1] < miss[2] for miss in known)
    # Half of the false alarm is for plain samples. Their limits are two-sided at α, and only the
    # lower one refutes: α/2 for each of these.
    alpha = _results.FALSE_ALARM / max(uncertain, 1)
    cells = []
    for scenario, exact, rare, chunks in measured:
        for index, delta in enumerate(scenario.deltas):
            pooled = trials.pool(chunks, index)
            misses, count = pooled.pop("misses"), pooled.pop("replications")
            plain = (misses / count, *trials.miss_limits(misses, count, alpha))
            (miss, low, high), evidence = _strongest(plain, exact[index], rare[index])
            cell = CellResult(
                arm=scenario.arm.name,
                n=scenario.n,
                d=scenario.arm.d,
                delta=delta,
                claimed=bound.claimed(delta),
                miss=miss,
                miss_low=low,
                miss_high=high,
                evidence=evidence,
                **pooled,
            )
            cells.append((cell, _case(bound, cell)))
    return cells


def _strongest(
    plain: trials.Exact, exact: trials.Exact | None, rare: trials.MissEstimate | None
) -> tuple[trials.Exact, str]:
    """Miss probability with its limits, and the kind of evidence: the one that proves the most."""
    _, low, high = plain
    if exact is not None and (exact[1] == exact[2] or low <= exact[1]):
        return exact, "exact" if exact[1] == exact[2] else "numerical"
    if exact is None and rare is not None and low <= rare[1]:
        return (rare[0], rare[1], max(high, rare[0])), "importance"
    return plain, "monte-carlo"


def _certain(arm: str, d: int, evidence: str, missed: bool, **more: Any) -> CellResult:
    """Cell of what misses always or never."""
    more |= dict.fromkeys(("miss", "miss_low", "miss_high"), float(missed))
    return CellResult(arm=arm, d=d, evidence=evidence, **more)


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


def _decide(
    bound: Bound, found: Sequence[Evidence], checks: tuple[Check, ...], edges: dict[str, float]
) -> AuditRow:
    """Weigh the evidence; `edges` are those of `_exact_edges`."""
    cells = tuple(cell for cell, _ in found)
    against = [(cell, case) for cell, case in found if cell.refutes]
    cases = [f"{check.claim}; {check.found}" for check in checks if check.refutes]
    verdict = "vacuous" if all(cell.trivial for cell in cells) else "upheld"
    refuted_at: dict[str, float] = {}
    for cell, _ in against:
        delta = math.nan if cell.delta is None else cell.delta
        refuted_at[cell.arm] = max(delta, refuted_at.get(cell.arm, 0.0))
    if against and bound.form != "rate":
        easiest = min(against, key=lambda x: (-(x[0].delta or 0.0), x[0].d, x[0].n or 0))
        cases.insert(0, easiest[1])
    ratios = [cell.tightness for cell in cells if math.isfinite(cell.tightness)]
    middle = min if bound.form == "deterministic" else np.median
    refuted_at |= edges
    return AuditRow(
        id=bound.id,
        claim=bound.claim,
        source=bound.source,
        form=bound.form,
        repairs=bound.repairs,
        verdict="refuted" if against or cases else verdict,
        cells=len(cells),
        worst=max(cells, key=_results.severity),
        tightness=float(middle(ratios)) if ratios else math.nan,
        counterexample=cases[0] if cases else None,
        refuted_from=max(refuted_at.values()) if against and against[0][0].delta else None,
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
    for scenario, exact, *_ in measured:
        deltas = scenario.deltas
        beyond = [_exceeds(bound, *tried) for tried in zip(deltas, exact, strict=True)]
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
