"""The page of `genbounds track`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from genbounds._text import count, interval, number, percent, short
from genbounds.report.blocks import Cell, Notes, Tag, Tone
from genbounds.report.figures._track import track_plot
from genbounds.report.page import Page, Section, answer_page
from genbounds.report.pages import basis, warning_blocks
from genbounds.report.wording import metric_title

if TYPE_CHECKING:
    from genbounds.decisions import Track

TONES: dict[str, Tone] = {"improved": "good", "collapsed": "bad", "undecided": "open"}


def track_page(track: Track) -> Page:
    """Build the page of `genbounds track`.

    Parameters
    ----------
    track : genbounds.decisions.Track
    """
    title = metric_title(track.metric)
    kept = track.kept
    ends = interval(kept.score.low, kept.score.high)
    looks = count(len(track.looks), "look")
    facts: list[tuple[str, Cell, str]] = [
        (
            "Verdict",
            Tag(track.verdict, TONES.get(track.verdict, "plain")),
            f"after {looks} of {number(track.planned)}",
        ),
    ]
    if track.advice:
        facts += [
            ("Keep step", short(track.best), f"the best of {looks} by {title}"),
            (title, kept.score.value, f"{ends}, from fresh rows")
            if kept.fresh
            else (title, ends, "corrected for the choice"),
        ]
    page = answer_page(
        "Is training still improving?",
        f"{track.summary} {track.advice}",
        *facts,
    )
    named = {f"step {short(step)}": score for step, score in track.scores.items()}
    page.add(
        Section(
            "The run",
            [
                *warning_blocks(named, track.warnings),
                track_plot(track),
                f"At most {percent(1.0 - track.level)} of such runs call any step improved or "
                "collapsed that is not.",
                Notes(items=track.assumptions, title="What the verdict assumes"),
                *basis(named),
            ],
        )
    )
    return page
