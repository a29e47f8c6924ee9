"""Published references of statistics that do not say how many images are behind them."""

from __future__ import annotations

import hashlib
from typing import IO

KNOWN = {
    # ADM's ImageNet references: statistics "over the whole dataset" (evaluations/README.md of
    # openai/guided-diffusion), the training set of ILSVRC 2012. Digests: Git LFS pointers of
    # ruizegao/efficient-dit (VIRTUAL_imagenet256_labeled.npz, the same as huggingface.co's
    # xiangzai/reference and WindATree/diffusion-data) and of the last (…512_labeled.npz, the same
    # as Martinser/eval_model).
    "b32732719497e42660a9affb4a966068cba0855ac449b82015e34ec376d20758": (2_037_122_530, 1_281_167),
    "6bde3fff169a9d05d6ff53e9a661177d3765d7b3a83e8b54b71a99b65a166ef8": (857_466_338, 1_281_167),
}
"""By the SHA-256 of the file: its size in bytes, and the n of its statistics."""


def known_n(file: IO[bytes], size: int) -> int | None:
    """Return how many images are behind the statistics in a known file; None of any other.

    Only a file of a known size is read for it.
    """
    if size not in {known for known, _ in KNOWN.values()}:
        return None
    file.seek(0)
    digest = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
    return KNOWN[digest][1] if digest in KNOWN else None
