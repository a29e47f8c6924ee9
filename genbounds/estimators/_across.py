"""One distance over several encoders, with a joint interval.

The same rows pass through every encoder, so that the errors of the distances belong together: taken
as independent, intervals of their mean cover 82 % instead of 95 %
(``python -m experiments.accuracy.encoders_and_prompts``). The mean of scores T_k, each on
its own scale g_k, has the influence Σ g_k' IF_k of every row (`core.combined`).

    scale="log"    exp(mean log FD_k), the geometric mean: no unit of an encoder counts
    scale="floor"  mean of FD_k / N_k, with N_k the plug-in distance that two halves of the
                   reference have on average: how many times the noise floor
    numbers        mean of FD_k / N_k with published N_k (the FDr of arXiv 2604.28190)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from numbers import Real
from typing import Any

import numpy as np

from genbounds._text import number, quoted
from genbounds.core.checks import row_ids
from genbounds.core.combined import combined
from genbounds.core.estimate import EXACT, Estimate
from genbounds.core.moments import Moments, as_rows
from genbounds.diagnostics import Diagnostic, warn_of
from genbounds.estimators._compare import estimate_all, rank
from genbounds.estimators.frechet._distance import FrechetReference
from genbounds.results import Ranking
from genbounds.samples import Sample, features_of
from genbounds.validation import InputError, check_open_unit

LEAST_ERRORS = 4.0
"""Standard errors from 0 below which the logarithm of a distance has no normal error."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class EncoderRanking(Ranking):
    """Models ranked by one score over several encoders, and by each of them.

    Attributes
    ----------
    metric, level, scores, differences, groups, log_scale, warnings, assumptions
        As in `Ranking`.
    reference_rows_needed, chosen
        As in `Ranking`.
    by_encoder : dict of str to Ranking
        Their differences hold together, over all encoders, with probability `level`.
    """

    by_encoder: dict[str, Ranking]

    @property
    def disputed(self) -> tuple[tuple[str, str, str, str], ...]:
        """Pairs that encoders order differently, each significantly: models a, b, encoders a, b."""
        order = {
            (pair.better, pair.worse): name
            for name, ranking in reversed(self.by_encoder.items())
            for pair in ranking.differences
            if pair.distinguishable
        }
        return tuple(
            (better, worse, name, order[worse, better])
            for (better, worse), name in order.items()
            if better < worse and (worse, better) in order
        )


def across(
    fakes: Mapping[str, Mapping[str, Any]],
    real: Mapping[str, Any],
    *,
    scale: str | Mapping[str, float] = "log",
    level: float = 0.95,
) -> EncoderRanking:
    """Rank models by their Fréchet distances under several encoders at once.

    Parameters
    ----------
    fakes : mapping of str to mapping of str to array_like of shape (n, d) or Sample
        For every encoder the features of every model: the same images, in the same order.
    real : mapping of str to array_like of shape (m, d) or Sample
        For every encoder the features of the reference, likewise.
    scale : {"log", "floor"} or mapping of str to float
        How distances in different units are averaged. "log": geometric mean. "floor": in multiples
        of the plug-in distance that two random halves of the reference have on average. A mapping:
        in multiples of one number an encoder, such as a published distance of a real split.
    level : float
        Coverage of each score and, jointly, of all differences; over all encoders that of theirs.

    Returns
    -------
    EncoderRanking

    Raises
    ------
    InputError
        If encoders differ in their models or rows; if a distance is not positive, where its
        logarithm is asked for.

    Examples
    --------
    >>> import numpy as np, genbounds as gb
    >>> rng = np.random.default_rng(0)
    >>> images = {"real": rng.normal(size=(500, 4)), "a": rng.normal(0.5, 1.0, size=(500, 4))}
    >>> encoders = {"wide": lambda x: 3.0 * x, "narrow": lambda x: np.tanh(x[:, :2])}
    >>> fakes = {name: {"a": encode(images["a"])} for name, encode in encoders.items()}
    >>> ranking = gb.across(fakes, {name: f(images["real"]) for name, f in encoders.items()})
    >>> round(ranking.scores["a"].value, 2)
    1.46
    """
    level = check_open_unit("level", level)
    table = _table(fakes, real)
    encoders, models = list(fakes), [name for name in table if name is not None]
    invented = _name_rows(table)
    normalisers = _normalisers(scale, table[None])
    estimates = {}
    for encoder in encoders:
        try:
            samples = {model: table[model][encoder] for model in models}
            estimates[encoder] = estimate_all(samples, table[None][encoder])
        except InputError as error:
            raise InputError(f"encoder {encoder!r}: {error}") from error
    joint = {}
    for model in map(str, models):
        e = _mean({name: estimates[name][model] for name in encoders}, normalisers, model)
        if invented:
            samples = {side: replace(getattr(e, side), units=None) for side in _SIDES}
            e = replace(e, **samples)
        joint[model] = e
    ranking = rank(joint, metric="fd", level=level)
    each = 1.0 - (1.0 - level) / len(encoders)
    by_encoder = {name: rank(found, metric="fd", level=each) for name, found in estimates.items()}
    of_all = {field.name: getattr(ranking, field.name) for field in fields(ranking)}
    return EncoderRanking(**of_all, by_encoder=by_encoder)


_SIDES = ("sample", "reference")


def _table(fakes: Any, real: Any) -> dict[Any, dict[Any, Any]]:
    """Every model's sample by encoder, and that of the reference under None: of the same rows."""
    tables = [*fakes.values()] if isinstance(fakes, Mapping) else []
    for argument, given in {"fakes": fakes, "real": real}.items():
        if not (
            isinstance(given, Mapping) and given and all(isinstance(t, Mapping) for t in tables)
        ):
            raise InputError(
                "must map the name of every encoder to its features (of every model).", argument
            )
    if set(fakes) != set(real):
        raise InputError(
            f"must have the encoders of `fakes`, {', '.join(map(str, fakes))}; got "
            f"{', '.join(map(str, real))}.",
            "real",
        )
    first = next(iter(fakes))
    for encoder, models in fakes.items():
        if set(models) != set(fakes[first]):
            raise InputError(
                f"must have the same models under every encoder; {encoder!r} differs from "
                f"{first!r}.",
                "fakes",
            )
    found: dict[Any, dict[Any, Any]] = {None: {encoder: real[encoder] for encoder in fakes}}
    found |= {
        model: {encoder: fakes[encoder][model] for encoder in fakes} for model in fakes[first]
    }
    for model, samples in found.items():
        rows = {encoder: _rows(x) for encoder, x in samples.items()}
        if (odd := next((e for e in rows if rows[e] != rows[first]), None)) is not None:
            name = "real" if model is None else model
            raise InputError(
                f"must be features of the same images under every encoder: {name!r} has "
                f"{rows[odd]} rows under {odd!r} and {rows[first]} under {first!r}.",
                "real" if model is None else "fakes",
            )
    return found


def _name_rows(table: dict[Any, dict[Any, Any]]) -> bool:
    """Name the rows of every sample once, where an encoder maps some of them to one another.

    Rows that repeat are one draw, and come in an order of their own under every encoder.
    """
    arrays = {
        name: {e: as_rows("real" if name is None else str(name), x) for e, x in by.items()}
        for name, by in table.items()
    }
    ids = {
        name: np.stack([row_ids(x) for x in by.values()], axis=1)
        for name, by in arrays.items()
        if all(isinstance(x, np.ndarray) for x in by.values())
    }
    if all(np.unique(column).size == len(each) for each in ids.values() for column in each.T):
        return False
    table |= arrays
    for place, (name, each) in enumerate(ids.items()):
        _, groups = np.unique(each, axis=0, return_inverse=True)
        labels = np.array([f"row {place}.{group}" for group in groups.ravel()])
        table[name] = {e: Sample(x, groups=labels) for e, x in arrays[name].items()}
    return True


def _rows(x: Any) -> int:
    return int(np.shape(features_of(x))[0]) if np.ndim(features_of(x)) else 0


def _normalisers(
    scale: str | Mapping[str, float], real: Mapping[Any, Any]
) -> dict[str, float] | None:
    """Return what each encoder's distances are divided by; None for logarithms."""
    if isinstance(scale, Mapping):
        for name in real:
            given: object = scale.get(name)
            if not (isinstance(given, Real) and 0.0 < float(given) < math.inf):
                raise InputError(
                    f"must have a positive number for encoder {name!r}; got {quoted(given)}.",
                    "scale",
                )
        return {name: float(scale[name]) for name in real}
    if scale == "log":
        return None
    if scale != "floor":
        raise InputError(
            f'must be "log", "floor" or a number for every encoder; got {quoted(scale)}.', "scale"
        )
    floors = {name: _floor(sample) for name, sample in real.items()}
    for name, floor in floors.items():
        if not floor > 0.0:
            raise InputError(
                f"is of no use under encoder {name!r}, whose reference has no noise: it is "
                "constant, or its number of rows is unknown.",
                "scale",
            )
    return floors


def _floor(real: Any) -> float:
    """Plug-in distance that two halves of the reference have on average.

    At equal distributions the plug-in is its bias, 1/m for each sample of m rows; of these rows
    against their own moments, taken as exact, the debiased value is minus that of one.
    """
    reference = FrechetReference(real)
    moments = reference.moments
    bias = -reference.estimate(Moments(moments.mean, moments.cov)).value
    return 4.0 * bias


def _mean(
    estimates: Mapping[str, Estimate], normalisers: Mapping[str, float] | None, model: str
) -> Estimate:
    """Average the distances of one model on their common scale."""
    first = next(iter(estimates.values()))
    values = np.array([e.value for e in estimates.values()])
    near: list[Diagnostic] = []
    if normalisers is None:
        for name, e in estimates.items():
            if not e.value > 0.0:
                raise InputError(
                    f"the distance under encoder {name!r} is {e.value:.3g}, which has no "
                    'logarithm: pass scale="floor".',
                    model=model,
                )
        value, weights = float(np.log(values).mean()), 1.0 / (values.size * values)
        near = [
            warn_of("log-near-zero", encoder=name, value=number(e.value), stderr=number(e.stderr))
            for name, e in estimates.items()
            if e.value < LEAST_ERRORS * e.stderr
        ]
    else:
        weights = 1.0 / (values.size * np.array([normalisers[name] for name in estimates]))
        value = float(weights @ values)
    if any(e.shared_variance for e in estimates.values()):
        raise InputError(
            "has groups of the reference: there is no joint error then. Give both groups of their "
            "own.",
            model=model,
        )
    sizes = {(e.sample.influence is None) or e.sample.influence.size for e in estimates.values()}
    if len(sizes) > 1:
        raise InputError("must be grouped alike under every encoder.", model=model)
    unpaired = [
        replace(error, pairs=None)  # of other rows under every encoder
        for e in estimates.values()
        for error in (e.sample, e.reference)
    ]
    references = unpaired[1::2]
    exact = all(error.n is None for error in references)
    warnings = (w.of(name) for name, e in estimates.items() for w in e.warnings)
    return replace(
        first,
        value=value,
        sample=combined(unpaired[::2], weights),
        reference=EXACT if exact else combined(references, weights),
        missing_rate=0.0,
        log_scale=normalisers is None,
        lower_limit=-math.inf if normalisers is None else 0.0,
        title="Fréchet distance over encoders",
        plugin=None,
        encoder="",
        warnings=(*near, *dict.fromkeys(warnings)),
        statistic="",
    )
