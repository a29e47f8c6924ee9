"""What an audit finds: checks, cells, rows with a verdict, the report."""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import attrgetter
from statistics import median

from genbounds._tables import AsJson
from genbounds.simulate._coverage import TAIL_ACCURACY

# Probability that chance alone refutes a true statement, all its cells together.
FALSE_ALARM = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Check(AsJson):
    """One exact check, or one fitted rate.

    Attributes
    ----------
    kind : str
        "units", "growth" (δ → 0), "samples" (n → ∞), "embeddings" (the printed width against a
        proven one at the norms of real embeddings), "conversion", "fact"; "fit" for a fitted
        rate, "vacuous fit" where the bound on it says nothing.
    claim : str
        What was checked.
    holds : bool
    found : str
        What came out, with numbers.
    decisive : bool
        Whether the failure alone refutes the statement.
    """

    kind: str
    claim: str
    holds: bool
    found: str
    decisive: bool = False

    @property
    def refutes(self) -> bool:
        """Whether this check alone refutes the statement."""
        return self.decisive and not self.holds


@dataclass(frozen=True, slots=True, kw_only=True)
class CellResult(AsJson):
    """Evidence on one statement for one distribution, sample size and failure probability.

    Attributes
    ----------
    arm : str
        The distribution, or the family of inputs of a deterministic claim.
    n : int or None
    d : int
    delta : float or None
    claimed : float
        Miss probability that the statement allows.
    miss, miss_low, miss_high : float
        Miss probability with its limits: statistical ones, which hold for all cells of the
        statement together with probability 1 − 1e-6, or numerical ones where the distribution of
        the error is known.
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

    _json = "* refutes"

    arm: str
    n: int | None = None
    d: int
    delta: float | None = None
    claimed: float = 0.0
    miss: float
    miss_low: float
    miss_high: float
    evidence: str
    width: float = math.nan
    tightness: float = math.nan
    trivial: bool = False

    @property
    def refutes(self) -> bool:
        """Whether more misses than claimed are proven."""
        if self.evidence == "exact":  # granted the accuracy of the tail
            return self.miss_low > self.claimed * (1.0 + TAIL_ACCURACY)
        return self.miss_low > self.claimed

    @property
    def excess(self) -> float:
        """Proven miss probability over the claimed one."""
        if self.claimed == 0.0:
            return math.inf if self.refutes else 0.0
        return self.miss_low / self.claimed


# What is proven counts first, then what was measured.
severity = attrgetter("excess", "miss")


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow(AsJson):
    """Verdict on one statement.

    Attributes
    ----------
    id, claim, source, form : str
        As in the catalogue.
    repairs : str or None
    verdict : {"refuted", "vacuous", "upheld"}
        Computed: refuted if some cell proves more misses than claimed, an input violates a
        deterministic claim, or a decisive exact check or fit contradicts it; vacuous if the width
        never falls below what the error can be at most; else "upheld", that is not refuted by any
        of the evidence gathered.
    cells : int
        Number of `results`: each distribution at each sample size and failure probability; for a
        deterministic claim each dimension searched.
    worst : CellResult
        Largest proven miss probability relative to the claim.
    tightness : float
        Median over the cells; for a deterministic claim the smallest right/left found.
    counterexample : str or None
        For a refuted statement the case that is easiest to check by hand: the one at the largest
        failure probability, dimension and sample size as small as possible.
    refuted_from : float or None
        Largest failure probability at which it is refuted: to three digits where the distribution
        of the error is known, else the largest one tried.
    refuted_at : dict of str to float
        Every distribution for which it is refuted, with the largest failure probability there
        (NaN for a deterministic claim).
    results : tuple of CellResult
        All the evidence from draws, exact tails and searches.
    checks : tuple of Check
        Exact checks of units, growth and proof steps, and fitted rates.
    """

    _json = (
        "id claim source form repairs verdict cells worst by_delta tightness counterexample "
        "refuted_from refuted_at checks"
    )

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

    def __str__(self) -> str:
        """Return the verdict, the counterexample, and how the width fits what would hold."""
        verdict = "not refuted" if self.verdict == "upheld" else self.verdict
        found = [f"{self.id}: {verdict}", *filter(None, [self.counterexample]), self.fit]
        return "\n  ".join(found)

    @property
    def fit(self) -> str:
        """In how many cases it fails, and how its width fits what would hold, in words."""
        ratios = [cell.tightness for cell in self.results if math.isfinite(cell.tightness)]
        narrow = sum(cell.refutes for cell in self.results)
        fit = f"fails in {narrow} of {self.cells} cases"
        if narrow and 0.0 < min(ratios, default=0.0) < 1.0:
            fit += f", too narrow by up to {1.0 / min(ratios):.3g} ×"
        if self.form in ("oracle", "plug-in") and ratios:
            fit += f"; width over what would do: median {median(ratios):.3g}"
        return fit

    @property
    def by_delta(self) -> tuple[CellResult, ...]:
        """The worst cell at each failure probability, largest first; empty if there is none."""
        deltas = {cell.delta for cell in self.results if cell.delta is not None}
        return tuple(
            max((cell for cell in self.results if cell.delta == delta), key=severity)
            for delta in sorted(deltas, reverse=True)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport(AsJson):
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

    def __str__(self) -> str:
        """Return the statements, those that are refuted first."""
        return "\n".join(map(str, sorted(self.rows, key=lambda row: row.verdict != "refuted")))

    def __getitem__(self, key: str) -> AuditRow:
        return {row.id: row for row in self.rows}[key]
