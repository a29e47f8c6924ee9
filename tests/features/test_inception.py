"""``inception``, ``inception:clean`` and ``inception:tf`` beside the programs they are named after.

On random weights, through each program's own loader of files and its own network: the last bit.
"""

from __future__ import annotations

import itertools
import warnings
from unittest import mock

import numpy as np
import pytest
from PIL import Image

import genbounds as gb
from experiments.torchvision_builds import declare_operators
from genbounds import features
from tests.features.conftest import missing
from tests.refusal import refused

torch = pytest.importorskip("torch")
RNG = np.random.default_rng(5)
COLOUR = Image.fromarray(RNG.integers(0, 256, size=(40, 61, 3), dtype=np.uint8))


def turned() -> Image.Exif:
    """A tag that asks to show the picture on its side."""
    tags = Image.Exif()
    tags[0x0112] = 6
    return tags


def alpha() -> Image.Image:
    picture = COLOUR.copy()
    picture.putalpha(COLOUR.convert("L"))
    return picture


PICTURES = {
    "colour.png": (COLOUR, {}),
    "grey.png": (COLOUR.convert("L"), {}),
    "one.png": (COLOUR.convert("1"), {}),
    "palette.png": (COLOUR.convert("P"), {}),
    "transparent.png": (COLOUR.convert("P"), {"transparency": 3}),
    "alpha.png": (alpha(), {}),
    "grey-alpha.png": (alpha().convert("LA"), {}),
    "deep.png": (Image.fromarray(RNG.integers(0, 65536, (30, 33), dtype=np.uint16)), {}),
    "print.jpg": (COLOUR.convert("CMYK"), {}),
    "turned.jpg": (COLOUR, {"exif": turned()}),
    "large.png": (COLOUR.resize((412, 350)), {}),
    "exact.png": (COLOUR.resize((299, 299)), {}),
    "float.tif": (Image.fromarray(RNG.uniform(0, 300, (20, 21)).astype(np.float32)), {}),
}


pytestmark = pytest.mark.xdist_group("inception")  # one process makes the networks


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("pictures")
    for name, (picture, how) in PICTURES.items():
        picture.save(root / name, **how)
    return root


def library(name):
    declare_operators()
    try:
        return __import__(name, fromlist=["x"])
    except (ImportError, RuntimeError) as error:
        missing(f"{name}: {error}")


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """Random weights of torch-fidelity's network, which are those of pytorch-fid's as well."""
    fidelity = library("torch_fidelity.feature_extractor_inceptionv3")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        with (
            mock.patch.object(fidelity.FeatureExtractorInceptionV3, "load_state_dict"),
            mock.patch.object(fidelity, "load_state_dict_from_url"),
        ):
            network = fidelity.FeatureExtractorInceptionV3("inception", ["2048"], verbose=False)
    path = tmp_path_factory.mktemp("weights") / "pt_inception-2015-12-05-6726825d.pth"
    torch.save(network.state_dict(), path)
    return path


@pytest.fixture(scope="module")
def script(weights):
    """The same weights as the TorchScript file that clean-fid reads."""
    pytorch_fid = library("pytorch_fid.inception")
    state = torch.load(weights, weights_only=True)
    with mock.patch.object(pytorch_fid, "load_state_dict_from_url", return_value=state):
        network = pytorch_fid.InceptionV3([3], resize_input=False, normalize_input=False).eval()

    class Layers(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = torch.nn.Sequential(*network.blocks)

        def forward(self, images):
            return self.blocks(images)

    class Script(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = Layers()

        def forward(self, images):
            return self.layers(images)

    path = weights.with_name("inception-2015-12-05.pt")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        traced = torch.jit.trace(Script(), torch.zeros(1, 3, 299, 299))
        torch.jit.save(traced, str(path))
    return path


def ours(name, folder, weights):
    encoder = features.load_encoder(name, weights=weights)
    source = features.open_source([folder])
    assert source.names() == sorted(PICTURES)
    decoded = [source.decode(item.content) for item in source.items()]
    return features.encode(encoder, decoded, batch=1)


def test_pytorch_fid(folder, weights):
    fid = library("pytorch_fid.fid_score")
    state = torch.load(weights, weights_only=True)
    with mock.patch("pytorch_fid.inception.load_state_dict_from_url", return_value=state):
        network = fid.InceptionV3([3])
    files = sorted(folder.iterdir())
    theirs = fid.get_activations(files, network, batch_size=1, num_workers=0)
    assert (ours("inception", folder, weights) == theirs).all()


def test_clean_fid(folder, script):
    fid = library("cleanfid.fid")
    layers = library("cleanfid.inception_torchscript")
    files = sorted(str(path) for path in folder.iterdir())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        network = layers.InceptionV3W(str(script.parent), download=False).eval()
        theirs = fid.get_files_features(
            files, network, num_workers=0, batch_size=1, device="cpu", verbose=False
        )
    assert (ours("inception:clean", folder, script) == theirs).all()


def test_torch_fidelity(folder, weights):
    datasets = library("torch_fidelity.datasets")
    fidelity = library("torch_fidelity.feature_extractor_inceptionv3")
    load = torch.load
    with mock.patch.object(torch, "load", lambda path, **_: load(path, weights_only=True)):
        network = fidelity.FeatureExtractorInceptionV3(
            "inception-v3-compat", ["2048"], feature_extractor_weights_path=str(weights)
        )
    pictures = datasets.ImagesPathDataset([str(path) for path in sorted(folder.iterdir())])
    with torch.no_grad():
        theirs = [network(picture[None])[0].numpy()[0] for picture in pictures]
    assert (ours("inception:tf", folder, weights) == np.stack(theirs)).all()


def test_the_three_differ(folder, weights, script):
    """Negative control: it is the resize that papers disagree about."""
    found = [
        ours(name, folder, given)
        for name, given in (
            ("inception", weights),
            ("inception:clean", script),
            ("inception:tf", weights),
        )
    ]
    scale = np.abs(found[0]).max()
    assert all(np.abs(one - two).max() > 1e-3 * scale for one, two in itertools.pairwise(found))


def test_the_plugin_distance_is_theirs(folder, weights):
    fid = library("pytorch_fid.fid_score")
    rows = ours("inception", folder, weights).astype(np.float64)
    rows = rows[:, rows.std(axis=0).argsort()[-3:]]  # seven rows have no more dimensions
    a, b = rows[:7], rows[6:]
    moments = [m for x in (a, b) for m in (x.mean(0), np.cov(x, rowvar=False))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        theirs = fid.calculate_frechet_distance(*moments)
    assert gb.frechet_distance(a, b, estimator="plugin").value == pytest.approx(theirs, rel=1e-6)


def test_what_is_fixed_is_refused():
    with refused("inception:pytorch", "--size", "pytorch-fid"):
        features.load_encoder("inception", weights="random", preprocessing={"size": 100})
    with refused("inception:old", "inception:tf"):
        features.load_encoder("inception:old", weights="random")
    with refused("inception:clean", "inception-2015-12-05.pt", "f58cb9b6", "--weights"):
        features.load_encoder("inception:clean", weights="tests")
    pytest.importorskip("pytorch_fid.inception", exc_type=ImportError)  # is asked for first
    with refused("inception", "6726825d", "95,628,359", "--weights"):
        features.load_encoder("inception", weights="tests")
