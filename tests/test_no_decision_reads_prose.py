"""No code compares, searches or splits the text of a warning, a note or an error.

Rewording a message must change nothing but what people read: decisions take `code`, `severity`,
`method`, `reliable`, or the attributes of an error. Found in the syntax tree, function by function:
what is taken from a message, or made of it, may be joined and printed, and no more.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted(
    path for folder in ("genbounds", "experiments") for path in (ROOT / folder).rglob("*.py")
)

PROSE = {"message", "notes", "remedy"}
"""Attributes of results, warnings and errors that hold sentences."""
OF_ERRORS = {"args", "text"}
"""The same of a caught exception."""
SEARCHES = {
    "count", "endswith", "find", "index", "partition", "removeprefix", "removesuffix", "replace",
    "rfind", "rindex", "rpartition", "rsplit", "split", "splitlines", "startswith",
}  # fmt: skip
PATTERNS = {"findall", "finditer", "fullmatch", "match", "search", "split", "sub"}
NUMBERS_OF = {"len", "bool", "any", "all"}
"""Calls that say how many or whether, not what."""


class Reader(ast.NodeVisitor):
    """Collects the lines of one function, or of a module's top level, that read prose."""

    def __init__(self) -> None:
        self.lines: list[int] = []
        self.errors: set[str] = set()
        self.prose: set[str] = set()

    def is_prose(self, node: ast.AST) -> bool:
        """Whether an expression holds, or is made of, the text of a message."""
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in NUMBERS_OF:
                return False
            case ast.Call(func=ast.Name(id="str" | "repr"), args=[ast.Name(id=name)]):
                return name in self.errors or name in self.prose
            case ast.Call(func=ast.Attribute(value=owner)) if self.is_prose(owner):
                return True
            case ast.Attribute(attr=name) if name in PROSE:
                return True
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner in self.errors:
                return name in OF_ERRORS
            case ast.Attribute():
                return False
            case ast.Name(id=name):
                return name in self.prose
            case ast.Compare() | ast.Lambda():
                return False
            case ast.GeneratorExp() | ast.ListComp() | ast.SetComp():
                for generator in node.generators:
                    self.bind(generator.target, generator.iter)
                return self.is_prose(node.elt)
        return any(self.is_prose(child) for child in ast.iter_child_nodes(node))

    def bind(self, target: ast.AST, value: ast.AST) -> None:
        if self.is_prose(value):
            self.prose |= {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self.errors.add(node.name)
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self.bind(target, node.value)
        self.generic_visit(node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.bind(node.target, node.value)
        self.generic_visit(node)

    def visit_For(self, node: ast.For) -> None:
        self.bind(node.target, node.iter)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self.bind(node.target, node.iter)
        self.generic_visit(node)

    def _comprehension(self, node: ast.AST) -> None:
        for generator in node.generators:  # before what is made of it
            self.visit(generator)
        self.generic_visit(node)

    visit_GeneratorExp = visit_ListComp = visit_SetComp = visit_DictComp = _comprehension

    def visit_Compare(self, node: ast.Compare) -> None:
        if any(self.is_prose(side) for side in (node.left, *node.comparators)):
            self.lines.append(node.lineno)
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if self.is_prose(node.slice):
            self.lines.append(node.lineno)
        self.generic_visit(node)

    def visit_Match(self, node: ast.Match) -> None:
        if self.is_prose(node.subject):
            self.lines.append(node.lineno)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        match node.func:
            case ast.Attribute(value=ast.Name(id="re"), attr=name) if name in PATTERNS:
                if any(map(self.is_prose, node.args)):
                    self.lines.append(node.lineno)
            case ast.Attribute(value=owner, attr=name) if name in SEARCHES | PATTERNS:
                searched = node.args if name in PATTERNS else []
                if self.is_prose(owner) or any(map(self.is_prose, searched)):
                    self.lines.append(node.lineno)
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Names of an inner function are its own; it sees those outside."""
        inner = Reader()
        inner.errors, inner.prose = set(self.errors), set(self.prose)
        for child in node.body:
            inner.visit(child)
        self.lines += inner.lines

    visit_AsyncFunctionDef = visit_FunctionDef


def reading(source: str) -> list[int]:
    """Return the lines of a module that decide by prose."""
    reader = Reader()
    reader.visit(ast.parse(source))
    return sorted(set(reader.lines))


FOREIGN = {
    "genbounds/features/encoders/_request.py": 1,
    "genbounds/files/_formats.py": 1,
    "genbounds/simulate/arms/_frechet.py": 1,
}
"""Lines that read messages of PyTorch and NumPy: two shorten them to a line; in
_formats.py nothing but the text tells a pickle from a damaged file, and either is refused."""


def test_no_decision_reads_prose():
    found = {
        path.relative_to(ROOT).as_posix(): len(lines)
        for path in FILES
        if (lines := reading(path.read_text(encoding="utf-8")))
    }
    assert found == FOREIGN


READS = """
if warning.message == "n is small": pass
---
flagged = any(note.startswith("unreliable") for note in score.notes)
---
flagged = "unreliable" in score.notes
---
route = next((n for n in score.notes if n.startswith("route")), "none")
---
for note in score.notes:
    head, _, tail = note.partition(":")
---
def f(score):
    notes = [n.lower() for n in score.notes]
    return notes[0].split()
---
try: call()
except ValueError as error:
    if "rows" in str(error): pass
---
try: call()
except ValueError as error:
    raise InputError(str(error).replace("`x`", "--file")) from error
---
try: call()
except InputError as error:
    if error.text.startswith("must"): pass
---
try: call()
except OSError as error:
    kind = KINDS[error.args[0]]
---
found = re.search("rows", " ".join(score.notes))
---
found = PATTERN.match(warning.remedy)
---
def f(warning):
    text = f"{warning.code}: {warning.message}"
    def g():
        return text.endswith("x")
    return g
---
match warning.message:
    case "a": pass
""".split("---\n")

PRINTS = """
print("; ".join(warning.message for warning in score.warnings))
---
if score.notes: print(*score.notes)
---
lines = len(score.notes) > 3
---
try: call()
except InputError as error:
    raise InputError(f"{path}: {error}") from error
---
try: call()
except InputError as error:
    if error.argument == "x": print(str(error))
---
if any(warning.code == "misfit" for warning in score.warnings): print(warning.message)
---
items = list(dict.fromkeys([*ranking.notes, *score.notes]))
---
text = message.split()
---
flagged = not score.reliable and score.method == "contour"
""".split("---\n")


@pytest.mark.parametrize("source", READS)
def test_what_reads_prose_is_seen(source):
    assert reading(source)


@pytest.mark.parametrize("source", PRINTS)
def test_printing_and_joining_are_allowed(source):
    assert not reading(source)
