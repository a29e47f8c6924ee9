"""How much of the diversity of outputs is not that of their prompts (Conditional-Vendi).

With kernels k_T of prompts and k_X of outputs, both 1 on the diagonal, and H the Rényi entropy of
the eigenvalues of a kernel covariance, the chain rule H(X | T) = H(X, T) - H(T) takes the product
kernel k_T k_X for the pair: exp H(X | T) says how many times more varied pairs are than prompts,
exp H(T) how varied these are. M. Jalali, H. Tang, A. Gohari and F. Farnia, arXiv 2411.02817.

A prompt with all its outputs is what is drawn independently: units of both entropies are prompts,
and their common noise cancels in the difference. Of order 2 either is a U-statistic over pairs of
different prompts, unbiased at any number of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from genbounds._tables import InHand, Line
from genbounds._text import percent
from genbounds.core.difference import difference
from genbounds.estimators.kernels._prompts import beside_prompts
from genbounds.estimators.vendi._score import check_order, vendi_estimate
from genbounds.results import Score
from genbounds.validation import InputError, check_open_unit

LARGEST_LOG = 300.0
"""Logarithm of a score that is no score: kernels of different rows are 0 but for rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionalVendi(InHand):
    """The diversity of prompts with their outputs, and what of it is whose.

    Attributes
    ----------
    joint : Score
        Of pairs of a prompt and an output: the product of the two others.
    prompts : Score
        Of the prompts alone.
    conditional : Score
        How many times more varied the pairs are than the prompts: what outputs add.
    """

    _names = "Diversity"

    joint: Score
    prompts: Score
    conditional: Score

    def _lines(self) -> list[Line]:
        names = {"conditional": "outputs, given prompts", "prompts": "prompts", "joint": "both"}
        return [getattr(self, key)._line(name) for key, name in names.items()]

    def _caption(self) -> str:
        return f"Conditional Vendi score, {percent(self.joint.level)} confidence intervals"

    def __repr__(self) -> str:
        return "\n".join(("ConditionalVendi:", self.to_markdown()))


def conditional_vendi(
    x: Any,
    prompts: Any,
    *,
    order: float = 2.0,
    bandwidth: float | None = None,
    prompt_bandwidth: float | None = None,
    level: float = 0.95,
) -> ConditionalVendi:
    """Diversity of the outputs beyond that of their prompts, with an interval.

    Parameters
    ----------
    x : array_like of shape (n, d)
        Features of the outputs.
    prompts : array_like of shape (n, p)
        Features of each output's prompt, by a text encoder. Equal rows are one prompt.
    order : float
        Of the Rényi entropies, in (0, ∞]. 2 (Conditional-RKE) is unbiased at any number of prompts.
    bandwidth, prompt_bandwidth : float, optional
        Of the kernels ``exp(-‖a-b‖²/(2σ²))`` of outputs and of prompts. None: the median of the
        distances; give numbers where several models are to be compared.
    level : float
        Coverage of each interval, in (0, 1).

    Returns
    -------
    ConditionalVendi

    Raises
    ------
    InputError
        If an argument is not legal, or there are too few different prompts.

    Notes
    -----
    Assumes that prompts were drawn independently of one another, and fixed bandwidths. Formulas and
    measured coverage: docs/vendi.md, docs/evidence/encoders_and_prompts.md.

    Examples
    --------
    >>> import numpy as np, genbounds as gb
    >>> rng = np.random.default_rng(0)
    >>> prompts = rng.normal(size=(200, 3))
    >>> echo, creative = prompts.copy(), prompts + rng.normal(size=(200, 3))
    >>> widths = {"bandwidth": 1.0, "prompt_bandwidth": 2.0}
    >>> alone, more = (gb.conditional_vendi(x, prompts, **widths) for x in (echo, creative))
    >>> alone.conditional.high < more.conditional.low
    True
    """
    level, order = check_open_unit("level", level), check_order(order)
    (pairs, alone), *_ = beside_prompts(
        {"x": x}, [prompts], bandwidth=bandwidth, prompt_bandwidth=prompt_bandwidth
    )
    method = "ustat" if order == 2.0 else "exact"
    both, texts = (
        vendi_estimate(sample, bandwidth=1.0, order=order, method=method)
        for sample in (pairs, alone)
    )
    gap = difference(both, texts)
    conditional = replace(
        both,
        value=gap.value,
        sample=replace(
            both.sample,
            variance=gap.stderr**2,
            degrees_of_freedom=gap.degrees_of_freedom,
            curvature=gap.curvature,
            skewness=gap.skewness,
            lean=0.0,
        ),
        own_interval=None,
        lower_limit=0.0,
        title="Conditional Vendi score",
    )
    estimates = both, texts, conditional
    if not all(each.interval(level)[1] <= LARGEST_LOG for each in estimates):  # or NaN
        raise InputError(
            "or `prompt_bandwidth` is too small: no two prompts are alike in its kernel.",
            argument="bandwidth",
        )
    scores = {"joint": both, "prompts": texts, "conditional": conditional}
    return ConditionalVendi(**{name: estimate.score(level) for name, estimate in scores.items()})
