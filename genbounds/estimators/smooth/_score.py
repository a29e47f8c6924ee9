"""Any score that is a smooth function of weighted rows, without its bias and with an interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from genbounds import validation
from genbounds._process import is_dask_array
from genbounds._text import quoted
from genbounds.core.checks import Checked, check_rows, drawing_warnings, drawn, few_rows
from genbounds.core.class_shares import classes_of, score_by_class
from genbounds.core.design import Design
from genbounds.core.estimate import (
    EXACT,
    Estimate,
    SampleError,
    beyond_double,
    bias_left,
    heavy_tails,
    studentised_interval,
)
from genbounds.core.moments import Moments
from genbounds.diagnostics import warn_of
from genbounds.estimators._metric_spec import BUILT_IN, MetricSpec, prepared_by
from genbounds.estimators.smooth._engine import Weighted, expand, weighted_function
from genbounds.origins import check_same_encoder, origin_of
from genbounds.results import Diagnostic, Score
from genbounds.samples import features_of
from genbounds.validation import POSTERIOR_ATOL, Float, InputError

if TYPE_CHECKING:
    from torch import Tensor

_SHAPES = {"hessian": "smooth", "secant": "continuous, piecewise linear"}
DERIVATIVES = tuple(_SHAPES)
ESTIMATORS = ("debiased", "plugin")

MINIMUM = 8
"""Rows below which no second-order expansion is of use."""

DOUBLED = 200
"""Rows on which it is tried whether they may be repeated."""


SAME_VALUE = 1e-6
"""Of the larger of value and standard error: what rounding may change."""

ROUNDING = 1e-12
"""Share of the quadratic part in the variance of a score that is linear in the weights."""


@dataclass(frozen=True, slots=True)
class SmoothScore:
    """A score of your own, of which the library knows nothing but how to compute it.

    Its bias, its standard error and its interval follow by differentiation in the weights of the
    rows, for every design of sampling that a `Sample` can describe. Pass it as ``metric=`` to
    `compare`, `gate`, `plan`, `track` and `select.run`, name it on the command line
    (``--metric module:name``), or call it.

    Parameters
    ----------
    function : callable
        ``function(x, w)``, or ``function(x, w, y, v)`` with a reference: rows (n, d) and weights
        (n,) that sum to one, all float64 torch tensors; returns a scalar tensor. Every mean over
        rows is a weighted one: ``w @ values`` in place of ``values.mean(0)``. What is fixed
        beforehand (bandwidths, thresholds, directions) must not be computed from the rows.
    name : str
    higher_is_better : bool
    needs_reference : bool
        Whether the function takes y and v.
    derivative : {"hessian", "secant"}
        "secant" for a function that is piecewise linear in the weights (optimal transport), whose
        second derivatives are 0. `check_score` says which.
    probes : int
        Random directions for each sample. The value varies with `seed` by the standard deviation
        of its second-order part over √probes, which the interval allows for.
    seed : int
    lower_limit : float
        Smallest possible value.

    Raises
    ------
    InputError
        If an argument is not legal, or torch is not installed. When it is computed: if the function
        fails, or returns something else than a finite number that depends on the weights.

    Notes
    -----
    To second order; what is left of the bias is of order 1/n². Derivation, measurements and where
    it fails: docs/explanation/any_score.md. A function that has a method ``of_rows(x, y)``, which
    returns a function ``(w, v)`` of the weights alone, is prepared once for all evaluations.

    References
    ----------
    .. [1] M. F. Hutchinson, "A stochastic estimator of the trace of the influence matrix for
       Laplacian smoothing splines", Commun. Stat. 19, 1990 (sign probes).
    .. [2] L. T. Fernholz, "von Mises calculus for statistical functionals", 1983.

    Examples
    --------
    Squared distance of means; its plug-in is too large by Tr Σ/n + Tr Σ_r/m on average:

    >>> import numpy as np, genbounds as gb
    >>> def gap(x, w, y, v):
    ...     return ((w @ x - v @ y) ** 2).sum()
    >>> means = gb.SmoothScore(gap, name="means", higher_is_better=False, needs_reference=True)
    >>> rng = np.random.default_rng(0)
    >>> score = means(rng.normal(0.5, 1.0, size=(500, 4)), rng.normal(size=(400, 4)))
    >>> score.low < 1.0 < score.high
    True
    """

    function: Callable[..., Any]
    name: str = field(kw_only=True)
    higher_is_better: bool = field(kw_only=True)
    needs_reference: bool = field(kw_only=True)
    derivative: str = field(default="hessian", kw_only=True)
    probes: int = field(default=16, kw_only=True)
    seed: int = field(default=0, kw_only=True)
    lower_limit: float = field(default=-math.inf, kw_only=True)

    def __post_init__(self) -> None:
        given: object = self.function  # callers are not type-checked
        if isinstance(given, type) or not callable(given):
            raise InputError("must be a function of rows and weights.", argument="function")
        name: object = self.name
        if not (isinstance(name, str) and name.strip()):
            raise InputError(f"must be a text; got {quoted(name)}.", argument="name")
        validation.check_choice("derivative", self.derivative, DERIVATIVES)
        validation.check_count("probes", self.probes, minimum=2)
        validation.check_count("seed", self.seed, minimum=0)
        validation.check_installed("a score that is differentiated", "torch", "torch")

    def spec(self) -> MetricSpec:
        """Describe it as every other metric is, under a name that is its own."""
        if self.name in BUILT_IN:
            raise InputError(
                f"{self.name!r} is the name of another metric: choose another.", argument="name"
            )
        return MetricSpec(
            name=self.name,
            title=self.name,
            prepare=partial(
                prepared_by,
                partial(SmoothReference, self),
                minimum=MINIMUM,
                sampled_reference=self.needs_reference,
            ),
            higher_is_better=self.higher_is_better,
            reference="required" if self.needs_reference else "none",
        )

    def __call__(self, fake: Any, real: Any = None, *, level: float = 0.95) -> Score:
        """Score a sample.

        Parameters
        ----------
        fake : array_like of shape (n, d) or Sample
            At least 8 rows.
        real : array_like of shape (m, d) or Sample, optional
            The reference, where the function takes one.
        level : float
            Coverage of the interval, in (0, 1).

        Returns
        -------
        Score
        """
        level = validation.check_open_unit("level", level)
        found = SmoothReference(self, real).estimate(fake)
        return found.made_from(fake=fake, real=real).score(level)


class SmoothReference:
    """A score with its reference, against which any number of models can be scored.

    Parameters
    ----------
    score : SmoothScore
    real : array_like of shape (m, d), Sample or None
    """

    def __init__(self, score: SmoothScore, real: Any = None) -> None:
        if (real is None) is score.needs_reference:
            must, takes = ("must", "needs a") if real is None else ("must not", "takes no")
            raise InputError(
                f"{must} be given: {quoted(score.name)} {takes} reference.", argument="real"
            )
        self.score = score
        self._real = None if real is None else inspected("real", real)
        self._classes, self._origin = classes_of(real), {} if real is None else origin_of(real)

    @property
    def d(self) -> int | None:
        """Number of features of the reference."""
        return None if self._real is None else int(self._real.rows.shape[1])

    def estimate(self, fake: Any, *, estimator: str = "debiased") -> Estimate:
        """Estimate of `fake` with its variance and influences, before any level is chosen.

        `estimator`: "debiased" or "plugin".
        """
        validation.check_choice("estimator", estimator, ESTIMATORS)
        return score_by_class(fake, self._classes, lambda x: self._estimate(x, estimator))

    def _estimate(self, fake: Any, estimator: str) -> Estimate:
        score, seen = self.score, [inspected("fake", fake)]
        if self._real is not None:
            check_same_encoder({"`fake`": origin_of(fake), "`real`": self._origin})
            validation.check_same_dimension("fake", seen[0].rows.shape[1], "real", self.d or 0)
            seen.append(self._real)
        designs = [sample.drawing for sample in seen]
        with validation.blamed("function", of=score.name):
            value, errors, shared, warnings = _expanded(score, seen, designs)
        errors = [
            replace(error, row_ids=sample.single_ids)
            for error, sample in zip(errors, seen, strict=True)
        ]
        bias, plugin = sum(error.bias for error in errors), estimator == "plugin"
        drawings = [
            drawn(one.design) + (f" ({one.what})" if len(seen) == 2 else "") for one in seen
        ]
        shape = f"{score.name} is a {_SHAPES[score.derivative]} function of the weights of the rows"
        found = Estimate(
            title=score.name,
            estimator=estimator,
            method="plug-in" if plugin else "second-order",
            value=value if plugin else value - bias,
            sample=errors[0],
            reference=errors[1] if len(errors) == 2 else EXACT,
            shared_variance=shared,
            lower_limit=score.lower_limit,
            higher_is_better=score.higher_is_better,
            statistic=score.name,
            assumptions=(*drawings, shape),
            details=(f"{score.derivative} products along {score.probes} random directions",),
        )
        drawing = drawing_warnings(seen[0], self._real)
        left = [bias_left(bias)] if plugin else []
        return found.warned(*drawing, *heavy_tails(found), *few_rows(*seen), *warnings, *left)


def _expanded(
    score: SmoothScore, samples: Sequence[Checked], designs: Sequence[Design]
) -> tuple[float, list[SampleError], float, list[Diagnostic]]:
    """Expand the score; return what `expand` does, and warnings of a score that is not smooth."""
    weighted = weighted_function(score.function, [seen.rows for seen in samples])
    value, errors, shared = expand(
        weighted, designs, derivative=score.derivative, probes=score.probes, seed=score.seed
    )
    warnings = []
    if score.derivative == "hessian" and piecewise(weighted, designs, errors):
        warnings.append(warn_of("piecewise-linear-score", name=score.name))
    stderr = math.sqrt(sum(error.variance for error in errors) + shared)
    if math.isnan(stderr):  # overflowed
        raise beyond_double()
    studentised_interval(value, stderr, 1.0)  # refuses what is near that
    some = [seen.rows[:DOUBLED] for seen in samples]
    *_, repeatable = once_and_twice(score.function, some, stderr)
    if not repeatable:
        warnings.insert(0, warn_of("not-weighted", name=score.name))
    return value, errors, shared, warnings


def inspected(name: str, x: Any) -> Checked:
    if is_dask_array(x):
        x = validation.as_numpy(name, x)  # once
    posteriors = not isinstance(x, Moments) and _are_posteriors(features_of(x))
    return check_rows(name, x, needs="this score needs", minimum=MINIMUM, posteriors=posteriors)


def _are_posteriors(rows: Any) -> bool:
    """Whether every row is a distribution: sure ones are all alike, and no near duplicates."""
    array = np.asarray(rows)
    if array.ndim != 2 or array.shape[1] < 2 or array.dtype.kind != "f" or array.size == 0:
        return False
    with np.errstate(over="ignore", invalid="ignore"):  # such rows are refused
        return bool(array.min() >= 0.0 and np.abs(array.sum(axis=1) - 1.0).max() <= POSTERIOR_ATOL)


def value_of(function: Callable[..., Any], rows: Sequence[Float]) -> float:
    """Plug-in value of these rows, each of the same weight."""
    import torch

    weights = [torch.full((len(part),), 1.0 / len(part), dtype=torch.float64) for part in rows]
    value = torch.as_tensor(weighted_function(function, list(rows))(*weights))
    return float(value.detach())


def once_and_twice(
    function: Callable[..., Any], rows: Sequence[Float], stderr: float
) -> tuple[float, float, bool]:
    """Return the values of the rows once and of every row twice, and whether they are the same.

    A function of weighted rows does not see the difference; one that counts rows does.
    """
    once, twice = (
        value_of(function, [np.repeat(part, times, axis=0) for part in rows]) for times in (1, 2)
    )
    return once, twice, abs(once - twice) <= SAME_VALUE * max(abs(once), stderr)


def piecewise(weighted: Weighted, designs: Sequence[Design], errors: Sequence[SampleError]) -> bool:
    """Whether a score without second derivatives is curved all the same, from kink to kink."""
    allowed = ROUNDING * sum(error.variance for error in errors)
    if any(error.quadratic_variance > allowed for error in errors):
        return False
    _, again, _ = expand(weighted, designs, derivative="secant", probes=2)
    return any(error.quadratic_variance > allowed for error in again)


# --- products of a kernel matrix with weights, without the matrix ---------------------------------

Kernel = Callable[..., Any]
"""From rows (k, d) and (m, d) to the matrix (k, m)."""

BLOCK_ENTRIES = 1 << 20
"""Of the kernel matrix, that are held at once: 8 MB."""


def kernel_product(kernel: Kernel, x: Tensor, y: Tensor, v: Tensor) -> Tensor:
    """Multiply the matrix of a kernel with weights, in blocks that are never held together.

    For a `SmoothScore` of many rows: of 50,000 rows the matrix alone takes 20 GB.

    Parameters
    ----------
    kernel : callable
        From rows (k, d) and (m, d) to a tensor (k, m).
    x : tensor of shape (n, d)
    y : tensor of shape (m, d)
    v : tensor of shape (m,)

    Returns
    -------
    tensor of shape (n,)
        Differentiable in `v` any number of times; not in the rows.

    Examples
    --------
    >>> import torch
    >>> from genbounds.estimators import kernel_product
    >>> x, w = torch.randn(500, 3), torch.full((500,), 1 / 500)
    >>> product = kernel_product(lambda a, b: a @ b.T, x, x, w)
    >>> torch.allclose(product, (x @ x.T) @ w, atol=1e-5)
    True
    """
    out: Tensor = _function().apply(v, kernel, x, y, False)
    return out


def _function() -> Any:
    """Return the product as a differentiable function; torch is imported here."""
    import torch

    class Product(torch.autograd.Function):  # type: ignore[misc]
        """K v, or K' v if transposed; the derivative of one is the other."""

        @staticmethod
        def forward(
            ctx: Any, v: Tensor, kernel: Kernel, x: Tensor, y: Tensor, transposed: bool
        ) -> Tensor:
            ctx.rest = (kernel, x, y, not transposed)
            out = v.new_zeros(len(y) if transposed else len(x))
            step = max(1, BLOCK_ENTRIES // len(y))
            for start in range(0, len(x), step):
                part = slice(start, start + step)
                block = kernel(x[part], y)
                if transposed:
                    out += block.T @ v[part]
                else:
                    out[part] = block @ v
            return out

        @staticmethod
        def backward(ctx: Any, *given: Any) -> Any:
            return Product.apply(given[0], *ctx.rest), None, None, None, None

    return Product
