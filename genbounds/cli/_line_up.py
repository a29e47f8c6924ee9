"""What takes part in a selection: files and live models, and what was said of them in words."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import genbounds as gb
from genbounds._errors import InputError
from genbounds._text import display, shown
from genbounds.cli._command import renamed
from genbounds.cli._inputs import Input, read_inputs
from genbounds.cli._media import FolderEncoder
from genbounds.cli._options import Reading
from genbounds.core.moments import row_blocks
from genbounds.origins import origin_warnings
from genbounds.validation import check_finite


def line_up(
    reference: Path | None,
    arms: list[Path],
    live: list[Path],
    metric: gb.estimators.MetricSpec,
    reading: Reading,
    encoded: FolderEncoder | None,
) -> tuple[dict[str, Any], dict[str, str], list[gb.Diagnostic]]:
    """Read the files of a selection; live models are not asked yet.

    Returns
    -------
    dict
        What `genbounds.select.run` takes. With contexts an arm is one for each, and `contexts` has
        their references, or their names alone.
    dict
        The short name of every arm, also by what was given on the command line.
    list of Diagnostic
    """
    files = [arm for arm in arms if arm not in live]
    inputs = read_inputs(reference, files, metric, reading, encoded)
    origins = {shown(model.name): model.origin for model in inputs}
    if live and encoded is not None:
        fresh = dict.fromkeys((shown(str(arm)) for arm in live), encoded.encoder.description)
        origins |= fresh
        gb.features.check_same_encoder(origins)
    doubts = dict.fromkeys(doubt for file in inputs for doubt in file.doubts)
    names = None if reading.contexts is None else common_contexts(inputs)
    real = None if reference is None else inputs.pop(0)
    live_encoder = None if encoded is None else encoded.encoder
    waiting, taking_part = iter(inputs), dict[str, Any]()
    for arm in arms:  # in the order given: ties are broken by it
        if arm in live:
            if str(arm) in taking_part:
                raise InputError(f"{display(arm)} is given twice.")
            taking_part[str(arm)] = gb.features.live_arm(str(arm), live_encoder)
            continue
        model = next(waiting)
        _check(model, posteriors=metric.data == "posteriors")
        parts = {None: model.sample} if names is None else rows_by_context(model, names)
        made = {context: gb.select.FeatureArm(rows) for context, rows in parts.items()}
        taking_part[model.name] = made[None] if names is None else made
    given = dict(zip(map(str, arms), taking_part, strict=True))
    taken: dict[str, Any] = {"arms": taking_part}
    if names is not None:
        taken["contexts"] = names if real is None else rows_by_context(real, names)
    elif real is not None:
        taken["reference"] = real.sample
    known = given | {name: name for name in taking_part}
    return taken, known, [*origin_warnings(origins), *doubts]


def counted(
    advance: Callable[[int, int | None, str], None], budget: int | None
) -> Callable[[gb.select.State], None]:
    """Return what moves the progress bar: samples of all contexts, if there are several."""
    drawn: dict[int, int] = {}

    def after_round(state: gb.select.State) -> None:
        drawn[id(state)] = int(state.n.sum())
        advance(sum(drawn.values()), budget, "")

    return after_round


def policy_of(name: str, given: Iterable[str]) -> gb.select.Policy:
    """Build a policy with the options NAME=VALUE."""
    known = inspect.signature(gb.select.POLICIES[name]).parameters
    chosen: dict[str, Any] = {}
    for text in given:
        key, _, value = text.partition("=")
        if key not in known:
            has = f"its options are {', '.join(known)}" if known else "it has none"
            raise InputError(
                f"{name} has no option {display(key)}: {has}.", argument="--policy-option"
            )
        kind = str(known[key].annotation).removesuffix(" | None")
        if value.lower() == "none" and kind != known[key].annotation:
            chosen[key] = None
            continue
        what, read = VALUES[kind]
        try:
            chosen[key] = read(value)
        except (ValueError, KeyError):
            raise InputError(
                f"{key} must be {what}; got {display(value)}.", argument="--policy-option"
            ) from None
    with renamed({key: f"--policy-option {key}" for key in known}):
        return gb.select.POLICIES[name](**chosen)


VALUES: dict[str, tuple[str, Callable[[str], object]]] = {
    "str": ("a word", str),
    "int": ("a whole number", int),
    "float": ("a number", float),
    "bool": ("true or false", lambda text: {"true": True, "false": False}[text.lower()]),
}
"""How the value of a policy's option is read, by its type."""


def costs_of(given: Iterable[str], names: Mapping[str, str]) -> dict[str, float]:
    """Read ``NAME=C``, the name being that of a model or its file as it was given."""
    costs = {}
    for text in given:
        name, _, value = text.rpartition("=")
        try:
            costs[names.get(name, name)] = float(value)
        except ValueError:
            name = ""
        if not name:
            raise InputError(
                f"must be NAME=C, such as {display(next(iter(names)))}=2.5; got {display(text)}.",
                argument="cost",
            )
    return costs


def _check(model: Input, *, posteriors: bool) -> None:
    """Refuse a bad file before the run: there a bad draw would only set its arm aside."""
    rows = model.content
    if not isinstance(rows, np.ndarray):
        raise InputError(
            f"{display(model.path)}: holds statistics; an arm needs the features themselves."
        )
    with renamed({"fake": model.path, "probs": model.path}):
        if posteriors:
            gb.estimators.inception_estimate(rows, estimator="plugin")
        for places, block in row_blocks(rows):
            check_finite("fake", block, first_row=int(places[0]))


# --- contexts -------------------------------------------------------------------------------------


def common_contexts(inputs: Sequence[Input]) -> list[Any]:
    """Return the contexts that the rows of every file belong to, in order."""
    names = [set(np.unique(np.asarray(file.contexts)).tolist()) for file in inputs]
    for file, here in zip(inputs, names, strict=True):
        if missing := names[0] - here or here - names[0]:
            has, lacks = (file, inputs[0]) if missing <= here else (inputs[0], file)
            what = display(min(missing), limit=40)
            raise InputError(
                f"{display(lacks.path)} has no rows of context {what}, which {display(has.path)} "
                "has: add some, or leave that context out of all files.",
                argument="--contexts",
            )
    return sorted(names[0])


def rows_by_context(file: Input, contexts: Sequence[Any]) -> dict[Any, Any]:
    """Return the rows of a file in each context, with what is known of how they were drawn."""
    return {context: _part(file.sample, file.contexts == context) for context in contexts}


def _part(sample: Any, rows: Any) -> Any:
    part = sample[rows]
    if getattr(part, "strata", None) is None or (part.strata != part.strata[0]).any():
        return part
    # Of one class alone: nothing is stratified within it.
    if part.groups is None and part.weights is None:
        return part.features
    return gb.Sample(part.features, groups=part.groups, weights=part.weights)
