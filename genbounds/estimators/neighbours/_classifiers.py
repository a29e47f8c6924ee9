"""Classifiers that tell generated rows from real ones, whoever wrote them."""

from __future__ import annotations

from typing import Any

import numpy as np

from genbounds._text import quoted, said_by
from genbounds.estimators.neighbours._pairs import Rows
from genbounds.validation import Float, InputError

NEIGHBOURS = 32
"""Of the classifier by nearest neighbours."""


def fitted(classifier: Any, real: Rows, fake: Rows) -> dict[str, Any]:
    """Fit the user's `classifier`, or ours where it is None; by name."""
    x = np.concatenate([real, fake])
    y = np.repeat([0, 1], [len(real), len(fake)])
    found = _classifiers(len(x)) if classifier is None else _theirs(classifier)
    for machine in found.values():
        try:
            machine.fit(x, y)
        except Exception as error:  # whatever somebody else's code raises
            raise InputError(f"fails to fit: {said_by(error)}.", argument="classifier") from error
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
    try:
        if hasattr(machine, "predict_proba"):
            found = np.asarray(machine.predict_proba(rows), dtype=np.float64)[:, 1]
        else:
            found = np.asarray(machine.decision_function(rows), dtype=np.float64)
    except Exception as error:  # whatever somebody else's code raises
        raise InputError(f"fails to predict: {said_by(error)}.", argument="classifier") from error
    if found.shape != (len(rows),) or np.isnan(found).any():
        raise InputError("must give one number per row.", argument="classifier")
    return found
