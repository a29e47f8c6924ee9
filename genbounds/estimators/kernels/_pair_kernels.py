"""Kernels of pairs of rows, the bandwidth that rows suggest, and sums over blocks of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import comb, inf, log10, sqrt
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from genbounds import validation
from genbounds.core.moments import is_narrow, row_blocks
from genbounds.core.scale import power_of, unit_of
from genbounds.validation import Float, InputError

BANDWIDTH_ROWS = 1000
"""Rows whose pairwise distances the median heuristic looks at."""

BANDWIDTH_SEED = 20_240_101

KernelFunction = Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolynomialKernel:
    """(γ x·y + offset)^degree, normalised to k(x, x) = 1; pass it as `kernel`.

    Attributes
    ----------
    degree : int
    gamma : float or None
        γ; None: one over the number of features.
    offset : float
        Non-negative.
    """

    degree: int = 3
    gamma: float | None = None
    offset: float = 1.0

    def __post_init__(self) -> None:
        validation.check_count("degree", self.degree)
        if self.gamma is not None:
            validation.check_positive("gamma", self.gamma)
        validation.check_not_negative("offset", self.offset)

    def dimension(self, d: int) -> int:
        """Dimension of the feature map for d input features."""
        if self.offset == 0.0:
            return comb(d + self.degree - 1, self.degree)
        return comb(d + self.degree, self.degree)


Kernel = str | PolynomialKernel | KernelFunction


def median_bandwidth(x: Any, *, kernel: str = "rbf") -> float:
    """Median of the pairwise distances of at most 1,000 rows: the median heuristic.

    Parameters
    ----------
    x : array_like of shape (n, d)
    kernel : {"rbf", "laplace"}
        Euclidean distances for "rbf", ``exp(-‖x-y‖²/(2σ²))``; L1 distances for "laplace",
        ``exp(-‖x-y‖₁/σ)``.

    Returns
    -------
    float
        σ, in the unit of the features.
    """
    from scipy.spatial.distance import pdist

    validation.check_choice("kernel", kernel, ("rbf", "laplace"))
    rows = validation.check_features("x", x)
    if len(rows) > BANDWIDTH_ROWS:
        rng = np.random.default_rng(BANDWIDTH_SEED)
        rows = rows[np.sort(rng.choice(len(rows), BANDWIDTH_ROWS, replace=False))]
    rows = np.array(rows, dtype=np.float64)
    validation.check_finite("x", rows)
    distances = pdist(rows, "euclidean" if kernel == "rbf" else "cityblock")
    median = float(np.median(distances))
    if median == 0.0:  # most rows coincide
        median = float(distances.mean())
    if median == 0.0 and (rows != rows[0]).any():
        raise InputError(
            "has rows so close together that the squares of their distances round to zero: "
            "multiply the features by a common number.",
            argument="x",
        )
    return median if median > 0.0 else 1.0


SINGLE_ROWS = 4096
"""Above so many rows of a sample, kernels of float32 features are evaluated in float32."""

BLOCK_ROWS = 1024
"""Side of the square blocks of the kernel matrix that exist at any one time."""

SINGLE_DECADES = 30
"""Decades that sums of squared kernels may reach in float32."""

CANCELLED, REACH = 1e-2, 45.0
"""Largest error of ‖x-y‖²/2σ² from products of rows, and the value from which on a kernel is 0."""

CANCELLED_SHARE = 1e-4
"""Largest error of ‖x-y‖² from products of rows where its root is the kernel, as a share of it."""

GATHERED = 1 << 21
"""Entries of rows gathered at a time where products have cancelled."""

SINGLE_RATIO = 30.0
"""Largest length in bandwidths at which float32 leaves a squared distance three digits."""

DECADES = 250
"""Decades that fourth powers of kernels, squared variances, may reach in float64."""

KERNELS = ("polynomial", "rbf", "cmmd", "kad", "energy")

RADIAL = {
    "rbf": ("squared MMD, RBF kernel", 1.0),
    "cmmd": ("CMMD", 1000.0),
    "kad": ("kernel audio distance", 100.0),
}
"""Titles, and by what the published scores are multiplied."""

CMMD_BANDWIDTH = 10.0

DECADES_APART = 60
"""Decades between features and bandwidth beyond which powers of their ratio leave float64."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Kernel:
    """A kernel of rows that it prepares itself.

    Attributes
    ----------
    title, label : str
        What the distance is called; the kernel and its parameters.
    centre : ndarray of shape (d,), optional
        Taken off all rows: distances do not see it, but rounding does.
    unit : float
        Of the rows, a power of two by which they are divided: powers of them stay in range.
    in_single : bool
        Whether float32 holds sums of its squares.
    degree, gamma : float
        It grows as (γ ‖x‖²)^degree.
    bandwidths : tuple of float
        The first one divides rows as well.
    directions : bool
        Whether rows are divided by their lengths first.
    """

    title: str = ""
    label: str = ""
    centre: Float | None = None
    unit: float = 1.0
    in_single: bool = True
    degree: float = 1.0
    gamma: float = 1.0
    bandwidths: tuple[float, ...] = (1.0,)
    directions: bool = False
    assumptions: tuple[str, ...] = ()
    moments: ClassVar[str] = ""
    bounded: ClassVar[bool] = True

    def for_rows(self, largest: float) -> Self:
        """Choose unit and precision for rows of at most that length."""
        size = sqrt(self.gamma) * largest
        unit = unit_of(size, decades=DECADES / (8.0 * self.degree))
        in_single = size == 0.0 or 4.0 * self.degree * abs(log10(size)) <= SINGLE_DECADES
        return replace(self, unit=unit, in_single=in_single)

    def prepared(self, rows: NDArray[Any], dtype: type = np.float64) -> NDArray[Any]:
        """Return a copy, centred and divided by the unit."""
        first = dtype if self.centre is None else np.float64
        out = unit_rows(rows) if self.directions else np.array(rows, dtype=first)
        if self.centre is not None:
            out -= self.centre
        out /= self.unit * self.bandwidths[0]
        return np.asarray(out.astype(dtype, copy=False))

    def pairs(self, a: NDArray[Any], b: NDArray[Any]) -> Float:
        """Kernel of pairs."""
        gap = a - b
        return self._of_halves(-0.5 * np.einsum("ij,ij->i", gap, gap))

    def _of_halves(self, halves: NDArray[Any]) -> NDArray[Any]:
        """Kernel of -‖x-y‖²/2, which may be overwritten."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Polynomial(_Kernel):
    """(γ x·y + offset)^degree - offset^degree on rows that were divided by `unit`.

    What is left is divided by ``unit**power``, of which the remaining powers of the unit are no
    larger than 1.
    """

    degree: int
    offset: float
    moments: ClassVar[str] = "finite sixth moments"
    bounded: ClassVar[bool] = False

    @property
    def power(self) -> int:
        """At the extreme size of the features."""
        return 2 if self.unit < 1.0 and self.offset > 0.0 else 2 * self.degree

    def block(self, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        """Kernel of all pairs."""
        return self._polynomial(a @ b.T)

    def pairs(self, a: NDArray[Any], b: NDArray[Any]) -> Float:
        """Kernel of pairs."""
        return self._polynomial(np.einsum("ij,ij->i", a, b))

    def _polynomial(self, base: NDArray[Any]) -> NDArray[Any]:
        base *= base.dtype.type(self.gamma)
        out: NDArray[Any] = base * base.dtype.type(self._coefficient(self.degree))
        for k in range(self.degree - 1, 0, -1):
            out += base.dtype.type(self._coefficient(k))
            out *= base
        return out

    def _coefficient(self, k: int) -> float:
        """Of (γ x·y)^k."""
        share = power_of(self.unit, 2 * k - self.power)
        return comb(self.degree, k) * self.offset ** (self.degree - k) * share


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Radial(_Kernel):
    """Average of exp(-‖x-y‖²/(2σ²)) over bandwidths σ, times `factor`.

    Where most values are near 1, 1 is taken off: it cancels in the distance.

    Attributes
    ----------
    near_one : tuple of bool
        Of every bandwidth, whether 1 is taken off.
    """

    near_one: tuple[bool, ...] = (False,)
    factor: float = 1.0
    power: ClassVar[int] = 0

    def for_rows(self, largest: float) -> Self:
        """Choose the precision."""
        length = 1.0 if self.directions else largest
        return replace(self, in_single=length <= SINGLE_RATIO * min(self.bandwidths))

    def block(self, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        """Kernel of all pairs."""
        reach = REACH * max(1.0, (max(self.bandwidths) / self.bandwidths[0]) ** 2)
        allowed = CANCELLED * min(1.0, (min(self.bandwidths) / self.bandwidths[0]) ** 2)
        return self._of_halves(half_squares(a, b, allowed=allowed, reach=reach))

    def _of_halves(self, halves: NDArray[Any]) -> NDArray[Any]:
        kind = halves.dtype.type
        terms = []
        for bandwidth, near_one in zip(self.bandwidths, self.near_one, strict=True):
            values = halves if len(self.bandwidths) == 1 else halves.copy()
            if bandwidth != self.bandwidths[0]:
                values *= kind((self.bandwidths[0] / bandwidth) ** 2)
            terms.append((np.expm1 if near_one else np.exp)(values, out=values))
        out: NDArray[Any] = terms[0] if len(terms) == 1 else np.sum(terms, axis=0)
        if self.factor != len(terms):
            out *= kind(self.factor / len(terms))
        return out


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Energy(_Kernel):
    """-‖x-y‖; bounded, as its centred part grows with the features, no faster."""

    moments: ClassVar[str] = "finite second moments"
    power: ClassVar[int] = 1

    def block(self, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        """Kernel of all pairs."""
        return self._of_halves(half_squares(a, b, relative=CANCELLED_SHARE))

    def _of_halves(self, halves: NDArray[Any]) -> NDArray[Any]:
        halves *= -2
        np.sqrt(halves, out=halves)
        return np.asarray(np.negative(halves, out=halves))


PairKernel = Polynomial | Radial | Energy


def check_directions(name: str, nonzero: Any) -> None:
    """Refuse zero rows, those where `nonzero` is 0."""
    if not nonzero.all():
        raise InputError(
            f"has a zero row ({int(np.argmin(nonzero))}), which has no direction: drop it, or take "
            "another kernel or score.",
            argument=name,
        )


def unit_rows(rows: NDArray[Any]) -> Float:
    """Return a copy with every row, none of them zero, of length one."""
    out: Float = np.array(rows, dtype=np.float64)
    out /= np.abs(out).max(axis=1, keepdims=True)  # squares of it stay in double precision
    out /= np.sqrt(np.einsum("ij,ij->i", out, out))[:, None]
    return out


def half_squares(
    a: NDArray[Any],
    b: NDArray[Any],
    *,
    allowed: float = 0.0,
    relative: float = 0.0,
    reach: float = inf,
) -> NDArray[Any]:
    """-‖x-y‖²/2 of every row of `a` and of `b`, which may be `a` itself.

    Taken from differences of rows where products have lost it.

    Parameters
    ----------
    a, b : ndarray of shapes (n, d) and (m, d)
    allowed, relative : float
        Error that does no harm: so much, and such a share of ‖x-y‖²/2.
    reach : float
        Pairs farther apart than that do not matter.
    """
    out: NDArray[Any] = a @ b.T
    halves = np.einsum("ij,ij->i", a, a) / 2, np.einsum("ij,ij->i", b, b) / 2
    out -= halves[0][:, None]
    out -= halves[1]
    np.minimum(out, 0, out=out)
    if a is b:
        np.fill_diagonal(out, -inf)
    eps = 8.0 * float(np.finfo(out.dtype).eps)
    worst = eps * (float(halves[0].max()) + float(halves[1].max()))
    # Farther apart no pair can be wrong: one pass over the block, which is mostly all.
    farthest = (worst - allowed) / relative if relative else worst + reach
    if worst > allowed and out.max() > -farthest:
        i, j = np.nonzero(out > -farthest)
        error, values = eps * (halves[0][i] + halves[1][j]), out[i, j]
        wrong = (error > allowed - relative * values) & (values + error > -reach)
        i, j, step = i[wrong], j[wrong], max(1, GATHERED // a.shape[1])
        for start in range(0, i.size, step):
            part = slice(start, start + step)
            gap = np.subtract(a[i[part]], b[j[part]], dtype=np.float64)
            out[i[part], j[part]] = -0.5 * np.einsum("ij,ij->i", gap, gap)
    if a is b:
        np.fill_diagonal(out, 0)
    return out


Block = tuple[slice, slice, NDArray[Any]]
"""Of a kernel matrix: its rows, its columns, its entries."""


class Squares:
    """Sum of the squares of a kernel, over the blocks that pass through.

    `symmetric`: blocks on and above the diagonal alone, where those off it stand for two.
    """

    def __init__(self, *, symmetric: bool) -> None:
        self.symmetric, self.total = symmetric, 0.0

    def through(self, blocks: Iterable[Block]) -> Iterator[Block]:
        """Yield the blocks, and add up."""
        for i, j, values in blocks:
            square = float(np.einsum("ij,ij->i", values, values).sum(dtype=np.float64))
            self.total += 2.0 * square if self.symmetric and i != j else square
            yield i, j, values


def prepared_blocks(
    rows: NDArray[Any], kernel: PairKernel, *, first: int = 0
) -> Iterator[tuple[slice, NDArray[Any]]]:
    """Yield slices of rows with those rows, prepared."""
    single = kernel.in_single and is_narrow(rows) and len(rows) > SINGLE_ROWS
    for start in range(first, len(rows), BLOCK_ROWS):
        part = slice(start, min(start + BLOCK_ROWS, len(rows)))
        yield part, kernel.prepared(rows[part], np.float32 if single else np.float64)


def kernel_blocks(
    kernel: PairKernel, rows: NDArray[Any], others: NDArray[Any] | None = None
) -> Iterator[Block]:
    """Yield the kernel of all rows and `others`, which may be `rows` itself, block by block.

    Without others: the kernel of the rows with themselves, on and above the diagonal.
    """
    theirs = rows if others is None else others
    for i, a in prepared_blocks(rows, kernel):
        for j, b in prepared_blocks(theirs, kernel, first=i.start if others is None else 0):
            yield i, j, kernel.block(a, a if rows is theirs and i == j else b)


def weighted_sums(
    blocks: Iterable[Block], weights: NDArray[Any], others: NDArray[Any] | None = None
) -> tuple[Float, Float]:
    """Sum blocks of a kernel with the weights of the others, and with those of the rows.

    Parameters
    ----------
    blocks : iterable of (slice of the rows, slice of the others, ndarray)
        Without `others`, those on and above the diagonal of the kernel of rows with themselves.
    weights : ndarray of shape (n, ...)
        Of the rows.
    others : ndarray of shape (m, ...), optional
        Weights of the others.

    Returns
    -------
    over_others : ndarray of shape (n, ...)
    over_rows : ndarray of shape (m, ...)
        Of rows with themselves, the same array.
    """
    theirs = weights if others is None else others
    over_others = np.zeros(weights.shape)
    over_rows = over_others if others is None else np.zeros(others.shape)
    for i, j, values in blocks:
        over_others[i] += values @ theirs[j]
        if others is not None or i != j:
            over_rows[j] += values.T @ weights[i]
    return over_others, over_rows


def pair_kernel(kernel: Any, bandwidth: Any, rows: NDArray[Any], *, largest: float) -> PairKernel:
    """Return the kernel that is meant.

    Parameters
    ----------
    kernel : str or PolynomialKernel
    bandwidth : float, sequence of float or None
    rows : ndarray of shape (m, d)
        Of the reference, checked.
    largest : float
        Largest length of a row.
    """
    if isinstance(kernel, PolynomialKernel):
        name = "polynomial"
    else:
        name, kernel = validation.check_choice("kernel", kernel, KERNELS), PolynomialKernel()
    if name not in ("polynomial", "energy"):
        return _radial(name, bandwidth, rows, largest)
    if bandwidth is not None:
        raise InputError(
            f"is for the kernels 'rbf', 'cmmd' and 'kad'; {name!r} has none.", argument="bandwidth"
        )
    if name == "energy":
        title, centre = "energy distance", rows.mean(axis=0, dtype=np.float64)
        return Energy(title=title, label=title, centre=centre, degree=0.5)
    degree, gamma, offset = kernel.degree, kernel.gamma or 1.0 / rows.shape[1], kernel.offset
    return Polynomial(
        title="kernel Inception distance",
        label=f"KID, polynomial kernel, degree {degree}, γ {gamma:.10g}, offset {offset:g}",
        degree=degree,
        gamma=gamma,
        offset=offset,
    )


def _radial(name: str, bandwidth: Any, rows: NDArray[Any], largest: float) -> Radial:
    directions = name == "cmmd"
    assumptions: tuple[str, ...] = ()
    if bandwidth is None and directions:
        bandwidth = CMMD_BANDWIDTH
    elif bandwidth is None:
        unit = unit_of(largest, decades=100.0)  # squares of distances stay in range
        bandwidth = median_bandwidth(rows / unit if unit != 1.0 else rows) * unit
        assumptions = (
            f"the bandwidth, {bandwidth:.6g} by the median heuristic on the reference, is fixed",
        )
    several = isinstance(bandwidth, (Sequence, np.ndarray)) and not isinstance(bandwidth, str)
    bandwidths = tuple(
        validation.check_positive("bandwidth", one)
        for one in (bandwidth if several else [bandwidth])
    )
    if not bandwidths:
        raise InputError("is empty: give one bandwidth or several.", argument="bandwidth")
    size = 1.0 if directions else largest
    far = [b for b in bandwidths if size and abs(log10(size / b)) > DECADES_APART]
    if far:
        raise InputError(
            f"is {far[0]:.3g}, too far from the size of the features, {size:.1g}: give one of the "
            "order of their distances.",
            argument="bandwidth",
        )
    centre, spread = _centre(rows, directions, bandwidths[0])
    values = ", ".join(f"{b:.10g}" for b in bandwidths)
    of_what = " of rows of length one" if directions else ""
    label = f"RBF kernel{of_what}, bandwidth{'s' * (len(bandwidths) > 1)} {values}"
    title, factor = RADIAL[name]
    return Radial(
        title=title,
        label=label if factor == 1.0 else f"{label}, times {factor:g}",
        bandwidths=bandwidths,
        near_one=tuple(spread * (bandwidths[0] / b) ** 2 <= 1.0 for b in bandwidths),
        centre=centre,
        factor=factor,
        directions=directions,
        assumptions=assumptions,
    )


def _centre(rows: NDArray[Any], directions: bool, unit: float) -> tuple[Float, float]:
    """Mean of the rows, or of their directions; mean squared distance from it, in units."""

    def blocks() -> Iterator[Float]:
        return (unit_rows(block) if directions else block for _, block in row_blocks(rows))

    centre = np.sum([block.sum(axis=0) / len(rows) for block in blocks()], axis=0)
    gaps = ((block - centre) / unit for block in blocks())
    return centre, sum(float(np.einsum("ij,ij->", gap, gap)) for gap in gaps) / len(rows)
