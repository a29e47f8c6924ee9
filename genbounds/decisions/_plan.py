"""How many samples an interval of some width, or a difference of some size, needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy  # its submodules are loaded at their first use

from genbounds._drawing import new_axes, predicted_curve
from genbounds._tables import Line, Warned
from genbounds._text import number, percent, quoted, short
from genbounds.decisions._estimates import (
    all_warnings,
    estimated,
    in_units,
    number_or_share,
    on_score_scale,
)
from genbounds.decisions._variance import LARGEST, OF_N, Target, VarianceModel, smallest
from genbounds.diagnostics import warn_of
from genbounds.estimators import Estimate, Moments, Prepared, from_few, metric_spec, rank
from genbounds.estimators._two_level import FEW_ROWS, influence_correlation
from genbounds.results import Diagnostic, hedged
from genbounds.samples import Sample
from genbounds.validation import Float, InputError, check_open_unit, check_power

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEAST_DOUBT = 0.2
"""Share by which a planned half-width is uncertain at least: measured on the scores of
docs/evidence/decisions.md."""

LEAST_NOISE, LARGEST_NOISE = 0.25, 1.0
"""Standard error of a distance over itself, from which on n is off by a factor of 2 too often (8 of
434 pilots below 0.2, 78 of 228 up to 0.4, 87 of 118 beyond), and beyond which it is not said how
much."""

TINY = 1e-12
"""Least share of the variance that a partner is said to leave."""

POINTS = 41
"""Of a curve."""

NEAR_LIMIT = 1.4
"""Below so many times what the reference allows at best, its own error is half of the variance that
is asked for, or more: a larger reference asks for far fewer samples."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Plan(Warned):
    """How many generated samples a target takes, and what any number of them gives.

    Attributes
    ----------
    n : int or None
        Generated samples (of each model, where there are two) that reach the target; None where no
        number does.
    feasible : bool
        Whether some number of generated samples reaches the target with this reference.
    limit : float
        What no number of generated samples gets below: of the half-width, or of the difference
        that is found with the power asked for. 0 where the reference is exact.
    reference_needed : int or None
        Where the reference is the limit: the minimum number of reference samples with which some
        number of generated ones reaches the target. None elsewhere.
    target : {"half_width", "gap"}
        What was asked for.
    half_width : float or None
        Target half-width of the interval, in units of the score.
    gap : float or None
        Target difference of two models.
    power : float
        Probability with which `gap` is to be found: its interval excludes 0.
    level : float
        Of the interval.
    pilot_n, reference_n : int or None
        Samples of the pilot and of the reference; None where moments are exact, or there is none.
    sizes : ndarray of shape (k,)
        Numbers of generated samples, each a little larger than the one before.
    half_widths : ndarray of shape (k,)
        Predicted half-width of the interval at each of `sizes`, with this reference.
    powers : ndarray of shape (k,) or None
        Predicted power at each of `sizes`, if `gap` was asked for.
    reference_sizes, reference_half_widths : ndarray of shape (k,) or None
        Numbers of reference samples, and the half-width with `n` generated samples (with any
        number of them, where none suffices); None where the reference is exact or not used.
    metric : str
    two_models : bool
        Whether widths are those of a difference of two models.
    warnings : tuple of Diagnostic
        Of the pilot.
    assumptions : tuple of str
    n_cheap : int or None
        With a partner that pays: its further draws, beside the `n` that it has in common with the
        model. None elsewhere. `predict` and the curves are those of the model alone.
    pays, gain : bool, float or None
        With a partner: whether it saves, and how many times cheaper the target is than without (1
        if it does not pay: `n` is that without). None without one.
    model : VarianceModel
        The variance at any numbers of samples, from which `predict` follows.
    """

    _json = "* -model reliable"

    _names = "Samples"

    n: int | None
    feasible: bool
    limit: float
    reference_needed: int | None
    target: Target
    half_width: float | None
    gap: float | None
    power: float
    level: float
    pilot_n: int | None
    reference_n: int | None
    sizes: Float
    half_widths: Float
    powers: Float | None
    reference_sizes: Float | None
    reference_half_widths: Float | None
    metric: str
    two_models: bool
    warnings: tuple[Diagnostic, ...] = ()
    assumptions: tuple[str, ...] = ()
    n_cheap: int | None = None
    pays: bool | None = None
    gain: float | None = None
    model: VarianceModel = field(repr=False)

    def predict(self, n: float, reference_n: float | None = None) -> float:
        """Half-width of the interval with `n` generated and `reference_n` reference samples.

        Parameters
        ----------
        n : float
            Of each model; may be infinite.
        reference_n : float, optional
            By default as many as the reference has.

        Returns
        -------
        float
        """
        return self.model.half_width(self.level, n, reference_n)

    def __str__(self) -> str:
        """Return the answer as one line."""
        # To four digits: of a share more are only the pilot's noise.
        size, level = short(float(f"{self._size:.4g}")), percent(self.level)
        wanted = f"{'difference' if self.two_models else self.metric} ± {size} ({level})"
        least = f"± {number(self.limit)}"
        if self.target == "gap":
            power = percent(self.power)
            wanted = f"a difference of {size} in {self.metric} with power {power} ({level})"
            least = f"a difference of {number(self.limit)}"
        if self.n is None:
            text = f"{wanted}: no number of generated samples suffices; at best {least}"
            return hedged(text + self._larger_reference(), self.warnings)
        text = f"{wanted}: {number(self.n)} generated samples{self._of_each()}"
        if self.pays is False:
            text += "; the partner does not pay"
        if self._size < NEAR_LIMIT * self.limit:
            text += "; with more reference samples fewer do (this reference allows "
            text += f"{least} at best)"
        return hedged(text, self.warnings)

    @property
    def _size(self) -> float:
        """Of the target."""
        return self.half_width or self.gap or 0.0

    def _of_each(self) -> str:
        of_each = " of each model" if self.two_models else ""
        if not self.pays:
            return of_each
        more = f"{number(self.n_cheap)} more of the partner ({self.gain:.1f} times cheaper"
        return f"{of_each} and {more} than without)"

    def _larger_reference(self) -> str:
        """Which reference is needed, in words; "" where none helps."""
        if self.reference_needed is None:
            return ""
        text = f"; the reference needs at least {number(self.reference_needed)} samples"
        if self.reference_n is not None:
            text += f" (it has {number(self.reference_n)})"
        pair = 2 * self.reference_needed
        asked = (self.target, self._size, self.level, self.power)
        enough = number(smallest(lambda n: self.model.reaches(*asked, n, pair)))
        text += f"; one of {number(pair)}, with {enough} generated samples{self._of_each()}"
        return f"{text}, is enough"

    def __format__(self, spec: str) -> str:
        return format(math.inf if self.n is None else self.n, spec) if spec else str(self)

    def rows(self) -> list[tuple[int, float, float | None]]:
        """Return some numbers of samples, n and that of the pilot among them, with predictions.

        Returns
        -------
        list of tuple
            Number of samples, half-width, and power (None unless a `gap` was asked for).
        """
        shown = {round(n) for n in self.sizes[:: (len(self.sizes) - 1) // 4]}
        shown |= {n for n in (self.pilot_n, self.n) if n is not None}
        return [
            (n, self.predict(n), self.gap and self.model.power(self.gap, self.level, n))
            for n in sorted(shown)
        ]

    def _lines(self) -> list[Line]:
        return [
            Line(name=f"n = {number(n)}", value=width, reliable=self.reliable, more=more)
            for n, width, power in self.rows()
            for more in [{} if power is None else {"power": power}]
        ]

    def _caption(self) -> str:
        what = "of the difference" if self.two_models else f"of {self.metric}"
        return f"Predicted half-width {what}, {percent(self.level)} interval"

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the predicted half-width (for a `gap`: the power) against the number of samples.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            A new figure's by default.

        Returns
        -------
        matplotlib.axes.Axes
        """
        sizes = self.sizes.tolist(), "generated samples" + " of each model" * self.two_models
        upright, curve, wanted = f"half-width of {self.metric}", self.half_widths, self.half_width
        if self.powers is not None:
            upright, curve, wanted = f"power for {number(self.gap)}", self.powers, self.power
        return predicted_curve(
            ax or new_axes(),
            sizes,
            (curve.tolist(), upright),
            wanted=wanted,
            at=self.n,
            floor=None if self.feasible or self.powers is not None else self.limit,
        )


def plan(
    pilot: Any,
    reference: Any = None,
    *,
    half_width: float | str | None = None,
    gap: float | str | None = None,
    power: float = 0.8,
    metric: Any = "fd",
    level: float = 0.95,
    options: Mapping[str, Any] | None = None,
    partner: Any = None,
    costs: tuple[float, float] | None = None,
) -> Plan:
    """Say how many generated samples a target takes, from a pilot of few.

    Parameters
    ----------
    pilot : array_like of shape (n, d), Sample, or two of them (a tuple, or a mapping of names)
        Samples of one model, for the interval of its score; or of two, for that of their
        difference. Equal group ids in both say that more samples will be paired as well. For a
        `gap` one will do: it then stands for two models that are nearly alike.
    reference : array_like of shape (m, d) or Moments, optional
        As `real` of `compare`: the one that will be used.
    half_width : float or str, optional
        Half the width that the interval may have, in units of the score; or a share of the (first)
        pilot's score, such as "10%".
    gap : float or str, optional
        Difference of two models that is to be found, as for `half_width`. Exactly one of both is
        given. The pilot's
        own difference is no good `gap`: as it is found large or small by chance, so is n.
    power : float
        Probability with which `gap` is to be found.
    metric : str, MetricSpec, CustomMetric or callable
        As in `compare`.
    level : float
        Of the interval.
    options : mapping, optional
        As in `compare`.
    partner : array_like of shape (n, d) or Sample, optional
        Of a cheap partner, row by row from the noise of the one pilot (`two_level`).
    costs : pair of float, optional
        With a partner: what a draw of the model costs, and one of the partner, in any unit.

    Returns
    -------
    Plan

    Raises
    ------
    InputError
        As `compare`; if not exactly one target is given, or it is not positive; or if the score
        is one of so many samples.

    Notes
    -----
    Variance a/n + b/n² + c/m + e/m² + f/nm with coefficients from the influences and the quadratic
    part of the pilot. From few samples per dimension, of the pilot or of the reference, all of it
    is taken to fall with 1/n, which asks for too many samples rather than too few, and a warning
    says so.
    Measured accuracy: docs/evidence/decisions.md.

    Examples
    --------
    >>> import numpy as np, genbounds as gb
    >>> rng = np.random.default_rng(0)
    >>> x, real = 1.2 * rng.normal(size=(500, 4)), rng.normal(size=(5000, 4))
    >>> gb.plan(x, real, half_width=0.03).feasible
    True
    """
    spec = metric_spec(metric)
    spec.check_growing("planning")
    check_targets(half_width=half_width, gap=gap, power=power, level=level)
    name, wanted = _target(half_width, gap)
    if isinstance(wanted, str) and not number_or_share(wanted)[1]:
        raise InputError(
            f"must be a number or, as a string, a share such as '10%'; got {quoted(wanted)}.", name
        )
    pilots = _pilots_of(pilot)
    check_partner(len(pilots), partner, costs)
    prepared, estimates = estimated(spec, pilots, reference, options)
    found = plan_from(
        estimates, pilots, prepared, half_width=half_width, gap=gap, power=power, level=level
    )
    if partner is None:
        return found
    (sample,) = pilots.values()
    return with_partner(found, estimates, prepared, sample, partner, costs)


def check_partner(models: int, partner: Any, costs: Sequence[float] | None) -> None:
    """Refuse a `partner` without `costs`, of more than one of the `models`, or the reverse."""
    if (partner is None) != (costs is None):
        raise InputError("pass both `partner` and `costs`, or none of them.")
    if partner is None or costs is None:
        return
    if models > 1:
        raise InputError("is for the pilot of one model; got two.", argument="partner")
    if not (
        isinstance(costs, tuple | list)
        and len(costs) == 2
        and all(isinstance(cost, int | float) and 0.0 < cost < math.inf for cost in costs)
    ):
        raise InputError(
            f"must be two positive numbers, of a draw of the model and of the partner; got "
            f"{quoted(costs)}.",
            argument="costs",
        )


def with_partner(
    plain: Plan,
    estimates: Mapping[str, Estimate],
    prepared: Prepared,
    sample: Any,
    partner: Any,
    costs: Any,
) -> Plan:
    """Return the least cost for the same target with a partner.

    With k the ratio of both costs and r the correlation of influences, N/n = r / √((1 - r²) k) - 1
    further draws are best: with r = sin φ, the variance at equal cost falls by (cos φ + √k sin φ)²
    (B. Peherstorfer, K. Willcox and M. Gunzburger, "Optimal model management for multifidelity
    Monte Carlo estimation", SIAM J. Sci. Comput. 38, 2016).

    Parameters
    ----------
    plain : Plan
        Without it.
    estimates : mapping of str to Estimate
        Of the one pilot.
    prepared : Prepared
        The metric that made it.
    sample, partner : array_like or Sample
        What it is estimated from, and the partner's rows.
    costs : pair of float

    Returns
    -------
    Plan
    """
    (pilot,) = estimates.values()
    correlation, warnings = influence_correlation(prepared, pilot, sample, partner)
    plain, ratio = replace(plain, warnings=(*plain.warnings, *warnings)), costs[1] / costs[0]
    cosine = math.sqrt(max(1.0 - correlation**2, TINY))
    more = correlation / (cosine * math.sqrt(ratio)) - 1.0
    stays = replace(plain, pays=False, gain=1.0)
    if plain.n is None or more <= 0.0:
        return stays
    left = 1.0 - correlation**2 * more / (more + 1.0)
    width, exact = plain.predict(plain.n) ** 2, plain.predict(math.inf) ** 2

    def images(n: float) -> float:
        """Square of the half-width that is due to n images alone."""
        return plain.predict(n) ** 2 - exact

    # As many as give that of the plan, but for what is left of it; at least as many as a weight is
    # fitted to.
    n = smallest(lambda n: left * images(n) <= width - exact, low=float(FEW_ROWS))
    if n is None or n >= plain.n:
        return stays
    gained = (1.0 - (width - exact) / images(n)) / correlation**2
    if gained >= 1.0:
        return stays
    cheap = max(math.ceil(n * gained / (1.0 - gained)), 1)
    gain = plain.n / (n + ratio * (n + cheap))
    return replace(plain, n=n, n_cheap=cheap, pays=True, gain=gain) if gain > 1.0 else stays


def check_targets(
    *, half_width: float | str | None, gap: float | str | None, power: float, level: float
) -> None:
    """Check what is asked for: one of `half_width` and `gap`, with a `power`, at a `level`."""
    check_open_unit("level", level)
    check_power(power)
    name, wanted = _target(half_width, gap)
    value, _ = number_or_share(wanted)
    if not 0.0 < (value if name == "half_width" else abs(value)) < math.inf:
        raise InputError(
            "must be positive, in units of the score or a share of the pilot's ('10%'); "
            f"got {quoted(wanted)}.",
            argument=name,
        )


def _target(half_width: float | str | None, gap: float | str | None) -> tuple[Target, object]:
    """Return which of both is asked for, and how much."""
    if (half_width is None) == (gap is None):
        raise InputError("pass one target: `half_width` or `gap`.")
    return ("gap", gap) if half_width is None else ("half_width", half_width)


def _pilots_of(pilot: Any) -> dict[str, Any]:
    """Return one or two pilots by name."""
    pilots = {"pilot": pilot}
    if isinstance(pilot, Mapping):
        pilots = {str(name): sample for name, sample in pilot.items()}
    elif isinstance(pilot, Sequence) and all(map(_is_sample, pilot)):
        names = ["first", "second", *map(str, range(len(pilot)))]  # more are refused below
        pilots = dict(zip(names, pilot, strict=False))
    if len(pilots) not in (1, 2):
        raise InputError(
            f"must be samples of one model, or of two; got {len(pilots)}.", argument="pilot"
        )
    return pilots


def _is_sample(x: Any) -> bool:
    return isinstance(x, (Sample, Moments)) or getattr(x, "ndim", 0) == 2


def _columns_of(x: Any) -> int:
    """Return the number of features of a sample."""
    if isinstance(x, Moments):
        return x.d
    shape: tuple[int, ...] = np.shape(x)
    return shape[1] if len(shape) > 1 else 1  # one value per sample


def plan_from(
    estimates: Mapping[str, Estimate],
    samples: Mapping[str, Any],
    prepared: Prepared,
    *,
    half_width: float | str | None,
    gap: float | str | None,
    power: float,
    level: float,
) -> Plan:
    """Plan from the estimates of one pilot or of two.

    Parameters
    ----------
    estimates : mapping of str to Estimate
    samples : mapping of str to Sample, array or Moments
        What they are estimated from.
    prepared : Prepared
        The metric that made them.
    half_width, gap : float or str
    power, level : float
        As for `plan`.

    Returns
    -------
    Plan
    """
    named = {name: _doubted(on_score_scale(estimate)) for name, estimate in estimates.items()}
    scaled = list(named.values())
    _check_pilot(scaled, estimates.values(), level)
    few, joint = from_few(scaled), rank(named, metric="").warnings
    target, wanted = _target(half_width, gap)
    two_models = target == "gap" or len(scaled) == 2
    model = _model_of(scaled, twins=two_models)
    given, relative = number_or_share(wanted)
    size = abs(in_units(given, relative, scaled[0], whose="pilot", argument=target))
    reached = partial(model.reaches, target, size, level, power)
    # With fewer the expansion does not hold, or what was said of 1/n.
    columns = max(_columns_of(sample) for sample in samples.values())
    least = float(prepared.samples_per_dimension * columns)
    least = max(2.0, prepared.minimum, min(least, model.n) if few else least)
    n, needed = smallest(lambda n: reached(n, None), low=least), None
    if n is None:
        needed = smallest(lambda m: reached(LARGEST, m), low=least)
    width = partial(model.half_width, level)
    most = max(100.0 * model.n, 10.0 * least, 4.0 * (n or 0))
    sizes, half_widths = _curve(min(least, model.n), most, width)
    limit, powers = width(math.inf), None
    if target == "gap":
        limit += float(scipy.special.ndtri(power)) * model.scatter(math.inf)
        powers = np.array([model.power(size, level, k) for k in sizes])
    beside = max(model.m / 10.0, 2.0), max(10.0 * model.m, 4.0 * (needed or 0))
    other = None if math.isinf(model.m) else _curve(*beside, partial(width, n or math.inf))
    return Plan(
        n=n,
        feasible=n is not None,
        limit=limit,
        reference_needed=needed,
        target=target,
        half_width=size if target == "half_width" else None,
        gap=size if target == "gap" else None,
        power=power,
        level=level,
        pilot_n=round(model.n),
        reference_n=round(model.m) if other else None,
        sizes=sizes,
        half_widths=half_widths,
        powers=powers,
        reference_sizes=other[0] if other else None,
        reference_half_widths=other[1] if other else None,
        metric=prepared.name,
        two_models=two_models,
        warnings=all_warnings(*(estimate.warnings for estimate in scaled), joint, few),
        assumptions=_assumptions(scaled, given if relative else None, two_models=two_models),
        model=model,
    )


def _curve(low: float, high: float, width: Callable[[float], float]) -> tuple[Float, Float]:
    """Return numbers of samples between two, and the half-width at each."""
    sizes = np.unique(np.geomspace(low, high, POINTS).round())
    return sizes, np.array([width(size) for size in sizes])


def _model_of(scaled: list[Estimate], *, twins: bool) -> VarianceModel:
    """Return the variance of a difference of two models, of `twins` of one, or of one score."""
    if len(scaled) == 2:
        # Larger less smaller, so that the difference is positive: its interval is not symmetric.
        return VarianceModel.of_difference(*sorted(scaled, key=lambda one: -one.value))
    return VarianceModel.of_twins(scaled[0]) if twins else VarianceModel.of_score(scaled[0])


def _check_pilot(scaled: list[Estimate], given: Iterable[Estimate], level: float) -> None:
    """Refuse a pilot from which nothing follows for other numbers of samples."""
    said = [warning.code for estimate in given for warning in estimate.score(level).warnings]
    reasons = {
        "has a score that depends on the number of samples: nothing follows from it for another "
        "number.": bool({estimate.method for estimate in scaled} & OF_N),
        # Neither the rows nor known bounds say how the score varies.
        "has rows that all contribute the same to the score: how much others would vary does not "
        "follow. Draw a larger pilot (of a mean, `bounds` of the values help as well).": (
            "no-variation" in said
        ),
        "is given by exact moments, which have no sampling error: pass samples.": all(
            estimate.n is None for estimate in scaled
        ),
    }
    for reason, holds in reasons.items():
        if holds:
            raise InputError(reason, argument="pilot")


def _doubted(estimate: Estimate) -> Estimate:
    """Warn of a pilot whose distance its own noise nearly hides.

    Its variance falls with the distance, so that n is as uncertain as several times the latter.
    """
    if (relative := _relative_noise(estimate)) < LEAST_NOISE:
        return estimate
    noise, times = math.sqrt(estimate.variance), math.exp(4.0 * relative)
    warning = warn_of("pilot-near-zero", value=estimate.value, stderr=noise, times=times)
    return estimate.warned(warning)


def _relative_noise(estimate: Estimate) -> float:
    """Return the standard error of a distance over itself; 0 of other scores."""
    if estimate.lower_limit != 0.0 or estimate.higher_is_better:
        return 0.0
    noise = math.sqrt(estimate.variance)
    return noise / max(estimate.value, noise / LARGEST_NOISE)


def _doubt(estimate: Estimate) -> float:
    """Twice the standard error of a pilot's standard error, as a share of it.

    Of the part that is linear in the rows: half the root of (kurtosis - 1) / n, with a kurtosis of
    at least the normal one, of which few rows show nothing.
    """
    influence = estimate.sample.influence
    if influence is None or not (spread := float(influence.std())):
        return 0.0
    kurtosis = float((((influence - influence.mean()) / spread) ** 4).mean())
    return math.sqrt((max(kurtosis, 3.0) - 1.0) / influence.size)


def _assumptions(
    estimates: Sequence[Estimate], share: float | None, *, two_models: bool
) -> tuple[str, ...]:
    assumptions = ["more samples are drawn as those of the pilot were"]
    if share is not None:
        score = number(estimates[0].value)
        about = f"the target is {percent(share)} of the pilot's score, {score}, as if it were true"
        assumptions.insert(0, about)
    if max(map(_relative_noise, estimates)) < LEAST_NOISE:  # else a warning says how uncertain
        doubt = max(LEAST_DOUBT, *map(_doubt, estimates))
        assumptions.append(
            "the noise of the pilot leaves the half-width uncertain by about "
            f"{percent(round(doubt, 2))}, and n by twice as much"
        )
    if two_models and len(estimates) == 1:
        assumptions.append(
            "the other model varies as the pilot does and is close to it, so that the noise of the "
            "reference cancels in their difference; if the pilot is of the better model the power "
            "is lower than planned: pass pilots of both"
        )
    assumptions += [assumption for estimate in estimates for assumption in estimate.assumptions]
    return tuple(dict.fromkeys(assumptions))
