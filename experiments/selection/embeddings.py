"""Synthetic arms with the norms that M25 prints for real embeddings (Tables 1 to 3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from genbounds.estimators import Moments
from genbounds.simulate import GaussianArm


@dataclass(frozen=True, slots=True)
class Row:
    """Tr Σ, √Tr Σ² and ‖Σ‖ of one model, from 5,000 images."""

    trace: float
    root_square: float
    operator: float


@dataclass(frozen=True, slots=True)
class Embedding:
    """One encoder: dimension, the reference's norms (last row of the table) and the models'."""

    dimension: int
    reference: Row
    models: dict[str, Row]


EMBEDDINGS = {
    "inception": Embedding(
        2048,
        Row(181.2, 12.4, 9.2),
        {
            "DiT-XL-2": Row(166.4, 12.5, 9.6),
            "ADMG": Row(157.7, 12.1, 9.2),
            "BigGAN": Row(154.5, 13.5, 11.0),
            "RQ-Transformer": Row(166.9, 13.8, 10.7),
            "ADM": Row(176.5, 15.7, 12.9),
        },
    ),
    "clip": Embedding(
        1024,
        Row(636.8, 53.5, 32.1),
        {
            "DiT-XL-2": Row(591.2, 59.1, 38.2),
            "ADMG": Row(579.9, 62.1, 41.2),
            "BigGAN": Row(514.9, 62.7, 43.8),
            "RQ-Transformer": Row(545.5, 58.8, 39.3),
            "ADM": Row(560.2, 59.0, 38.3),
        },
    ),
    "dinov2": Embedding(
        1024,
        Row(2112.7, 85.3, 21.0),
        {
            "DiT-XL-2": Row(2079.5, 99.9, 36.5),
            "ADMG": Row(2068.2, 103.0, 42.5),
            "BigGAN": Row(1885.5, 120.3, 68.8),
            "RQ-Transformer": Row(1955.3, 111.4, 54.4),
            "ADM": Row(2013.3, 106.7, 50.5),
        },
    ),
}

TARGETS = (0.05, 0.0625, 0.08, 0.11, 0.15)
"""FD of the five pretrained-like models in units of Tr Σ_r; ours, as the papers print no scores."""

FLOOR = 0.03
"""FD that the variance-controlled models owe to their means, in the same units."""


def spectrum(row: Row, d: int) -> np.ndarray:
    """Eigenvalues ``‖Σ‖ ((1 + s)/(i + s))^p``, i = 1 … d, with the trace and Tr Σ² of a row."""
    from scipy.optimize import brentq

    i = np.arange(1, d + 1)

    def family(p: float, s: float) -> np.ndarray:
        return row.operator * ((1.0 + s) / (i + s)) ** p

    def shift(p: float) -> float:
        """Return s for the trace, given p."""
        return brentq(lambda s: family(p, s).sum() - row.trace, -0.999, 1e6)

    def excess(p: float) -> float:
        values = family(p, shift(p))
        return float(np.sqrt((values**2).sum())) - row.root_square

    powers = np.geomspace(0.3, 40.0, 60)
    feasible = [p for p in powers if family(p, -0.999).sum() < row.trace < family(p, 1e6).sum()]
    signs = [np.sign(excess(p)) for p in feasible]
    for one, two, a, b in zip(feasible, feasible[1:], signs, signs[1:], strict=False):
        if a != b:
            p = brentq(excess, one, two)
            return family(p, shift(p))
    raise ValueError(f"no power law has the norms {row}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Arms, their reference and the true scores of one trial."""

    arms: dict[str, GaussianArm]
    reference: Moments
    truth: dict[str, float]


def distance(shift: np.ndarray, one: np.ndarray, two: np.ndarray) -> float:
    """FD of two Gaussian distributions with the same eigenvectors."""
    return float(shift @ shift + np.square(np.sqrt(one) - np.sqrt(two)).sum())


class Builder:
    """Trials for one encoder.

    Parameters
    ----------
    name : str
        Of `EMBEDDINGS`.
    dimension : int or None
        Keep so many leading eigenvalues, for a cheaper run: the norms are then smaller than
        printed, `norms` says what is left. None: all.
    """

    def __init__(self, name: str, dimension: int | None = None) -> None:
        embedding = EMBEDDINGS[name]
        self.d = min(dimension or embedding.dimension, embedding.dimension)
        self.reference = spectrum(embedding.reference, embedding.dimension)[: self.d]
        self.models = {
            model: spectrum(row, embedding.dimension)[: self.d]
            for model, row in embedding.models.items()
        }
        self.printed = embedding.reference

    @property
    def norms(self) -> Row:
        """Norms of the reference as it is used."""
        values = self.reference
        return Row(float(values.sum()), float(np.sqrt((values**2).sum())), float(values[0]))

    def pretrained(self, seed: int) -> Problem:
        """Five models; which of them is how far is drawn anew in every trial."""
        rng = np.random.default_rng([seed, 1])
        total = float(self.reference.sum())
        targets = rng.permutation(TARGETS) * total
        arms, truth = {}, {}
        for (model, values), target in zip(self.models.items(), targets, strict=True):
            spread = distance(np.zeros(self.d), values, self.reference)
            direction = rng.standard_normal(self.d) * np.sqrt(self.reference)
            shift = direction / np.linalg.norm(direction) * np.sqrt(max(target - spread, 0.0))
            arms[model] = GaussianArm(shift, values)
            truth[model] = distance(shift, values, self.reference)
        return self._problem(arms, truth)

    def controlled(self, seed: int) -> Problem:
        """Twenty models with one mean and standard deviations 0.3 … 0.9 of the reference's."""
        rng = np.random.default_rng([seed, 2])
        direction = rng.standard_normal(self.d) * np.sqrt(self.reference)
        shift = direction / np.linalg.norm(direction) * np.sqrt(FLOOR * self.reference.sum())
        arms, truth = {}, {}
        for k, scale in enumerate(rng.permutation(np.linspace(0.3, 0.9, 20))):
            values = scale**2 * self.reference
            arms[f"a{k}"] = GaussianArm(shift, values)
            truth[f"a{k}"] = distance(shift, values, self.reference)
        return self._problem(arms, truth)

    def _problem(self, arms: dict[str, GaussianArm], truth: dict[str, float]) -> Problem:
        reference = Moments(np.zeros(self.d), np.diag(self.reference), n=None)
        return Problem(arms=arms, reference=reference, truth=truth)


@dataclass(frozen=True, slots=True)
class PosteriorArm:
    """Posteriors with one peak: class k with probability `law[k]`, height 1 - blur.

    The blur is one of two values at random; the rest of the mass is even over all classes.
    """

    law: np.ndarray
    blurs: tuple[float, float]

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return `n` rows that sum to one."""
        blur = rng.choice(self.blurs, size=n)
        rows = np.repeat(blur[:, None] / self.law.size, self.law.size, axis=1)
        rows[np.arange(n), rng.choice(self.law.size, size=n, p=self.law)] += 1.0 - blur
        return rows

    @property
    def log_score(self) -> float:
        """Logarithm of the true Inception score."""
        d, mean = self.law.size, float(np.mean(self.blurs))
        marginal = (1.0 - mean) * self.law + mean / d
        conditional = []
        for blur in self.blurs:
            low, high = blur / d, 1.0 - blur + blur / d
            conditional.append(-(d - 1) * low * np.log(low) - high * np.log(high))
        return float(-(marginal * np.log(marginal)).sum() - np.mean(conditional))


def posteriors(arms: int, classes: int, seed: int) -> tuple[dict[str, PosteriorArm], dict]:
    """Arms that cover more or fewer of the classes; scores decrease evenly in their logarithm."""
    rng = np.random.default_rng([seed, 3])
    built = {}
    for k, share in enumerate(rng.permutation(np.linspace(0.15, 0.6, arms))):
        law = np.arange(1, classes + 1) ** -(1.6 - 1.5 * share)
        built[f"a{k}"] = PosteriorArm(rng.permutation(law / law.sum()), (0.05, 0.35))
    return built, {name: np.exp(arm.log_score) for name, arm in built.items()}
