"""Fetching a file of weights, when asked: whole, with the checksum that was published, or not."""

from __future__ import annotations

import hashlib
import http.client
import shutil
import urllib.error
import urllib.request
from pathlib import Path
from typing import IO

from genbounds.features.encoders._weights import Weights, file_digest
from genbounds.files import display, written_aside
from genbounds.validation import InputError

_PIECE = 1 << 20
_SECONDS = 60.0


def fetch(encoder: str, wanted: Weights, folder: Path) -> Path:
    """Return the file of weights in `folder`; fetch it if it is not there.

    Raises
    ------
    InputError
        If no checksum is published; if the server, the proxy or the disk fails; or if the file
        has another checksum. Nothing is left half-written.
    """
    target = folder / wanted.names[0]
    by_hand = f"get {wanted.whence} yourself and save it as {display(target)}"
    if wanted.sha256 is None and target.exists():
        return target
    if wanted.url is None or wanted.sha256 is None:
        raise InputError(
            f"{encoder}: no SHA-256 of its weights is published, so they are not fetched: {by_hand}"
            ", or name the file with --weights."
        )
    if target.exists():
        found = file_digest(target).removeprefix("sha256:")
        if found.startswith(wanted.sha256):
            return target
        raise InputError(
            f"{display(target)}: has SHA-256 {found} instead of {wanted.sha256}: it is another "
            "file or a part of it: delete it, then run this again."
        )
    with written_aside(target) as file:
        try:
            digest = _copy(wanted.url, file, folder)
        except (OSError, http.client.HTTPException, ValueError) as error:
            if isinstance(error, urllib.error.HTTPError):
                error.close()
            raise InputError(
                f"{encoder}: {wanted.url} cannot be fetched ({display(error, limit=120)}): try "
                f"again, set https_proxy if there is a proxy, or {by_hand}."
            ) from error
        if not digest.startswith(wanted.sha256):
            raise InputError(
                f"{encoder}: what {wanted.url} sends has SHA-256 {digest} instead of "
                f"{wanted.sha256}: it is not kept; {by_hand}."
            )
    return target


def _copy(url: str, file: IO[bytes], folder: Path) -> str:
    """Copy what an address sends; return its SHA-256."""
    if not url.startswith(("https://", "http://")):
        raise ValueError("only http and https are read")
    digest, count = hashlib.sha256(), 0
    asked = urllib.request.Request(url, headers={"User-Agent": "genbounds"})
    opener = urllib.request.build_opener()  # the common one would keep the first call's proxies
    with opener.open(asked, timeout=_SECONDS) as answer:
        announced = int(answer.headers.get("Content-Length") or 0)
        if announced > (free := shutil.disk_usage(folder).free):
            raise OSError(f"{announced:,} bytes are needed, {free:,} are free")
        while piece := answer.read(_PIECE):
            digest.update(piece)
            file.write(piece)
            count += len(piece)
    if announced and count != announced:
        raise OSError(f"it ended after {count:,} of {announced:,} bytes")
    return digest.hexdigest()
