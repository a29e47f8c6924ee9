"""Which other files an ONNX model reads its weights from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from genbounds.features.encoders._weights import file_digest
from genbounds.files import display
from genbounds.validation import InputError

# The fields of onnx.proto on the way from a model to a tensor's `external_data`, by number.
_FIELDS: dict[str, dict[int, str]] = {
    "model": {7: "graph", 25: "function"},
    "graph": {1: "node", 5: "tensor", 15: "sparse tensor"},
    "function": {7: "node", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {
        5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse tensor",
        23: "sparse tensor",
    },
    "sparse tensor": {1: "tensor", 2: "tensor"},
    "tensor": {13: "entry"},
}  # fmt: skip


def model_digest(path: Path) -> str:
    """Return the SHA-256 of a model, and of its files of weights if it has some.

    Parameters
    ----------
    path : Path
        A model that onnxruntime has loaded.

    Raises
    ------
    InputError
        If it names a file outside of its folder, or one that is not there.
    """
    names = set(_locations(memoryview(path.read_bytes()), "model"))
    if not names:
        return file_digest(path)
    folder = path.parent.resolve()
    files = {}
    for name in sorted(names):
        file = (folder / name).resolve()
        if not file.is_relative_to(folder) or not file.is_file():
            raise InputError(
                f"{display(path)}: its weights should lie in {display(name, limit=80)}, beside it: "
                "export the model again."
            )
        files[name] = file
    return file_digest(path, *files.values())


def _locations(message: memoryview, kind: str) -> Iterator[str]:
    """Yield the file names in all tensors of a protobuf message."""
    if kind == "entry":
        fields = dict(_fields(message))
        if bytes(fields.get(1, b"")) == b"location":
            yield bytes(fields.get(2, b"")).decode("utf-8", "surrogateescape")
        return
    wanted = _FIELDS[kind]
    for number, content in _fields(message):
        if number in wanted:
            yield from _locations(content, wanted[number])


def _fields(message: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Yield the number and content of every field that has a length; skip the others."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        wire = key & 7
        if wire == 0:
            _, at = _varint(message, at)
        elif wire in (1, 5):
            at += 8 if wire == 1 else 4
        elif wire == 2:
            size, at = _varint(message, at)
            yield key >> 3, message[at : at + size]
            at += size
        else:  # groups, which onnx.proto has not
            raise InputError("the ONNX model is damaged: export it again.")


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    """Return a number of variable length and where it ends."""
    number = 0
    for shift, byte in enumerate(message[at : at + 10]):
        number |= (byte & 127) << 7 * shift
        if byte < 128:
            return number, at + shift + 1
    raise InputError("the ONNX model is damaged: export it again.")
