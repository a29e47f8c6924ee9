"""``sentence-transformers:MODEL``, for texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.features._encoder import Encoder, FunctionEncoder
from genbounds.features.encoders._request import Request
from genbounds.features.encoders._weights import Weights, file_digest, find_weights, versions
from genbounds.files import display, library
from genbounds.validation import InputError


def sentence_encoder(request: Request) -> Encoder:
    """Load ``sentence-transformers:MODEL`` from its folder, or from the hub's cache."""
    repository = request.model if "/" in request.model else f"sentence-transformers/{request.model}"
    local = Path(request.model) if Path(request.model).is_dir() else request.weights
    if request.random:
        raise InputError(
            f"{request.name}: --weights random is for image models: name the model's folder."
        )
    if request.overrides:
        raise InputError(
            f"{request.name}: encodes texts: leave --size and the other image options out."
        )
    library("torch", extra="text", needed_for=request.name)
    library_ = library("sentence_transformers", extra="text", needed_for=request.name)
    wanted = Weights(names=("modules.json",), repository=repository, folder=True)
    folder = find_weights(request.name, wanted, local)
    half = {} if request.precision == "float32" else {"dtype": request.precision}
    try:
        with _quietly():
            model = library_.SentenceTransformer(
                str(folder), device=request.device, local_files_only=True, model_kwargs=half
            )
    except Exception as error:  # a damaged folder shows itself in many ways
        raise InputError(
            f"{display(folder)}: is not a model of sentence-transformers ({display(error)})."
        ) from error

    def encode(batch: Sequence[Any]) -> NDArray[Any]:
        texts, n = list(batch), len(batch)
        vectors = model.encode(texts, batch_size=n, convert_to_numpy=True, show_progress_bar=False)
        return np.asarray(vectors)

    return FunctionEncoder(
        encode=encode,
        takes="texts",
        description={
            "encoder": f"sentence-transformers:{Path(request.model).name}",
            "weights": file_digest(folder),
            "preprocessing": "the model's own tokenizer",
            "precision": request.precision,
            "libraries": versions("sentence-transformers", "transformers", "tokenizers", "torch"),
        },
    )


@contextmanager
def _quietly() -> Iterator[None]:
    """Keep transformers' progress bars off standard error."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]
