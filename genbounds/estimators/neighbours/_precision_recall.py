"""Precision, recall and their like together, with intervals, and against real data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from genbounds._tables import InHand, Line
from genbounds._text import percent, quoted
from genbounds.estimators._estimate import Estimate
from genbounds.estimators.neighbours._reference import LARGEST_GROUP, NeighbourReference
from genbounds.estimators.neighbours._scored import NeighbourScores, Scored, not_alone
from genbounds.origins import origin_of
from genbounds.results import Diagnostic, Score, all_reliable, unreliable
from genbounds.samples import Sample, features_of
from genbounds.validation import Float, InputError, check_features, check_open_unit, seeded

UNKNOWN_NULL = unreliable(
    "dependent-rows",
    "what real rows get is known for density and coverage where real rows are independent; with "
    "groups of them the ratio of a perfect model is below 1",
    "Pass a second real sample, null=gb.Sample(more, groups=...).",
)


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

    _names: ClassVar[str] = "Score"

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

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""

        def plain(values: NeighbourScores[float]) -> dict[str, float | None]:
            return {name: x if math.isfinite(x) else None for name, x in values.items()}

        calibrated = self.calibrated
        return {
            **{name: getattr(self, name).to_dict() for name in self.drift},
            "calibrated": None
            if calibrated is None
            else {name: score.to_dict() for name, score in calibrated.items()},
            "null": None if self.null is None else plain(self.null),
            "drift": plain(self.drift),
            "k": self.k,
            "n": self.n,
            "m": self.m,
            "level": self.level,
            "reliable": self.reliable,
            "warnings": [warning.to_dict() for warning in self.warnings],
            "assumptions": list(self.assumptions),
            "notes": list(self.notes),
        }


def precision_recall(
    fake: Any,
    real: Any,
    *,
    k: int = 5,
    null: Any = "real",
    splits: int = 40,
    level: float = 0.95,
    seed: int = 0,
) -> PrecisionRecall:
    """Precision, recall, density and coverage with intervals, as published and against real data.

    Parameters
    ----------
    fake : array_like of shape (m, d) or Sample
        Generated features. Of more rows than the reference has, a random part is used.
    real : array_like of shape (n, d) or Sample
        Reference features. Both samples need 20 k rows.
    k : int
        Neighbours: 5 for density and coverage, 3 for precision and recall as first published. Only
        scores with equal k, n and m compare.
    null : "real", array_like of shape (at least m, d), Sample, or None
        Where the scores of real data come from. "real": the reference itself, each row (group of
        rows) against the rest, recall in a random m of its rows; those of density and coverage are
        known exactly. An array: a second real sample in place of the generated one. None: no
        ratios.
    splits : int
        Random halvings of both samples that the standard errors come from.
    level : float
        Coverage of each interval, in (0, 1).
    seed : int
        Of the halvings, and of rows left out.

    Returns
    -------
    PrecisionRecall
        The interval of a score that is 0 or 1 in every half, or differs by more than 15 % between
        halves and the whole, is not given (NaN), and the score is marked as unreliable.

    Raises
    ------
    InputError
        If a shape, a type or a value is not legal, rows are too few for `k` or have weights, there
        are more generated rows than real ones with groups or strata, or a group of real rows has
        more than 100 of them and `null` is "real".

    Notes
    -----
    With distances d_k to the k-th nearest other row of the same sample and closed balls
    B(x) = {z : ‖z - x‖ <= d_k(x)}: precision is the share of generated rows in a B(x), x real;
    recall that of real rows in a B(y), y generated; density the number of pairs with y in B(x) over
    k m; coverage the share of B(x) that hold a y; the F-score is 2 P R / (P + R) of precision and
    recall. Neighbours are exact; ties and copies count.

    The interval is for the mean score of samples of these sizes: value ± t · s with s² the mean of
    (S_A - S_B)² / 4 over random halves A and B, t of `splits` degrees of freedom. Halves consist of
    whole groups, and divide every stratum. For single-precision features memory stays below 1 GiB
    beside them at n = m = 50,000 (docs/precision_recall.md).

    References
    ----------
    .. [1] T. Kynkäänniemi et al., "Improved precision and recall metric for assessing generative
       models", NeurIPS 2019, §3.
    .. [2] M. F. Naeem et al., "Reliable fidelity and diversity metrics for generative models",
       ICML 2020, §3 and Lemma 2 (expected coverage).

    Examples
    --------
    >>> import numpy as np, genbounds as gb
    >>> rng = np.random.default_rng(0)
    >>> real, fake = rng.normal(size=(400, 8)), rng.normal(size=(400, 8))
    >>> found = gb.precision_recall(fake, real)
    >>> found.calibrated.recall.low < 1.0 < found.calibrated.recall.high
    True
    """
    level = check_open_unit("level", level)
    reference = NeighbourReference(real, k=k, splits=splits, seed=seed)
    _check_null(null, reference)
    scored = reference.scored("fake", fake)
    origins = {"`fake`": origin_of(fake), "`real`": origin_of(real)}
    return _read(scored, reference, null, level=level, origins=origins)


def neighbour_estimates(reference: NeighbourReference, fake: Any) -> NeighbourScores[Estimate]:
    """Estimate the scores of `fake` as published; each knows the others.

    The `together` of each gives all of them, and their ratios to what the reference gets.
    """
    scored = reference.scored("fake", fake)
    null = "real" if reference.largest_group <= LARGEST_GROUP else None

    def together(level: float) -> PrecisionRecall:
        return _read(scored, reference, null, level=level, origins={})

    return NeighbourScores.of(
        replace(one, assumptions=(*one.assumptions, not_alone(name)), together=together)
        for name, one in scored.estimates().items()
    )


def _read(
    scored: Scored,
    reference: NeighbourReference,
    null: Any,
    *,
    level: float,
    origins: dict[str, Mapping[str, str]],
) -> PrecisionRecall:
    """Turn what was counted into scores, and into ratios to those of the `null`, if any."""

    def scores(found: NeighbourScores[Estimate]) -> NeighbourScores[Score]:
        made = (one.made_from(origins) for one in found.values())
        return NeighbourScores.of(replace(one, estimator="plugin").score(level) for one in made)

    against = None if null is None else _null_of(null, reference, scored)
    ratios = None if against is None else scored.ratios(against)
    if ratios is not None and isinstance(null, str) and reference.grouped:
        ratios = NeighbourScores.of(
            one.warned(UNKNOWN_NULL) if name in ("density", "coverage") else one
            for name, one in ratios.items()
        )
    return PrecisionRecall(
        **scores(scored.estimates()),
        calibrated=None if ratios is None else scores(ratios),
        null=None if against is None else NeighbourScores.of(float(x) for x in against[0]),
        drift=NeighbourScores.of(float(x) for x in scored.drift),
        k=reference.k,
        n=scored.n,
        m=scored.m,
        level=level,
    )


def _check_null(null: Any, reference: NeighbourReference) -> None:
    """Refuse a null that cannot be had before anything is computed."""
    if isinstance(null, str):
        if null != "real":
            raise InputError(
                f"must be 'real', features of a second real sample, or None; got {quoted(null)}.",
                argument="null",
            )
        reference.check_groups()


def _null_of(null: Any, reference: NeighbourReference, scored: Scored) -> Float:
    """Score real data of the sizes and in the halves of the scored sample."""
    if isinstance(null, str):
        return scored.exact_nulls(reference.null(scored.m))
    rows = check_features("null", features_of(null))
    if len(rows) < scored.m:
        raise InputError(
            f"has {len(rows)} rows; pass at least as many as are scored, {scored.m}.",
            argument="null",
        )
    if len(rows) > scored.m:
        chosen = seeded(reference.seed, "null").choice(len(rows), scored.m, replace=False)
        null = null[np.sort(chosen)] if isinstance(null, Sample) else rows[np.sort(chosen)]
    return reference.scored("null", null).values
