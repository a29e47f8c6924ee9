"""The built documentation needs no network: formulas are MathML, nothing remote is loaded."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS / "_extensions"))

from offline_math import mathml  # noqa: E402
from offline_pages import remote_resources  # noqa: E402

FORMULA = re.compile(r"\$\$(.+?)\$\$|\$([^$\n]+)\$", flags=re.DOTALL)


def formulas():
    for page in sorted(DOCS.glob("*.md")) + sorted(DOCS.glob("e*/*.md")):
        text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for found in FORMULA.finditer(text):
            yield page.name, found[1] or found[2]


def test_every_formula_is_understood():
    seen = 0
    for page, latex in formulas():
        assert mathml(latex, display="inline").startswith("<math"), page
        seen += 1
    assert seen > 100


@pytest.mark.parametrize(
    "latex",
    [
        r"\unknown{x}",
        r"\begin{aligned} a & = b \end{aligned}",
        r"\frac{1}{",
        r"\binom n2",  # would come out as a binomial of everything that follows
    ],
)
def test_what_is_not_understood_is_refused(latex):
    with pytest.raises(ValueError, match=r"\S"):
        mathml(latex, display="block")


REMOTE = [
    '<script async="async" src="https://cdn.example/tex.js"></script>',
    "<script src=//cdn.example/tex.js></script>",
    '<link href="https://cdn.example/a.css" rel="stylesheet" />',
    '<link rel="preconnect" href="https://fonts.example">',
    '<img alt="" src="http://cdn.example/a.png"/>',
    "@import 'https://cdn.example/a.css';",
    "src: url(https://cdn.example/a.woff2)",
]
LOCAL = [
    '<script src="_static/a.js"></script>',
    '<a href="https://example.org">cited</a>',
    '<link rel="canonical" href="https://example.org/"/>',
    '<svg xmlns="http://www.w3.org/2000/svg">',
    'url("data:image/svg+xml;base64,AAAA")',
]


@pytest.mark.parametrize("text", REMOTE)
def test_remote_resources_are_seen(text):
    (address,) = remote_resources(f"before {text} after")
    assert "example" in address


@pytest.mark.parametrize("text", LOCAL)
def test_links_and_names_are_not_resources(text):
    assert remote_resources(text) == []
