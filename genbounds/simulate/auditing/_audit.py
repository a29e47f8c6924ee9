"""The audit: every statement is tested.

What is to be done is cut into pieces of work, which know nothing of one another; what comes back
is put together as evidence, and `_verdicts` makes a row of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Any

from numpy.random import SeedSequence

from genbounds._versions import versions
from genbounds.bounds import Bound, catalog
from genbounds.simulate._pieces import Piece, Progress, work
from genbounds.simulate._store import AUDIT
from genbounds.simulate._trials import chunk_sizes, exact_misses, run_chunk, stream
from genbounds.simulate._workers import Workers
from genbounds.simulate.auditing import _verdicts as verdicts
from genbounds.simulate.auditing._checks import exact_checks
from genbounds.simulate.auditing._importance import rare_misses
from genbounds.simulate.auditing._results import (
    FALSE_ALARM,
    AuditReport,
    AuditRow,
    CellResult,
    Check,
)
from genbounds.simulate.auditing._scenarios import Scenario, scenarios_of
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
        name=AUDIT,
        configuration={"seed": seed, "replications": count},
        progress=progress,
    )
    rows = [
        _row(bound, count, [results[piece.key] for piece in plan])
        for bound, plan in zip(bounds, plans, strict=True)
    ]
    return AuditReport(
        rows=tuple(rows),
        seed=seed,
        replications=count,
        version=versions()["genbounds"],
    )


def _chosen(patterns: Iterable[str], catalogue: Mapping[str, Bound]) -> list[Bound]:
    wanted = list(patterns)
    for pattern in wanted:
        if not any(fnmatchcase(name, pattern) for name in catalogue):
            raise InputError(
                f"no statement matches {pattern!r}: `genbounds bounds` lists the catalogue."
            )
    return [
        bound
        for name, bound in catalogue.items()
        if not wanted or any(fnmatchcase(name, pattern) for pattern in wanted)
    ]


def _key(bound: Bound, *parts: object) -> str:
    """Key of a piece of work: with other constants it is other work."""
    return json.dumps([bound.id, dict(bound.constants), *parts], ensure_ascii=False)


def _pieces(bound: Bound, replications: int, seed: int) -> list[Piece]:
    """All the work on one statement."""
    if bound.form == "rate":
        fit = (bound, replications, stream(seed, bound.id, "fit"))
        return [Piece(_key(bound, "fit", replications), f"{bound.id}: fitted rates", _fit, fit)]
    pieces = [Piece(_key(bound, "symbolic"), f"{bound.id}: exact checks", _check, (bound,))]
    if bound.form != "deterministic":
        return pieces + _trials(bound, replications, seed)
    for d in DIMENSIONS:
        label, seeds = f"{bound.id}: search at d={d}", stream(seed, bound.id, "search", d)
        pieces.append(Piece(_key(bound, "search", d), label, _search, (bound, d, seeds)))
    return pieces


def _trials(bound: Bound, replications: int, seed: int) -> list[Piece]:
    """For each scenario exact or rare miss probabilities, and plain samples in chunks."""
    scenarios = scenarios_of(bound)
    # Plain and tilted samples share the false alarm.
    alpha = 0.5 * FALSE_ALARM / sum(len(scenario.deltas) for scenario in scenarios)
    tilts = max(replications // _TILTED_SHARE, _LEAST_TILTED)
    pieces = []
    for scenario in scenarios:
        arm, n, name = scenario.arm, scenario.n, scenario.label
        label, seeds = f"{bound.id}: {name}", stream(seed, bound.id, name, "rare")
        rare = (bound, scenario, tilts, seeds, alpha)
        pieces.append(Piece(_key(bound, name, "exact"), label, _exact_or_rare, rare))
        for index, size in enumerate(chunk_sizes(bound, arm, n, replications)):
            chunk = (bound, arm, n, scenario.deltas, size, stream(seed, bound.id, name, index))
            pieces.append(Piece(_key(bound, name, index), label, run_chunk, chunk))
    return pieces


def _exact_or_rare(
    bound: Bound, scenario: Scenario, tilts: int, seeds: SeedSequence, alpha: float
) -> dict[str, Any]:
    """Exact miss probabilities, and where there are none those of rare misses by tilted samples."""
    miss = exact_misses(bound, scenario.arm, scenario.n, scenario.deltas)
    rare = rare_misses(bound, scenario, tilts, seeds, alpha) if None in miss else None
    return {"miss": miss, "rare": rare}


def _check(bound: Bound) -> dict[str, Any]:
    return {"checks": [check.to_dict() for check in exact_checks(bound)]}


def _fit(bound: Bound, replications: int, seeds: SeedSequence) -> dict[str, Any]:
    from genbounds.simulate.auditing._rates import fit_rate  # needs scipy.stats

    return {"checks": [check.to_dict() for check in fit_rate(bound, replications, seeds)]}


def _search(bound: Bound, d: int, seeds: SeedSequence) -> dict[str, Any]:
    return asdict(search(bound, d, seeds))


def _row(bound: Bound, replications: int, results: Sequence[dict[str, Any]]) -> AuditRow:
    """Make the row of one statement from the results of its pieces, in their order."""
    first, *others = results
    checks = tuple(Check(**check) for check in first["checks"])
    searched: tuple[SearchResult, ...] = ()
    edges: dict[str, float] = {}
    cells: tuple[CellResult, ...]
    if bound.form == "rate":
        cells = tuple(verdicts.fitted_cell(check) for check in checks)
    elif bound.form == "deterministic":
        searched = tuple(SearchResult(**result) for result in others)
        cells = tuple(verdicts.searched_cell(bound, result) for result in searched)
    else:
        measured = list(_measured(bound, replications, iter(others)))
        cells = verdicts.trial_cells(bound, measured)
        edges = verdicts.exact_edges(bound, measured)
    return verdicts.decide(bound, cells, checks, searched, edges)


def _measured(
    bound: Bound, replications: int, results: Iterator[dict[str, Any]]
) -> Iterator[verdicts.Measured]:
    for scenario in scenarios_of(bound):
        exact = next(results)
        count = len(chunk_sizes(bound, scenario.arm, scenario.n, replications))
        chunks = list(islice(results, count))
        yield verdicts.Measured(scenario, exact["miss"], exact["rare"], chunks)
