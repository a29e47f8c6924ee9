"""Encoders and models of a user's own, named as ``tests.features.toy:…`` on the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from genbounds.features import Preprocessing


def moments(batch):
    """Return mean and standard deviation of every channel."""
    return np.stack([np.r_[image.mean((0, 1)), image.std((0, 1))] for image in batch])


def flat(batch):
    """Return the pixels of (n, c, h, w)."""
    return batch.reshape(len(batch), -1)


flat.preprocessing = Preprocessing(size=4, channels=1)


def lengths(batch):
    return np.array([[len(text), text.count(" ")] for text in batch])


def sizes(batch):
    return np.array([[float(Path(path).stat().st_size)] for path in batch])


def transposed(batch):
    return np.zeros((3, len(batch)))


def poisoned(batch):
    return np.full((len(batch), 2), np.nan)


def imaginary(batch):
    return np.full((len(batch), 2), 1.0 + 2.0j)


def texts(batch):
    return [["1.0", "2.0"]] * len(batch)


def leaves(batch):
    raise SystemExit(0)


def good(n, rng):
    return rng.normal(size=(n, 4))


def bad(n, rng):
    return 3.0 + rng.normal(size=(n, 4))


def dark(n, rng):
    """Draw images as uint8 arrays."""
    return rng.integers(0, 120, size=(n, 9, 7, 3), dtype=np.uint8)


def light(n, rng):
    return list(rng.integers(60, 256, size=(n, 9, 7, 3), dtype=np.uint8))


class Model:
    def draw(self, n, rng):
        return good(n, rng)


model = Model()
NUMBER = 3
