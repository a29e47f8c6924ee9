"""``torchscript:FILE``."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zipfile import ZipFile, is_zipfile

from genbounds._process import silenced
from genbounds.features._encoder import Encoder
from genbounds.features.encoders._request import Request
from genbounds.features.encoders._torch import torch_encoder
from genbounds.features.encoders._weights import file_digest
from genbounds.files import display, library
from genbounds.validation import InputError


def is_script(path: Path) -> bool:
    """Whether a file is a TorchScript program rather than tensors."""
    if not is_zipfile(path):
        return False
    with ZipFile(path) as archive:
        return any(name.endswith("/constants.pkl") for name in archive.namelist())


def load_script(path: Path) -> Any:
    """Read a TorchScript file; PyTorch's reader of these unpickles tensors and names alone."""
    import torch

    try:
        with silenced(DeprecationWarning):  # PyTorch prefers other formats
            return torch.jit.load(str(path), map_location="cpu")
    except (RuntimeError, ValueError) as error:
        raise InputError(
            f"{display(path)}: is not a TorchScript file ({display(error)})."
        ) from error


def torchscript_encoder(request: Request) -> Encoder:
    """Load ``torchscript:FILE``: a program, so name only files that you trust."""
    library("torch", extra="torch", needed_for=request.name)
    path = Path(request.model)
    if not path.is_file():
        raise InputError(f"{display(path)}: no such file: save the model there.")
    if request.weights is not None or request.random:
        raise InputError(f"{display(path)}: has its own weights: leave --weights out.")
    return torch_encoder(
        request,
        load_script(path),
        weights=file_digest(path),
        libraries=(),
        name=f"torchscript:{path.name}",
    )
