"""``sentence-transformers:MODEL``, for texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genbounds.features._encoder import Encoder, Kind
from genbounds.features.encoders._request import Request
from genbounds.features.encoders._weights import file_digest, find_weights, library, versions
from genbounds.files import display
from genbounds.validation import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class _SentenceEncoder:
    model: Any
    description: dict[str, str]
    takes: Kind | None = "texts"

    def prepare(self, item: Any) -> Any:
        return item

    def encode(self, batch: Sequence[Any]) -> NDArray[Any]:
        vectors = self.model.encode(
            list(batch),
            batch_size=len(batch),
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        return np.asarray(vectors)


def sentence_encoder(request: Request) -> Encoder:
    """Load ``sentence-transformers:MODEL`` from its folder, or from the hub's cache."""
    repository = request.model if "/" in request.model else f"sentence-transformers/{request.model}"
    local = Path(request.model) if Path(request.model).is_dir() else request.weights
    if request.random:
        raise InputError(f"{request.name}: has no untrained form: name the model's folder.")
    if request.overrides:
        raise InputError(f"{request.name}: takes texts, which have no --size and its like.")
    folder = find_weights(
        request.name, local, names=("modules.json",), repository=repository, folder=True
    )
    library_ = library("sentence_transformers", extra="text", needed_for=request.name)
    kinds = {"float32": None, "bfloat16": "bfloat16", "float16": "float16"}
    precision = kinds[request.precision]
    try:
        model = library_.SentenceTransformer(
            str(folder),
            device=request.device,
            local_files_only=True,
            model_kwargs={} if precision is None else {"dtype": precision},
        )
    except Exception as error:  # a damaged folder shows itself in many ways
        raise InputError(
            f"{display(folder)}: is no model of sentence-transformers ({display(error)})."
        ) from error
    return _SentenceEncoder(
        model=model,
        description={
            "encoder": f"sentence-transformers:{Path(request.model).name}",
            "weights": file_digest(folder),
            "preprocessing": "the model's own tokenizer",
            "precision": request.precision,
            "libraries": versions("sentence-transformers", "transformers", "tokenizers", "torch"),
        },
    )
