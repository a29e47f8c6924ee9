"""A small zoo of images and texts, in every container."""

from __future__ import annotations

import io
import json
import os
import tarfile
import zipfile
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest
from PIL import Image

N = 11


def missing(what: str) -> NoReturn:
    """Skip for want of a library; fail where all are said to be there (`make encoders`)."""
    if os.environ.get("GENBOUNDS_NO_SKIP"):
        pytest.fail(what)
    pytest.skip(what)


def pictures() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.integers(0, 256, size=(9, 7, 3), dtype=np.uint8) for _ in range(N)]


def png(pixels: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def sentence_model(folder: Path) -> Path:
    """Write a sentence encoder with random weights: the alphabet, one layer, 16 features."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules
    from transformers import BertConfig, BertModel, BertTokenizerFast

    plain = folder.with_name(folder.name + "-network")
    plain.mkdir()
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *letters]
    words += [f"##{letter}" for letter in letters]
    (plain / "vocab.txt").write_text("\n".join(words))
    BertTokenizerFast(str(plain / "vocab.txt")).save_pretrained(plain)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        config = BertConfig(vocab_size=len(words), intermediate_size=16, **sizes)
        BertModel(config).save_pretrained(plain)
    parts = [modules.Transformer(str(plain)), modules.Pooling(16)]
    SentenceTransformer(modules=parts, device="cpu").save(str(folder), create_model_card=False)
    return folder


@pytest.fixture(scope="session")
def media(tmp_path_factory) -> Path:
    """Return a folder of inputs: never written to by tests."""
    root = tmp_path_factory.mktemp("media")
    images = [png(pixels) for pixels in pictures()]
    names = [f"{'b/' if i % 3 else ''}{i:02d}.png" for i in range(N)]
    folder = root / "folder"
    (folder / "b").mkdir(parents=True)
    for name, image in zip(names, images, strict=True):
        (folder / name).write_bytes(image)
    (folder / "readme.txt").write_text("not an image")
    (folder / ".hidden.png").write_bytes(b"nothing")
    (folder / "loop").symlink_to(folder)
    with zipfile.ZipFile(root / "images.zip", "w") as archive:
        for name, image in reversed(list(zip(names, images, strict=True))):
            archive.writestr(name, image)
        archive.writestr("__MACOSX/._00.png", b"nothing")
    np.savez(root / "samples.npz", arr_0=np.stack(pictures()))
    np.save(root / "samples.npy", np.stack(pictures()))
    for suffix, mode in {".tar": "w", ".tar.gz": "w:gz"}.items():
        with tarfile.open(root / f"shard{suffix}", mode) as archive:
            for key, image in enumerate(images):
                for ending, content in {"png": image, "json": b"{}"}.items():
                    info = tarfile.TarInfo(f"{key:05d}.{ending}")
                    info.size = len(content)
                    archive.addfile(info, io.BytesIO(content))
    lines = ["one text", "", "ein zweiter, mit Umlaut: ü", "three"]
    (root / "texts.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    objects = [{"text": line, "caption": line.upper()} for line in lines if line]
    (root / "texts.jsonl").write_text("\n".join(json.dumps(o) for o in objects), encoding="utf-8")
    return root


@pytest.fixture(scope="session")
def ordered_by_path() -> list[np.ndarray]:
    """Return the pictures in the order of their paths in the folder."""
    return [p for i, p in enumerate(pictures()) if i % 3 == 0] + [
        p for i, p in enumerate(pictures()) if i % 3
    ]
