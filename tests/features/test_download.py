"""Weights that are fetched when asked, from a server on this machine."""

from __future__ import annotations

import hashlib
import shutil
import sys
import threading
import types
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from genbounds import features
from genbounds.cli import main
from tests.refusal import refused

CONTENT = b"weights" * 1000
DIGEST = hashlib.sha256(CONTENT).hexdigest()


class Handler(BaseHTTPRequestHandler):
    asked: list[str] = []  # noqa: RUF012

    def do_GET(self):
        self.asked.append(self.path)
        if self.path.startswith("/gone"):
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        content = CONTENT
        if self.path.startswith("/short"):
            content = CONTENT[:100]
        if self.path.startswith("/other"):
            content = CONTENT[::-1]
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Handler.asked.clear()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def publish(server, monkeypatch, tmp_path):
    """Let timm say that a model's weights lie at an address of the server."""
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))

    def publish(path):
        url = path if "://" in path else f"{server}/{path}"
        config = types.SimpleNamespace(url=url, hf_hub_id=None, hf_hub_filename=None)
        timm = types.ModuleType("timm")
        timm.__version__ = "1.0.31"
        timm.is_model = lambda name: True
        timm.get_pretrained_cfg = lambda name: config
        monkeypatch.setitem(sys.modules, "timm", timm)
        return tmp_path / "torch" / "hub" / "checkpoints"

    return publish


def test_once_into_the_usual_cache(publish):
    folder = publish(f"net-{DIGEST[:8]}.pth")
    found = features.download("timm:net")
    assert found == folder / f"net-{DIGEST[:8]}.pth"
    assert found.read_bytes() == CONTENT
    assert features.download("timm:net") == found
    assert len(Handler.asked) == 1
    assert [path.name for path in folder.iterdir()] == [found.name]


def test_into_another_folder(publish, tmp_path):
    publish(f"{DIGEST}/net.pt")
    assert features.download("timm:net", folder=tmp_path / "here") == tmp_path / "here" / "net.pt"


@pytest.mark.parametrize(
    ("place", "problem"),
    [("gone", "404"), ("short", "100 of 7,000"), ("other", "instead of")],
)
def test_what_goes_wrong_leaves_nothing(publish, place, problem):
    name = f"net-{DIGEST[:8]}.pth"
    folder = publish(f"{place}/{name}")
    with refused("timm:net", f"/{place}/{name}", problem, DIGEST[:8], str(folder / name)):
        features.download("timm:net")
    assert list(folder.iterdir()) == []


def test_no_server_and_no_proxy(publish, monkeypatch):
    publish(f"http://127.0.0.1:9/net-{DIGEST[:8]}.pth")
    with refused("timm:net", "127.0.0.1:9", "https_proxy"):
        features.download("timm:net")
    publish(f"http://example.org/net-{DIGEST[:8]}.pth")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with refused("timm:net", "example.org", "refused"):
        features.download("timm:net")


def test_no_disk(publish, monkeypatch):
    folder = publish(f"net-{DIGEST[:8]}.pth")
    usage = shutil.disk_usage("/")._replace(free=10)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with refused("timm:net", "7,000 bytes are needed, 10 are free"):
        features.download("timm:net")
    assert list(folder.iterdir()) == []


def test_a_part_that_somebody_left(publish):
    folder = publish(f"net-{DIGEST[:8]}.pth")
    folder.mkdir(parents=True)
    (folder / f"net-{DIGEST[:8]}.pth").write_bytes(CONTENT[:5])
    with refused(f"net-{DIGEST[:8]}.pth", DIGEST[:8], "delete it"):
        features.download("timm:net")
    assert Handler.asked == []


def test_without_a_published_checksum_nothing_is_asked(publish):
    folder = publish("net.pth")
    with refused("timm:net", "/net.pth", str(folder / "net.pth"), "SHA-256"):
        features.download("timm:net")
    assert Handler.asked == []


@pytest.mark.parametrize(
    "name", ["onnx:x.onnx", "sentence-transformers:x", "tests.features.toy:flat"]
)
def test_what_has_no_file(name):
    with refused(name):
        features.download(name)


def test_never_unasked(publish):
    publish(f"net-{DIGEST[:8]}.pth")
    with refused("timm:net", "genbounds features --download timm:net"):
        features.load_encoder("timm:net")
    assert Handler.asked == []


COMMANDS = {
    "score": "real.zip model.zip",
    "select": "real.zip model.zip other.zip",
    "memorisation": "model.zip --train real.zip --heldout other.zip",
    "features": "model.zip --out model.npy",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_fetch_when_asked(publish, monkeypatch, tmp_path, capsys, command):
    """They are fetched before anything is encoded; with `--weights` there is nothing to fetch."""
    folder = publish(f"net-{DIGEST[:8]}.pth")
    monkeypatch.chdir(tmp_path)
    for name in ("real.zip", "model.zip", "other.zip"):
        with zipfile.ZipFile(name, "w") as archive:
            archive.writestr("0.png", b"")
    call = [command, *COMMANDS[command].split(), "--encoder", "timm:net"]
    assert main(call) == 2
    assert Handler.asked == []
    assert "genbounds features --download timm:net" in capsys.readouterr().err
    assert main([*call, "--download"]) == 2  # this timm builds no network
    assert "net-" in capsys.readouterr().err
    assert Handler.asked == [f"/net-{DIGEST[:8]}.pth"]
    assert [path.name for path in folder.iterdir()] == [f"net-{DIGEST[:8]}.pth"]
    assert main([*call, "--download", "--weights", "random"]) == 2
    assert "--weights" in capsys.readouterr().err


def test_download_needs_an_encoder(tmp_path, capsys):
    assert main(["score", "a.npy", "b.npy", "--download"]) == 2
    assert "`--download` needs --encoder" in capsys.readouterr().err


def test_what_the_hub_has_or_was_saved_by_hand_is_there(publish, monkeypatch, tmp_path):
    folder = publish("net.pth")
    folder.mkdir(parents=True)
    (folder / "net.pth").write_bytes(CONTENT)
    assert features.download("timm:net") == folder / "net.pth"
    publish(f"{DIGEST}/net.pt")
    sys.modules["timm"].get_pretrained_cfg("net").hf_hub_id = "some/net"
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    kept = tmp_path / "hub" / "models--some--net" / "snapshots" / "1"
    kept.mkdir(parents=True)
    (kept / "model.safetensors").write_bytes(CONTENT)
    assert features.download("timm:net") == kept / "model.safetensors"
    assert Handler.asked == []


def test_missing_weights_say_what_to_save_where(publish):
    folder = publish(f"net-{DIGEST[:8]}.pth")
    with refused("timm:net", f"net-{DIGEST[:8]}.pth", f"save it as {folder}"):
        features.load_encoder("timm:net")
