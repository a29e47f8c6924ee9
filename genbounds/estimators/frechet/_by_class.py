"""The Fréchet distance of every class, with intervals that hold together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds._tables import InHand, Line
from genbounds._text import count, listed, number, percent, shown
from genbounds.core.checks import check_sample, refuse_moments
from genbounds.core.design import Design, Index, design_of, row_design, sums_by
from genbounds.core.difference import average, sum_of
from genbounds.core.estimate import Estimate, SampleError, mean_variance
from genbounds.estimators.frechet._distance import FrechetReference
from genbounds.results import Diagnostic, Score, all_reliable, hedged
from genbounds.samples import Sample, balanced, check_labels, converted, features_of, go_across
from genbounds.validation import Float, InputError, check_open_unit


@dataclass(frozen=True, slots=True, kw_only=True)
class ByClass(InHand):
    """Fréchet distance of every class, worst first.

    Attributes
    ----------
    classes : dict of int or str to Score
        By label, the largest value first. All their intervals hold together at `level`.
    shares : dict of int or str to float
        Share of every class among the reference rows.
    mean : Score
        Mean of the classes' distances, weighted by `shares` ("intra-FID").
    whole : Score
        The distance without regard to classes. With equal shares on both sides `mean` is at least
        as large.
    difference : Score
        `mean` less `whole`: what classes lose to one another, which the whole distance does not
        see. For a model that exchanges two classes it is all of `mean`.
    worst : tuple of int or str
        The classes that can be the worst one: together with `level` it is among them.
    level : float
    """

    _json = "level classes shares mean whole difference worst reliable"

    _names = "Class"

    classes: Mapping[Label, Score]
    shares: Mapping[Label, float]
    mean: Score
    whole: Score
    difference: Score
    worst: tuple[Label, ...]
    level: float

    @property
    def reliable(self) -> bool:
        """Whether no warning, of a class or of `overall`, says "unreliable"."""
        return all_reliable(self.warnings)

    @property
    def overall(self) -> dict[str, Score]:
        """`mean`, `whole` and `difference`, by what they are."""
        return {
            "mean over classes": self.mean,
            "without classes": self.whole,
            "difference of the two": self.difference,
        }

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """Of all classes and of `overall`, each once."""
        scores = (*self.classes.values(), *self.overall.values())
        return tuple(dict.fromkeys(warning for score in scores for warning in score.warnings))

    def __str__(self) -> str:
        named = [shown(str(label)) for label in self.worst]
        several = len(named) > 1
        text = (
            f"{listed(named[:5])}{' …' if len(named) > 5 else ''} "
            f"{'can each be' if several else 'is'} the worst of "
            f"{count(len(self.classes), 'class', 'classes')}; mean over classes "
            f"{number(self.mean.value)}, without classes {number(self.whole.value)}"
        )
        return hedged(text, self.warnings)

    def _lines(self) -> list[Line]:
        return [
            score._line(str(name), share=self.shares[name]) for name, score in self.classes.items()
        ]

    def _caption(self) -> str:
        return f"Fréchet distance by class, {percent(self.level)} intervals that hold together"


def frechet_by_class(
    fake: Any, real: Any, labels: Any, real_labels: Any, *, level: float = 0.95
) -> ByClass:
    """Fréchet distance of every class, worst first, with intervals that hold together.

    Parameters
    ----------
    fake, real : array_like of shape (n, d) and (m, d), or Sample
        Generated and reference features. Groups and weights of a `Sample` are kept in every class.
    labels, real_labels : array_like of shape (n,) and (m,)
        Integers or strings: the class of every row, that which it was generated for or the one a
        classifier gives it. Both sides have the same classes, at least 2 rows of each.
    level : float
        Probability with which the intervals of all classes hold together, in (0, 1).

    Returns
    -------
    ByClass

    Raises
    ------
    InputError
        If a shape, a type or a value is not legal, or a class has fewer than 2 rows on one side.

    Notes
    -----
    Each class is a `frechet_distance` of its own, bias removed, at the level 1 - (1 - level)/K for
    K classes (Bonferroni). At 50 images a class most of a published per-class FID is bias; here few
    rows show in the width of the interval, and in a warning where they are too few for any.
    Classes are taken as independent of one another in the interval of their mean. If nothing is
    said of strata, classes of equal numbers are taken for them: those numbers were fixed. The rows
    of a `Sample` without groups are independent, as it says.

    References
    ----------
    .. [1] T. Miyato and M. Koyama, "cGANs with projection discriminator", ICLR 2018 (intra-FID).

    Examples
    --------
    >>> import numpy as np, genbounds as gb
    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat(["cat", "dog"], 500)
    >>> real, fake = rng.normal(size=(2, 1000, 4))
    >>> fake[500:] += 1.0
    >>> found = gb.frechet_by_class(fake, real, labels, labels)
    >>> found.worst
    ('dog',)
    """
    level = check_open_unit("level", level)
    for name, sample in (("fake", fake), ("real", real)):
        refuse_moments(name, sample, "a distance by class needs")
    generated, reference = converted("fake", fake), converted("real", real)
    of_fake = rows_by_class(generated, "labels", labels)
    of_real = rows_by_class(reference, "real_labels", real_labels)
    estimates: dict[Label, Estimate] = {}
    for label in common_classes(of_fake, of_real):
        try:
            of_class = FrechetReference(_part(reference, of_real[label]))
            estimates[label] = of_class.estimate(_part(generated, of_fake[label]))
        except InputError as error:
            raise InputError(f"class {shown(str(label))}: {error}") from error
    joint = 1.0 - (1.0 - level) / len(estimates)
    scores = {label: estimate.score(joint) for label, estimate in estimates.items()}
    ordered = dict(sorted(scores.items(), key=lambda item: -item[1].value))
    least = max(score.low for score in scores.values())
    fake, real = _drawn("fake", fake, labels), _drawn("real", real, real_labels)
    whole = FrechetReference(real).estimate(fake)
    fake_side = Side.of("fake", fake, [of_fake[label] for label in estimates])
    real_side = Side.of("real", real, [of_real[label] for label in estimates])
    classes = list(estimates.values())
    mean = mean_over_classes(classes, real_side)
    less = mean_less_whole(mean, whole, classes, fake_side, real_side)
    shares = dict(zip(estimates, real_side.shares.tolist(), strict=True))
    return ByClass(
        classes=ordered,
        shares={label: shares[label] for label in ordered},
        mean=mean.score(level),
        whole=whole.score(level),
        difference=less.score(level),
        worst=tuple(label for label, score in ordered.items() if score.high >= least),
        level=level,
    )


def _part(sample: Any, rows: NDArray[np.intp]) -> Any:
    """Return the rows of one class, drawn as they say; a single stratum is no news."""
    part = sample[rows]
    if not isinstance(part, Sample) or part.strata is None or len(np.unique(part.strata)) > 1:
        return part
    return Sample(part.features, groups=part.groups, weights=part.weights)


def _drawn(name: str, sample: Any, labels: Any) -> Any:
    """Take the classes as strata where nothing else was said and their numbers are no accident."""
    told = isinstance(sample, Sample)
    if told and (sample.strata is not None or sample.groups is None):
        return sample
    _, of_row, counts = np.unique(labels, return_inverse=True, return_counts=True)
    if not balanced(counts):
        return sample
    if told:
        groups, weights = sample.groups, sample.weights
    else:
        design = check_sample(name, sample).design
        groups, weights = None if design is None else design.unit, None  # rows that repeat
    if groups is not None and go_across(groups, of_row):
        return sample
    return Sample(features_of(sample), groups=groups, weights=weights, strata=labels)


# --- The mean of the classes' distances, and by what it exceeds the whole one ---------------------


@dataclass(frozen=True)
class Side:
    """How one of both samples was drawn, and the rows of each of its classes.

    Attributes
    ----------
    design : Design
        Identical rows count as one draw.
    rows : sequence of ndarray
    """

    design: Design
    rows: Sequence[Index]

    @classmethod
    def of(cls, name: str, sample: NDArray[Any] | Sample, rows: Sequence[Index]) -> Side:
        """Look at a sample as its score did."""
        given = isinstance(sample, Sample)
        design = design_of(name, sample) if given else check_sample(name, sample).design
        return cls(design or row_design(len(sample)), rows)

    @property
    def shares(self) -> Float:
        """Weight of every class."""
        return np.array([self.design.weights[rows].sum() for rows in self.rows])

    def influence_of_shares(self, values: Float) -> Float:
        """Return the influence of every unit on a mean over the classes, by being of its class.

        None has any where the numbers of rows of the classes were fixed.
        """
        unit, weights, size = self.design.unit, self.design.weights, self.design.units
        out = np.zeros(size)
        if not self.design.stratified:
            above = values - self.shares @ values
            for rows, more in zip(self.rows, above, strict=True):
                out += sums_by(unit[rows], weights[rows] * more, size) * size
        return out


def mean_over_classes(classes: Sequence[Estimate], real: Side) -> Estimate:
    """Mean of the classes' distances, weighted by their shares of the reference.

    The shares have an error of their own where the classes of the reference rows were drawn.
    """
    mean = average(classes, real.shares, what="classes")
    of_shares = real.influence_of_shares(np.array([one.value for one in classes]))
    variance = mean.reference.variance + mean_variance(of_shares)
    return replace(
        mean,
        title="Fréchet distance, mean over classes",
        reference=replace(mean.reference, variance=variance),
        details=(*mean.details, "the mean takes each class's estimate before it is cut off at 0"),
        assumptions=(*mean.assumptions, "classes are independent of one another"),
    )


def mean_less_whole(
    mean: Estimate, whole: Estimate, classes: Sequence[Estimate], fake: Side, real: Side
) -> Estimate:
    """Estimate the difference with its error.

    Parameters
    ----------
    mean, whole : Estimate
    classes : sequence of Estimate
        What `mean` is the mean of.
    fake, real : Side

    Notes
    -----
    The influence of a row is the one on its class, times the share, less the one on the whole.
    Where the classes of reference rows were drawn too, a row also adds what its class has above
    the mean. What influences do not explain (second order) counts for every class and for the
    whole, which errs on the wide side.
    """
    parts = [one.scaled(share) for one, share in zip(classes, real.shares, strict=True)]
    values = np.array([one.value for one in classes])
    # Shares are those of the reference alone.
    sample = _error(whole.sample, [one.sample for one in parts], fake, np.zeros(len(classes)))
    reference = _error(whole.reference, [one.reference for one in parts], real, values)
    found = sum_of(mean.value - whole.value, [sample, reference])
    doubts = [one for one in (*mean.warnings, *whole.warnings) if one.severity == "unreliable"]
    return replace(
        mean,
        title="Fréchet distance, mean over classes less the whole",
        value=found.value,
        sample=sample,
        reference=reference,
        # Units that both samples share by name.
        shared_variance=found.stderr**2 - sample.variance - reference.variance,
        missing_rate=mean.missing_rate + whole.missing_rate,
        lower_limit=-np.inf,
        warnings=tuple(dict.fromkeys(doubts)),
        details=(),
    )


def _error(
    whole: SampleError, parts: Sequence[SampleError], side: Side, values: Float
) -> SampleError:
    """Return what one sample contributes; `values` of the classes: if shares are this sample's."""
    influence, variance = side.influence_of_shares(values), whole.unexplained
    if whole.influence is not None:
        influence -= whole.influence
    size = influence.size
    for rows, part in zip(side.rows, parts, strict=True):
        there = np.unique(side.design.unit[rows])  # as the class has them, in its order
        if part.influence is not None and part.influence.size == there.size:
            influence[there] += part.influence * (size / there.size)
            variance += part.unexplained
        else:  # few rows of which a part was taken for one: as if they were other rows
            variance += part.variance
    influence -= influence.mean()
    return SampleError(
        n=whole.n,
        variance=variance + mean_variance(influence),
        degrees_of_freedom=whole.degrees_of_freedom,
        influence=influence,
        units=whole.units,
    )


# --- Rows of the classes of two samples -----------------------------------------------------------


LEAST_ROWS = 2

Label = int | str
"""What a class is called, as the user did."""


def rows_by_class(
    sample: Sample | NDArray[Any], argument: str, labels: Any
) -> dict[Label, NDArray[np.intp]]:
    """Return the rows of every class by its label."""
    classes, of_row = np.unique(check_labels(argument, labels, len(sample)), return_inverse=True)
    return {one: np.flatnonzero(of_row == k) for k, one in enumerate(classes.tolist())}


def common_classes(
    fake: Mapping[Label, NDArray[np.intp]], real: Mapping[Label, NDArray[np.intp]]
) -> list[Label]:
    """Return the classes, each of which has rows enough on both sides."""
    if not fake.keys() & real.keys():
        raise InputError(
            f"has no class of the reference: its first one is {next(iter(fake))!r}, that of the "
            f"reference {next(iter(real))!r}. Give both the same names, of one type.",
            argument="labels",
        )
    names = list(dict.fromkeys((*fake, *real)))
    if len(names) == 1:
        raise InputError(
            "has one class only: score it without classes (frechet_distance).", "labels"
        )
    for argument, side in (("labels", fake), ("real_labels", real)):
        few = [name for name in names if name not in side or side[name].size < LEAST_ROWS]
        if few:
            rows = side[few[0]].size if few[0] in side else 0
            raise InputError(
                f"has {count(rows, 'row')} of class {shown(str(few[0]))}"
                f"{f' (and {len(few) - 1} more such classes)' if few[1:] else ''}: a distance "
                f"needs {LEAST_ROWS} on both sides. Drop the class, or merge it with another.",
                argument=argument,
            )
    return names
