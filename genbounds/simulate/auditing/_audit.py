"""The audit: every statement is tested.

What is to be done is cut into pieces of work, which know nothing of one another; what comes back
is put together as evidence, and `_verdicts` makes a row of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Any

from numpy.random import SeedSequence

from genbounds._process import versions
from genbounds.bounds import Bound, catalog
from genbounds.simulate._store import AUDIT
from genbounds.simulate._trials import Scenario, exact_misses, rare_misses, run_chunk
from genbounds.simulate._workers import Piece, Progress, Workers, stream, work
from genbounds.simulate.auditing import _verdicts as verdicts
from genbounds.simulate.auditing._checks import exact_checks
from genbounds.simulate.auditing._results import FALSE_ALARM, AuditReport, AuditRow, Check
from genbounds.simulate.auditing._scenarios import scenarios_of
from genbounds.simulate.auditing._search import DIMENSIONS, SearchResult, search
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
    return AuditReport(rows=rows, seed=seed, replications=count, version=versions()["genbounds"])


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
        pieces.append(_piece(bound, ["search", d], f"search at d={d}", _search, d, seeds))
    return pieces


def _trials(bound: Bound, replications: int, seed: int) -> list[Piece]:
    """For each scenario exact or rare miss probabilities, and plain samples in chunks."""
    scenarios = scenarios_of(bound)
    # Plain and tilted samples share the false alarm.
    alpha = 0.5 * FALSE_ALARM / sum(len(scenario.deltas) for scenario in scenarios)
    tilts = max(replications // _TILTED_SHARE, _LEAST_TILTED)
    pieces = []
    for scenario in scenarios:
        name = scenario.label
        rare = (scenario, tilts, stream(seed, bound.id, name, "rare"), alpha)
        pieces.append(_piece(bound, [name, "exact"], name, _exact_or_rare, *rare))
        for index, size in enumerate(scenario.chunk_sizes(bound, replications)):
            seeds = stream(seed, bound.id, name, index)
            pieces.append(_piece(bound, [name, index], name, run_chunk, scenario, size, seeds))
    return pieces


def _exact_or_rare(bound: Bound, scenario: Scenario, *tilting: Any) -> dict[str, Any]:
    """Exact miss probabilities, and where there are none those of rare misses by tilted samples."""
    miss = exact_misses(bound, scenario)
    return {"miss": miss, "rare": rare_misses(bound, scenario, *tilting) if None in miss else None}


def _checks(
    bound: Bound, examine: Callable[..., Iterable[Check]], *arguments: Any
) -> dict[str, Any]:
    return {"checks": [check.to_dict() for check in examine(bound, *arguments)]}


def _search(bound: Bound, d: int, seeds: SeedSequence) -> dict[str, Any]:
    return asdict(search(bound, d, seeds))


def _row(bound: Bound, replications: int, results: Iterator[dict[str, Any]]) -> AuditRow:
    """Make the row of one statement from the results of its pieces, in their order."""
    checks = tuple(Check(**check) for check in next(results)["checks"])
    if bound.form == "rate":
        return verdicts.of_fits(bound, checks)
    if bound.form == "deterministic":
        searched = (SearchResult(**result) for result in results)
        return verdicts.of_searches(bound, checks, {result.d: result for result in searched})
    measured = []
    for scenario in scenarios_of(bound):
        exact = next(results)
        count = len(scenario.chunk_sizes(bound, replications))
        chunks = list(islice(results, count))
        measured.append(verdicts.Measured(scenario, exact["miss"], exact["rare"], chunks))
    return verdicts.of_trials(bound, checks, measured)
