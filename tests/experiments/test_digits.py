"""The digits experiment on tiny configurations: splits, training, cache, draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.digits import generators as models
from experiments.digits.data import CLASSES, PIXELS, SplitConfig, load_split
from experiments.digits.encoder import EncoderConfig
from experiments.digits.generators import diffusion
from experiments.digits.generators._base import choose
from experiments.digits.networks import BLOCK
from experiments.digits.table import nearest
from experiments.digits.train import Config, Digits, line_up, prepare
from genbounds import InputError
from genbounds.arms import Arm

pytest.importorskip("torch")
pytest.importorskip("sklearn")
pytestmark = pytest.mark.xdist_group("digits")  # one process sets it up

TINY = Config(
    split=SplitConfig(encoder=300, generators=150),
    encoder=EncoderConfig(channels=8, steps=150, batch=32),
    mixture=models.MixtureConfig(dimensions=8, components=4),
    kde=models.KernelConfig(bandwidths=(0.1, 0.15, 0.2)),
    vae=models.VaeConfig(width=32, steps=60),
    gan=models.GanConfig(width=32, steps=40),
    diffusion=models.DiffusionConfig(width=32, steps=60, sampling_steps=4),
    truncations=(0.5,),
)
NAMES = ("gaussian", "mixture", "kde", "vae", "gan-0.5", "gan", "diffusion", "memoriser")
TRAINED = {name for name in NAMES if name != "gan-0.5"} | {"encoder"}


class Log:
    """Which models were trained, and how far."""

    def __init__(self) -> None:
        self.done: dict[str, list[float]] = {}

    def __call__(self, name: str, done: float) -> None:
        self.done.setdefault(name, []).append(done)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("digits") / "cache"


@pytest.fixture(scope="module")
def digits(folder: Path) -> Digits:
    log = Log()
    prepared = prepare(folder, config=TINY, progress=log)
    assert set(log.done) == TRAINED
    for shares in log.done.values():
        assert shares == sorted(shares)
        assert shares[-1] == 1.0
    return prepared


@pytest.fixture
def cache(digits: Digits, folder: Path, tmp_path: Path) -> Path:
    """A copy of the filled cache, to be damaged."""
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


def same(a: Digits, b: Digits) -> bool:
    pairs = [(a.encoder, b.encoder)]
    pairs += [(a.generators[name], b.generators[name]) for name in a.generators]
    return all(
        x.arrays().keys() == y.arrays().keys()
        and all(np.array_equal(x.arrays()[key], y.arrays()[key]) for key in x.arrays())
        for x, y in pairs
    )


# Split


def test_split_is_a_stratified_partition() -> None:
    from sklearn.datasets import load_digits

    config = SplitConfig()
    split = load_split(config)
    parts = [
        (split.encoder_images, split.encoder_labels, config.encoder),
        (split.generator_images, split.generator_labels, config.generators),
        (split.reference_images, split.reference_labels, 1797 - config.encoder - config.generators),
    ]
    whole = load_digits()
    rows = [
        np.column_stack([images.reshape(-1, PIXELS) * 16, labels]) for images, labels, _ in parts
    ]
    everything = np.column_stack([whole.data, whole.target])
    # Every image is in exactly one part: sorted, the parts together are the data set.
    together = np.concatenate(rows)
    np.testing.assert_array_equal(
        together[np.lexsort(together.T)], everything[np.lexsort(everything.T)]
    )
    shares = np.bincount(whole.target) / len(whole.target)
    for images, labels, size in parts:
        assert images.shape == (size, 8, 8)
        assert images.dtype == np.float32
        assert not images.flags.writeable
        # Two cuts, each less than one image off in a class.
        assert np.all(np.abs(np.bincount(labels, minlength=CLASSES) - size * shares) < 2.0)


def test_split_follows_its_seed() -> None:
    first, again, other = (load_split(SplitConfig(seed=seed)) for seed in (3, 3, 4))
    assert np.array_equal(first.reference_images, again.reference_images)
    assert not np.array_equal(first.reference_images, other.reference_images)


# Encoder


@pytest.mark.slow
def test_encoder_learns(digits: Digits) -> None:
    # 150 small steps; chance is 0.1.
    split = digits.split
    assert digits.encoder.accuracy(split.reference_images, split.reference_labels) > 0.7


@pytest.mark.slow
def test_encoder_output(digits: Digits) -> None:
    images = digits.split.reference_images
    features, posteriors = digits.reference(), digits.reference("posteriors")
    assert features.shape == (len(images), 64)
    assert features.dtype == np.float32
    assert posteriors.shape == (len(images), CLASSES)
    assert posteriors.dtype == np.float64
    assert posteriors.min() >= 0.0
    np.testing.assert_allclose(posteriors.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    # An image's features do not depend on its company.
    np.testing.assert_allclose(digits.encoder.features(images[5:8]), features[5:8], atol=1e-5)
    # No dead feature, no singular covariance.
    eigenvalues = np.linalg.eigvalsh(np.cov(features, rowvar=False))
    assert eigenvalues[0] > 1e-6 * eigenvalues.sum()


# Training and cache


@pytest.mark.slow
def test_training_is_deterministic_and_leaves_no_trace(digits: Digits, tmp_path: Path) -> None:
    import torch

    threads = torch.get_num_threads()
    np_before = np.random.get_state()[1].tobytes()  # noqa: NPY002
    try:
        torch.set_num_threads(2)
        torch.rand(7)  # leaves a state that training itself does not end in
        before = torch.get_rng_state()
        again = prepare(tmp_path, config=TINY)
        again.generators["diffusion"].sample(3, np.random.default_rng(0))
        assert torch.equal(torch.get_rng_state(), before)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)
    assert np.random.get_state()[1].tobytes() == np_before  # noqa: NPY002
    assert same(digits, again)


@pytest.mark.slow
def test_cache_round_trip(digits: Digits, folder: Path) -> None:
    log = Log()
    again = prepare(folder, config=TINY, progress=log)
    assert log.done == {}
    assert same(digits, again)
    for name, arm in again.arms().items():
        assert np.array_equal(arm.draw(20, 1), digits.arms()[name].draw(20, 1)), name


@pytest.mark.slow
def test_only_what_changed_is_trained_again(digits: Digits, cache: Path) -> None:
    log = Log()
    changed = replace(TINY, gan=replace(TINY.gan, steps=20))
    other = prepare(cache, config=changed, progress=log)
    assert set(log.done) == {"gan"}
    assert not np.array_equal(
        other.generators["gan"].arrays()["0.weight"], digits.generators["gan"].arrays()["0.weight"]
    )


def flip_a_byte(content: bytes) -> bytes:
    return content[:-5] + bytes([content[-5] ^ 1]) + content[-4:]


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[: len(content) // 2],
        flip_a_byte,
    ],
    ids=["truncated", "one bit"],
)
@pytest.mark.slow
def test_damaged_cache_is_trained_again(
    digits: Digits, cache: Path, damage: Callable[[bytes], bytes]
) -> None:
    (file,) = cache.glob("gan-*.safetensors")
    sound = file.read_bytes()
    file.write_bytes(damage(sound))
    log = Log()
    with pytest.warns(UserWarning, match=rf"{file.name}.*damaged.*training gan again"):
        again = prepare(cache, config=TINY, progress=log)
    assert set(log.done) == {"gan"}
    assert same(digits, again)
    assert file.read_bytes() == sound


@pytest.mark.slow
def test_unusable_cache_folder_is_an_input_error(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.raises(InputError, match="cannot be written"):
        prepare(blocked, config=TINY)


# Arms


@pytest.mark.slow
def test_line_up(digits: Digits, folder: Path) -> None:
    arms = line_up(folder, config=TINY, output="posteriors")
    assert tuple(arms) == NAMES
    assert [name for name, arm in arms.items() if arm.control] == ["memoriser"]
    assert len({arm.description for arm in arms.values()}) == len(arms)
    for name, arm in arms.items():
        assert isinstance(arm, Arm)
        assert arm.name == name
        assert arm.output == "posteriors"


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_draws(digits: Digits, name: str) -> None:
    arm = digits.arms()[name]
    n = BLOCK + 3
    images, features = arm.images(n, 5), arm.draw(n, 5)
    posteriors = arm.with_output("posteriors").draw(n, 5)
    assert images.shape == (n, 8, 8)
    assert images.dtype == np.float32
    assert images.min() >= 0.0
    assert images.max() <= 1.0
    assert features.shape == (n, 64)
    assert features.dtype == np.float32
    assert posteriors.shape == (n, CLASSES)
    np.testing.assert_allclose(posteriors.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    assert np.array_equal(features, digits.encoder.features(images))
    assert np.array_equal(posteriors, digits.encoder.posteriors(images))
    assert len(np.unique(images.reshape(n, -1), axis=0)) == n


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_each_row_depends_on_its_own_randomness_only(digits: Digits, name: str) -> None:
    """Rows are one function of independent codes: drawing in batches gives the same rows."""
    arm = digits.arms()[name]
    rng = np.random.default_rng(9)
    batches = np.concatenate([arm.images(n, rng) for n in (1, 6, BLOCK, 20)])
    whole = arm.images(BLOCK + 27, np.random.default_rng(9))
    # Single precision: another batch size may sum in another order.
    np.testing.assert_allclose(batches, whole, rtol=0, atol=2e-5)
    assert not np.allclose(whole[:20], arm.images(20, np.random.default_rng(10)), atol=1e-2)


@pytest.mark.slow
def test_memoriser_repeats_training_images_and_nobody_else_does(digits: Digits) -> None:
    training = digits.split.generator_images
    distance = {name: nearest(arm.images(400, 2), training) for name, arm in digits.arms().items()}
    copies = distance.pop("memoriser").max()
    assert copies < 0.25
    real = nearest(digits.split.reference_images, training)
    for name, others in distance.items():
        assert np.quantile(others, 0.05) > 2.0 * copies, name
    assert np.median(real) > 4.0 * copies


@pytest.mark.slow
def test_nearest_is_the_smallest_distance(digits: Digits) -> None:
    from scipy.spatial.distance import cdist

    x, y = digits.split.reference_images[:40], digits.split.generator_images
    naive = cdist(x.reshape(40, -1), y.reshape(len(y), -1)).min(axis=1)
    np.testing.assert_allclose(nearest(x, y), naive, rtol=1e-7)


@pytest.mark.slow
def test_truncation_scales_the_latent_vector(digits: Digits) -> None:
    gan = digits.generators["gan"]
    assert isinstance(gan, models.Gan)
    codes = np.random.default_rng(0).standard_normal((50, gan.latent), dtype=np.float32)
    half = gan.truncated(0.5).decode(codes)
    np.testing.assert_array_equal(half, gan.decode(np.float32(0.5) * codes))
    assert half.var(axis=0).sum() < gan.decode(codes).var(axis=0).sum()
    for bad in (0.0, -0.5, 1.5, float("nan")):
        with pytest.raises(InputError, match=r"`truncation` must be"):
            gan.truncated(bad)


# Single models


def whitened(n: int, columns: int) -> np.ndarray:
    """Codes whose sample mean is exactly zero and sample covariance exactly the identity."""
    codes = np.random.default_rng(1).standard_normal((n, columns))
    codes -= codes.mean(axis=0)
    root = np.linalg.cholesky(np.cov(codes, rowvar=False))
    return np.linalg.solve(root, codes.T).T


@pytest.mark.slow
def test_gaussian_has_the_moments_of_its_training_pixels(digits: Digits) -> None:
    gaussian = digits.generators["gaussian"]
    pixels = digits.split.generator_images.reshape(-1, PIXELS).astype(np.float64)
    decoded = gaussian.decode(whitened(300, gaussian.latent))
    np.testing.assert_allclose(decoded.mean(axis=0), pixels.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(
        np.cov(decoded, rowvar=False), np.cov(pixels, rowvar=False), atol=1e-12
    )


@pytest.mark.slow
def test_mixture_draws_from_the_fitted_components(digits: Digits) -> None:
    mixture = digits.generators["mixture"]
    assert isinstance(mixture, models.Mixture)
    (p, _), k = mixture.axes.shape, len(mixture.shares)
    from scipy.special import ndtri

    for component in range(k):
        middle = mixture.shares[:component].sum() + mixture.shares[component] / 2
        codes = np.column_stack([np.full(200, ndtri(middle)), whitened(200, p)])
        places = (mixture.decode(codes) - mixture.origin) @ mixture.axes.T
        np.testing.assert_allclose(places.mean(axis=0), mixture.centres[component], atol=1e-10)
        root = mixture.roots[component]
        np.testing.assert_allclose(np.cov(places, rowvar=False), root @ root.T, atol=1e-10)


def test_choose_has_the_given_shares() -> None:
    from scipy.special import ndtri

    shares = np.array([0.2, 0.0, 0.5, 0.3])
    codes = ndtri((np.arange(1000) + 0.5) / 1000)
    np.testing.assert_array_equal(np.bincount(choose(codes, shares)), [200, 0, 500, 300])
    assert choose(np.array([40.0, -40.0]), shares).tolist() == [3, 0]


@pytest.mark.slow
def test_bandwidth_is_the_likeliest(digits: Digits) -> None:
    """Against scikit-learn's density estimate, leaving out one image at a time."""
    from sklearn.neighbors import KernelDensity

    images = digits.split.generator_images[:40]
    pixels = images.reshape(40, -1).astype(np.float64)
    widths = (0.05, 0.12, 0.18, 0.24, 0.5)
    left_out = [
        sum(
            KernelDensity(bandwidth=width).fit(np.delete(pixels, i, 0)).score(pixels[[i]])
            for i in range(40)
        )
        for width in widths
    ]
    best = int(np.argmax(left_out))
    assert 0 < best < len(widths) - 1
    kernel = models.Kernel.fit(
        images,
        digits.split.generator_labels[:40],
        models.KernelConfig(bandwidths=widths),
        rng=np.random.default_rng(0),
        report=lambda done: None,
    )
    assert float(kernel.bandwidth) == widths[best]


@pytest.mark.slow
def test_sampler_follows_the_probability_flow(
    digits: Digits, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For Gaussian data the flow is known; the solver's error falls with the square of the step."""
    deviation = 0.7
    model = digits.generators["diffusion"]
    assert isinstance(model, models.Diffusion)
    monkeypatch.setattr(
        diffusion,
        "_denoise",
        lambda network, noisy, level, one_hot: noisy * deviation**2 / (deviation**2 + level**2),
    )
    codes = np.random.default_rng(3).standard_normal((10, model.latent), dtype=np.float32)

    def error(steps: int) -> float:
        config = replace(model.config, sampling_steps=steps, highest=8.0, lowest=0.001)
        pixels = replace(model, config=config).decode(codes) * 2 - 1 - model.mean
        exact = 8.0 * codes[:, 1:] * deviation / np.hypot(deviation, 8.0)
        return float(np.abs(pixels / exact - 1.0).max())

    assert error(100) < 0.003
    assert 2.5 < error(20) / error(40) < 6.0


# Bad input


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda d: d.arms()["kde"].draw(0, 1), r"`n` must be"),
        (lambda d: d.arms()["kde"].draw(3, -1), r"`rng` must be"),
        (lambda d: d.arms("pixels"), r"`output` must be one of 'features', 'posteriors'"),
        (lambda d: d.encoder.features(np.zeros((0, 8, 8))), r"shape \(n, 8, 8\)"),
        (lambda d: d.encoder.features(np.full((2, 8, 8), 16.0)), r"\[0, 1\].*[Dd]ivide"),
        (lambda d: load_split(SplitConfig(encoder=1000, generators=750)), r"must leave"),
        (lambda d: load_split(SplitConfig(encoder=3)), r"`encoder` must be"),
        (lambda d: prepare("x", config=replace(TINY, truncations=(1.0,))), r"`truncations`"),
        (lambda d: prepare("x", config=replace(TINY, seed=-1)), r"`seed` must be"),
    ],
)
@pytest.mark.slow
def test_bad_input(digits: Digits, call: Callable[[Digits], Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call(digits)
