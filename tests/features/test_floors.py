"""No loader of weights runs code: neither those that are installed, nor their lowest versions.

`make floors` installs the lower bounds of pyproject.toml and runs this file there.
"""

from __future__ import annotations

import gc
import os
import pickle
import re
import sys
import tomllib
import warnings
from importlib.metadata import version
from pathlib import Path

import pytest

from genbounds import features, files
from tests.features.conftest import sentence_model
from tests.features.test_encoders import forget_stubs, needs
from tests.refusal import refused

torch = pytest.importorskip("torch")

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
DISTRIBUTIONS = {"sentence_transformers": "sentence-transformers", "open_clip": "open_clip_torch"}


def floors():
    """Return the lower bounds of every extra, by distribution."""
    extras = tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"]
    found: dict[str, set[str]] = {}
    for lines in extras.values():
        for line in lines:
            if match := re.fullmatch(r"([\w.-]+)>=([\d.]+)", line):
                found.setdefault(match[1], set()).add(match[2])
    return found


def test_lower_bounds_are_those_that_are_refused_below():
    assert files.SAFE.keys() == {"torch", "sentence_transformers", "timm", "open_clip"}
    for module, numbers in files.SAFE.items():
        lowest = floors()[DISTRIBUTIONS.get(module, module)]
        assert lowest == {".".join(map(str, numbers))}


@pytest.mark.skipif("GENBOUNDS_FLOORS" not in os.environ, reason="`make floors` runs it")
def test_the_lower_bounds_are_what_is_installed():
    for module, numbers in files.SAFE.items():
        installed = version(DISTRIBUTIONS.get(module, module)).partition("+")[0]
        assert [int(part) for part in installed.split(".")][: len(numbers)] == list(numbers)


class Mark:
    """Whoever unpickles it leaves a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.fixture
def mark(tmp_path):
    """Give the folder that code from a file would make.

    A library that refuses a file may leave it open (open_clip does so with an npz), in a cycle
    with the error; it is closed here, where its warning is no failure of a later test.
    """
    yield tmp_path / "ran"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def test_the_mark_would_be_seen(tmp_path, mark):
    """Negative control: PyTorch's other reader runs it."""
    torch.save({"state_dict": Mark(mark)}, tmp_path / "x.pth")
    torch.load(tmp_path / "x.pth", weights_only=False)
    assert mark.is_dir()


def hostile(path, mark, form):
    """Write a file of weights that leaves a mark when it is unpickled."""
    content = {"state_dict": Mark(mark), "model": Mark(mark)}
    if form == "pickle":
        path.write_bytes(pickle.dumps(content))
    else:
        torch.save(content, path, _use_new_zipfile_serialization=form == "zip")


@pytest.mark.parametrize("form", ["zip", "legacy", "pickle"])
@pytest.mark.parametrize(
    ("name", "library", "file"),
    [
        ("timm:resnet10t", "timm", "x.pth"),
        ("timm:vit_tiny_patch16_224", "timm", "x.npz"),
        ("torchvision:resnet18", "torchvision", "x.pth"),
        ("open_clip:RN50", "open_clip", "x.pt"),
        ("open_clip:RN50", "open_clip", "x.npz"),
        ("pytorch-fid:64", "pytorch_fid.inception", "x.pth"),
        ("torchscript:x.pt", "torch", "x.pt"),
    ],
)
def test_no_loader_of_images_runs_a_pickle(tmp_path, monkeypatch, mark, name, library, file, form):
    needs("torch", *(["torchvision"] if library != "torch" else []), library)
    monkeypatch.chdir(tmp_path)
    hostile(tmp_path / file, mark, form)
    script = name.startswith("torchscript")
    with refused():
        features.load_encoder(name, weights=None if script else tmp_path / file)
    assert not mark.exists()


@pytest.mark.parametrize("form", ["zip", "legacy", "pickle"])
def test_our_own_reader_runs_no_pickle(tmp_path, mark, form):
    for name in ("x.pt", "x.npy", "x.npz"):
        hostile(tmp_path / name, mark, form)
        with refused(name):
            files.read(tmp_path / name)
    assert not mark.exists()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Deprecated in 0.9.0:DeprecationWarning")  # by transformers 5.12
@pytest.mark.parametrize("way", ["weights", "module", "code", "dense"])
def test_a_folder_of_sentences_runs_nothing(tmp_path, monkeypatch, mark, way):
    """Pickled weights, a module of its own, code that it names, pickled weights of a last layer."""
    import json

    forget_stubs(monkeypatch)
    needs("sentence_transformers")
    folder = sentence_model(tmp_path / "model")
    (folder / "evil.py").write_text(f"import os\nos.mkdir({str(mark)!r})\nclass Module: pass\n")
    modules = json.loads((folder / "modules.json").read_text())
    if way == "weights":
        (folder / "model.safetensors").unlink()
        hostile(folder / "pytorch_model.bin", mark, "zip")
    elif way == "module":
        modules[1]["type"] = "evil.Module"
    elif way == "code":
        config = json.loads((folder / "config.json").read_text())
        config["auto_map"] = {name: "evil.Module" for name in ("AutoConfig", "AutoModel")}
        (folder / "config.json").write_text(json.dumps(config))
    else:
        dense = "sentence_transformers.models.Dense"
        modules.append({"idx": 2, "name": "2", "path": "2_Dense", "type": dense})
        (folder / "2_Dense").mkdir()
        config = {"in_features": 16, "out_features": 4, "bias": True}
        config["activation_function"] = "torch.nn.modules.activation.Tanh"
        (folder / "2_Dense" / "config.json").write_text(json.dumps(config))
        hostile(folder / "2_Dense" / "pytorch_model.bin", mark, "zip")
    (folder / "modules.json").write_text(json.dumps(modules))
    if way == "code":  # its type is known, so that the code is not needed
        features.load_encoder("sentence-transformers:x", weights=folder)
    else:
        with refused():
            features.load_encoder("sentence-transformers:x", weights=folder)
    assert not mark.exists()


@pytest.mark.parametrize("module", ["torch", "timm", "open_clip", "sentence_transformers"])
def test_a_version_that_would_run_code_is_refused(tmp_path, monkeypatch, module):
    stub = type(sys)(module)
    stub.__version__ = "0.9.9+cpu"
    monkeypatch.setitem(sys.modules, module, stub)
    (tmp_path / "modules.json").write_text("[]")
    names = {"torch": "torchscript:x.pt", "timm": "timm:x", "open_clip": "open_clip:x"}
    name = names.get(module, "sentence-transformers:x")
    with refused(module, "0.9.9", ".".join(map(str, files.SAFE[module]))):
        features.load_encoder(name, weights=None if module == "torch" else tmp_path)
    if module == "torch":
        (tmp_path / "x.pt").write_bytes(b"something")
        with refused("x.pt", "0.9.9"):
            files.read(tmp_path / "x.pt")
