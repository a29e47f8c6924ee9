"""Resizing against a reference that integrates each pixel, and against the peers."""

from __future__ import annotations

import sys
import types
from unittest import mock

import numpy as np
import pytest
from PIL import Image

from experiments.benchmarks.peers import load
from genbounds.features import Preprocessing, encode, load_encoder, open_source
from tests.features.conftest import missing
from tests.refusal import refused

RNG = np.random.default_rng(3)
PICTURE = RNG.integers(0, 256, size=(40, 60, 3), dtype=np.uint8)


def triangle(size_in: int, size_out: int) -> np.ndarray:
    """Weights of an antialiased bilinear reduction, from the definition of the filter."""
    scale = size_in / size_out
    centres = (np.arange(size_out)[:, None] + 0.5) * scale
    distance = np.abs(np.arange(size_in)[None] + 0.5 - centres) / scale
    weights = np.clip(1.0 - distance, 0.0, None)
    return weights / weights.sum(axis=1, keepdims=True)


def test_reduction_is_the_antialiased_filter():
    got = Preprocessing(size=10, interpolation="bilinear", white=255.0)(PICTURE)
    planes = PICTURE.astype(np.float64).transpose(2, 0, 1)
    expected = triangle(40, 10) @ planes @ triangle(60, 10).T
    # float32 sums of at most 32 terms up to 255
    np.testing.assert_allclose(got, expected, rtol=0, atol=2e-4)


def test_a_fine_pattern_averages_out():
    """A checkerboard of single pixels: what aliases shows it, what does not is grey."""
    board = np.indices((64, 64)).sum(axis=0) % 2 * np.uint8(255)
    grey = Preprocessing(size=16, channels=1)(board.astype(np.uint8))[0, 2:-2, 2:-2]
    assert np.abs(grey - 0.5).max() < 0.01
    nearest = board[2::4, 2::4] / 255.0  # negative control
    assert np.abs(nearest - 0.5).min() == 0.5


def test_nothing_is_rounded():
    got = Preprocessing(size=10, white=255.0)(PICTURE)
    assert np.abs(got - np.round(got)).max() > 0.4


def test_overshoot_is_clipped():
    edge = np.zeros((32, 32), dtype=np.uint8)
    edge[:, 16:] = 255
    got = Preprocessing(size=20, channels=1)(edge)
    assert got.min() == 0.0
    assert got.max() == 1.0


def test_clean_fid_resizes_alike():
    peer = load("cleanfid.resize")
    if peer is None:
        missing("clean-fid is not installed")
    ours = Preprocessing(size=13, white=255.0)(PICTURE)
    theirs = peer.make_resizer("PIL", False, "bicubic", (13, 13))
    assert (ours == theirs(PICTURE).transpose(2, 0, 1)).all()


def test_crop_keeps_the_centre():
    ramp = np.broadcast_to(np.arange(60, dtype=np.uint8), (40, 60))
    got = Preprocessing(size=20, resize=40, fit="crop", channels=1, white=255.0)(ramp)
    assert got.shape == (1, 20, 20)
    np.testing.assert_allclose(got[0, 0], np.arange(20, 40), atol=1e-4)
    tall = Preprocessing(size=20, resize=40, fit="crop", channels=1, white=255.0)(ramp.T.copy())
    np.testing.assert_allclose(tall[0], got[0].T, atol=1e-4)


def test_mean_and_deviation():
    plain = Preprocessing(size=5)(PICTURE)
    shifted = Preprocessing(size=5, mean=(0.1, 0.2, 0.3), std=(0.5, 1.0, 2.0))(PICTURE)
    mean, std = np.array([0.1, 0.2, 0.3]), np.array([0.5, 1.0, 2.0])
    expected = (plain - mean[:, None, None]) / std[:, None, None]
    np.testing.assert_allclose(shifted, expected, rtol=1e-5, atol=1e-6)
    assert shifted.dtype == np.float32


def test_modes():
    colour = Image.fromarray(PICTURE)
    same = Preprocessing()(colour)
    assert same.shape == (3, 40, 60)
    alpha = colour.copy()
    alpha.putalpha(7)
    assert (Preprocessing()(alpha) == same).all()
    grey = Preprocessing(channels=1)(colour)
    assert (Preprocessing(channels=1)(colour.convert("L")) == grey).all()
    assert (Preprocessing()(colour.convert("L")) == grey).all()  # three times the same plane
    palette = colour.convert("P")
    assert (Preprocessing()(palette) == Preprocessing()(palette.convert("RGB"))).all()


def test_sixteen_bits_keep_their_precision():
    deep = np.array([[0, 257, 258], [65535, 32768, 1]], dtype=np.uint16)
    got = Preprocessing(channels=1)(Image.fromarray(deep))
    np.testing.assert_allclose(got[0], deep / 65535.0, rtol=1e-6)


@pytest.mark.parametrize(
    ("fields", "subject"),
    [
        ({"size": 0}, "`size`"),
        ({"fit": "pad"}, "`fit`"),
        ({"interpolation": "nearest"}, "`interpolation`"),
        ({"channels": 4}, "`channels`"),
        ({"white": 0.0}, "`white`"),
        ({"mean": (0.0, 0.0)}, "`mean`"),
        ({"std": (0.0,)}, "`std`"),
        ({"std": (float("nan"),)}, "`std`"),
        ({"size": 10, "resize": 5}, "`resize`"),
    ],
)
def test_bad_fields(fields, subject):
    with refused(subject):
        Preprocessing(**fields)


@pytest.mark.parametrize(
    ("image", "subject"),
    [
        (PICTURE / 255.0, "float64"),
        (np.zeros((3, 40, 60), dtype=np.uint8), "(3, 40, 60)"),
        ("photo.png", "str"),
        (Image.new("F", (4, 4)), "32-bit"),
    ],
)
def test_bad_images(image, subject):
    with refused(subject):
        Preprocessing()(image)


def test_a_description_tells_them_apart():
    assert Preprocessing(size=8).describe() == Preprocessing(size=8).describe()
    assert Preprocessing(size=8).describe() != Preprocessing(size=9).describe()


DEEP = Image.fromarray(RNG.integers(0, 65536, (40, 60), dtype=np.uint16))
COLOUR = Image.fromarray(PICTURE).quantize(16).convert("RGB")


@pytest.mark.parametrize(
    ("picture", "same"),
    [
        (COLOUR.quantize(16), COLOUR),
        (COLOUR.convert("RGBA"), COLOUR),
        (COLOUR.convert("CMYK"), COLOUR.convert("CMYK").convert("RGB")),
        (COLOUR.convert("L"), COLOUR.convert("L").convert("RGB")),
        (COLOUR.convert("1"), COLOUR.convert("1").convert("RGB")),
        (COLOUR.convert("LA"), COLOUR.convert("L").convert("RGB")),
        (np.asarray(COLOUR.convert("L")), COLOUR.convert("L").convert("RGB")),
        (DEEP, Image.fromarray((np.asarray(DEEP) / 257.0).round().astype(np.uint8)).convert("RGB")),
    ],
    ids=["palette", "alpha", "cmyk", "grey", "bit", "grey-alpha", "array", "deep"],
)
def test_a_function_sees_red_green_and_blue(picture, same):
    """A palette image came as indices: two folders with the same pixels were far apart."""
    seen = []

    def embed(batch):
        seen.extend(batch)
        return np.zeros((len(batch), 2))

    module = types.ModuleType("sees")
    module.embed = embed
    with mock.patch.dict(sys.modules, {"sees": module}):
        encode(load_encoder("sees:embed"), [picture])
    assert seen[0].dtype == np.uint8
    assert (seen[0] == np.asarray(same)).all()


@pytest.mark.parametrize(
    ("array", "advice"),
    [
        (np.zeros((4, 3, 8, 8), np.uint8), "transpose(0, 2, 3, 1)"),
        (np.zeros((4, 8, 8, 3), np.float32), "uint8"),
        (np.zeros((4, 2, 8, 8, 3), np.uint8), "videos"),
    ],
)
def test_arrays_of_another_layout(tmp_path, array, advice):
    np.save(tmp_path / "x.npy", array)
    with refused("x.npy", str(array.shape), advice):
        open_source([tmp_path / "x.npy"])
