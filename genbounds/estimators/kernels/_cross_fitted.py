"""Mixtures under a kernel: every claim is a quadratic functional of mean embeddings.

With m_a the mean embeddings of K models and, last, of the reference, and c = (w, -1), the kernel
distance of the mixture w is ‖Σ c_a m_a‖²; without a reference c = w, and the same square is the
mean of the kernel. What is claimed of weights must not come from the rows that chose them. So the
rows are divided into folds, and ⟨m_a, m_b⟩ is only ever estimated *across* two folds, at weights
fitted to the other folds: no row meets itself, which leaves no bias, nor its own weights; and
J - 1 of J pairs of rows count. Derivation: docs/explanation/mixtures.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import scipy  # its submodules are loaded at their first use
from numpy.typing import NDArray

from genbounds.core.checks import Checked, check_rows, drawn, leaked, shared_rows
from genbounds.core.design import Design, Index, sums_by
from genbounds.core.estimate import EXACT, SampleError, Tails, welch_degrees_of_freedom
from genbounds.core.scale import factor_of
from genbounds.estimators.kernels import _pair_kernels as kernels
from genbounds.estimators.kernels._distance import MINIMUM, NEEDS, KernelReference, lost_digits
from genbounds.estimators.kernels._pair_kernels import PairKernel
from genbounds.results import Diagnostic
from genbounds.validation import (
    Float,
    InputError,
    about_model,
    check_positive,
    check_same_dimension,
    seeded,
)

SECOND_ORDER_UNITS = 400
"""Units of a sample whose pairs give the second-order part of a variance."""

FLAT = 1e-6
"""Curvature, relative to the largest, that is none: an unbiased estimate may be negative."""

SUM_TO_ONE = 1e5
"""Weight of the constraint in the least squares that give the weights, relative to the kernel."""


@dataclass(frozen=True, slots=True, eq=False)
class FoldedSample:
    """One sample, divided into folds.

    Attributes
    ----------
    rows : ndarray of shape (n, d)
    design : Design
    fold : ndarray of int, shape (n,)
    weights : ndarray of shape (n,)
        Those of the rows of each fold sum to one.
    names : ndarray of int, shape (units,)
        Number of every unit; equal ones in two samples are the same unit.
    """

    rows: NDArray[Any]
    design: Design
    fold: Index
    weights: Float
    names: Index

    def indicator(self, folds: int) -> Float:
        """Weights of the rows, one column per fold."""
        out: Float = self.weights[:, None] * (self.fold[:, None] == np.arange(folds))
        return out


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Quadratic:
    """Value of a functional Σ A_ab ⟨m_a, m_b⟩, and what its variance is made of.

    Attributes
    ----------
    value : float
    variance : float
    parts : ndarray of shape (samples,)
        First-order variance due to each sample.
    steps : list of ndarray
        What every unit of each sample contributes to the error.
    """

    value: float
    variance: float
    parts: Float
    steps: list[Float]

    @property
    def stderr(self) -> float:
        """Standard error of `value`."""
        return math.sqrt(self.variance)


class CrossedMeans:
    """Kernel means between all folds of all samples.

    Parameters
    ----------
    samples : sequence of FoldedSample
        The models, then the reference if there is one.
    kernel : PairKernel
    folds : int
    factor : float
        By which the kernel is multiplied.

    Attributes
    ----------
    pairs : list of tuple of int
        Every pair (g, h) of different folds.
    crossed : ndarray of shape (pairs, samples, samples)
        ⟨m_a^g, m_b^h⟩ of every pair: no row meets itself.
    gram : ndarray of shape (samples, samples)
        ⟨m_a, m_b⟩ of all folds; rows meet themselves.
    centred : list of ndarray of shape (n, samples, folds)
        Of each sample, for each row: the mean of the kernel over every fold of every sample, less
        the mean of that over the row's own fold.
    """

    def __init__(
        self,
        samples: Sequence[FoldedSample],
        kernel: PairKernel,
        folds: int,
        *,
        factor: float = 1.0,
    ) -> None:
        self.samples, self.kernel, self.folds = list(samples), kernel, folds
        self.names = np.concatenate([sample.names for sample in self.samples])
        self.pairs = list(combinations(range(folds), 2))
        self.crossed = np.zeros((len(self.pairs), len(self.samples), len(self.samples)))
        self.gram, self.centred = np.zeros(self.crossed.shape[1:]), []
        one, two = np.array(self.pairs).T
        for a, means in enumerate(_means_over_folds(self.samples, kernel, folds)):
            means *= factor
            sample = self.samples[a]
            of_folds = np.einsum("ig,ibh->gbh", sample.indicator(folds), means)
            self.crossed[:, a] = of_folds[one, :, two]
            self.gram[a] = of_folds.mean(axis=(0, 2))
            means -= of_folds[sample.fold]
            self.centred.append(means)
        self.shared = np.unique(self.names).size < self.names.size
        self._second = None if self.shared else factor**2 * second_order(self.samples, kernel)

    def fitted(self, kept: Sequence[int], *, reference: bool) -> Float:
        """Weights that minimise the functional, estimated between every two of the folds `kept`.

        `reference`: whether the last sample is one.
        """
        gram = self._mean_gram(kept)
        if reference:  # of m_a - m: convex also for kernels that are so only in differences
            to = gram[:-1, -1]
            gram = gram[:-1, :-1] - to[:, None] - to + gram[-1, -1]
        return simplex_minimum(gram)

    def _mean_gram(self, folds: Sequence[int]) -> Float:
        """Inner products of all embeddings, the mean over pairs of these folds, symmetric."""
        mean = self.crossed[[set(pair) <= set(folds) for pair in self.pairs]].mean(axis=0)
        return np.asarray((mean + mean.T) / 2.0)

    def crossed_weights(self, *, reference: bool) -> Float:
        """Weights for every pair of folds, from the others; shape (pairs, models).

        `reference`: whether the last sample is one.
        """
        others = ([k for k in range(self.folds) if k not in pair] for pair in self.pairs)
        return np.stack([self.fitted(kept, reference=reference) for kept in others])

    def spread(self, vectors: Float) -> float:
        """Mean of ‖Σ (c_a - mean c_a) m_a‖² over `vectors` c, one per pair of folds, at least 0.

        By so much the square at the mean of these c is smaller than the mean of the squares.
        """
        apart = vectors - vectors.mean(axis=0)
        gram = self._mean_gram(range(self.folds))
        return max(0.0, float(np.einsum("pa,ab,pb->", apart, gram, apart)) / len(vectors))

    def functional(self, matrices: Float) -> Quadratic:
        """Mean over pairs of folds of Σ A_ab ⟨m_a, m_b⟩, with its variance.

        Parameters
        ----------
        matrices : ndarray of shape (pairs, samples, samples)
            Symmetric A for every pair of folds, or one for all; not chosen by those two folds.
        """
        matrices = np.broadcast_to(matrices, self.crossed.shape)
        value = float((matrices * self.crossed).sum(axis=(1, 2)).mean())
        steps = [self._steps(a, self._influence(a, matrices[:, a])) for a in range(len(self.gram))]
        parts = np.array([float(step @ step) for step in steps])
        if self._second is None:
            joint = np.bincount(self.names, np.concatenate(steps))
            variance = float(joint @ joint)
        else:
            # The estimated means add their own noise to the first order: the second order, once
            # more.
            second = float((matrices**2 * self._second).sum(axis=(1, 2)).mean())
            second *= 2.0 * self.folds / (self.folds - 1.0)
            variance = max(float(parts.sum()) - second, second)
        return Quadratic(value=value, variance=variance, parts=parts, steps=steps)

    def _influence(self, a: int, coefficients: Float) -> Float:
        """Return what rows of sample `a` add to a mean over pairs of folds of Σ_b A_ab ⟨m_a, m_b⟩.

        `coefficients`: A_ab for every pair of folds, shape (pairs, samples).
        """
        toward = np.zeros((self.folds, self.folds, len(self.samples)))  # from one fold to another
        one, two = np.array(self.pairs).T
        toward[one, two] = toward[two, one] = coefficients / len(self.pairs)
        return np.asarray(np.einsum("ibh,ihb->i", self.centred[a], toward[self.samples[a].fold]))

    def _free(self, sample: FoldedSample) -> float:
        """Degrees of freedom of what is centred in every fold, and in every stratum."""
        return sample.design.degrees_of_freedom - (self.folds - 1.0)

    def _steps(self, a: int, values: Float) -> Float:
        """Return what units of sample `a` add to the sum over folds of means of `values`."""
        sample = self.samples[a]
        lost = sample.design.degrees_of_freedom / self._free(sample)
        return math.sqrt(lost) * unit_steps(values, sample.weights, sample.design)

    def coefficients(self, weights: Float) -> Float:
        """Return c = (w, -1) for every row w of `weights`, or w where there is no reference."""
        missing = len(self.samples) - weights.shape[1]
        return np.pad(weights, [(0, 0), (0, missing)], constant_values=-1.0)

    def variance_of_choice(self, c: Float, towards: Float | None = None) -> float:
        """Variance that the choice of weights adds to a mean over pairs of folds.

        Weights for one pair of folds are fitted to rows that another pair judges, and the other way
        round, so that the errors of two pairs are correlated: little where the best weights are
        clear, but as much as their own variance where they are not. Derivation:
        docs/explanation/mixtures.md.

        Parameters
        ----------
        c : ndarray of shape (pairs, samples)
            Fitted, for every pair of folds, to the other folds; or one row of given weights.
        towards : ndarray of shape (samples,), optional
            t, where other weights change the mean by 2 Σ δ_a t_b ⟨m_a, m_b⟩: by default the mean of
            c, as for Σ c_a c_b ⟨m_a, m_b⟩.

        Returns
        -------
        float
        """
        apart = c - c.mean(axis=0)
        if not apart.any():
            return 0.0
        mean, folds = c.mean(axis=0) if towards is None else towards, self.folds
        steps = np.zeros((1 + int(self.names.max()), len(self.samples)))
        for a, (sample, each) in enumerate(zip(self.samples, self._towards, strict=True)):
            steps[sample.names, a] = each @ mean
        found = float(np.einsum("pa,ab,pb->", apart, steps.T @ steps, apart)) / len(c)
        if self._second is not None:  # the noise of the mean embeddings towards which steps are
            noise = (apart**2).mean(axis=0) @ self._second @ mean**2
            found -= float(noise) * folds / (folds - 1.0)
        return max(found, 0.0) * 2.0 * folds * (folds - 2.0) / (folds - 1.0)

    @cached_property
    def _towards(self) -> list[Float]:
        """Return what the units of each sample add to the mean of the kernel with every sample.

        Of the folds that they are not in; each of shape (units, samples).
        """
        towards = []
        for a, (centred, sample) in enumerate(zip(self.centred, self.samples, strict=True)):
            own = np.take_along_axis(centred, sample.fold[:, None, None], axis=2)
            others = (centred.sum(axis=2) - own[:, :, 0]) / (self.folds - 1.0)
            towards.append(self._steps(a, others) / self.folds)
        return towards

    def variance_along(self, c: Float) -> float:
        """Largest variance of Σ c_a m_a along a direction in which weights can move it.

        Parameters
        ----------
        c : ndarray of shape (samples,)
            Weights of two models or more, and -1 for the reference.

        Returns
        -------
        float
        """
        models = len(self.samples) - 1
        # Weights that add up to one move Σ c_a m_a by differences of models.
        moves = np.eye(models + 1, models - 1)
        moves[models - 1] = -1.0
        squares = moves.T @ self.gram @ moves
        size = float(np.trace(squares))
        if not size > 0.0:
            return 0.0  # the models are one
        squares += FLAT * size * np.eye(models - 1)
        steps = [one @ moves * weight for one, weight in zip(self._towards, c, strict=True)]
        variances = np.sum([one.T @ one for one in steps], axis=0)
        return float(scipy.linalg.eigh(variances, squares, eigvals_only=True)[-1])

    def degrees(self, found: Quadratic, part: slice = slice(None)) -> float:
        """Degrees of freedom of the variance `found` due to `part` of the samples."""
        free = [self._free(sample) for sample in self.samples[part]]
        return welch_degrees_of_freedom(*zip(found.parts[part].tolist(), free, strict=True))

    def error(self, found: Quadratic, part: slice, variance: float) -> SampleError:
        """Error due to `part` of the samples, of what was `found`, with its `variance`."""
        counted = [number for number in range(len(self.samples))[part] if found.parts[number] > 0.0]
        if not counted:
            return EXACT
        share = float(found.parts[counted].sum()) / float(found.parts.sum())
        steps = np.concatenate([found.steps[number] for number in counted])
        size = math.sqrt(variance / found.variance)
        return SampleError(
            n=sum(len(self.samples[number].rows) for number in counted),
            variance=share * variance,
            degrees_of_freedom=self.degrees(found, part),
            tails=Tails.of(size * steps * steps.size),
        )

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What variances assume."""
        drawings = [drawn(sample.design) for sample in self.samples]
        moments = f"features have {self.kernel.moments}" if self.kernel.moments else ""
        apart = "" if self.shared else "the samples are independent of one another"
        found = (*drawings, apart, moments, *self.kernel.assumptions)
        return tuple(dict.fromkeys(text for text in found if text))


def _means_over_folds(
    samples: Sequence[FoldedSample], kernel: PairKernel, folds: int
) -> list[Float]:
    """Of each sample, for each row: the mean of the kernel over every fold of every sample."""
    weights = [sample.indicator(folds) for sample in samples]
    means = [np.zeros((len(one), len(samples), folds)) for one in weights]
    for a, one in enumerate(samples):
        means[a][:, a], _ = kernels.weighted_sums(
            kernels.kernel_blocks(kernel, one.rows), weights[a]
        )
        for b in range(a + 1, len(samples)):
            blocks = kernels.kernel_blocks(kernel, one.rows, samples[b].rows)
            means[a][:, b], means[b][:, a] = kernels.weighted_sums(blocks, weights[a], weights[b])
    return means


def unit_steps(values: Float, weights: Float, design: Design) -> Float:
    """Return what every unit adds to a weighted mean of `values`, one (or several) per row.

    Independent steps of this size have the variance of the mean, whose strata have fixed shares.
    """
    flat = values.reshape(len(values), -1)
    stratum = design.stratum[design.unit]
    means = _sums(stratum, weights[:, None] * flat) / _sums(stratum, weights[:, None])
    flat = _sums(design.unit, weights[:, None] * (flat - means[stratum]))
    out: Float = flat * np.sqrt(design.own_factor)[:, None]
    return out.reshape(design.units, *values.shape[1:])


def _sums(number: Index, values: Float) -> Float:
    """Sum rows of `values` by number."""
    n = number.size
    return np.asarray(scipy.sparse.csr_array((np.ones(n), (number, np.arange(n)))) @ values)


def second_order(samples: Sequence[FoldedSample], kernel: PairKernel) -> Float:
    """tr(V_a V_b) for V the covariances of the mean embeddings, from some units of each sample."""
    thinned = []
    for sample in samples:
        kept, part = _thinned(sample.design)
        thinned.append((kernel.prepared(sample.rows[kept]), part))
    out = np.zeros((len(samples), len(samples)))
    for a, (x, one) in enumerate(thinned):
        for b, (y, two) in enumerate(thinned[: a + 1]):
            values = np.array(kernel.block(x, y), dtype=np.float64)
            half = unit_steps(values, one.weights, one)
            squares = unit_steps(half.T, two.weights, two) ** 2
            if a == b:
                np.fill_diagonal(squares, 0.0)
                squares *= one.units / (one.units - 1.0)
            out[a, b] = out[b, a] = squares.sum()
    return out


def _thinned(design: Design) -> tuple[Index, Design]:
    """Return the rows of some units, evenly spaced in every stratum, with the design of those.

    Their weights are such that the covariance of the weighted mean stays about what it was.
    """
    size = design.sizes.astype(np.float64)
    kept = np.minimum(np.maximum(np.rint(SECOND_ORDER_UNITS * size / size.sum()), 2.0), size)
    order = np.argsort(design.stratum, kind="stable")
    position = np.arange(design.units) - (np.cumsum(size) - size)[design.stratum[order]]
    share = (kept / size)[design.stratum[order]]
    chosen = np.floor((position + 1.0) * share + 1e-9) > np.floor(position * share + 1e-9)
    units = np.sort(order[chosen])
    part = design.of_units(units)
    rows = design.rows.take(units).numbers
    scale = np.sqrt(size / kept)[design.stratum[units]][part.unit]
    return rows, Design(part.unit, part.stratum, part.weights * scale)


def simplex_minimum(quadratic: Float) -> Float:
    """Minimise w'Qw over the simplex, by non-negative least squares.

    Parameters
    ----------
    quadratic : ndarray of shape (k, k)
        Symmetric; directions in which it is not convex, but for noise, are taken for flat.

    Returns
    -------
    ndarray of shape (k,)
    """
    size = len(quadratic)
    # On the simplex only w less its mean varies: w'Qw = u'Su + 2 u'g + constant.
    along = np.linalg.svd(np.ones((1, size)))[2][1:]
    values, vectors = np.linalg.eigh(along @ quadratic @ along.T)
    largest = max(float(np.abs(quadratic).max()), 1e-300)
    root = np.sqrt(np.maximum(values / largest, FLAT))
    turned = vectors.T @ along
    gradient = turned @ quadratic.mean(axis=1) / largest
    system = np.vstack([root[:, None] * turned, np.full(size, SUM_TO_ONE)])
    target = np.append(-gradient / root, SUM_TO_ONE)
    found: Float = scipy.optimize.nnls(system, target)[0]
    found /= found.sum()
    return found


LEAST_FOLDS = 4
"""Weights are fitted between two folds, and judged between two others."""

UNITS_PER_FOLD = 4
"""Minimum number of rows, or groups of rows, of a sample in every fold."""


def crossed_distances(
    models: Mapping[str, Any], reference: KernelReference, *, folds: int, seed: int
) -> tuple[CrossedMeans, tuple[Diagnostic, ...]]:
    """Return the means of a kernel distance between all folds of models and reference.

    Parameters
    ----------
    models : mapping of str to array_like of shape (n, d) or Sample
    reference : KernelReference
    folds, seed : int

    Returns
    -------
    tuple of CrossedMeans and tuple of Diagnostic
        The reference is the last sample.
    """
    seen = inspected_models(models, needs=NEEDS, width=reference.d)
    kernel = reference.kernel_of({name: one.rows for name, one in seen.items()})
    samples = folded([*seen.items(), ("", reference.sample)], folds, seed)
    crossed = CrossedMeans(samples, kernel, folds, factor=factor_of(kernel.unit, kernel.power))
    lost = lost_digits(kernel, [sample.rows for sample in samples])
    return crossed, (*lost, *warnings_of(seen, reference.sample))


def crossed_squares(
    models: Mapping[str, Any], bandwidth: float, *, folds: int, seed: int
) -> tuple[CrossedMeans, tuple[Diagnostic, ...]]:
    """Return the means of k(x, x')² between all folds of the models, k the RBF kernel.

    Parameters
    ----------
    models : mapping of str to array_like of shape (n, d) or Sample
    bandwidth : float
        Of k; its square is the kernel of a bandwidth smaller by √2.
    folds, seed : int

    Returns
    -------
    tuple of CrossedMeans and tuple of Diagnostic
    """
    seen = inspected_models(models, needs=NEEDS)
    label = f"RBF kernel, bandwidth {check_positive('bandwidth', bandwidth):.10g}"
    centre = np.mean([one.rows.mean(axis=0, dtype=np.float64) for one in seen.values()], axis=0)
    kernel = kernels.Radial(
        title="Vendi score of order 2 (RKE)",
        label=label,
        bandwidths=(bandwidth / 2.0**0.5,),
        near_one=(False,),
        centre=centre,
    ).for_rows(max(float(np.abs(one.rows).max()) for one in seen.values()))
    return CrossedMeans(folded([*seen.items()], folds, seed), kernel, folds), warnings_of(seen)


def folded(samples: Sequence[tuple[str, Checked]], folds: int, seed: int) -> list[FoldedSample]:
    """Divide the units of every stratum at random and evenly; one name is in one fold everywhere.

    Parameters
    ----------
    samples : sequence of (str, Checked)
        With their names, which errors say.
    folds, seed : int

    Raises
    ------
    InputError
        If a sample has too few units, or a stratum has none in some fold.
    """
    designs = [seen.drawing for _, seen in samples]
    names = _names(designs)
    rng = seeded(seed, "folds")
    fold = np.full(1 + max(int(one.max()) for one in names), -1)
    found, start = [], 0
    for (model, seen), design, name in zip(samples, designs, names, strict=True):
        if design.units < UNITS_PER_FOLD * folds:
            what = "rows" if design.units == design.n else "groups of rows"
            least = f"{folds} folds take at least {UNITS_PER_FOLD * folds}: use more samples"
            raise _unfolded(f"has {design.units} {what}; {least}", ", or", model, folds)
        order = rng.permutation(design.units)
        order = order[np.argsort(design.stratum[order], kind="stable")]
        free = name[order[fold[name[order]] < 0]]
        fold[free] = (start + np.arange(free.size)) % folds
        start += free.size
        of_row = fold[name][design.unit]
        weights = _fold_weights(design, of_row, folds)
        if weights is None:
            text = f"has strata without a row in each of {folds} folds: merge small strata"
            raise _unfolded(text, ", or use", model, folds)
        found.append(FoldedSample(seen.rows, design, of_row, weights, name))
    return found


def _unfolded(text: str, instead: str, model: str, folds: int) -> InputError:
    """Complain of a sample, that of a model or the reference, that cannot be divided."""
    text += f"{instead} fewer folds." if folds > LEAST_FOLDS else "."
    return InputError(text, argument="x").of_model(model) if model else InputError(text, "real")


def _fold_weights(design: Design, fold: Index, folds: int) -> Float | None:
    """Weights of rows in their fold, in which every stratum has the share that it has in all."""
    stratum = design.stratum[design.unit]
    cell = stratum * folds + fold
    mass = sums_by(cell, design.weights, design.sizes.size * folds)
    if not (mass > 0.0).all():
        return None
    share = sums_by(stratum, design.weights, design.sizes.size)
    return np.asarray(design.weights * share[stratum] / mass[cell])


def _names(designs: Sequence[Design]) -> list[Index]:
    """Return a number for every unit; those of one label have one."""
    known: dict[Any, int] = {}
    labels = [
        [(k, unit) for unit in range(design.units)]  # what nobody else is called
        if design.labels is None
        else design.labels.tolist()
        for k, design in enumerate(designs)
    ]
    return [np.array([known.setdefault(label, len(known)) for label in each]) for each in labels]


def inspected_models(
    models: Mapping[str, Any], *, needs: str, width: int | None = None
) -> dict[str, Checked]:
    """Inspect samples of several models, `needs` as for `check_rows`.

    They have the `width` of the reference, if there is one, or all that of the first.
    """
    found: dict[str, Checked] = {}
    like = "reference"
    for name, model in models.items():
        with about_model(name):
            found[name] = check_rows("fake", model, needs=needs, minimum=MINIMUM)
            d = found[name].rows.shape[1]
            like, width = (name, d) if width is None else (like, width)
            check_same_dimension("fake", d, like, width)
    return found


def warnings_of(
    seen: Mapping[str, Checked], reference: Checked | None = None
) -> tuple[Diagnostic, ...]:
    """Return what the rows of models, and of their reference, show."""
    own = [warning.of(name) for name, one in seen.items() for warning in one.warnings]
    found = [*own, *shared_rows({name: one.ids for name, one in seen.items()})]
    if reference is not None:
        found += reference.warnings
        found += [w.of(k) for k, one in seen.items() for w in leaked(one, reference)]
    return tuple(found)
