"""The directive that runs the cells of docs/notebook.md while the pages are built."""

from __future__ import annotations

import re
import sys
from base64 import b64decode
from pathlib import Path

import pytest
from matplotlib import pyplot

from tests.docs.public import public_objects

DOCS = Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS / "_extensions"))

from cells import run_cell, run_script  # noqa: E402


@pytest.fixture(autouse=True)
def _no_figure_of_another_test():
    """What another test in this process has left open is no picture of these cells."""
    pyplot.close("all")


def test_a_value_is_shown_as_a_notebook_shows_it():
    class Table:
        def _repr_html_(self):
            return "<table></table>"

    assert run_cell("print('a')\nx", {"x": Table()}) == ("a\n", ["<table></table>"])
    assert run_cell("1 + 1", {}) == ("2\n", [])
    assert run_cell("None", {}) == ("", [])
    assert run_cell("x = 1", {}) == ("", [])


def test_cells_share_names():
    names: dict = {}
    run_cell("x = 3\ndef f():\n    return x", names)
    assert run_cell("f()", names) == ("3\n", [])


def test_a_plot_is_a_picture_on_white_with_words():
    code = "from matplotlib import pyplot\n_, ax = pyplot.subplots()\nax.set_xlabel('a < b')\nax"
    text, (picture,) = run_cell(code, {})
    assert text == ""
    found = re.fullmatch(
        r'<img alt="Plot: a &lt; b" src="data:image/svg\+xml;base64,(.*)">', picture
    )
    assert found is not None
    assert b"fill: #ffffff" in b64decode(found[1])
    assert run_cell(code, {}) == (text, [picture])  # to the byte
    assert run_cell("1", {}) == ("1\n", [])  # the figure is closed


def test_a_script_runs_in_a_folder_of_its_own_and_is_drawn():
    code = "open('x.txt', 'w').close()\nimport os\nprint(os.listdir())\nx = 2"
    assert run_script(code, "x + 1") == ("['x.txt']\n3\n", [])
    assert not Path("x.txt").exists()
    plot = "from matplotlib import pyplot\npyplot.subplots()[1]"
    assert [picture[:4] for picture in run_script("x = 2", plot)[1]] == ["<img"]


def test_what_raises_is_not_hidden():
    with pytest.raises(ZeroDivisionError):
        run_cell("1 / 0", {})


def test_the_page_shows_every_result_that_has_a_table():
    """By what its cells make: the words of a constructor or function, then the name alone."""
    page = (DOCS / "notebook.md").read_text(encoding="utf-8")
    makes = {
        "Score": "ranking.scores", "Difference": "ranking.difference", "Ranking": "gb.compare(",
        "Verdict": "gb.gate(", "Plan": "gb.plan(", "Track": "gb.track(", "Mixture": "gb.mixture(",
        "Modes": "gb.modes(", "Memorisation": "gb.memorisation(", "Selection": "select.run(",
        "RecipeRanking": "gb.compare_recipes(",
    }  # fmt: skip
    for name, call in makes.items():
        assert call in page, name
    results = {
        thing.__name__ for _, thing in public_objects()
        if isinstance(thing, type) and hasattr(thing, "_repr_html_")
    }  # fmt: skip
    # Parts of others, and tables of several scores that look like those of a ranking.
    assert results - set(makes) == {
        "ByClass", "Ceiling", "Checkpoint", "ConditionalVendi", "ContextSelection",
        "EncoderRanking", "Look", "MixtureSelection", "PrecisionRecall", "Reproduction",
        "SelectionPlan", "TwoLevel",
    }  # fmt: skip
