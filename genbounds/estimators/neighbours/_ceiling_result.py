"""What `precision_recall_ceiling` finds."""

from __future__ import annotations

from dataclasses import dataclass

from genbounds._tables import Line, Warned
from genbounds._text import number, percent
from genbounds.results import Diagnostic


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling(Warned):
    """Upper limits of how much two distributions have in common.

    Attributes
    ----------
    ceilings : dict of str to float
        By name: "precision@10" is the largest share of the generated mass that can be left when
        what is over-produced more than tenfold is cut to tenfold; "recall@10" the same of real mass
        that is under-produced; "overlap" is 1 less the total variation. All are 1 for equal
        distributions.
    lam : tuple of float
        λ of each: precision@λ above 1, overlap at 1, recall@1/λ below.
    level : float
        Confidence of each ceiling on its own.
    n, m : int
        Independent real and generated rows (groups) that certify.
    classifiers : dict of str to str
        What told the rows apart, for each ceiling.
    warnings : tuple of Diagnostic
    assumptions : tuple of str
    """

    _json = "ceilings lam level n m classifiers reliable warnings assumptions notes"

    _names = "Ceiling"

    ceilings: dict[str, float]
    lam: tuple[float, ...]
    level: float
    n: int
    m: int
    classifiers: dict[str, str]
    warnings: tuple[Diagnostic, ...] = ()
    assumptions: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> float:
        return self.ceilings[name]

    def _lines(self) -> list[Line]:
        return [
            Line(name=name, value=value, low=0.0, high=value, reliable=self.reliable)
            for name, value in self.ceilings.items()
        ]

    def _caption(self) -> str:
        return f"Certified ceilings, each at {percent(self.level)}"

    def __repr__(self) -> str:
        found = ", ".join(f"{name} <= {number(value)}" for name, value in self.ceilings.items())
        text = f"Ceiling({found}; each at {percent(self.level)})"
        return "\n  ".join((text, *map(str, self.warnings)))
