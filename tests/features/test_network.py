"""No path of the package reaches for the network, whatever the libraries behind it would like."""

from __future__ import annotations

import os
import subprocess
import sys

CODE = """
import socket, sys, os
def refuse(*args, **kwargs):
    print("NETWORK", args[:2], file=sys.stderr)
    raise OSError("no network in this test")
socket.socket.connect = refuse
socket.socket.connect_ex = refuse
socket.create_connection = refuse
socket.getaddrinfo = refuse
import genbounds as gb
from genbounds import features
for name in sys.argv[1:]:
    try:
        features.load_encoder(name)
    except gb.InputError as error:
        print(error)
    else:
        raise SystemExit(name + " has weights from nowhere")
assert "HF_HUB_OFFLINE" not in os.environ
"""


def test_the_switches_are_put_back(monkeypatch):
    from genbounds.features._offline import offline

    class Constants:
        HF_HUB_OFFLINE = False

    monkeypatch.setitem(sys.modules, "huggingface_hub.constants", Constants)
    monkeypatch.setenv("TRANSFORMERS_OFFLINE", "0")
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    with offline():
        assert Constants.HF_HUB_OFFLINE is True
        assert os.environ["HF_HUB_OFFLINE"] == os.environ["TRANSFORMERS_OFFLINE"] == "1"
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


def test_missing_weights_are_not_fetched(tmp_path):
    environment = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("HF_", "TORCH_HOME", "TRANSFORMERS_"))
    } | {"XDG_CACHE_HOME": str(tmp_path), "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", CODE, *NAMES], capture_output=True, text=True, env=environment
    )
    assert "NETWORK" not in done.stderr
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == len(NAMES)
