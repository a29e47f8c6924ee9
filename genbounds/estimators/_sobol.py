"""Scrambled Sobol normals in place of pseudo-random ones, and intervals over scramblings."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds import validation
from genbounds._process import silenced
from genbounds._text import quoted
from genbounds.core.design import row_design
from genbounds.core.estimate import SMALL, heavy_tails
from genbounds.diagnostics import warn_of
from genbounds.estimators._mean import mean_by_design
from genbounds.results import Score
from genbounds.validation import Float, InputError

METHODS = ("inverse", "box-muller")

MAXIMUM_DIMENSION = 21_201
"""Of SciPy's direction numbers (Joe & Kuo 2008)."""

BITS = 30
"""The sequence has 2^30 points."""


class QuasiRandomArray(np.ndarray[Any, np.dtype[Any]]):
    """An array made from quasi-random points; what NumPy computes from it is one as well.

    Estimators with an interval for independent rows refuse it. ``np.asarray`` drops this property.
    """

    quasi_random = True


class SobolNormal:
    """Standard normal vectors from one scrambled Sobol sequence.

    Parameters
    ----------
    d : int
    method : {"inverse", "box-muller"}
    rng : seed or numpy.random.Generator
    balanced : bool
        As `sobol_normal` has them.
    """

    def __init__(self, d: int, *, method: str, rng: Any, balanced: bool) -> None:
        from scipy.stats import qmc

        self.d = validation.check_count("d", d)
        validation.check_choice("method", method, METHODS)
        columns = d + d % 2 if method == "box-muller" else d
        if columns > MAXIMUM_DIMENSION:
            raise InputError(
                f"must be at most {MAXIMUM_DIMENSION - columns + d}: direction numbers are "
                f"known for {MAXIMUM_DIMENSION} dimensions; got {d}. Draw the leading coordinates "
                "from a Sobol sequence and the others at random.",
                argument="d",
            )
        self.method = method
        self.balanced = balanced
        self.drawn = 0
        # The generator is consumed by the engine: the same seed gives SciPy's own points.
        engine = qmc.Sobol(columns, scramble=True, bits=BITS, seed=validation.check_rng(rng))
        self._points = qmc.MultivariateNormalQMC(
            mean=np.zeros(d), engine=engine, inv_transform=method == "inverse"
        )

    def draw(self, n: int) -> NDArray[Any]:
        """Return the next `n` points, shape (n, d)."""
        n = validation.check_count("n", n)
        if self.balanced:
            _check_balanced("n", n, ", or pass balanced=False to give that up")
        if self.drawn + n > 1 << BITS:
            raise InputError(
                f"a Sobol sequence of {BITS} bits has 2^{BITS} points, of which {self.drawn} are "
                f"used; {n} more were asked for. Start another with a new `rng`."
            )
        # Balance is checked above, or given up on purpose.
        with silenced(UserWarning, "The balance properties of Sobol"):
            points = self._points.random(n)
        self.drawn += n
        return np.asarray(points).reshape(n, self.d).view(QuasiRandomArray)

    def standard_normal(self, size: int | tuple[int, ...]) -> NDArray[Any]:
        """Drop-in for ``rng.standard_normal(size)``: all axes of `size` but the first hold d."""
        n, *rest = (size,) if isinstance(size, int) else size
        if math.prod(rest) != self.d:
            raise InputError(
                f"must be (n, …) with trailing axes of {self.d} numbers in all; got "
                f"trailing axes {tuple(rest)}.",
                argument="size",
            )
        return self.draw(n).reshape(n, *rest)

    def randn(self, *size: int, dtype: Any = None, device: Any = None) -> Any:
        """Drop-in for ``torch.randn(*size, dtype=…, device=…)``: all axes but the first hold d."""
        import torch

        values = np.asarray(self.standard_normal(size))
        return torch.from_numpy(values).to(dtype=dtype or torch.get_default_dtype(), device=device)


def _check_balanced(argument: str, n: int, otherwise: str = "") -> None:
    """Refuse a number of points that is no power of two; `otherwise`: what else would do."""
    if n & (n - 1):
        below = 1 << (n.bit_length() - 1)
        raise InputError(
            f"must be a power of two; got {n}. A Sobol sequence is balanced (every elementary "
            f"interval holds its share) only after 2^k points: draw {below} or "
            f"{2 * below}{otherwise}.",
            argument=argument,
        )


class SobolCache(SobolNormal):
    """Sobol normals drawn once, then served in random order.

    Parameters
    ----------
    d, size : int
    method : {"inverse", "box-muller"}
    rng : seed or numpy.random.Generator
        As `sobol_cache` has them.
    """

    def __init__(self, d: int, *, size: int, method: str, rng: Any) -> None:
        points, self._order_rng = validation.check_rng(rng).spawn(2)
        super().__init__(d, method=method, rng=points, balanced=True)
        _check_balanced("size", validation.check_count("size", size))
        self._cache = super().draw(size)
        self._order: NDArray[np.intp] = np.empty(0, dtype=np.intp)

    def draw(self, n: int) -> NDArray[Any]:
        """Return `n` points of the cache; it is shuffled anew whenever it is used up."""
        n = validation.check_count("n", n)
        while self._order.size < n:
            fresh = self._order_rng.permutation(len(self._cache))
            self._order = np.concatenate([self._order, fresh])
        chosen, self._order = self._order[:n], self._order[n:]
        return self._cache[chosen]


def sobol_normal(
    d: int, *, method: str = "inverse", rng: Any = 0, balanced: bool = True
) -> SobolNormal:
    """Scrambled Sobol normals: ``sampler.standard_normal((n, d))`` or ``sampler.randn(n, d)``.

    Parameters
    ----------
    d : int
        Latent dimension, at most 21,201.
    method : {"inverse", "box-muller"}
        From uniform to normal: inverse distribution function (SobolInv of [1]_, better there) or
        the Box–Muller transform (SobolBM).
    rng : int, SeedSequence or Generator
        Of the scrambling.
    balanced : bool
        Whether every draw must have a power of two points; so has then their union after 2^k
        equal draws.

    Returns
    -------
    SobolNormal
        Each call of `draw(n)`, `standard_normal(size)` or `randn(*size)` continues the sequence.

    Raises
    ------
    InputError
        If `d` is out of range or (on drawing) a number of points is not a power of two.

    Notes
    -----
    Rows are not independent: no interval for independent rows applies to what is computed from
    them. Use `score_over_scramblings`.

    References
    ----------
    .. [1] M. J. Chong and D. Forsyth, "Effectively unbiased FID and Inception Score and where to
       find them", CVPR 2020, §3.4.

    Examples
    --------
    >>> import genbounds as gb
    >>> gb.sobol_normal(3, rng=7).standard_normal((8, 3)).shape
    (8, 3)
    """
    return SobolNormal(d, method=method, rng=rng, balanced=balanced)


def sobol_cache(d: int, *, size: int = 2**20, method: str = "inverse", rng: Any = 0) -> SobolCache:
    """Sobol normals for training: drawn once, served in random order, in batches of any size.

    Parameters
    ----------
    d : int
    size : int
        Points held (8 d bytes each), a power of two; published: about a million.
    method, rng
        As `sobol_normal`.

    Notes
    -----
    Two samplers on one unshuffled sequence (generator and discriminator) split its uniformity
    between them and make training unstable; shuffling breaks their correlation ([1]_, §3.5, 4.7).

    References
    ----------
    .. [1] M. J. Chong and D. Forsyth, "Effectively unbiased FID and Inception Score and where to
       find them", CVPR 2020.
    """
    return SobolCache(d, size=size, method=method, rng=rng)


def score_over_scramblings(
    generate: Callable[[Float], Any],
    statistic: Callable[[Any], Any],
    *,
    d: int,
    n: int,
    replicates: int = 16,
    method: str = "inverse",
    rng: Any = 0,
    level: float = 0.95,
) -> Score:
    """Mean of a score over independent scramblings, with the interval that they give.

    Parameters
    ----------
    generate : callable
        Latents (n, d), a plain array, to features.
    statistic : callable
        Features to a number or a `Score`, which says what it is: orientation, title, warnings. A
        plug-in one: a debiased score is refused, as it subtracts a bias that these rows lack; what
        a plug-in says of its own bias is left out for the same reason.
    d, n : int
        Latent dimension; points of one scrambling, a power of two.
    replicates : int
        Independent scramblings R, at least 3; of fewer than 50 heavy tails are not seen.
    method, rng
        As `sobol_normal`; each replicate has its own child of `rng`.
    level : float

    Returns
    -------
    Score
        Student's interval with R - 1 degrees of freedom, moved for skewness as that of
        `mean_score`; `n` counts all R n samples.

    Notes
    -----
    Each scrambled point is uniform, so a mean over points is unbiased; a non-linear score of n
    points keeps what bias it has left, the same in all replicates.
    """
    level = validation.check_open_unit("level", level)
    validation.check_count("replicates", replicates, minimum=3)
    _check_balanced("n", validation.check_count("n", n))
    inner: list[Any] = []
    for stream in validation.check_rng(rng).spawn(replicates):
        rows = generate(np.asarray(sobol_normal(d, method=method, rng=stream).draw(n)))
        if hasattr(rows, "__len__") and len(rows) != n:
            raise InputError(
                f"must return a row for each of {n} latents; got {len(rows)}.", "generate"
            )
        inner.append(_checked(statistic(rows)))
    mean = mean_by_design(np.array([float(one) for one in inner]), row_design(replicates))
    over = replace(mean, estimator="plugin", title="", higher_is_better=False).score(level)
    scores = [one for one in inner if isinstance(one, Score)]
    # What a plug-in says of its bias is about independent rows.
    warnings = [one for score in scores for one in score.warnings if one.code != "bias-left"]
    if any(warning.code == "no-variation" for warning in over.warnings):
        warnings.append(warn_of("equal-scramblings", replicates=replicates))
    if replicates < SMALL:  # which do not show their tails
        warnings.append(warn_of("few-samples", n=replicates, what="scramblings", enough=SMALL))
    else:
        warnings += heavy_tails(mean, rows="scramblings")
    warnings.sort(key=lambda warning: warning.severity == "unreliable")  # which then stay
    said = ("estimator", "title", "encoder", "reference_n", "higher_is_better")
    return replace(
        over,
        n=replicates * n,
        warnings=tuple({warning.code: warning for warning in warnings}.values()),
        assumptions=(
            f"the scores of {replicates} independent scramblings of {n} points are nearly normal; "
            "the interval is for the expected score of such a sample, with what bias it keeps",
        ),
        **{name: getattr((scores or [over])[0], name) for name in said},
    )


def _checked(found: Any) -> Any:
    """Refuse what is no number, or had a bias removed that rows of Sobol points do not have."""
    if isinstance(found, Score) and found.estimator == "debiased" and found.method != "mean":
        raise InputError(
            "returned a debiased score, which subtracts more bias than Sobol points have: pass "
            "estimator='plugin' to what computes it (for KID, to genbounds.kernel_distance).",
            argument="statistic",
        )
    try:
        finite = np.ndim(found) == 0 and math.isfinite(found)
    except (TypeError, ValueError):  # a text; lists of unequal lengths
        finite = False
    if not finite:
        raise InputError(
            f"must return one finite number, or a Score; got {quoted(found)}.", "statistic"
        )
    return found
