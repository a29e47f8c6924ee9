"""The catalogue of error lines of `genbounds.features`: what a user reads, word for word.

Other tests ask only what a line names. ``…`` stands for what a library or the system says.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from PIL import Image

from genbounds import features
from genbounds.validation import InputError
from tests.features import test_sources as inputs
from tests.features.conftest import pictures
from tests.features.test_extract import Toy

KNOWN = ".png, .jpg, .jpeg, .webp, .bmp, .tif, .tiff, .gif, .ppm, .pgm"


def encoded(make, **options):
    """Encode a bad input."""

    def call(here, media):
        features.extract(features.open_source([make(here)]), Toy(takes=None), out=here / "out.npy")

    return call


def hostile(name):
    def call(here, media):
        (here / name).write_bytes(inputs.HOSTILE[name]())
        inputs.arrays(features.open_source([here / name]))

    return call


def loaded(name, **options):
    return lambda here, media: features.load_encoder(name, **options)


def extracted(name="folder", encoder=None, **options):
    def call(here, media):
        source = features.open_source([media / name])
        targets = {key: here / options.pop(key) for key in ("out", "moments") if key in options}
        features.extract(source, encoder or Toy(), **targets, **options)

    return call


def two_sizes(here, media):
    for side in (4, 5):
        Image.new("RGB", (side, 4)).save(here / f"{side}.png")
    encoder = features.load_encoder("tests.features.toy:flat", preprocessing={"size": None})
    features.extract(features.open_source([here]), encoder, out=here / "x.npy")


def preprocessed(image, **fields):
    return lambda here, media: features.Preprocessing(**fields)(image)


def of_another_run(here, media):
    source = features.open_source([media / "folder"])
    for weights in ("one", "two"):
        encoder = Toy(fail_at=2, description={"encoder": "toy", "weights": weights})
        try:
            features.extract(source, encoder, out=here / "x.npy", batch=2, block=2)
        except KeyboardInterrupt:
            continue


def mixed_kinds(here, media):
    features.open_source([media / "folder", media / "texts.txt"])


def unlike(field, one="one", two="two\x1b[31m"):
    origins = {"a": {"encoder": "e", field: one}, "b": {"encoder": "e", field: two}}
    return lambda here, media: features.check_same_encoder(origins)


LINES = {
    # inputs
    "damaged": (
        encoded(inputs.bad_folder),
        "HERE/bad/x.png: is not an image of a known format (PNG, JPEG, WEBP, BMP, TIFF, GIF, PPM)",
    ),
    "cut": (encoded(inputs.cut_image), "HERE/cut.png: is a damaged image (…)"),
    "pipe": (
        encoded(inputs.pipe),
        "HERE/pipe.png: is not a regular file: take it out of the folder.",
    ),
    "dangling": (
        encoded(inputs.link_to_nothing),
        "HERE/gone.png: is a link to a file that is gone: take it out of the folder.",
    ),
    "empty": (encoded(inputs.empty_folder), "HERE: is empty: check the path."),
    "missing": (encoded(inputs.missing), "HERE/gone: no such file or folder: check the path."),
    "foreign": (
        encoded(inputs.foreign),
        "HERE/x.csv: has no known ending: give a folder of images, an archive (.zip, .tar, "
        ".tar.gz, .tgz), texts (.txt, .jsonl) or features (.npy, .npz, .safetensors, .pt, "
        ".parquet).",
    ),
    "no zip": (
        encoded(inputs.no_zip),
        "HERE/x.zip: cannot be read (…): check its permissions, or write it again.",
    ),
    "empty zip": (encoded(inputs.zip_without_images), f"HERE/x.zip: has no images ({KNOWN})."),
    "huge stack": (
        encoded(inputs.huge_stack),
        "HERE/x.npy: holds an array of shape (1, 40000, 40000): features need shape (n, d), one "
        "row per sample.",
    ),
    "huge images": (
        lambda here, media: features.open_source([inputs.huge_stack(here)], items="images"),
        "HERE/x.npy: holds images of 40000 × 40000 pixels, more than Pillow takes: save them at "
        "the encoder's size.",
    ),
    "no text": (encoded(inputs.no_text), "HERE/x.txt: has no text: write one text per line."),
    "latin": (encoded(inputs.latin), "HERE/x.txt, line 2: is not UTF-8: convert the file."),
    "no json": (encoded(inputs.no_json), "HERE/x.jsonl, line 2: is not JSON (…)."),
    "other field": (
        encoded(inputs.other_field),
        "HERE/x.jsonl, line 1: has no text called 'text': name the key with --field.",
    ),
    "deep": (
        hostile("deep.jsonl"),
        "HERE/deep.jsonl, line 1: is not a text: write a string, or an object that has one.",
    ),
    "half": (
        hostile("half.jsonl"),
        "HERE/half.jsonl, line 1: holds half of a surrogate pair, which is not a character: write "
        "the text again.",
    ),
    "bomb": (
        hostile("bomb.zip"),
        "HERE/bomb.zip (a.png): claims to unpack … bytes to 272,629,760, which no real "
        "images do: if it is genuine, pack it without compression.",
    ),
    "circle": (
        hostile("circle.tar"),
        "HERE/circle.tar: cannot be read (its members go round in a circle): check its "
        "permissions, or write it again.",
    ),
    "kinds": (
        mixed_kinds,
        "MEDIA/texts.txt holds texts and MEDIA/folder images: encode them separately.",
    ),
    "no images": (
        lambda here, media: features.open_source([media / "texts.txt"], items="files"),
        'MEDIA/texts.txt: is a file: `items` "files" takes a folder.',
    ),
    # images
    "sizes": (
        two_sizes,
        "the images differ in size (4 × 4 and 5 × 4 pixels): give the size to resize them to, "
        "as `genbounds features --size` takes it.",
    ),
    "floats": (
        preprocessed(pictures()[0] / 255.0),
        "an image must be a uint8 array of shape (h, w), (h, w, 1) or (h, w, 3); got float64 of "
        "shape (9, 7, 3).",
    ),
    "32 bits": (
        preprocessed(Image.new("F", (4, 4))),
        "has 32-bit pixel values, and no value for white: save the image with 8 or 16 bits.",
    ),
    # extraction
    "no output": (extracted(), "no output: give `out`, `moments` or both."),
    "csv": (
        extracted(out="x.csv"),
        "HERE/x.csv: features are written as .safetensors, .npy or .npz: end the name in one of "
        "them.",
    ),
    "kind": (extracted("texts.txt", out="x.npy"), "toy encodes images; the input holds texts."),
    "transposed": (
        lambda here, media: extracted(
            encoder=features.load_encoder("tests.features.toy:transposed"), out="x.npy", batch=4
        )(here, media),
        "the encoder returned shape (3, 4) for 4 items: it must return one row of features for "
        "each.",
    ),
    "another run": (
        of_another_run,
        "HERE/x.npy.parts: holds blocks of another run (another input, encoder or batch): repeat "
        "that run, delete the folder, or write elsewhere.",
    ),
    "encoders": (
        unlike("weights"),
        r"a and b cannot be compared: their weights differ (one; two\x1b[31m): use one encoder for "
        "both. If the features are compatible, drop the metadata with np.asarray(...) or a .npy "
        "file.",
    ),
    "preprocessing": (
        unlike("preprocessing", *(features.Preprocessing(size=n).describe() for n in (299, None))),
        'a and b cannot be compared: their preprocessing differ ({"size": 299}; {"size": null}): '
        "use one encoder for both. If the features are compatible, drop the metadata with "
        "np.asarray(...) or a .npy file.",
    ),
    # encoders
    "file": (
        loaded("models/encoder.pt"),
        "`encoder` must be one of inception, dinov2, clip, inception:…, timm:…, torchvision:…, "
        "open_clip:…, pytorch-fid:…, "
        "sentence-transformers:…, torchscript:…, onnx:…, python:…, or none; got "
        "'models/encoder.pt'. Did you mean 'torchscript:models/encoder.pt'?",
    ),
    "unknown": (
        loaded("resnet50"),
        "`encoder` must be one of inception, dinov2, clip, inception:…, timm:…, torchvision:…, "
        "open_clip:…, pytorch-fid:…, "
        "sentence-transformers:…, torchscript:…, onnx:…, python:…, or none; got 'resnet50'.",
    ),
    "no module": (
        loaded("nowhere:function"),
        "nowhere:function: there is no module 'nowhere' in this folder or among the installed "
        "packages: run this in the module's folder.",
    ),
    "no name": (
        loaded("tests.features.toy:nothing"),
        "tests.features.toy:nothing: the module has no 'nothing'.",
    ),
    "no function": (
        loaded("tests.features.toy:NUMBER"),
        "tests.features.toy:NUMBER: is neither a function of a list of items nor an encoder.",
    ),
    "no arm": (
        lambda here, media: features.live_arm("tests.features.toy:Model"),
        "tests.features.toy:Model: is neither a function of (n, rng) nor an object with a method "
        "draw(n, rng); if it is a class, name an instance.",
    ),
    "ignored": (
        loaded("tests.features.toy:moments", weights="x"),
        "python:tests.features.toy:moments: --weights is not used by a Python function: leave it "
        "out.",
    ),
    "no script": (
        loaded("torchscript:gone.pt"),
        "gone.pt: no such file: save the model there.",
    ),
    "sentences": (
        loaded("sentence-transformers:gone", weights="random"),
        "sentence-transformers:gone: --weights random is for image models: name the model's "
        "folder.",
    ),
    "no sentences": (
        loaded("sentence-transformers:gone"),
        "sentence-transformers:gone needs its weights, which are not in … nor …: get modules.json "
        "of sentence-transformers/gone on the Hugging Face hub and "
        "name the folder that holds it with --weights.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LINES)
def test_lines(media, tmp_path, name):
    if name == "no sentences":  # the library is asked for before its weights
        pytest.importorskip("sentence_transformers", exc_type=ImportError)
    call, line = LINES[name]
    with pytest.raises(InputError) as caught:
        call(tmp_path, media)
    text = str(caught.value).replace(str(tmp_path), "HERE").replace(str(media), "MEDIA")
    if "timm:…" in line:  # the line's own
        assert text == line
    else:
        assert re.fullmatch(re.escape(line).replace("…", ".+"), text), text


def test_the_catalogue_is_of_one_line_each():
    assert all("\n" not in line for _, line in LINES.values())
    assert np.unique([line for _, line in LINES.values()]).size == len(LINES)
