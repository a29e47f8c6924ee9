"""Certified ceilings on the precision-recall frontier: no model can be better than they say.

With q the generated and p the real density, α(λ) = ∫ min(q, λ p) is the generated mass that is left
when whatever is over-produced more than λ times is cut to that. For every set A,

    α(λ) <= Q(A) + λ P(not A),

and of a set that was found on other rows both shares have exact upper limits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from genbounds import validation
from genbounds._tables import Line, Warned
from genbounds._text import number, percent, quoted
from genbounds.core.checks import Checked, drawn, leaked
from genbounds.estimators.neighbours._pairs import Rows
from genbounds.estimators.neighbours._reference import inspected, unit_keys
from genbounds.estimators.neighbours._scored import share_limit
from genbounds.origins import compared
from genbounds.results import Diagnostic
from genbounds.validation import Float, InputError

LEAST_ROWS = 200
"""Rows of either sample from which a classifier has something to learn from."""

TRAINING, CUTTING = 0.35, 0.15
"""Shares of the units that train the classifier and choose its cut; the others certify."""

NEIGHBOURS = 32
"""Of the classifier by nearest neighbours."""


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


def precision_recall_ceiling(
    fake: Any,
    real: Any,
    *,
    lam: Sequence[float] = (10.0, 1.0, 0.1),
    classifier: Any = None,
    level: float = 0.95,
    seed: int = 0,
) -> Ceiling:
    """Certify what precision, recall and overlap a model cannot reach, whatever its distribution.

    Parameters
    ----------
    fake : array_like of shape (m, d) or Sample
        Generated features, at least 200 rows, or groups of them.
    real : array_like of shape (n, d) or Sample
        Real features, at least 200 rows, or groups of them.
    lam : sequence of float
        λ of the frontier α(λ) = ∫ min(q, λ p). Above 1 the ceiling is α(λ), "precision@λ"; at 1 the
        overlap; below 1 it is α(λ) / λ, "recall@1/λ".
    classifier : object, optional
        With scikit-learn's ``fit(x, y)`` and ``predict_proba(x)`` or ``decision_function(x)``; y is
        1 for generated rows. A copy is fitted. None: 32 nearest neighbours and a logistic
        regression, whichever separates better on the rows that choose the cut.
    level : float
        Confidence of each ceiling on its own, in (0, 1).
    seed : int
        Of the division of the rows.

    Returns
    -------
    Ceiling

    Raises
    ------
    InputError
        If a shape, a type or a value is not legal, rows are too few or have weights, or the
        classifier fails.

    Notes
    -----
    35 % of the rows (whole groups) train the classifier, 15 % choose where to cut its score, the
    rest count how many generated rows lie on the real side and how many real rows on the other.
    Clopper-Pearson limits at half the error each make the ceiling valid for every distribution and
    every classifier; a bad one only leaves it high. Of a group one random row counts. Nothing
    bounds α from below without assumptions, nor support overlap, its limit at large λ, from above.

    References
    ----------
    .. [1] M. S. M. Sajjadi et al., "Assessing generative models via precision and recall",
       NeurIPS 2018, Definition 2 and Theorem 1.
    .. [2] L. Simon, R. Webster and J. Rabin, "Revisiting precision and recall definition for
       generative model evaluation", ICML 2019, §3.

    Examples
    --------
    >>> import numpy as np, genbounds as gb
    >>> rng = np.random.default_rng(0)
    >>> real = rng.choice([-5.0, 5.0], (1000, 1)) + rng.normal(size=(1000, 4))
    >>> fake = 5.0 + rng.normal(size=(1000, 4))  # one of two modes
    >>> found = gb.precision_recall_ceiling(fake, real)
    >>> 0.5 <= found["overlap"] < 0.65, found["precision@10"] == 1.0
    (True, True)
    """
    level = validation.check_open_unit("level", level)
    seed = validation.check_count("seed", seed, minimum=0)
    wanted = _check_lam(lam)
    origins = compared({"`fake`": fake, "`real`": real})
    seen = {"real": real, "fake": fake}
    samples = [inspected(name, x, LEAST_ROWS, "a ceiling") for name, x in seen.items()]
    validation.check_same_dimension(
        "fake", samples[1].rows.shape[1], "real", samples[0].rows.shape[1]
    )
    for name, sample in zip(seen, samples, strict=True):
        if sample.drawing.units < LEAST_ROWS:
            raise InputError(
                f"has {sample.drawing.units} independent groups of rows: a ceiling needs at least "
                f"{LEAST_ROWS}.",
                argument=name,
            )
    train, cut, last = zip(*(_parts(sample, seed) for sample in samples), strict=True)
    machines = fitted(classifier, *train)
    looks = {
        key: [[looks_generated(one, rows) for rows in part] for part in (cut, last)]
        for key, one in machines.items()
    }
    found = {_name(one): _ceiling(looks, lam=one, delta=1.0 - level) for one in wanted}
    return Ceiling(
        ceilings={name: value for name, (value, _) in found.items()},
        lam=wanted,
        level=level,
        n=len(last[0]),
        m=len(last[1]),
        classifiers={name: best for name, (_, best) in found.items()},
        warnings=(
            *samples[1].warnings,
            *samples[0].warnings,
            *leaked(samples[1], samples[0]),
            *origins,
        ),
        assumptions=(
            *dict.fromkeys(drawn(sample.design) for sample in samples),
            "each ceiling holds on its own",
        ),
    )


def _ceiling(looks: Mapping[str, Any], *, lam: float, delta: float) -> tuple[float, str]:
    """Return a ceiling and the name of the classifier that it is from.

    The cut is that of the lowest ceiling to expect. The rows that certify know nothing of it, nor
    of the classifier.

    `looks`: by classifier, its scores of both samples on the rows that choose the cut and on those
    that certify.
    """

    def limit(kept: Any, m: int, lost: Any, n: int) -> Float:
        """Upper limits of both shares, from so many of either sample on the wrong side."""
        return share_limit(kept, m, delta / 2.0) + lam * share_limit(lost, n, delta / 2.0)

    lowest = math.inf
    for key, ((real, fake), last) in looks.items():
        cuts = np.unique(np.concatenate([real, fake]))
        n, m = (part.size for part in last)
        kept = np.searchsorted(np.sort(fake), cuts, side="right") / fake.size
        lost = 1.0 - np.searchsorted(np.sort(real), cuts, side="right") / real.size
        expected = limit(kept * m, m, lost * n, n)
        if expected.min() < lowest:
            lowest, best, cut = float(expected.min()), key, cuts[expected.argmin()]
    real, fake = looks[best][1]
    found = limit(np.sum(fake <= cut), fake.size, np.sum(real > cut), real.size)
    return min(float(found), 1.0, lam) / min(lam, 1.0), best


def _check_lam(lam: Any) -> tuple[float, ...]:
    try:
        found = tuple(float(one) for one in np.atleast_1d(lam))
    except (TypeError, ValueError):
        found = ()
    if not found or not all(0.0 < one < np.inf for one in found):
        raise InputError(f"must be positive numbers; got {quoted(lam)}.", argument="lam")
    return found


def _name(lam: float) -> str:
    if lam == 1.0:
        return "overlap"
    return f"precision@{lam:g}" if lam > 1.0 else f"recall@{1.0 / lam:g}"


def _parts(seen: Checked, seed: int) -> tuple[Rows, Rows, Rows]:
    """Rows that train, that choose the cut, and that certify: of these one of each unit.

    Units that both samples share are in the same part of either.
    """
    design = seen.drawing
    keys = unit_keys(design, 1, seed)[0][design.unit]
    order = validation.seeded(seed, "single").permutation(design.n)
    _, first = np.unique(design.unit[order], return_index=True)
    single = np.zeros(design.n, dtype=bool)
    single[order[first]] = True
    train, cut = keys < TRAINING, (keys >= TRAINING) & (keys < TRAINING + CUTTING)
    certify = ~train & ~cut & single
    return seen.rows[train], seen.rows[cut & single], seen.rows[certify]


def fitted(classifier: Any, real: Rows, fake: Rows) -> dict[str, Any]:
    """Fit the user's `classifier`, or ours where it is None; by name."""
    x = np.concatenate([real, fake])
    y = np.repeat([0, 1], [len(real), len(fake)])
    found = _classifiers(len(x)) if classifier is None else _theirs(classifier)
    for machine in found.values():
        with validation.blamed("classifier"):
            machine.fit(x, y)
    return found


def _classifiers(rows: int) -> dict[str, Any]:
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    count = min(NEIGHBOURS, rows // 2)
    return {
        f"{count} nearest neighbours": KNeighborsClassifier(count, algorithm="brute"),
        "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    }


def _theirs(classifier: Any) -> dict[str, Any]:
    from sklearn.base import clone

    scores = hasattr(classifier, "predict_proba") or hasattr(classifier, "decision_function")
    if isinstance(classifier, type) or not (hasattr(classifier, "fit") and scores):
        raise InputError(
            "must have fit(x, y) and predict_proba(x) or decision_function(x), as classifiers of "
            f"scikit-learn do; got {quoted(classifier)}.",
            argument="classifier",
        )
    return {type(classifier).__name__: clone(classifier, safe=False)}


def looks_generated(machine: Any, rows: Rows) -> Float:
    """How much each row looks generated, to any scale."""
    with validation.blamed("classifier"):
        if hasattr(machine, "predict_proba"):
            found = np.asarray(machine.predict_proba(rows), dtype=np.float64)[:, 1]
        else:
            found = np.asarray(machine.decision_function(rows), dtype=np.float64)
    if found.shape != (len(rows),) or np.isnan(found).any():
        raise InputError("must give one number per row.", argument="classifier")
    return found
