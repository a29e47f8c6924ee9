"""What is public, by the packages themselves: `__all__`, or names imported as themselves."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import genbounds

# A program, not an interface: docs/cli.md. Metrics that need torchmetrics: docs/features.md.
ELSEWHERE = {"cli", "torchmetrics"}


def packages() -> list[str]:
    """Return genbounds and its public packages."""
    found = [
        module.name
        for module in pkgutil.iter_modules(genbounds.__path__)
        if module.ispkg and not module.name.startswith("_") and module.name not in ELSEWHERE
    ]
    return ["genbounds", *(f"genbounds.{name}" for name in found)]


def names(package: ModuleType) -> list[str]:
    if hasattr(package, "__all__"):
        return list(package.__all__)
    assert package.__file__ is not None
    tree = ast.parse(Path(package.__file__).read_text(encoding="utf-8"))
    return [
        alias.name
        for node in [*tree.body, *aliases(tree)]
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name
    ]


def aliases(tree: ast.Module) -> list[ast.stmt]:
    """Return what is written for type checkers: names that live in a package above."""
    blocks = [node for node in tree.body if isinstance(node, ast.If)]
    return [node for block in blocks for node in block.body]


def public_objects() -> Iterator[tuple[str, object]]:
    """Yield (dotted name after ``genbounds.``, object); packages themselves are left out."""
    for path in packages():
        package = importlib.import_module(path)
        prefix = path.removeprefix("genbounds").lstrip(".")
        for name in names(package):
            thing = getattr(package, name)
            if not isinstance(thing, ModuleType):
                yield (f"{prefix}.{name}" if prefix else name), thing
