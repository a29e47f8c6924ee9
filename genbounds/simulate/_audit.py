"""The audit: every statement on trial, every verdict computed."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from genbounds.bounds import Bound, catalog
from genbounds.simulate._cells import Cell, cells_of
from genbounds.simulate._importance import rare_misses
from genbounds.simulate._pieces import Piece, Progress, versions, work
from genbounds.simulate._rates import fit_rate
from genbounds.simulate._search import DIMENSIONS, SearchResult, search
from genbounds.simulate._store import AUDIT, open_store
from genbounds.simulate._symbolic import Check, symbolic_checks
from genbounds.simulate._trials import (
    TAIL_ACCURACY,
    Chunk,
    chunk_sizes,
    exact_misses,
    miss_limits,
    run_chunk,
    stream,
    tightness,
)
from genbounds.simulate._workers import Workers
from genbounds.validation import InputError, check_count, check_installed

DEFAULT_REPLICATIONS = 10_000
QUICK_REPLICATIONS = 1_000

# One tilted sample for so many plain ones, and no fewer than this.
_TILTED_SHARE = 5
_LEAST_TILTED = 100

# Probability that chance alone refutes a true statement, all its cells together.
FALSE_ALARM = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class CellResult:
    """Evidence on one statement at one law, sample size and failure probability.

    Attributes
    ----------
    arm : str
        The law, or the family of inputs of a deterministic claim.
    n : int or None
    d : int
    delta : float or None
    claimed : float
        Miss probability that the statement allows.
    miss, miss_low, miss_high : float
        Miss probability with its limits: statistical ones, which hold for all cells of the
        statement together with probability 1 − 1e-6, or numerical ones where the law is known.
    evidence : str
        "exact", "numerical" (a lattice of outcomes), "monte-carlo", "importance" (tilted samples,
        for failure probabilities below 1e-4), "search" or "fit" (a rate: `miss` is then 1 where a
        fit contradicts the claim).
    width : float
        Median width; NaN for a deterministic claim.
    tightness : float
        Median width over the true quantile of the error; NaN if unknown.
    trivial : bool
        Whether the width was never below what the error can be at most.
    """

    arm: str
    n: int | None
    d: int
    delta: float | None
    claimed: float
    miss: float
    miss_low: float
    miss_high: float
    evidence: str
    width: float
    tightness: float
    trivial: bool

    @property
    def refutes(self) -> bool:
        """Whether more misses than claimed are proven."""
        if self.evidence == "exact":  # granted the accuracy of the tail
            return self.miss_low > self.claimed * (1.0 + TAIL_ACCURACY)
        return self.miss_low > self.claimed

    @property
    def excess(self) -> float:
        """Proven miss probability over the claimed one; a tie goes to the measured rate."""
        if self.claimed == 0.0:
            return math.inf if self.refutes else 0.0
        return self.miss_low / self.claimed

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; NaN and infinity become None."""
        plain = {key: _json(value) for key, value in asdict(self).items()}
        return plain | {"refutes": self.refutes}


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow:
    """Verdict on one statement.

    Attributes
    ----------
    id, claim, source, form : str
        As in the catalogue.
    repairs : str or None
    verdict : {"refuted", "vacuous", "upheld"}
        Computed: refuted if some cell proves more misses than claimed, an input violates a
        deterministic claim, or a decisive exact check or fit contradicts it; vacuous if the width
        never falls below what the error can be at most; else upheld by all the evidence gathered.
    cells : int
        Pairs of cell and failure probability; dimensions searched for a deterministic claim.
    worst : CellResult
        Largest proven miss probability relative to the claim.
    tightness : float
        Median over the cells; for a deterministic claim the smallest right/left found.
    counterexample : str or None
        For a refuted statement the case that is easiest to check by hand: the one at the largest
        failure probability, dimension and sample size as small as possible.
    refuted_from : float or None
        Largest failure probability at which it is refuted.
    refuted_at : dict of str to float
        Every law at which it is refuted, with the largest failure probability there (NaN for a
        deterministic claim).
    results : tuple of CellResult
        All the evidence from draws, exact tails and searches.
    checks : tuple of Check
        Exact checks of units, growth and proof steps, and fitted rates.
    """

    id: str
    claim: str
    source: str
    form: str
    repairs: str | None
    verdict: str
    cells: int
    worst: CellResult
    tightness: float
    counterexample: str | None
    refuted_from: float | None
    refuted_at: dict[str, float]
    results: tuple[CellResult, ...]
    checks: tuple[Check, ...]

    @property
    def by_delta(self) -> tuple[CellResult, ...]:
        """The worst cell at each failure probability, largest first; empty if there is none."""
        worst: dict[float, CellResult] = {}
        for cell in self.results:
            if cell.delta is not None:
                rival = worst.get(cell.delta)
                if rival is None or (cell.excess, cell.miss) > (rival.excess, rival.miss):
                    worst[cell.delta] = cell
        return tuple(worst[delta] for delta in sorted(worst, reverse=True))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types, without the evidence of the cells that are nowhere the worst."""
        return {
            "id": self.id,
            "claim": self.claim,
            "source": self.source,
            "form": self.form,
            "repairs": self.repairs,
            "verdict": self.verdict,
            "cells": self.cells,
            "worst": self.worst.to_dict(),
            "by_delta": [cell.to_dict() for cell in self.by_delta],
            "tightness": _json(self.tightness),
            "counterexample": self.counterexample,
            "refuted_from": self.refuted_from,
            "refuted_at": {arm: _json(delta) for arm, delta in self.refuted_at.items()},
            "checks": [check.to_dict() for check in self.checks],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """Verdicts on a set of statements.

    Attributes
    ----------
    rows : tuple of AuditRow
        In the order of the catalogue.
    seed, replications : int
        What the numbers depend on, beside the version.
    version : str
        Of genbounds.
    """

    rows: tuple[AuditRow, ...]
    seed: int
    replications: int
    version: str

    def __getitem__(self, key: str) -> AuditRow:
        for row in self.rows:
            if row.id == key:
                return row
        raise KeyError(key)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {
            "rows": [row.to_dict() for row in self.rows],
            "seed": self.seed,
            "replications": self.replications,
            "version": self.version,
        }


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
    """Put statements on trial.

    Parameters
    ----------
    patterns : iterable of str
        Ids or shell patterns such as ``"o24.*"``; empty means all.
    replications : int, optional
        Samples in each cell; 10,000, or 1,000 if `quick`.
    seed : int
        Start of all random streams.
    jobs, backend, scheduler, threads
        Who does the work, as in `Workers`; results do not depend on it, `threads` apart.
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
        If a pattern matches no statement, no law at hand lies within a statement's assumptions,
        the store cannot be used or belongs to another configuration, or workers keep dying.
    """
    default = QUICK_REPLICATIONS if quick else DEFAULT_REPLICATIONS
    count = check_count("replications", default if replications is None else replications)
    seed = check_count("seed", seed, minimum=0)
    check_installed("the audit", "audit", "sympy", "mpmath", "hypothesis")
    workers = Workers(jobs=jobs, backend=backend, scheduler=scheduler, threads=threads)
    bounds = _chosen(patterns, catalog() if catalogue is None else catalogue)
    pieces = [piece for bound in bounds for piece in _pieces(bound, count, seed)]
    configuration = versions() | {"seed": seed, "replications": count, "threads": threads}
    with nullcontext() if out is None else open_store(out, configuration, name=AUDIT) as store:
        results = work(pieces, workers=workers, store=store, progress=progress)
    return AuditReport(
        rows=tuple(_row(bound, count, seed, results) for bound in bounds),
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


def _pieces(bound: Bound, replications: int, seed: int) -> list[Piece]:
    if bound.form == "rate":
        return [
            Piece(
                key=_key(bound, "fit", replications),
                label=f"{bound.id}: fitted rates",
                function=_fit,
                arguments=(bound, replications, stream(seed, bound.id, "fit")),
            )
        ]
    exact = Piece(
        key=_key(bound, "symbolic"),
        label=f"{bound.id}: exact checks",
        function=_symbolic,
        arguments=(bound,),
    )
    if bound.form == "deterministic":
        return [
            exact,
            *(
                Piece(
                    key=_key(bound, "search", d),
                    label=f"{bound.id}: search at d={d}",
                    function=_search,
                    arguments=(bound, d, stream(seed, bound.id, "search", d)),
                )
                for d in DIMENSIONS
            ),
        ]
    pieces = [exact]
    cells = cells_of(bound)
    # Plain and tilted samples share the false alarm.
    alpha = 0.5 * FALSE_ALARM / sum(len(cell.deltas) for cell in cells)
    tilts = max(replications // _TILTED_SHARE, _LEAST_TILTED)
    for cell in cells:
        label = f"{bound.id}: {cell.label}"
        pieces.append(
            Piece(
                key=_key(bound, cell.label, "exact"),
                label=label,
                function=_exact,
                arguments=(bound, cell, tilts, stream(seed, bound.id, cell.label, "rare"), alpha),
            )
        )
        sizes = chunk_sizes(bound, cell.arm, cell.n, replications)
        for index, size in enumerate(sizes):
            seeds = stream(seed, bound.id, cell.label, index)
            pieces.append(
                Piece(
                    key=_key(bound, cell.label, index),
                    label=label,
                    function=_chunk,
                    arguments=(bound, cell.arm, cell.n, cell.deltas, size, seeds),
                )
            )
    return pieces


def _key(bound: Bound, *parts: object) -> str:
    """Key of a piece of work: with other constants it is other work."""
    return json.dumps([bound.id, dict(bound.constants), *parts], ensure_ascii=False)


def _chunk(*arguments: Any) -> dict[str, Any]:
    return asdict(run_chunk(*arguments))


def _exact(
    bound: Bound, cell: Cell, tilts: int, seeds: np.random.SeedSequence, alpha: float
) -> dict[str, Any]:
    """Exact miss probabilities, and where there are none those of rare misses by tilted samples."""
    miss = exact_misses(bound, cell.arm, cell.n, cell.deltas)
    rare = rare_misses(bound, cell, tilts, seeds, alpha) if None in miss else None
    return {"miss": miss, "rare": rare}


def _symbolic(bound: Bound) -> dict[str, Any]:
    return {"checks": [check.to_dict() for check in symbolic_checks(bound)]}


def _fit(bound: Bound, replications: int, seeds: np.random.SeedSequence) -> dict[str, Any]:
    return {"checks": [check.to_dict() for check in fit_rate(bound, replications, seeds)]}


def _search(bound: Bound, d: int, seeds: np.random.SeedSequence) -> dict[str, Any]:
    return asdict(search(bound, d, seeds))


def _row(
    bound: Bound, replications: int, seed: int, results: Mapping[str, dict[str, Any]]
) -> AuditRow:
    searched: list[SearchResult] = []
    key = _key(bound, "fit", replications) if bound.form == "rate" else _key(bound, "symbolic")
    checks = tuple(Check(**check) for check in results[key]["checks"])
    if bound.form == "rate":
        evidence = tuple(_fitted(bound, check) for check in checks)
        tight = math.nan
    elif bound.form == "deterministic":
        searched = [SearchResult(**results[_key(bound, "search", d)]) for d in DIMENSIONS]
        evidence = tuple(_searched(bound, result) for result in searched)
        tight = min(result.ratio for result in searched)
    else:
        evidence = _trials(bound, replications, results)
        known = [cell.tightness for cell in evidence if math.isfinite(cell.tightness)]
        tight = float(np.median(known)) if known else math.nan
    against = [index for index, cell in enumerate(evidence) if cell.refutes]
    contradicting = [check for check in checks if check.refutes]
    verdict = "upheld"
    if against or contradicting:
        verdict = "refuted"
    elif all(cell.trivial for cell in evidence):
        verdict = "vacuous"
    counterexample = refuted_from = None
    refuted_at: dict[str, float] = {}
    for index in against:
        delta = evidence[index].delta
        largest = max(refuted_at.get(evidence[index].arm, 0.0), delta or 0.0)
        refuted_at[evidence[index].arm] = math.nan if delta is None else largest
    if contradicting:
        counterexample = f"{contradicting[0].claim}; {contradicting[0].found}"
    if against and bound.form != "rate":
        simplest = min(against, key=lambda index: _complexity(evidence[index]))
        refuted_from = evidence[simplest].delta
        counterexample = (
            _inputs(bound, searched[simplest]) if searched else _case(bound, evidence[simplest])
        )
    return AuditRow(
        id=bound.id,
        claim=bound.claim,
        source=bound.source,
        form=bound.form,
        repairs=bound.repairs,
        verdict=verdict,
        cells=len(evidence),
        worst=max(evidence, key=lambda cell: (cell.excess, cell.miss)),
        tightness=tight,
        counterexample=counterexample,
        refuted_from=refuted_from,
        refuted_at=refuted_at,
        results=evidence,
        checks=checks,
    )


def _fitted(bound: Bound, check: Check) -> CellResult:
    """One fitted rate as a cell; nothing but its verdict and text is known."""
    miss = float(check.refutes)
    return CellResult(
        arm=check.claim,
        n=None,
        d=1,
        delta=None,
        claimed=0.0,
        miss=miss,
        miss_low=miss,
        miss_high=miss,
        evidence="fit",
        width=math.nan,
        tightness=math.nan,
        trivial=check.kind == "vacuous fit",
    )


def _complexity(cell: CellResult) -> tuple[float, int, int]:
    return (-(cell.delta or 0.0), cell.d, cell.n or 0)


def _searched(bound: Bound, result: SearchResult) -> CellResult:
    miss = float(result.refutes)
    return CellResult(
        arm=bound.setting,
        n=None,
        d=result.d,
        delta=None,
        claimed=0.0,
        miss=miss,
        miss_low=miss,
        miss_high=miss,
        evidence="search",
        width=math.nan,
        tightness=result.ratio,
        trivial=False,
    )


def _trials(
    bound: Bound, replications: int, results: Mapping[str, dict[str, Any]]
) -> tuple[CellResult, ...]:
    cells = cells_of(bound)
    measured = []
    for cell in cells:
        known = results[_key(bound, cell.label, "exact")]
        sizes = chunk_sizes(bound, cell.arm, cell.n, replications)
        chunks = [Chunk(**results[_key(bound, cell.label, index)]) for index in range(len(sizes))]
        measured.append((cell, known, chunks))
    uncertain = sum(
        miss is None or miss[1] < miss[2] for _, known, _ in measured for miss in known["miss"]
    )
    alpha = FALSE_ALARM / max(uncertain, 1)  # half for these; two-sided limits, one side convicts
    return tuple(
        _cell_result(bound, cell, index, known, chunks, alpha)
        for cell, known, chunks in measured
        for index in range(len(cell.deltas))
    )


def _cell_result(
    bound: Bound,
    cell: Cell,
    index: int,
    known: Mapping[str, Any],
    chunks: Sequence[Chunk],
    alpha: float,
) -> CellResult:
    total = sum(chunk.replications for chunk in chunks)
    weights = [chunk.replications for chunk in chunks]
    width = float(np.average([chunk.width[index] for chunk in chunks], weights=weights))
    quantile = float(np.average([chunk.quantile[index] for chunk in chunks], weights=weights))
    miss, low, high, evidence = _miss(known, index, chunks, alpha)
    return CellResult(
        arm=cell.arm.name,
        n=cell.n,
        d=cell.arm.d,
        delta=cell.deltas[index],
        claimed=bound.claimed(cell.deltas[index]),
        miss=miss,
        miss_low=low,
        miss_high=high,
        evidence=evidence,
        width=width,
        tightness=tightness(width, quantile),
        trivial=sum(chunk.trivial[index] for chunk in chunks) == total,
    )


def _miss(
    known: Mapping[str, Any], index: int, chunks: Sequence[Chunk], alpha: float
) -> tuple[float, float, float, str]:
    """Miss probability, its limits and the kind of evidence: the one that proves the most."""
    exact = known["miss"][index]
    if exact is not None and exact[1] == exact[2]:
        return (*exact, "exact")
    total = sum(chunk.replications for chunk in chunks)
    misses = sum(chunk.misses[index] for chunk in chunks)
    low, high = miss_limits(misses, total, alpha)
    plain = misses / total, low, high, "monte-carlo"
    if exact is not None:
        return plain if low > exact[1] else (*exact, "numerical")
    rare = None if known["rare"] is None else known["rare"][index]
    if rare is None or low > rare[1]:
        return plain
    return rare[0], rare[1], max(high, rare[0]), "importance"


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


def _json(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value
