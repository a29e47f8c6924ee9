"""The document: every sentence with a number in it is made from an audit report."""

from __future__ import annotations

import inspect
import math
import textwrap
from collections.abc import Iterable, Mapping

import numpy as np

from experiments.findings.by_hand import BY_HAND
from genbounds.bounds import Bound
from genbounds.report.wording import verdict_text
from genbounds.simulate import AuditReport, AuditRow

#: Which statement the proof of which other one uses, as the papers say.
SERVES: Mapping[str, tuple[str, ...]] = {
    "o24.gaussian-mean": ("o24.naive-mean-norm", "o24.fd-naive-bonus"),
    "o24.naive-mean-norm": ("o24.fd-naive-bonus",),
    "o24.chi-square-mean": ("o24.fd-decomposition", "o24.fd-bonus"),
    "o24.squared-mean": ("o24.mean-norm", "o24.fd-bonus"),
    "o24.product-of-means": ("o24.mean-norm", "o24.fd-bonus"),
    "o24.mean-norm": ("o24.fd-bonus",),
    "o24.covariance-dimension": ("o24.fd-naive-bonus",),
    "o24.covariance-effective-rank": ("o24.covariance", "o24.fd-bonus"),
    "o24.covariance": ("o24.fd-bonus",),
    "m25.mean-norm": ("m25.covariance", "m25.fd-bonus"),
    "o24.visit-sum-log": ("o24.fid-ucb-regret",),
    "o24.visit-total-power": ("o24.fid-ucb-regret",),
    "o24.visit-total-log": ("o24.fid-ucb-regret",),
    "m25.visit-sum-power-as-counted": ("m25.fd-ucb-regret",),
    "o24.naive-covariance": ("o24.fd-naive-bonus",),
    "o24.covariance-sub-gaussian": ("o24.covariance-effective-rank",),
    "m25.visit-sum-log": ("m25.fd-ucb-regret", "m25.is-ucb-regret"),
    "o24.fd-decomposition": ("o24.fd-bonus", "o24.fd-naive-bonus"),
    "o24.fd-bonus": ("o24.fid-ucb-regret",),
    "m25.fd-bonus": ("m25.fd-ucb-regret",),
    "v24.eigenvalues": (
        "v24.order-ge-2", "v24.order-lt-2", "v24.truncated", "v24.fkea", "v24.nystrom",
        "v24.nystrom-product", "v24.nystrom-proof",
    ),
}  # fmt: skip

#: What each paper concludes, as opposed to the lemmas on the way.
CONCLUSIONS: Mapping[str, tuple[str, ...]] = {
    "O24": ("o24.fd-bonus", "o24.is-bound", "o24.fid-ucb-regret", "o24.is-ucb-regret"),
    "M25": (
        "m25.fd-bonus", "m25.is-bound", "m25.fd-decomposition", "m25.fd-bounded-bonus",
        "m25.fd-ucb-regret", "m25.is-ucb-regret",
    ),
    "C20": (
        "c20.fid-bias", "c20.fid-variance", "c20.is-bias", "c20.rank-flip", "c20.fid-infinity",
        "c20.fid-infinity-with-replacement", "c20.spacing", "c20.koksma-hlawka", "c20.sobol",
        "c20.sobol-mean", "c20.sobol-rate",
    ),
    "V24": (
        "v24.eigenvalues", "v24.order-ge-2", "v24.order-lt-2", "v24.order-one", "v24.truncated",
        "v24.fkea", "v24.nystrom", "v24.nystrom-product", "v24.nystrom-proof",
    ),
}  # fmt: skip

_COVERAGE = (
    "## What a verdict covers",
    "",
    "* **refuted**: one case is proven where the statement, with the constants printed, fails "
    'within its own assumptions. "Only at δ ≤ …": it fails at no larger failure probability in '
    "any case tried; at usual ones it may well serve. Where the distribution of the error is known "
    "the limit is bisected to three digits, else it is the largest δ tried. A theorem whose proof "
    "uses a refuted step is judged by itself: it may stand by its slack.",
    "* **not refuted**: no case tried contradicts it. How small an error would have been seen is "
    "in [planted errors](planted.md).",
    "* **vacuous**: whatever happens, the statement could not be contradicted where it was tried: "
    "its width exceeds all that the error can be. It may be true or false for all that is known.",
    "* **orders of growth** (form *rate*): the fitted exponent over the sizes tried. An order at "
    "infinity is not decided by any finite size.",
    "* **regret** (`*-regret`): judged is what a finite horizon can contradict, regret ≤ 2 Σ "
    "bonus at every step up to T = 1,000, on three arms. On others the same policies have "
    "exponents near 1 ([regret](regret.md)).",
    "",
)

FEW = 3
"""So many of a list are printed; the audit's JSON has all."""

_RANK = {"refuted": 0, "vacuous": 1, "upheld": 2}


def document(report: AuditReport, catalogue: Mapping[str, Bound], *, command: str) -> str:
    """Write the findings of an audit as Markdown.

    Parameters
    ----------
    report : AuditReport
    catalogue : mapping of str to Bound
    command : str
        What makes the document again.
    """
    rows = {row.id: row for row in report.rows}
    counts = {verdict: sum(row.verdict == verdict for row in report.rows) for verdict in _RANK}
    parts = [
        "# What the audit found",
        "",
        f"Made by `{command}` from an audit of {len(rows)} statements with genbounds "
        f"{report.version}, seed {report.seed}, {report.replications:,} samples a cell. Do not "
        "edit. How verdicts come about: [the audit](../audit.md); what the "
        "statements say and why the repairs hold: [the catalogue](../bounds.md).",
        "",
        f"{counts['refuted']} statements are refuted, {counts['vacuous']} vacuous, "
        f"{counts['upheld']} not refuted. Chance alone refutes a true statement with probability "
        "at most 1e-6. Every refutation below can be checked from what is printed with "
        "it: a case, and a few lines of Python that need nothing but the standard library.",
        "",
        *_COVERAGE,
        "## All verdicts, worst first",
        "",
        *_verdicts(report.rows),
        "",
        "## Refuted statements and their repairs",
        "",
    ]
    for row in sorted(report.rows, key=_severity):
        if row.verdict == "refuted":
            parts += _refuted(row, rows, catalogue)
    parts += _conclusions(rows)
    parts += _embeddings(report.rows)
    parts += _plugin(report.rows)
    parts += _sharper(report.rows, rows)
    parts += _rates(report.rows)
    parts += _checks(report.rows)
    return "\n".join(parts).rstrip() + "\n"


def _said(row: AuditRow) -> str:
    return verdict_text(row.verdict, row.refuted_from)


def _severity(row: AuditRow) -> tuple[int, float, float]:
    from_delta = row.refuted_from if row.refuted_from is not None else 1.0
    excess = row.worst.excess if math.isfinite(row.worst.excess) else 1e300
    return (_RANK[row.verdict], -from_delta if row.verdict == "refuted" else 0.0, -excess)


def _table(head: Iterable[str], lines: Iterable[Iterable[str]]) -> list[str]:
    names = list(head)
    out = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    for line in lines:
        cells = [cell.replace("|", "\\|").replace("\n", " ") for cell in line]
        out.append("| " + " | ".join(cells) + " |")
    return out


def _number(value: float | None) -> str:
    return "–" if value is None or not math.isfinite(value) else f"{value:.3g}"


def _verdicts(rows: Iterable[AuditRow]) -> list[str]:
    return _table(
        (
            "statement",
            "verdict",
            "refuted up to δ",
            "worst cell",
            "missed / allowed",
            "tightness",
        ),
        (
            (
                f"`{row.id}`",
                _said(row),
                _number(row.refuted_from),
                _cell(row),
                _missed(row),
                _number(row.tightness),
            )
            for row in sorted(rows, key=_severity)
        ),
    )


def _cell(row: AuditRow) -> str:
    worst = row.worst
    if row.form == "rate":
        return f"{len(row.checks)} fits"
    if worst.delta is None:
        return f"searched up to d = {max(cell.d for cell in row.results)}"
    return f"{worst.arm}, n = {worst.n}, δ = {worst.delta:g}"


def _missed(row: AuditRow) -> str:
    worst = row.worst
    if worst.delta is None:
        return "–"
    return f"{worst.miss:.3g} / {worst.claimed:.3g} ({worst.evidence})"


def _widths(row: AuditRow) -> dict[tuple[str, int | None, float | None], float]:
    return {(c.arm, c.n, c.delta): c.width for c in row.results if math.isfinite(c.width)}


def width_ratio(repair: AuditRow, printed: AuditRow) -> tuple[float, float, float] | None:
    """Median and extremes of repaired over printed width in the cells that both have.

    None where they bound different quantities or share no cell.
    """
    first, second = _widths(repair), _widths(printed)
    shared = [first[key] / second[key] for key in first.keys() & second.keys() if second[key] > 0.0]
    if not shared or not all(map(math.isfinite, shared)):
        return None
    return float(np.median(shared)), min(shared), max(shared)


def _ratio(repair: AuditRow, printed: AuditRow, catalogue: Mapping[str, Bound]) -> str:
    units = catalogue[repair.id].quantity.name, catalogue[printed.id].quantity.name
    found = width_ratio(repair, printed)
    if units[0] != units[1]:
        return f"another quantity: {catalogue[repair.id].quantity.text}"
    if found is None:
        same = {"deterministic": "both deterministic", "rate": "both fitted"}
        return same.get(printed.form, "no cell in common")
    return f"{found[0]:.3g} ({found[1]:.3g} to {found[2]:.3g})"


def _repairs(row: AuditRow, rows: Mapping[str, AuditRow]) -> list[AuditRow]:
    return [other for other in rows.values() if other.repairs == row.id]


def _refuted(
    row: AuditRow, rows: Mapping[str, AuditRow], catalogue: Mapping[str, Bound]
) -> list[str]:
    bound = catalogue[row.id]
    out = [
        f"### `{row.id}`",
        "",
        f"{row.source}: {row.claim}.",
        "",
        "Assumes " + "; ".join(assumption.text for assumption in bound.assumptions) + ".",
        "",
        f"**Where it fails.** {row.counterexample}.",
        "",
        *_by_hand(row),
    ]
    known = {arm: delta for arm, delta in row.refuted_at.items() if math.isfinite(delta)}
    if known:
        listed = sorted(known.items(), key=lambda item: -item[1])
        more = f"; {len(listed) - FEW} more" if len(listed) > FEW else ""
        out += [
            "**Where the line runs.** Refuted at δ up to "
            + "; ".join(f"{delta:g} for {arm}" for arm, delta in listed[:FEW])
            + f"{more}.",
            "",
        ]
    for check in row.checks:
        if not check.holds and check.kind != "fit":
            word = "refutes it alone" if check.decisive else "a step of the proof, or its form"
            out += [f"**Exact check ({check.kind}; {word}).** {check.claim}; {check.found}.", ""]
    repairs = _repairs(row, rows)
    if repairs:
        out += _table(
            ("repair", "verdict", "claim", "width over the printed one"),
            ((f"`{r.id}`", _said(r), r.claim, _ratio(r, row, catalogue)) for r in repairs),
        )
        out.append("")
    served = [name for name in SERVES.get(row.id, ()) if name in rows]
    if served:
        standing = "; ".join(f"`{name}` is {_said(rows[name])}" for name in served)
        out += [f"**What it serves.** {standing}.", ""]
    return out


def _by_hand(row: AuditRow) -> list[str]:
    check = BY_HAND.get(row.id)
    if check is None:
        return []
    left, right = check()
    body = textwrap.dedent(inspect.getsource(check).split("\n", 1)[1]).rstrip()
    names = "left, right" if row.form == "deterministic" else "missed, allowed"
    return [
        "**To check by hand.**",
        "",
        "```python",
        "import math",
        "",
        body.replace("return ", f"{names} = "),
        f"print({names})  # {left:.6g}, {right:.6g}",
        "```",
        "",
    ]


def _conclusions(rows: Mapping[str, AuditRow]) -> list[str]:
    """Say what each paper concludes, and what becomes of it."""
    lines = []
    for paper, names in CONCLUSIONS.items():
        for name in names:
            if name in rows:
                failing = [
                    f"`{lemma}`"
                    for lemma, served in SERVES.items()
                    if name in served and lemma in rows and rows[lemma].verdict == "refuted"
                ]
                row = rows[name]
                lines.append(
                    (
                        paper,
                        f"`{name}` ({row.source})",
                        _said(row),
                        ", ".join(failing) or "none",
                        _survives(row, bool(failing), rows),
                    )
                )
    if not lines:
        return []
    return [
        "## Which conclusions survive",
        "",
        *_table(
            ("paper", "conclusion", "verdict", "refuted steps of its proof", "what is left"), lines
        ),
        "",
    ]


def _survives(row: AuditRow, failing: bool, rows: Mapping[str, AuditRow]) -> str:
    if row.verdict == "vacuous":
        # Not "true": nothing was contradicted because nothing could be.
        return (
            "empty at the horizon tried: no run can contradict it"
            if row.form == "rate"
            else ("true, and empty")
        )
    near = [check for check in row.checks if check.kind == "embeddings"]
    inside = "; it holds at the norms of real embeddings" if near and near[0].holds else ""
    if row.verdict == "refuted":
        held = [f"`{other.id}`" for other in _repairs(row, rows) if other.verdict == "upheld"]
        instead = f"; in its place {', '.join(held)}" if held else ""
        reach = "" if row.refuted_from is None else f" at δ ≤ {row.refuted_from:g}"
        return f"fails{reach}{_laws(row)}{inside}{instead}"
    if failing:
        slack = f": its width is {_number(row.tightness)} times what is needed"
        slack = slack if math.isfinite(row.tightness) else ""
        return f"stands by its slack{slack}{inside}"
    return f"stands{inside}"


def _laws(row: AuditRow) -> str:
    if row.form == "rate":
        failing = sum(not check.holds for check in row.checks)
        return f" as printed, in {failing} of {len(row.checks)} fits"
    arms = list(row.refuted_at)
    more = f" and {len(arms) - 2} more distributions" if len(arms) > 2 else ""
    return " for " + "; ".join(arms[:2]) + more


def _embeddings(rows: Iterable[AuditRow]) -> list[str]:
    rows = list(rows)
    proven = [
        (
            f"`{row.id}`",
            _said(row),
            check.claim.removeprefix("at the norms of real embeddings "),
            check.found,
        )
        for row in rows
        for check in row.checks
        if check.kind == "embeddings"
    ]
    lines, everywhere = [], set[str]()
    for row in rows:
        tried = sorted({cell.arm for cell in row.results if cell.arm.startswith("norms of")})
        if row.verdict == "refuted" and tried:
            inside = [
                f"{arm} (δ ≤ {row.refuted_at[arm]:g})" for arm in tried if arm in row.refuted_at
            ]
            lines.append((f"`{row.id}`", "; ".join(inside) or "none"))
            everywhere.update(tried)
    if not lines and not proven:
        return []
    out = [
        "## The papers' own embeddings",
        "",
        "Gaussian features with the norms that are printed for real embeddings (M25, Tables 1–3). "
        "Statements on the mean are judged there by exact tails. The Fréchet statements are "
        "compared with a proven one: where they are wider they hold, at every δ tried.",
        "",
    ]
    if lines:
        out += [f"Tried at {'; '.join(sorted(everywhere))}.", ""]
        out += [*_table(("refuted statement", "refuted there at"), lines), ""]
    if proven:
        out += [*_table(("statement", "verdict elsewhere", "compared", "found"), proven), ""]
    return out


def _plugin(rows: Iterable[AuditRow]) -> list[str]:
    lines = []
    for row in rows:
        if row.form == "plug-in":
            for delta in (0.2, 0.05, 0.01):
                cells = [cell for cell in row.results if cell.delta == delta]
                if not cells:
                    continue
                worst = max(cells, key=lambda cell: (cell.miss_low, cell.miss))
                lines.append(
                    (
                        f"`{row.id}`",
                        f"{1.0 - worst.claimed:.4g}",
                        f"{1.0 - worst.miss:.4g} [{1.0 - worst.miss_high:.4g}, "
                        f"{1.0 - worst.miss_low:.4g}]",
                        f"{worst.arm}, n = {worst.n}",
                    )
                )
    if not lines:
        return []
    return [
        "## What a user really gets",
        "",
        "Coverage of the forms that a user can compute, in the worst cell at each δ, with its "
        "limits.",
        "",
        *_table(("statement", "claimed coverage", "coverage", "worst cell"), lines),
        "",
    ]


def _sharper(report_rows: Iterable[AuditRow], rows: Mapping[str, AuditRow]) -> list[str]:
    lines = []
    for row in report_rows:
        printed = rows.get(row.repairs or "")
        if printed is not None and printed.verdict != "refuted":
            found = width_ratio(row, printed)
            same = "–" if found is None else f"{found[0]:.3g} ({found[1]:.3g} to {found[2]:.3g})"
            lines.append(
                (
                    f"`{row.id}`",
                    _said(row),
                    f"`{printed.id}` ({_said(printed)})",
                    _number(row.tightness),
                    _number(printed.tightness),
                    same,
                )
            )
    if not lines:
        return []
    return [
        "## Sharper statements beside those that stand",
        "",
        *_table(
            ("statement", "verdict", "beside", "tightness", "tightness of the printed one",
             "width over the printed one"),
            lines,
        ),
        "",
    ]  # fmt: skip


def _rates(rows: Iterable[AuditRow]) -> list[str]:
    lines = []
    for row in rows:
        if row.form == "rate":
            failing = [check for check in row.checks if not check.holds]
            shown = failing[:FEW] or row.checks[:1]
            holding = sum(check.holds for check in row.checks if check not in shown)
            more = f"; {holding} more fits hold" if holding else ""
            for check in shown:
                found = check.found + (more if check is shown[-1] else "")
                lines.append((f"`{row.id}`", _said(row), check.claim, found))
    if not lines:
        return []
    return [
        "## Rates and comparisons, fitted",
        "",
        "Asymptotic claims cannot be refuted by finitely many samples in principle; these are "
        "judged by fitted exponents over the sizes tried, intervals at 1 − 1e-6. All fits: "
        "`genbounds audit ID --json`.",
        "",
        *_table(("statement", "verdict", "fit", "found"), lines),
        "",
    ]


def _checks(rows: Iterable[AuditRow]) -> list[str]:
    rows = [row for row in rows if row.form != "rate"]
    every = [check for row in rows for check in row.checks if check.kind != "embeddings"]
    lines = [
        (f"`{row.id}`", check.kind, check.claim, check.found)
        for row in rows
        if row.verdict != "refuted"  # theirs stand with them
        for check in row.checks
        if check.kind != "embeddings" and not check.holds
    ]
    if not every:
        return []
    kinds = sorted({check.kind for check in every})
    return [
        "## Exact checks",
        "",
        "Steps of the proofs in exact arithmetic, and whether each width scales, grows as δ → 0 "
        "and vanishes as n → ∞ as it must. Those that fail are below, or with the refuted "
        "statement. Of all: "
        + "; ".join(
            f"{kind} {sum(check.holds for check in every if check.kind == kind)} of "
            f"{sum(check.kind == kind for check in every)} hold"
            for kind in kinds
        )
        + ".",
        "",
        *(_table(("statement", "kind", "checked", "found"), lines) if lines else ()),
        "",
    ]
