"""Selection as one calls it: arguments checked and named, then the loop."""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from genbounds import validation
from genbounds._text import display, quoted
from genbounds.arms import Arm
from genbounds.core.checks import check_sample
from genbounds.core.estimate import small_sample
from genbounds.estimators import CustomMetric, Estimate, MetricSpec, Moments, metric_spec
from genbounds.files import locked
from genbounds.origins import check_same_encoder, origin_of
from genbounds.select._arms import FunctionArm, digest_of
from genbounds.select._loop import Loop, Settings
from genbounds.select._selection import Context, ContextSelection, Selection
from genbounds.select._summary import summarise, together
from genbounds.select.policies import POLICIES
from genbounds.select.policies._policy import Policy, State
from genbounds.validation import InputError

if TYPE_CHECKING:
    from genbounds.mixtures import MixtureSelection

LARGEST_COST = 1e100
"""Of a sample: what a run costs is then a finite number as well."""

TARGETS = ("best", "mixture")


@overload
def run(
    arms: Mapping[str, Arm | Callable[[int, np.random.Generator], Any]],
    reference: Any = None,
    policy: str | Policy = "lucb",
    metric: str | MetricSpec | CustomMetric | Callable[[Any], Estimate] = "fd",
    confidence: float = 0.95,
    batch: int = 5,
    budget: int | None = None,
    seed: int = 0,
    *,
    options: Mapping[str, Any] | None = None,
    top: int = 1,
    tolerance: float = 0.0,
    limit: int | None = None,
    first_look: int | None = None,
    growth: float = 1.25,
    cost: Mapping[str, float] | None = None,
    joins: Mapping[str, int] | None = None,
    retries: int = 2,
    dtype: Any = None,
    record: str | os.PathLike[str] | None = None,
    progress: Callable[[State], None] | None = None,
    target: Literal["best"] = "best",
) -> Selection: ...


@overload
def run(
    arms: Mapping[str, Any], *args: Any, target: Literal["mixture"], **more: Any
) -> MixtureSelection: ...


@overload
def run(
    arms: Mapping[str, Any], *args: Any, contexts: Mapping[Any, Any] | Iterable[Any], **more: Any
) -> ContextSelection: ...


def run(  # type: ignore[misc]  # the short overloads take the same parameters
    arms: Mapping[str, Arm | Callable[[int, np.random.Generator], Any]],
    reference: Any = None,
    policy: str | Policy = "lucb",
    metric: str | MetricSpec | CustomMetric | Callable[[Any], Estimate] = "fd",
    confidence: float = 0.95,
    batch: int = 5,
    budget: int | None = None,
    seed: int = 0,
    *,
    options: Mapping[str, Any] | None = None,
    top: int = 1,
    tolerance: float = 0.0,
    limit: int | None = None,
    first_look: int | None = None,
    growth: float = 1.25,
    cost: Mapping[str, float] | None = None,
    joins: Mapping[str, int] | None = None,
    retries: int = 2,
    dtype: Any = None,
    record: str | os.PathLike[str] | None = None,
    progress: Callable[[State], None] | None = None,
    target: str = "best",
    contexts: Mapping[Context, Any] | Iterable[Context] | None = None,
) -> Selection | MixtureSelection | ContextSelection:
    """Find the best of several generative models, drawing as few samples as possible.

    Parameters
    ----------
    arms : mapping of str to Arm or callable
        Objects with ``draw(n, rng)``, or plain functions of ``(n, rng)``, that return n fresh
        independent rows, an array (n, d). Fewer rows than asked mean that the arm is exhausted;
        what it gave counts. `FeatureArm` makes one of recorded features, `EncodedArm` of a
        generator and an encoder. An arm whose rows repeat earlier ones, come class by
        class in turns, or drift is set aside and is no evidence.
    reference : array_like of shape (m, d) or Moments, optional
        Real features. Needed for "fd" and kernel distances (there no Moments); if it is itself a
        sample, the target is the distance to its population, and the reference's noise is part
        of every comparison. For "vendi" and "rke" the features that a bandwidth is taken from.
        Not used by others.
    policy : str or Policy
        "lucb", "elimination" and "uniform" stop by themselves; "random", "greedy",
        "epsilon-greedy", "thompson", "fd-ucb", "fid-ucb", "is-ucb", "naive-ucb" and
        "debiased-ucb" run until the budget is spent. A `Policy` object carries its own options.
    metric : str, MetricSpec, CustomMetric or callable
        A registered name: "fd", "kid", "is", "vendi", "rke", "cmmd", "kad", "energy", ….
        A score of your own is a `CustomMetric` (value, influence function, bias correction) or
        any function of the rows that returns an `Estimate` (debiased value, its variance, its
        orientation).
    confidence : float
        A certified answer is wrong with probability at most ``1 - confidence``.
    batch : int
        Samples per step.
    budget : int, optional
        Most samples in total (with `cost`: most that they may cost). None: no limit but `limit`
        for policies that stop by themselves, 1,000 batches for the others.
    seed : int
        Each arm draws from its own child stream: its samples do not depend on the policy.
    options : mapping, optional
        For "vendi" and "rke": keyword arguments of `vendi_score` (kernel, bandwidth, order, …);
        for "kid" its degree, gamma and offset; for "cmmd" and "kad" a bandwidth.
    top : int
        Name the best `top` arms instead of one.
    tolerance : float
        An arm counts as best if no other is better by more than this, on the scale where the
        score is linear (squared distance for FD, logarithm for IS). 0: strictly best.
    limit : int, optional
        Most samples per arm; by default 50,000, or four first looks if that is more.
    first_look : int, optional
        Samples at which an arm is scored for the first time. By default max(100, 2 d) for FD
        (max(100, 4 d) if the reference is a sample), or max(100, d/2) where not every arm has so
        many samples to give; max(100, 5 classes) for IS, 100 for a metric of your own.
    growth : float
        Ratio of neighbouring sample sizes at which an arm is scored.
    cost : mapping of str to float, optional
        Cost of one sample of an arm; 1 for arms not named. Decides what the budget buys, and
        "lucb" settles cheap rivals first. What a certificate needs does not depend on it: arms
        are compared at equal sizes, and each leaves at the first look that it loses.
    joins : mapping of str to int, optional
        Step from which on an arm takes part; 0 for arms not named. A run that has nothing left to
        do lets the next arm join at once. The certificate is about all arms, those to come
        included.
    retries : int
        How often a failed draw (exception, NaN, wrong shape) is repeated before its arm is set
        aside; the run goes on with the others.
    dtype : dtype-like, optional
        Floating type in which the samples are kept, such as "float16" to halve the memory of
        float32 features: 20 arms with 5,000 samples of 2,048 features then take 0.4 GB. None: as
        the arms return them. Scores are always computed in float64.
    record : path-like, optional
        Folder that keeps the samples. The same call with the same folder continues an interrupted
        run without drawing them again, with the same result as if uninterrupted; a larger budget
        is allowed, and further arms behind the others. A folder whose arms' features (as far as
        an arm has a ``digest()``) or reference were others, or that another run is using, is
        refused.
    progress : callable, optional
        Called with the `State` after every round; with contexts, with that of the one in turn.
    target : {"best", "mixture"}
        "mixture": find weights with which drawing from all arms at random has a score that is at
        most `tolerance` from that of the best mixture. For "fd", "kid", "cmmd", "kad", "energy"
        and "rke"; `tolerance` must be above 0; `policy` "lucb" draws where bounds above the
        tolerance gain most, "uniform" equally. By default the first look is at 200 samples of each
        arm, or 8 d for "fd", and `limit` is 5,000, or four first looks if that is more. `top`,
        `joins`, `record`, `progress` and `contexts` do not apply.
    contexts : mapping of str or int to reference, or iterable of str or int, optional
        Kinds of prompts, each with a winner of its own: all certified winners are right together
        with probability `confidence`. A mapping gives each context its reference (then `reference`
        is None); names alone are for metrics that need none. An arm is then a mapping of contexts
        to arms, or takes ``(n, rng, context)``. `budget` is for all contexts together, and no
        sample is drawn in one that is decided; other settings hold in each. For policies that stop
        by themselves; `top` does not apply.

    Returns
    -------
    Selection, MixtureSelection or ContextSelection
        The second for target "mixture", the third with `contexts`.

    Raises
    ------
    InputError
        If an argument is not legal, no arm has enough samples, every arm was set aside before it
        was scored, the reference has too few rows, or too few groups of them, for any score to be
        evidence, its rows depend on one another (sorted by class, several of one source) and
        nothing was said of it, or files that the features of arms and reference were read from name
        different encoders.

    Notes
    -----
    The certificate assumes that at the planned looks the debiased scores of an arm are jointly
    normal with the stated standard errors (asymptotically true for any distribution with the
    moments that the estimator asks for) and that arms are independent; it holds at any stopping
    time, whatever the policy does. Derivation, error rates and sample counts:
    docs/explanation/certificate.md.

    References
    ----------
    .. [1] S. Kalyanakrishnan et al., "PAC subset selection in stochastic multi-armed bandits",
       ICML 2012 (LUCB).
    .. [2] P. Armitage, C. K. McPherson and B. C. Rowe, "Repeated significance tests on
       accumulating data", J. Royal Statistical Society A 132, 1969.
    .. [3] X. Hu, H.-F. Leung and F. Farnia, "A multi-armed bandit approach to online selection and
       evaluation of generative models", AISTATS 2025 (FD-UCB, IS-UCB).
    """
    validation.check_choice("target", target, TARGETS)
    spec = metric_spec(metric)
    spec.check_growing("selection")
    if contexts is not None:
        _does_not_apply("with contexts", top=top != 1, target=target != "best")
    references = _references(contexts, reference, spec)
    common: dict[str, Any] = {
        "arms": _line_up(arms, references),
        "confidence": validation.check_confidence("confidence", confidence),
        "tolerance": validation.check_not_negative("tolerance", tolerance),
        "batch": validation.check_count("batch", batch),
        "budget": _count("budget", budget),
        "limit": _count("limit", limit, minimum=2),
        "first_look": _count("first_look", first_look, minimum=2),
        "seed": validation.check_count("seed", seed, minimum=0),
        "growth": growth,
        "retries": validation.check_count("retries", retries, minimum=0),
        "dtype": _dtype(dtype),
        "cost": _by_arm("cost", cost, arms),
        "metric": spec,
    }
    if target == "mixture":
        _does_not_apply(
            "to target 'mixture'", top=top != 1, joins=joins, record=record, progress=progress
        )
        return _mixture(reference, policy, options, common)
    common |= {
        "policy": _policy(policy, within=contexts is not None),
        "top": validation.check_count("top", top),
        "joins": _by_arm("joins", joins, arms),
    }
    loops = _loops(references, options, record, common)
    _carry_out(loops, record, progress)
    return loops[None].result if contexts is None else together(loops)


def _mixture(reference: Any, policy: Any, options: Any, common: Any) -> MixtureSelection:
    # A leaf above selection: this documented target is the one door to it.
    from genbounds.mixtures._online import ALLOCATIONS, MixtureLoop, MixtureSettings

    spec: MetricSpec = common["metric"]
    _check_reference(spec, reference, "reference")
    own = {"arms": common["arms"][None], "options": spec.checked(reference, options)}
    own["policy"] = validation.check_choice("policy", policy, ALLOCATIONS)
    return MixtureLoop(reference, MixtureSettings(**(common | own))).run()


def _loops(
    references: Mapping[Any, Any], options: Any, record: Any, common: Any
) -> dict[Any, Loop]:
    """Return a loop for every context, or the one for None; all share the budget of the first."""
    spec, policy, budget = common["metric"], common["policy"], None
    loops: dict[Any, Loop] = {}
    for place, (context, real) in enumerate(references.items()):
        name, own = "reference", {"record": record}
        if context is not None:
            name, own = f"contexts[{context!r}]", {"place": place, "context": str(context)}
            own["record"] = None if record is None else Path(record, str(place))
        with validation.calling("real", name):
            prepared = spec.prepared(real, options)
        policy.check(prepared)
        if policy.certifies:
            # With contexts, one that cannot be decided does not end the others.
            sampled = prepared.sampled_reference and context is None
            _check_reference(spec, real, name, sampled=sampled)
        own |= {"metric": prepared, "reference": "" if record is None else digest_of(real)}
        own |= {"arms": common["arms"][context], "contexts": len(references)}
        loops[context] = Loop(Settings(**(common | own)), budget)
        budget = loops[context].budget
    return loops


def _carry_out(
    loops: Mapping[Any, Loop], record: Any, progress: Callable[[State], None] | None
) -> None:
    """Carry out the runs of all contexts (or the one for None), a round of each one in turn.

    Raises
    ------
    InputError
        If in every one every arm was set aside before it had a score.
    """
    with ExitStack() as ended:
        if record is not None:
            ended.enter_context(locked(record, use=display(record)))
        for loop in loops.values():
            loop.resume()
        for loop in loops.values():
            ended.callback(loop.save)
        for context, loop in loops.items():
            try:
                loop.start()
            except InputError as error:
                if error.argument or context is None:
                    raise
                raise InputError(f"context {quoted(context)}: {error.text}") from error
        going = {context: loop.rounds() for context, loop in loops.items()}
        while going:
            for context in list(going):
                state = next(going[context], None)
                if state is None:
                    del going[context]
                    loops[context].result = summarise(loops[context])
                elif progress is not None:
                    progress(state)
    failures = {context: loop.failure for context, loop in loops.items()}
    if all(failures.values()):
        context, failure = next(iter(failures.items()))
        none = "" if context is None else f"no context has a result; {quoted(context)}: "
        raise InputError(f"{none}{failure}")


def _check_reference(spec: MetricSpec, real: Any, name: str, *, sampled: bool = False) -> None:
    """Refuse rows that depend on one another: no look could be evidence, whatever is drawn.

    `sampled`: the target is the score against the population, so that too few groups of rows are
    no evidence either.
    """
    if spec.reference != "required" or isinstance(real, Moments):
        return
    rows = check_sample("reference", real, what="reference", posteriors=spec.data == "posteriors")
    warnings = rows.warnings
    if sampled:
        warnings += small_sample(math.inf, name="reference", units=rows.drawing.free_units)
    for warning in warnings:
        if warning.severity == "unreliable":
            raise InputError(
                f"can certify nothing: {warning.message}. {warning.remedy}", argument=name
            )


def _does_not_apply(where: str, **given: Any) -> None:
    if name := next((name for name, value in given.items() if value), ""):
        raise InputError(f"does not apply {where}: leave it out.", argument=name)


def _policy(policy: str | Policy, *, within: bool) -> Policy:
    """Return the policy; `within` contexts it must stop by itself."""
    if not isinstance(policy, Policy):
        policy = POLICIES[validation.check_choice("policy", policy, POLICIES)]()
    if within and not policy.certifies:
        raise InputError(
            "must stop by itself with contexts: lucb, elimination or uniform.", argument="policy"
        )
    return policy


def _line_up(arms: Any, references: Mapping[Any, Any]) -> dict[Any, dict[str, Arm]]:
    """Return the arms of every context; the same encoder has made the rows of all in it."""
    with validation.calling("", "arms"):
        if not isinstance(arms, Mapping):
            raise InputError(f"must be a mapping of names to arms; got {type(arms).__name__}.")
        if not arms:
            raise InputError("is empty: there is nothing to choose from.")
        line_up = {
            context: {name: _arm(name, arm, context) for name, arm in arms.items()}
            for context in references
        }
    for context, real in references.items():
        own = {f"arm {name!r}": origin_of(arm) for name, arm in line_up[context].items()}
        check_same_encoder({"`reference`": origin_of(real)} | own)
    return line_up


def _arm(name: Any, arm: Any, context: Context | None) -> Arm:
    """Check the name of an arm, and what it is in a context; a plain function becomes an arm."""
    if not isinstance(name, str):
        raise InputError(f"must have names (str) as keys; got {quoted(name)}.")
    if context is not None and isinstance(arm, Mapping):
        if context not in arm:
            raise InputError(
                f"{quoted(name)} has nothing for context {quoted(context)}: give every arm one in "
                "each context."
            )
        arm, context = arm[context], None
    if isinstance(arm, type):
        raise InputError(
            f"must be arms, not classes: make an instance of {arm.__name__} for {name!r}."
        )
    draw = getattr(arm, "draw", arm)
    if not callable(draw):
        raise InputError(
            f"must be objects with `draw(n, rng)` or functions of (n, rng); {name!r} is of type "
            f"{type(arm).__name__}. For recorded features use genbounds.select.FeatureArm(rows)."
        )
    if context is None:
        return arm if isinstance(arm, Arm) else FunctionArm(arm)
    try:
        inspect.signature(draw).bind(1, None, context)
    except TypeError:
        raise InputError(
            f"with contexts, {quoted(name)} must take (n, rng, context), or be a mapping of "
            "contexts to arms."
        ) from None
    except ValueError:  # a function written in C that does not say
        pass
    return FunctionArm(lambda n, rng: draw(n, rng, context), origin_of(arm))


def _by_arm(name: str, given: Any, arms: Mapping[str, Any]) -> dict[str, float]:
    """Check a number for each arm: `cost` above 0, `joins` whole."""
    if given is None:
        return {}
    with validation.calling("", name):
        if not isinstance(given, Mapping):
            raise InputError(f"must map arms to numbers; got {type(given).__name__}.")
        for arm, value in given.items():
            if arm not in arms:
                names = ", ".join(map(quoted, arms))
                raise InputError(f"names {quoted(arm)}, which is not among the arms: {names}.")
            if name == "joins":
                validation.check_count(f"joins[{arm!r}]", value, minimum=0)
            elif not (isinstance(value, Real) and 0.0 < float(value) <= LARGEST_COST):
                most = f"must be positive and at most {LARGEST_COST:g}"
                raise InputError(f"{most}; got {quoted(value)} for {arm!r}.")
    return {arm: float(value) for arm, value in given.items()}


def _count(name: str, value: object, minimum: int = 1) -> int | None:
    return None if value is None else validation.check_count(name, value, minimum=minimum)


def _dtype(value: Any) -> np.dtype[Any] | None:
    if value is None:
        return None
    try:
        dtype: np.dtype[Any] = np.dtype(value)
    except TypeError:
        dtype = np.dtype(object)
    if dtype.kind != "f":
        raise InputError(
            f"must be a floating type such as 'float32'; got {quoted(value)}.", argument="dtype"
        )
    return dtype


# --- contexts -------------------------------------------------------------------------------------


@validation.calling("", "contexts")
def _references(contexts: Any, reference: Any, metric: MetricSpec) -> dict[Context | None, Any]:
    """Return the reference of every context, or of None; `reference` is what all were given.

    Raises
    ------
    InputError
        If references are missing or superfluous, or a name is no text or whole number.
    """
    if contexts is None:
        return {None: reference}
    kind, mapped = type(contexts).__name__, isinstance(contexts, Mapping)
    if isinstance(contexts, (str, bytes)) or not isinstance(contexts, Iterable):
        raise InputError(f"must map names to references, or be a sequence of names; got {kind}.")
    if mapped and metric.reference == "none":
        raise InputError(
            f"must be a sequence of names: metric {metric.name!r} takes no references."
        )
    if not mapped and metric.reference == "required":
        why = f"which metric {metric.name!r} needs"
        raise InputError(f"must map each name to its reference, {why}; got {kind}.")
    if mapped and reference is not None:
        raise InputError(
            "must be None: each context has its own, in `contexts`.", argument="reference"
        )
    names = [_name(name) for name in contexts]
    if not names:
        raise InputError("is empty: name at least one context.")
    if len({str(name) for name in names}) < len(names):
        raise InputError("names a context twice.")
    mine = contexts.values() if isinstance(contexts, Mapping) else [reference] * len(names)
    return dict(zip(names, mine, strict=True))


def _name(name: Any) -> Context:
    if isinstance(name, str):
        return str(name)
    if not isinstance(name, bool) and isinstance(name, Integral):
        return int(name)
    raise InputError(f"must have texts or whole numbers as names; got {quoted(name)}.")
