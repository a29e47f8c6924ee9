"""What the terminal and the page both say about results, said once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from genbounds._text import interval, number, percent, short, shown, shown_pvalue
from genbounds.estimators import PrecisionRecall, metric_spec
from genbounds.report.blocks import Cell, Name, Table, Tag, Tone
from genbounds.results import Diagnostic, Difference, Ranking, Score
from genbounds.validation import InputError

NAMED_RIVALS = 3
"""So many models are named in a sentence; more are counted."""


def interval_of(score: Score) -> str:
    """Format the interval of a score."""
    return interval(score.low, score.high)


def with_interval(score: Score) -> str:
    """Format a score and its interval."""
    return f"{number(score.value)} {interval_of(score)}"


def metric_title(metric: str) -> str:
    """Title of a registered metric; any other name as it is."""
    try:
        return metric_spec(metric).title
    except InputError:
        return metric


def sentence(text: str) -> str:
    """Return a line for a log as a sentence."""
    return f"{text[:1].upper()}{text[1:]}."


def lead_sentence(result: Any) -> str:
    """Return what a result says as a sentence, its metric by its title."""
    return sentence(str(replace(result, metric=metric_title(result.metric))))


def verdict_word(verdict: str) -> str:
    """Return what people read for a `verdict` of the audit: what survived is not proven by that."""
    return "not refuted" if verdict == "upheld" else verdict


USUAL_DELTA = 0.05
"""A statement that fails only at smaller failure probabilities says so at first sight."""


def verdict_text(verdict: str, refuted_from: float | None) -> str:
    """Return the word for a verdict, and the failure probabilities to which it is limited.

    Parameters
    ----------
    verdict : str
        Of the audit.
    refuted_from : float or None
        Largest failure probability at which it is refuted.
    """
    if verdict == "refuted" and refuted_from is not None and refuted_from < USUAL_DELTA:
        return f"refuted (only at δ ≤ {refuted_from:g})"
    return verdict_word(verdict)


def verdict_line(ranking: Ranking) -> str:
    """Say which model is best, and which of the others differ from it significantly."""
    best, at = shown(ranking.best), f"({percent(ranking.level)}, jointly)"
    rivals = [shown(model) for model in ranking.contenders if model != ranking.best]
    if not ranking.scores[ranking.best].reliable:
        text = "No model is named best: the leading score is unreliable."
    elif not rivals:
        text = f"{best} is significantly better than every other model {at}."
    else:
        whom = ", ".join(rivals) if len(rivals) <= NAMED_RIVALS else f"{len(rivals)} other models"
        text = f"{best} has the best score, but does not differ significantly from {whom} {at}."
    doubtful = [shown(model) for model, score in ranking.scores.items() if not score.reliable]
    if doubtful:
        text += f" Unreliable: {', '.join(doubtful)} (see the warnings)."
    return text


def letters_of(ranking: Ranking) -> dict[str, str]:
    """Return the group letters of the models whose scores can be relied on, if there are two."""
    kept = {name: x for name, x in ranking.letters.items() if ranking.scores[name].reliable}
    return kept if len(kept) > 1 else {}


def winner_line(ranking: Ranking) -> str:
    """Give the interval of the best model, corrected for the choice; empty if none is named.

    Its value is not printed: near a tie it can lie above the scores of all models.
    """
    score = ranking.winner()
    if not ranking.scores[ranking.best].reliable:
        return ""
    of = f"the interval of {shown(ranking.best)}"
    return f"Corrected for having been chosen, {of} is {interval_of(score)}."


STOPPED = {
    "certified": "the certificate was reached",
    "budget": "the budget is spent",
    "limit": "the arms have given as many samples as they may",
    "reference": "the reference sample is too small to separate the leading models",
    "exhausted": "an arm has no more samples to give",
    "no rival": "fewer than two arms are left",
}
"""Why a selection ended, as a sentence says it."""


def stop_reason(stopped: str) -> str:
    """Say why a selection ended; a word that is not known stays as it is."""
    return STOPPED.get(stopped, shown(stopped))


def lead_of(pair: Difference, *, log_scale: bool = False) -> tuple[float, float, float]:
    """Return a lead and its interval as positive numbers in favour of the better model.

    Where differences are those of logarithms, it is the ratio of the larger score to the smaller.
    """
    sign = -1.0 if pair.value < 0.0 else 1.0
    low, high = sorted((sign * pair.low, sign * pair.high))
    if log_scale:
        return math.exp(sign * pair.value), math.exp(low), math.exp(high)
    return sign * pair.value, low, high


def mark(score: Score) -> str:
    """Return what a table says beside a score that carries warnings."""
    if not score.reliable:
        return "unreliable"
    return "caution" if score.warnings else ""


def score_table(
    scores: Mapping[str, Score],
    more: Mapping[str, Sequence[Cell]],
    *,
    name: str = "Model",
    value: str,
    caption: str = "",
) -> Table:
    """Return names, scores and intervals, `more` columns by their heads, and marks of warnings."""
    columns: dict[str, Sequence[Cell]] = {
        name: [Name(model) for model in scores],
        value: [score.value for score in scores.values()],
        "Interval": [interval_of(score) for score in scores.values()],
        **more,
    }
    if any(score.warnings for score in scores.values()):
        tones: dict[str, Tone] = {"unreliable": "bad", "caution": "open"}
        marks = map(mark, scores.values())
        columns["Warnings"] = [Tag(text, tones[text]) if text else "" for text in marks]
    return Table.of(columns, caption)


def comparison_table(scores: Mapping[str, Score], ranking: Ranking | None = None) -> Table:
    """Return scores and how they were found; of a ranking also groups, and p-values of the first.

    Parameters
    ----------
    scores : mapping of str to Score
    ranking : Ranking, optional
        Of some of them.
    """
    columns: dict[str, list[Cell]] = {
        "Std. error": [score.stderr for score in scores.values()],
        "n": [score.n for score in scores.values()],
    }
    letters = {} if ranking is None else letters_of(ranking)
    if letters:
        columns["Group"] = [letters.get(name, "") for name in scores]
    if ranking is not None and ranking.best in letters:
        pvalues = {
            name: shown_pvalue(ranking.difference(ranking.best, name).pvalue_adjusted)
            for name in letters.keys() - {ranking.best}
        }
        columns["p"] = [
            pvalues.get(name, "–").removeprefix("= ").replace(" ", "") for name in scores
        ]
    return score_table(scores, columns, value="Score")


TOGETHER = "Read them together; in the last column 1 means as good as real data"
"""What stands above the scores of precision and its like."""


def together_table(together: Mapping[str, PrecisionRecall], order: Iterable[str]) -> Table:
    """Return precision and its like of every model.

    Parameters
    ----------
    together : mapping of str to PrecisionRecall
    order : iterable of str
        Names of the models; some may have no such scores.
    """

    def cell(score: Score) -> str:
        return with_interval(score) if score.reliable else f"{number(score.value)} unreliable"

    rows = []
    for model in order:
        if (found := together.get(model)) is None:
            continue
        for name in found.drift:
            ratio = "" if found.calibrated is None else cell(found.calibrated[name])
            rows.append((Name(model), name, cell(getattr(found, name)), ratio))
    return Table(("Model", "Score", "As published", "Relative to real"), rows, TOGETHER)


def warning_lines(
    scores: Mapping[str, Score],
    warnings: Iterable[Diagnostic] = (),
    together: Mapping[str, PrecisionRecall] | None = None,
) -> list[str]:
    """Return each warning once, with the models that it concerns unless all; unreliable ones first.

    Parameters
    ----------
    scores : mapping of str to Score
    warnings : iterable of Diagnostic
        About all models together.
    together : mapping of str to PrecisionRecall, optional
        Further scores of the models.
    """
    concerned: dict[Diagnostic, list[str]] = {warning: [] for warning in warnings}
    every = [(model, score.warnings) for model, score in scores.items()]
    every += [(model, found.warnings) for model, found in (together or {}).items()]
    for model, theirs in every:
        for warning in theirs:
            models = concerned.setdefault(warning, [])
            if shown(model) not in models:
                models.append(shown(model))
    ordered = sorted(concerned, key=lambda warning: warning.severity != "unreliable")
    return [
        f"{warning} ({', '.join(concerned[warning])})"
        if 0 < len(concerned[warning]) < len(scores)
        else str(warning)
        for warning in ordered
    ]


def assumption_lines(scores: Mapping[str, Score], assumptions: Iterable[str] = ()) -> list[str]:
    """Return what the intervals of all `scores` assume, and `assumptions` about all together."""
    own = (assumption for score in scores.values() for assumption in score.assumptions)
    return list(dict.fromkeys((*own, *assumptions)))


METHOD_WORDS = {
    "second-order": "bias removed by an expansion in 1/n",
    "third-order": "bias removed by an expansion in 1/n, the next order by halving the samples",
    "spectrum-fit": "few samples: bias removed by a fit of the population spectrum",
    "joint-spectrum-fit": "few samples: bias removed by a fit of both population spectra",
    "contour": "few samples: bias removed by a contour integral over the spectrum",
    "joint-contour": "few samples: bias removed by a contour integral over both spectra",
}
"""What the methods do whose names do not say it; docs/methods.md has when each is chosen."""


def method_lines(scores: Mapping[str, Score]) -> list[str]:
    """Return how each score was computed, models with the same method in one line."""
    models: dict[tuple[str, ...], list[str]] = {}
    for model, score in scores.items():
        words = METHOD_WORDS.get(score.method)
        method = score.method if words is None else f"{score.method} ({words})"
        models.setdefault((method, *score.details), []).append(shown(model))
    return [f"{', '.join(names)}: {'; '.join(method)}" for method, names in models.items()]


def rate(miss: float, low: float, high: float) -> str:
    """Format the measured rate `miss` with its interval (`low`, `high`); if exact, without."""
    return f"{number(miss)} (exact)" if low == high else f"{number(miss)} {interval(low, high)}"


def measured_lines(row: Mapping[str, Any]) -> list[str]:
    """Return what an audit measured about one statement.

    Parameters
    ----------
    row : mapping
        The statement's row of an audit, as ``genbounds audit --json`` prints it.
    """
    worst = row["worst"]
    size = "" if worst["n"] is None else f"n = {number(worst['n'])}, "
    case = f"{worst['arm']}, {size}d = {number(worst['d'])}"
    if worst["delta"] is None:
        lines = [f"Searched for inputs that violate it; worst: {case}."]
    else:
        lines = [
            f"Worst case: {case}.",
            f"At δ = {short(worst['delta'])} it fails at a rate of "
            f"{rate(worst['miss'], worst['miss_low'], worst['miss_high'])}; allowed: "
            f"{short(worst['claimed'])}.",
        ]
    if row["tightness"] is not None and row["verdict"] != "refuted":
        lines.append(f"Width over what would do, median: {number(row['tightness'])}.")
    return lines
