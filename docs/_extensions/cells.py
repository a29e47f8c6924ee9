"""The directives `cell` and `script`: Python that runs when the page is built, with what it shows.

The cells of a page run one after the other in one namespace, as those of a notebook do. The value
of a last line that is an expression is shown: its `_repr_html_`, else its text. Figures that a cell
leaves open are shown and closed. A cell that raises makes the build fail.

A script is a file of its own, without its first docstring; it runs in an empty folder. What stands
in the directive, such as ``ranking.plot()``, is shown below its output.
"""

from __future__ import annotations

import ast
import contextlib
import html
import io
import tempfile
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

_log = logging.getLogger(__name__)
VALUE = "_value_of_the_cell"


def run_cell(code: str, namespace: dict[str, Any]) -> tuple[str, list[str]]:
    """Run a cell; return its text and what it shows as HTML: a table, then figures."""
    from matplotlib import pyplot, rc_context
    from matplotlib.axes import Axes

    *first, last = ast.parse(code).body
    shown: list[str] = []
    with (
        rc_context({"svg.hashsalt": "cell", "figure.facecolor": "white"}),
        contextlib.redirect_stdout(io.StringIO()) as out,
    ):
        if isinstance(last, ast.Expr):  # kept, to be shown
            target = ast.Name(VALUE, ast.Store())
            last = ast.copy_location(
                ast.Assign([ast.copy_location(target, last)], last.value), last
            )
        exec(compile(ast.Module([*first, last], []), "cell", "exec"), namespace)  # our own page
        value = namespace.pop(VALUE, None)
        if hasattr(value, "_repr_html_"):
            shown.append(value._repr_html_())
        elif value is not None and not isinstance(value, Axes):
            out.write(f"{value!r}\n")
        shown += [_picture(pyplot.figure(number)) for number in pyplot.get_fignums()]
        pyplot.close("all")
    return out.getvalue(), shown


def _picture(figure: Any) -> str:
    """Return a figure as an image that needs no file; what its axes are labelled with describes it.

    On white, as in a notebook: its colours are not those of the page.
    """
    file = io.BytesIO()
    figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    labels = [text for axes in figure.axes for text in (axes.get_ylabel(), axes.get_xlabel())]
    alt = html.escape("Plot: " + " against ".join(filter(None, labels)))
    data = b64encode(file.getvalue()).decode("ascii")
    return f'<img alt="{alt}" src="data:image/svg+xml;base64,{data}">'


def run_script(code: str, picture: str) -> tuple[str, list[str]]:
    """Run a script in a folder of its own, then the cell `picture`, if any."""
    namespace = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        text, shown = run_cell(code, namespace)
        if picture:
            more, pictures = run_cell(picture, namespace)
            text, shown = text + more, shown + pictures
    return text, shown


class Cell(SphinxDirective):
    """```{cell}``` with Python code."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Run the code and show it with its output."""
        self.env.note_reread()  # what it shows depends on the library, not on the page alone
        code = "\n".join(self.content)
        namespace = self.env.temp_data.setdefault("cells", {"__name__": "__main__"})
        return self.show(code, lambda: run_cell(code, namespace))

    def show(self, code: str, run: Callable[[], tuple[str, list[str]]]) -> list[nodes.Node]:
        """Return the code, and what `run` says that it shows."""
        block = nodes.literal_block(code, code, language="python")
        try:
            text, shown = run()
        except Exception as error:  # whatever the code raises
            _log.warning("cell: %s: %s", type(error).__name__, error, location=self.get_location())
            return [block]
        output = nodes.container(classes=["cell-output"])
        if text:
            output += nodes.literal_block(text, text, language="text")
        output += [nodes.raw("", part, format="html") for part in shown]
        return [block, output] if output.children else [block]


class Script(Cell):
    """```{script} path``` of a file of Python, from the folder of the page."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Run the file and show it with its output."""
        self.env.note_reread()
        _, path = self.env.relfn2path(self.arguments[0])
        code = Path(path).read_text(encoding="utf-8")
        docstring = ast.parse(code).body[0]
        body = "\n".join(code.splitlines()[docstring.end_lineno :]).strip("\n")
        return self.show(body, lambda: run_script(body, "\n".join(self.content)))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives."""
    app.add_directive("cell", Cell)
    app.add_directive("script", Script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
