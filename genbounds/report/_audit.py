"""The pages of `genbounds audit` and `genbounds bounds`: claimed against measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any

from genbounds._drawing import COLOUR, DASHED, Row, Scale, interval_rows, tip
from genbounds._text import count, interval, number, percent, short, shown
from genbounds.report import blocks
from genbounds.report.blocks import Block, Cell, Figure, Notes, Table, Tag, Tone
from genbounds.report.page import Page, Section, answer_page, drawn
from genbounds.report.wording import measured_lines, verdict_text, verdict_word
from genbounds.validation import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from genbounds.bounds import Bound

PAPERS = {
    "O24": (
        "Hu, Leung and Farnia (2024), An Optimism-based Approach to Online Evaluation of "
        "Generative Models",
        "https://arxiv.org/abs/2406.07451v1",
    ),
    "M25": (
        "Hu, Leung and Farnia (2025), A Multi-Armed Bandit Approach to Online Selection and "
        "Evaluation of Generative Models",
        "https://arxiv.org/abs/2406.07451v3",
    ),
    "V24": (
        "Ospanov and Farnia (2024), On the Statistical Complexity of Estimating VENDI Scores from "
        "Empirical Data",
        "https://arxiv.org/abs/2410.21719v1",
    ),
    "C20": (
        "Chong and Forsyth (2020), Effectively Unbiased FID and Inception Score and where to find "
        "them",
        "https://arxiv.org/abs/1911.07023",
    ),
}
"""The papers whose statements the catalogue has, by their short names, and where to read them."""

FORMS = {
    "oracle": "the width needs quantities that only the true distribution has",
    "plug-in": "the width is computed from the sample alone",
    "deterministic": "holds for every input, without probability",
    "rate": "claims an order of growth only",
}
"""What the form of a statement means."""

VERDICT_TONES: dict[str, Tone] = {"upheld": "good", "refuted": "bad", "vacuous": "open"}
MISS_RATIOS = (1e-3, 1e3)

TIGHTNESS = "width over the smallest one that would hold; 1 is perfect"


def audit_page(document: Mapping[str, Any], *, bounds: Mapping[str, Bound] | None = None) -> Page:
    """Build the page of `genbounds audit`.

    Parameters
    ----------
    document : mapping
        As ``genbounds audit --json`` prints it.
    bounds : mapping of str to Bound, optional
        The catalogue, for claims and formulas.
    """
    rows = document["rows"]
    refuted = [row for row in rows if row["verdict"] == "refuted"]
    upheld, vacuous = (sum(row["verdict"] == x for row in rows) for x in ("upheld", "vacuous"))
    failed = f"{len(refuted)} failed more often than allowed."
    page = answer_page(
        "Do the inequalities hold as printed?",
        f"Of {count(len(rows), 'published inequality', 'published inequalities')}, "
        f"{failed if refuted else 'none failed more often than it allows.'}",
        ("Refuted", len(refuted), "with a counterexample each"),
        ("Not refuted", upheld, "in no test did they fail more often than allowed"),
        ("Vacuous", vacuous, "never violated, but the bound says nothing"),
    )
    verdicts = verdict_table(rows, f"Verdicts, seed {document['seed']}")
    page.add(Section("Verdicts", [verdicts, _legend(rows)]))
    if any(row["worst"]["claimed"] > 0 for row in rows):
        page.add(Section("Promised against measured", [miss_plot(rows)]))
    if any(row.get("tightness") for row in rows):
        page.add(Section("How tight they are", [tightness_plot(rows)]))
    details: list[Block] = []
    for row in refuted:
        source = row["source"]
        name = PAPERS[source[:3]][0] + ":" + source[3:] if source[:3] in PAPERS else source
        bound = None if bounds is None else bounds.get(row["id"])
        formula: list[Block] = [] if bound is None else [bound.claim, blocks.Formula(bound.latex)]
        details += [f"{row['id']} ({name})", *formula, _measured(row)]
    if details:
        page.add(Section("What was refuted, and by what", details))
    return page


def verdict_table(rows: Sequence[Mapping[str, Any]], caption: str = "") -> Table:
    """Return the verdicts of an audit, whose `rows` are those of its JSON."""
    cells = []
    for row in rows:
        word, tone = row["verdict"], verdict(row["verdict"]).tone
        tag = Tag(verdict_text(word, row.get("refuted_from")), tone)
        tightness = None if word == "refuted" else row["tightness"]
        source = _source(row["source"])
        cells.append((blocks.Code(row["id"]), tag, row["form"], tightness, row["cells"], source))
    return Table(("Statement", "Verdict", "Form", "Tightness", "Cases", "Source"), cells, caption)


def statement_page(bound: Bound, row: Mapping[str, Any]) -> Page:
    """Build the page of `genbounds bounds ID`.

    Parameters
    ----------
    bound : genbounds.bounds.Bound
    row : mapping
        Its row of an audit.
    """
    page = answer_page(
        bound.id,
        bound.claim,
        ("Verdict", verdict(row["verdict"]), "of a quick audit"),
        ("Form", bound.form, FORMS[bound.form]),
        ("Tightness", row["tightness"], TIGHTNESS),
    )
    constants = [(blocks.Code(name), short(value)) for name, value in bound.constants.items()]
    statement: list[Block] = [
        blocks.Formula(bound.latex),
        Table(("Source",), [(_source(bound.source),)]),
        f"Setting: {bound.setting}.",
        Notes(items=[a.text for a in bound.assumptions], title="Assumptions"),
        Table(("Constant", "As printed"), constants),
    ]
    page.add(Section("The statement", statement))
    if row.get("by_delta"):
        page.add(Section("Claimed against measured", [claim_plot(row)]))
    checks = [
        (check["kind"], Tag("holds", "good") if check["holds"] else Tag("fails", "bad"),
         check["claim"], check["found"])
        for check in row.get("checks") or ()
    ]  # fmt: skip
    table = Table(("Kind", "", "Checked", "Found"), checks, "Exact checks and fits")
    return page.add(Section("The verdict", [_measured(row), *([table] if checks else [])]))


def _source(text: str) -> Cell:
    """Link a source to its paper, as far as it is one of those that the catalogue transcribes."""
    return blocks.Link(text, PAPERS[text[:3]][1]) if text[:3] in PAPERS else text


def _legend(rows: Sequence[Mapping[str, Any]]) -> Notes:
    """Explain the columns of an audit, and the short names of the papers that occur."""
    forms = [form for form in FORMS if any(row["form"] == form for row in rows)]
    papers = [name for name in PAPERS if any(name in row["source"] for row in rows)]
    return Notes(
        title="How to read the table",
        items=[
            "Not refuted: in no test did it fail more often than it allows; that is no proof.",
            f"Tightness: {TIGHTNESS.replace('width', 'width of the bound')}; below 1 the bound "
            "promises too much.",
            *(f"Form {form}: {FORMS[form]}." for form in forms),
            *(f"{name}: {PAPERS[name][0]}." for name in papers),
        ],
    )


def _measured(row: Mapping[str, Any]) -> Notes:
    items = [f"Counterexample: {row['counterexample']}"] if row["counterexample"] else []
    return Notes(items=[*items, *measured_lines(row)], title="Measured")


def verdict(text: str) -> Tag:
    """Return the verdict `text` of an audit as a coloured word, as people read it."""
    return Tag(verdict_word(text), VERDICT_TONES.get(text, "plain"))


# --- figures --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class CoveragePoint:
    """How often intervals at `nominal` level covered the truth.

    Attributes
    ----------
    label : str
        Which intervals, on which arm.
    n : int
        Samples per interval.
    nominal, measured : float
        Levels in (0, 1).
    low, high : float
        Exact interval of the measured level.
    replications : int
    """

    label: str
    n: int
    nominal: float
    measured: float
    low: float
    high: float
    replications: int


def coverage_plot(points: Sequence[CoveragePoint]) -> Figure:
    """Nominal against measured coverage, with exact intervals.

    Parameters
    ----------
    points : sequence of CoveragePoint
    """
    if not points:
        raise InputError("`points` must hold at least one coverage measurement.")
    rows = []
    for p in points:
        agrees = p.low <= p.nominal <= p.high
        look = ("accent", "filled") if agrees else ("bad", "open")
        name, of = f"{p.label}, n = {p.n}", count(p.replications, "interval")
        said = f"{shown(name)}: {percent(round(p.measured, 4))} of {of}"
        rows.append(Row(name, (p.low, p.measured, p.high), *look, said))
    agree = sum(row.mark == "filled" for row in rows)
    cells = attrgetter("label", "n", "nominal", "measured", "low", "high", "replications")
    scale = Scale.linear(end for p in points for end in (p.low, p.high, p.nominal))
    promised = sorted({p.nominal for p in points})
    label = "measured coverage"
    return drawn(
        partial(interval_rows, rows=rows, label=label, scale=scale, lines=promised),
        rows=len(rows),
        alt=f"Measured coverage of {count(len(points), 'kind')} of interval against their nominal "
        f"level; {agree} agree with it within the simulation's own error.",
        caption="Dots: how often the intervals really covered the truth; open: not as often as "
        "promised. Lines: exact binomial intervals of that share. Dashed: what was promised.",
        table=Table(
            ("Interval", "n", "Promised", "Measured", "Low", "High", "Replications"),
            [cells(p) for p in points],
        ),
    )


def miss_plot(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Show how often each statement failed at its worst cell, relative to what it allows.

    Parameters
    ----------
    rows : sequence of mapping
        Rows of an audit as ``genbounds audit --json`` prints them; statements that allow no miss
        (deterministic ones) are left out.
    """
    measured = [row for row in rows if row["worst"]["claimed"] > 0.0]
    if not measured:
        raise InputError("`rows` must hold at least one statement that allows some misses.")
    marks, rates = [], itemgetter("miss_low", "miss", "miss_high", "claimed")
    for row in measured:
        low, miss, high, claimed = rates(row["worst"])
        said = f"{row['id']}: {number(miss)} {interval(low, high)}, allowed {short(claimed)}"
        ends = low / claimed, miss / claimed, high / claimed
        marks.append(Row(row["id"], ends, *_look(row["verdict"]), said))
    refuted = [row["id"] for row in measured if row["verdict"] == "refuted"]
    scale = Scale.logarithmic(MISS_RATIOS, zero=MISS_RATIOS[0])
    label = "failures per allowed failure"
    return drawn(
        partial(interval_rows, rows=marks, label=label, scale=scale, lines=[1.0]),
        rows=len(marks),
        alt=f"Failure rates of {count(len(measured), 'statement')} relative to what they allow. "
        f"Refuted: {', '.join(refuted) or 'none'}.",
        caption="How often each statement failed in its worst case, as a multiple of what it "
        "allows, with exact intervals. Right of the dashed line it fails too often; filled: "
        "refuted. An arrow: the interval goes on beyond the axis.",
        table=Table(
            ("Statement", *_EVIDENCE, "d"),
            [(row["id"], *_evidence(row["worst"]), row["worst"]["d"]) for row in measured],
        ),
    )


_EVIDENCE = ("Allowed", "Measured", "Low", "High", "Distribution", "n")


def _evidence(cell: Mapping[str, Any]) -> tuple[Cell, ...]:
    """Return the numbers of one test case under the headings `_EVIDENCE`."""
    numbers = (cell[key] for key in ("miss", "miss_low", "miss_high"))
    return (short(cell["claimed"]), *numbers, str(cell["arm"]), cell["n"])


def claim_plot(row: Mapping[str, Any]) -> Figure:
    """Show claimed against measured miss rate of one statement over its failure probability.

    Parameters
    ----------
    row : mapping
        Its row of an audit as ``genbounds audit --json`` prints it, with ``by_delta``.
    """
    cells = [cell for cell in row.get("by_delta") or () if cell["claimed"] > 0.0]
    if not cells:
        raise InputError("`row` must hold a measured miss rate in its `by_delta`.")
    deltas, claims = ([cell[key] for cell in cells] for key in ("delta", "claimed"))
    # Far below every claim a rate is as good as none.
    floor = min(claims) * 1e-3
    colour = COLOUR[_look(row["verdict"])[0]]

    def paint(ax: Axes) -> None:
        Scale.logarithmic(deltas).apply(ax, "failure probability δ")
        Scale(floor, 3.0, log=True).apply(ax, "failure rate", upright=True)
        ax.plot(deltas, claims, **DASHED)
        for cell in cells:
            low, value, high = (max(cell[key], floor) for key in ("miss_low", "miss", "miss_high"))
            ax.vlines(cell["delta"], low, high, color=colour, linewidth=2)
            shape = "v" if cell["miss"] <= floor else "o"
            (mark,) = ax.plot(cell["delta"], value, shape, color=colour, markersize=6)
            rate = f"{number(cell['miss'])} {interval(cell['miss_low'], cell['miss_high'])}"
            said = f"{rate} ({cell['evidence']}), allowed {short(cell['claimed'])}; {cell['arm']}"
            tip(mark, f"δ = {short(cell['delta'])}: {said}")

    over = ", ".join(short(cell["delta"]) for cell in cells if cell["refutes"])
    nowhere = ", nowhere proven to be above what is allowed."
    return drawn(
        paint,
        alt=f"Failure rate of {row['id']} against its failure probability"
        + (f". Above what is allowed at δ = {over}." if over else nowhere),
        caption="How often the statement fails in its worst case, at each failure probability, "
        "with exact intervals. Dashed: what it allows; above that line it fails too often. Arrows "
        "point below the axis.",
        table=evidence_table(cells),
    )


def evidence_table(cells: Sequence[Mapping[str, Any]]) -> Table:
    """Return what was measured of one statement at each failure probability."""
    often: dict[bool, Cell] = {True: Tag("too often", "bad"), False: ""}
    rows = [(short(x["delta"]), *_evidence(x), often[x["refutes"]], x["evidence"]) for x in cells]
    return Table(("δ", *_EVIDENCE, "Fails", "Evidence"), rows)


def tightness_plot(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """How many times wider than necessary each statement is, on a logarithmic scale.

    Parameters
    ----------
    rows : sequence of mapping
        Rows of an audit as ``genbounds audit --json`` prints them; those without a tightness are
        left out.
    """
    known = [row for row in rows if row.get("tightness") and row["tightness"] > 0]
    if not known:
        raise InputError("`rows` must hold at least one statement with a tightness.")
    known.sort(key=lambda row: row["tightness"])
    marks = []
    for row in known:
        times, text = row["tightness"], f"{number(row['tightness'], digits=3)}×"
        look, said = _look(row["verdict"]), f"{row['id']}: {text}"
        marks.append(Row(row["id"], (1.0, times, times), *look, said, text))
    least, most = (
        f"{number(row['tightness'], digits=3)} ({row['id']})" for row in (known[0], known[-1])
    )
    scale = Scale.logarithmic([1.0, *(row["tightness"] for row in known)])
    label = "width over the smallest one that would hold"
    return drawn(
        partial(interval_rows, rows=marks, label=label, scale=scale, lines=[1.0]),
        rows=len(marks),
        alt=f"Width of {count(len(known), 'statement')} relative to the width that is needed, from "
        f"{least} to {most}.",
        caption="Tightness: the width of each bound over the smallest one that would hold at the "
        "same failure probability. Left of the dashed line bounds promise too much; filled: "
        "refuted.",
        table=Table(
            ("Statement", "Tightness", "Verdict"),
            [(row["id"], float(row["tightness"]), verdict(row["verdict"])) for row in known],
        ),
    )


def _look(word: str) -> tuple[str, str]:
    """Return colour and mark of a verdict."""
    return VERDICT_TONES.get(word, "muted"), "filled" if word == "refuted" else "open"
