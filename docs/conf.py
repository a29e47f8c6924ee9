"""Sphinx configuration; `make docs` builds strictly (warnings are errors)."""

import sys
from pathlib import Path

import genbounds

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "genbounds"
author = "the genbounds developers"
copyright = "2026, the genbounds developers"
version = release = genbounds.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "cells",
    "warning_rules",
    "offline_math",
    "offline_pages",
]
myst_enable_extensions = ["dollarmath"]
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["formulas.css", "cells.css"]
myst_heading_anchors = 3
numpydoc_show_class_members = False
autosummary_generate = True
exclude_patterns = ["_build", "_extensions"]
html_theme = "furo"
html_title = f"genbounds {release}"
# Pages outside docs/ (the demo's, CONTRIBUTING) are reached through the repository.
suppress_warnings = ["myst.xref_missing"]
