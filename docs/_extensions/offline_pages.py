"""Refuses pages that would fetch anything from the network when they are read."""

from __future__ import annotations

import re
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util import logging

_log = logging.getLogger(__name__)
_LOADED = re.compile(
    r"""<(?:script|img|iframe|source|video|audio|embed|object)\b[^>]*?\b(?:src|data|srcset)
        \s*=\s*["']?\s*((?:https?:)?//[^"'\s>]+)""",
    re.IGNORECASE | re.VERBOSE,
)
_LINK = re.compile(r"<link\b[^>]*>", re.IGNORECASE)
_LOADING = re.compile(r"rel\s*=\s*[\"']?[^\"'>]*(?:stylesheet|icon|preload|preconnect|font)", re.I)
_TARGET = re.compile(r"href\s*=\s*[\"']?\s*((?:https?:)?//[^\"'\s>]+)", re.I)
_CSS = re.compile(r"""(?:@import\s+|url\(\s*)["']?((?:https?:)?//[^"')\s]+)""", re.I)


def remote_resources(text: str) -> list[str]:
    """Return the addresses that a browser would load to show this HTML or CSS text."""
    links = [
        target[1]
        for link in _LINK.findall(text)
        if _LOADING.search(link) and (target := _TARGET.search(link))
    ]
    return [*_LOADED.findall(text), *links, *_CSS.findall(text)]


def _check(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.format != "html":
        return
    for path in sorted(Path(app.outdir).rglob("*")):
        if path.suffix in (".html", ".css"):
            for address in remote_resources(path.read_text(encoding="utf-8")):
                _log.warning("%s loads %s", path.relative_to(app.outdir), address)


def setup(app: Sphinx) -> dict[str, bool]:
    """Look at everything that was written once the build is over."""
    app.connect("build-finished", _check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
