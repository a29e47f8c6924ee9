"""No path of the package reaches for the network, whatever the libraries behind it would like."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from genbounds import features

PATHS = [str(Path(__file__).parents[2]), *(path for path in sys.path if path)]

BLOCKED = """
import socket, sys, os
def refuse(*args, **kwargs):
    print("NETWORK", args[:2], file=sys.stderr)
    raise OSError("no network in this test")
socket.socket.connect = refuse
socket.socket.connect_ex = refuse
socket.socket.sendto = refuse
socket.create_connection = refuse
socket.getaddrinfo = refuse
socket.gethostbyname = refuse
from experiments.torchvision_builds import declare_operators
declare_operators()
import genbounds as gb
from genbounds import features
"""

CODE = (
    BLOCKED
    + """
for name in sys.argv[1:]:
    try:
        features.load_encoder(name)
    except gb.InputError as error:
        print(error)
    else:
        raise SystemExit(name + " has weights from nowhere")
assert "HF_HUB_OFFLINE" not in os.environ
"""
)

EVERYTHING = (
    BLOCKED
    + """
import numpy as np
from pathlib import Path

import pytest
from PIL import Image
from genbounds.cli import main

rng = np.random.default_rng(0)
for name in ("real", "gan", "vae"):
    Path(name).mkdir()
    for number, pixels in enumerate(rng.integers(0, 256, (120, 12, 12, 3), dtype=np.uint8)):
        Image.fromarray(pixels).save(f"{name}/{number}.png")

def run(*arguments, allowed=(0,)):
    status = main(list(arguments))
    assert status in allowed, (arguments, status)

TOY = ("--encoder", "tests.features.toy:moments")
run("features", "real", *TOY, "--out", "real.safetensors", "--moments", "real.npz")
run("score", "real", "gan", "vae", *TOY, "--out", "scores")
run("score", "real", "gan", "vae", *TOY, "--metric", "kid")
for metric in ("vendi", "rke"):
    run("score", "real", "gan", "vae", *TOY, "--metric", metric, "--kernel", "cosine")
run("select", "--reference", "real", "gan", "vae", *TOY, "--out", "best", allowed=(0, 1))
run("select", "--reference", "real", "tests.features.toy:dark", "tests.features.toy:light", *TOY,
    "--budget", "400", allowed=(0, 1))
run("audit", "o24.gaussian-mean", "--replications", "50", "--out", "audit")
run("bounds", "m25.mean-norm")
picture = [Image.open(f"real/{number}.png").convert("RGB") for number in range(2)]
for name in sys.argv[1:]:
    try:
        encoder = features.load_encoder(name, weights="random")
    except gb.InputError as error:  # a library that is not installed
        assert "pip install" in str(error), error
        continue
    assert len(features.encode(encoder, picture)) == 2
try:
    from tests.features.conftest import sentence_model
    encoder = features.load_encoder(
        "sentence-transformers:tiny", weights=sentence_model(Path("tiny").absolute())
    )
    assert features.encode(encoder, ["one", "two"]).shape == (2, 16)
except (ImportError, gb.InputError) as error:
    print("no sentences:", error)
print("DONE")
"""
)


SPY = """
import os, sys
seen = {name: os.environ.get(name) for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")}
seen["hub"] = sys.modules["huggingface_hub.constants"].HF_HUB_OFFLINE
def embed(batch):
    return batch
"""


def test_the_switches_are_put_back(monkeypatch, tmp_path):
    """Seen by a module that is imported while an encoder is loaded."""

    class Constants:
        HF_HUB_OFFLINE = False

    (tmp_path / "spy_on_switches.py").write_text(SPY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "huggingface_hub.constants", Constants)
    monkeypatch.setenv("TRANSFORMERS_OFFLINE", "0")
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    features.load_encoder("spy_on_switches:embed")
    seen = sys.modules.pop("spy_on_switches").seen
    assert seen == {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "hub": True}
    assert Constants.HF_HUB_OFFLINE is False
    assert os.environ["TRANSFORMERS_OFFLINE"] == "0"
    assert "HF_HUB_OFFLINE" not in os.environ


NAMES = (
    "timm:resnet10t",
    "timm:vit_small_patch14_dinov2",
    "timm:hf-hub:timm/resnet10t.c3_in1k",
    "torchvision:inception_v3",
    "open_clip:ViT-B-32/openai",
    "open_clip:roberta-ViT-B-32",
    "open_clip:hf-hub:laion/CLIP-ViT-B-32",
    "pytorch-fid:2048",
    "sentence-transformers:all-MiniLM-L6-v2",
    "torchscript:gone.pt",
    "onnx:gone.onnx",
    "nowhere:function",
)


ENCODERS = ("timm:resnet10t", "torchvision:resnet18", "open_clip:RN50", "pytorch-fid:64")


def alone(code, folder, *arguments):
    """Run code with sockets that refuse, and neither caches nor settings of anybody."""
    environment = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("HF_", "TORCH_HOME", "TRANSFORMERS_"))
    } | {"XDG_CACHE_HOME": str(folder), "HOME": str(folder), "PYTHONPATH": os.pathsep.join(PATHS)}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True, text=True, env=environment, cwd=folder,
    )  # fmt: skip


@pytest.mark.slow
def test_missing_weights_are_not_fetched(tmp_path):
    done = alone(CODE, tmp_path, *NAMES)
    assert "NETWORK" not in done.stderr
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == len(NAMES)


@pytest.mark.slow
def test_no_command_and_no_encoder_needs_a_network(tmp_path):
    """Every command, and every encoder as far as its library is installed."""
    done = alone(EVERYTHING, tmp_path, *ENCODERS)
    assert "NETWORK" not in done.stderr
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("DONE\n")
    assert ("no sentences" in done.stdout) is (find_spec("sentence_transformers") is None)


def test_a_connection_would_show(tmp_path):
    """Negative control."""
    code = (
        BLOCKED + "import urllib.request; urllib.request.urlopen('http://192.0.2.1/x', timeout=1)"
    )
    done = alone(code, tmp_path)
    assert "NETWORK" in done.stderr
    assert done.returncode != 0
