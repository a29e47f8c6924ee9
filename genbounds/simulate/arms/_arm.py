"""What a synthetic arm is, and the sample quantities that follow from plain samples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from genbounds.bounds import Facts
from genbounds.validation import Float, InputError

# Names of sample quantities: the vocabulary of the catalogue.
Names = Collection[str]

Statistics = dict[str, Float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """Every value that the sufficient statistics can take, or a fine lattice of them.

    Attributes
    ----------
    statistics : dict of str to ndarray
        One outcome on each row of the leading axis.
    probabilities : ndarray
        Of the outcomes.
    accuracy : float
        Largest relative error of a probability summed from them; 0 if the list is complete.
    lower_only : bool
        Whether some statistic stands at its largest possible value, so that a miss probability
        computed from the list is a lower limit only.
    """

    statistics: Statistics
    probabilities: Float
    accuracy: float = 0.0
    lower_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Tilted:
    """Sample quantities of independent samples from a mixture of tilted distributions.

    Attributes
    ----------
    statistics : dict of str to ndarray
    log_weights : ndarray of shape (k,)
        Logarithm of the density of the distribution over that of the mixture.
    """

    statistics: Statistics
    log_weights: Float


class SyntheticArm(ABC):
    """A distribution whose truth is known.

    A subclass states `name`, `facts` and `draw`. The other methods are faster or exact ways to
    the same quantities; each has a default that serves every distribution.

    Attributes
    ----------
    name : str
        One line that tells the distribution from every other.
    facts : mapping
        True quantities by name, among them ``families`` (the kinds of distribution that
        assumptions ask for) and ``d``.
    """

    name: str

    @property
    @abstractmethod
    def facts(self) -> Facts:
        """True quantities by name."""

    @abstractmethod
    def draw(self, n: int, rng: Generator) -> Float:
        """Return `n` independent rows, shape (n, d), from the generator `rng`."""

    @property
    def d(self) -> int:
        """Number of features."""
        return int(self.facts["d"])

    def statistics(self, names: Names, n: int, replications: int, rng: Generator) -> Statistics:
        """Draw sample quantities of `replications` independent samples of size `n`.

        Parameters
        ----------
        names : collection of str
            The quantities wanted; those drawn together belong to the same samples.
        n, replications : int
        rng : numpy.random.Generator

        Returns
        -------
        dict of str to ndarray
            Each with `replications` on its leading axis.
        """
        rows = self.draw(replications * n, rng).reshape(replications, n, self.d)
        out = self.reduce(names, rows)
        if "second_mean" in names:  # of a second, independent sample
            second = self.draw(replications * n, rng).reshape(replications, n, self.d)
            out |= {"second_mean": second.mean(axis=1)[:, 0]}
        return out

    def reduce(self, names: Names, rows: Float) -> Statistics:
        """Compute the quantities `names` from raw samples `rows`, (replications, n, d)."""
        facts, n = self.facts, rows.shape[1]
        mean = rows.mean(axis=1)
        centred = rows - mean[:, None, :]

        def scatter(x: Float) -> Float:
            return np.asarray(np.swapaxes(x, 1, 2) @ x / n)

        def spectrum() -> Float:
            values = np.linalg.eigvalsh(scatter(rows) / facts["radius"] ** 2)
            return np.asarray(np.maximum(values[:, ::-1], 0.0))

        table: dict[str, Callable[[], Any]] = {
            "sample_mean": lambda: mean[:, 0],
            "sample_variance": lambda: np.square(centred[..., 0]).sum(axis=1) / (n - 1),
            "mean_square": lambda: np.square(rows[..., 0]).mean(axis=1),
            "mean_squared_norm": lambda: np.square(rows).sum(axis=2).mean(axis=1),
            "mean_vector": lambda: mean,
            "rows": lambda: rows[..., 0],
            "running_mean": lambda: rows[..., 0].cumsum(axis=1) / np.arange(1.0, n + 1.0),
            "mean_error_norm": lambda: np.linalg.norm(mean - facts["mean"], axis=1),
            "mean_deviation": lambda: np.linalg.norm(centred, axis=2).mean(axis=1),
            "covariance": lambda: scatter(centred),
            "raw_covariance": lambda: scatter(rows),
            "sample_spectrum": spectrum,
        }
        return chosen(names, table)

    def size(self, names: Names, n: int) -> int:
        """Numbers held in memory for each replication of the quantities `names` at size `n`."""
        return n * self.d

    def tail(self, quantity: str, n: int, threshold: float) -> float | None:
        """Probability, if known, that the error `quantity` of `n` rows exceeds `threshold`."""
        return None

    def outcomes(self, names: Names, n: int) -> Outcomes | None:
        """List all outcomes, of `n` rows, of the quantities `names` with their probabilities.

        None if that is not known. Names that are true quantities of the arm are passed over.
        """
        return None

    def tilted(self, names: Names, n: int, count: int, rng: Generator) -> Tilted | None:
        """Draw quantities of samples among which rare errors are common, with their weights.

        Parameters
        ----------
        names : collection of str
            The quantities wanted. ``mean_deviation``, no function of mean and covariance, may
            stand at its largest possible value, the root of Tr Σ̂: a width grows with it, so that
            misses are undercounted, never overcounted.
        n, count : int
            Rows of each sample, and samples.
        rng : numpy.random.Generator

        Returns
        -------
        Tilted or None
            None where no tilt of the distribution is known.
        """
        drawn = self.tilted_rows(n, count, rng)
        if drawn is None:
            return None
        rows, log_weights = drawn
        statistics = self.reduce(names, rows.reshape(count, n, -1))
        return Tilted(statistics=statistics, log_weights=log_weights)

    def tilted_rows(self, n: int, count: int, rng: Generator) -> tuple[Float, Float] | None:
        """Draw rows for `tilted` by `rng`, (`count`, `n`) or (`count`, `n`, d), and log weights."""
        return None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"


def chosen(names: Names, table: Mapping[str, Any]) -> Statistics:
    """Return those of a table of quantities that are asked for; a function is called."""
    asked = {name: table[name] for name in names if name in table}
    return {name: np.asarray(x() if callable(x) else x) for name, x in asked.items()}


def shares_of(name: str, values: ArrayLike | None, count: int | None = None) -> Float:
    """Return probabilities, `count` of them where that is given; equal ones for None."""
    if values is None and count is not None:
        values = np.full(count, 1.0 / count)
    shares = np.array(values, dtype=np.float64)
    fits = shares.ndim == 1 and count in (None, shares.size)
    if not (fits and (shares >= 0.0).all() and abs(float(shares.sum()) - 1.0) < 1e-9):
        number = "" if count is None else f"{count} "
        raise InputError(f"`{name}` must be {number}non-negative numbers of sum one.")
    return np.asarray(shares / shares.sum())
