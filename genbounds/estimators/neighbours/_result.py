"""Scores by neighbours by name, and all of them as one result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from genbounds._tables import InHand, Line
from genbounds._text import percent
from genbounds.results import Diagnostic, Score, all_reliable

TITLES = {
    "precision": "Precision",
    "recall": "Recall",
    "density": "Density",
    "coverage": "Coverage",
    "f_score": "F-score of precision and recall",
}
NAMES = tuple(TITLES)
DENSITY = NAMES.index("density")

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class NeighbourScores(Mapping[str, T], Generic[T]):
    """What is counted by neighbours, by attribute or by name.

    Attributes
    ----------
    precision, recall, density, coverage, f_score : object
    """

    precision: T
    recall: T
    density: T
    coverage: T
    f_score: T

    def __getitem__(self, name: str) -> T:
        if name not in NAMES:
            raise KeyError(name)
        found: T = getattr(self, name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecisionRecall(InHand):
    """Precision, recall, density and coverage of one model: to be read together.

    Attributes
    ----------
    precision, recall, density, coverage : Score
        As published.
    f_score : Score
        Harmonic mean of precision and recall.
    calibrated : NeighbourScores of Score, or None
        The same as ratios to what real rows get at the same sizes: 1 is as good as real. By
        attribute or name (``calibrated.recall``, ``calibrated["recall"]``). Never cut off at 1:
        above, generated rows are more central than real ones. None without a `null`.
    null : NeighbourScores of float, or None
        What real rows get.
    drift : NeighbourScores of float
        Mean score of random halves of both samples, over that of all rows.
    k, n, m : int
        Neighbours, real rows, generated rows as used.
    level : float
    """

    _json = (
        "precision recall density coverage f_score calibrated null drift k n m level reliable "
        "warnings assumptions notes"
    )

    _names = "Score"

    precision: Score
    recall: Score
    density: Score
    coverage: Score
    f_score: Score
    calibrated: NeighbourScores[Score] | None
    null: NeighbourScores[float] | None
    drift: NeighbourScores[float]
    k: int
    n: int
    m: int
    level: float

    @property
    def scores(self) -> dict[str, Score]:
        """The scores by name, then the calibrated ones as "precision / real" and so on."""
        found = {name: getattr(self, name) for name in self.drift}
        ratios = {} if self.calibrated is None else self.calibrated
        return found | {f"{name} / real": score for name, score in ratios.items()}

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """The warnings of all scores, each once."""
        return tuple(dict.fromkeys(w for score in self.scores.values() for w in score.warnings))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the intervals assume."""
        return tuple(dict.fromkeys(a for score in self.scores.values() for a in score.assumptions))

    @property
    def notes(self) -> tuple[str, ...]:
        """The messages of all warnings, the assumptions, and how the scores were computed."""
        messages = tuple(warning.message for warning in self.warnings)
        return (*messages, *self.assumptions, *self.precision.details[:3])

    @property
    def reliable(self) -> bool:
        """False exactly if a warning is "unreliable"."""
        return all_reliable(self.warnings)

    def _lines(self) -> list[Line]:
        return [score._line(name) for name, score in self.scores.items()]

    def _caption(self) -> str:
        return (
            f"k = {self.k}, {self.n} real and {self.m} generated rows, "
            f"{percent(self.level)} confidence intervals"
        )

    def __repr__(self) -> str:
        lines = [f"PrecisionRecall({self._caption()})"]
        for name, score in self.scores.items():
            doubt = "" if score.reliable else "  unreliable"
            interval = f"[{score.low:.4g}, {score.high:.4g}]"
            lines.append(f"  {name:<16}  {score.value:>8.4g}  {interval}{doubt}")
        return "\n".join((*lines, *(f"  {warning}" for warning in self.warnings)))
