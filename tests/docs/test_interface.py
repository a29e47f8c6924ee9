"""Every public name is in docs/api.md, and every docstring says what the signature says."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from numpydoc.docscrape import ClassDoc, FunctionDoc

import genbounds as gb
from tests.docs.public import public_objects

PAGE = Path(__file__).parents[2] / "docs" / "api.md"


def documented(page: str) -> list[str]:
    """Return the names that the page's autosummary tables list."""
    return re.findall(r"^   ([A-Za-z_][\w.]*)$", page, flags=re.MULTILINE)


def missing(listed: list[str], objects: dict[str, object]) -> list[str]:
    """Return public names that are listed under no name of theirs."""
    known = {id(objects[name]) for name in listed if name in objects}
    return [name for name, thing in objects.items() if id(thing) not in known]


def test_every_public_name_is_documented():
    objects = dict(public_objects())
    assert len(objects) > 100
    assert missing(documented(PAGE.read_text(encoding="utf-8")), objects) == []


def test_every_documented_name_exists_once():
    listed = documented(PAGE.read_text(encoding="utf-8"))
    assert sorted(set(listed)) == sorted(listed)
    for name in listed:
        target: Any = gb
        for part in name.split("."):
            target = getattr(target, part)


def test_an_undocumented_name_is_seen():
    """Negative control of the first test."""
    objects = dict(public_objects())
    listed = [name for name in documented(PAGE.read_text(encoding="utf-8")) if name != "compare"]
    assert "compare" in missing(listed, objects)


# --- docstrings ----------------------------------------------------------------------------------


def described(section: list[Any]) -> dict[str, str]:
    """Return name and type of every entry; ``a, b : float`` is two."""
    return {
        name.strip(): entry.type
        for entry in section
        for name in (entry.name or entry.type).split(",")
    }


def arguments(call: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return {
        stars.get(parameter.kind, "") + name: parameter
        for name, parameter in inspect.signature(call).parameters.items()
        if name not in ("self", "cls")
    }


def wrong_default(kind: str, parameter: inspect.Parameter) -> bool:
    """Whether a type such as ``float, default 0.95`` or ``int, optional`` is untrue."""
    if parameter.default is inspect.Parameter.empty:
        return "optional" in kind or "default" in kind
    stated = re.search(r"default[ =:]+([^ ,].*)$", kind)
    return bool(stated) and stated[1].strip("`'\" ") != str(parameter.default)


def faults_of_function(function: Callable[..., Any]) -> Iterator[str]:
    if not (function.__doc__ or "").strip():
        yield "has no docstring"
        return
    doc = FunctionDoc(function)
    entries, expected = described(doc["Parameters"]), arguments(function)
    if entries:
        if list(entries) != list(expected):
            yield f"describes {list(entries)}, takes {list(expected)}"
        else:
            yield from (
                f"{name}: {entries[name]!r}, but the default is {parameter.default!r}"
                for name, parameter in expected.items()
                if wrong_default(entries[name], parameter)
            )
        returned = str(inspect.signature(function).return_annotation)
        if returned not in ("None", "NoReturn", *classes()) and not (
            doc["Returns"] or doc["Yields"] or doc["Summary"][0].startswith("Return ")
        ):
            yield "has no Returns section"
        return
    # A short docstring may do without the section if it names every argument.
    unnamed = [
        name
        for name in expected
        if not re.search(rf"\b{re.escape(name.strip('*'))}\b", function.__doc__ or "")
    ]
    if unnamed:
        yield f"does not mention {unnamed}"


@cache
def classes() -> frozenset[str]:
    """Return the names of public classes: their own docstrings say what a result holds."""
    return frozenset(
        name.rpartition(".")[2] for name, thing in public_objects() if inspect.isclass(thing)
    )


def faults_of_class(cls: type) -> Iterator[str]:
    if not (cls.__dict__.get("__doc__") or "").strip():
        yield "has no docstring"
        return
    own_call = "__init__" in vars(cls) or not issubclass(cls, BaseException)
    if not own_call or getattr(cls, "_is_protocol", False):
        expected: dict[str, Any] = {}
    else:
        expected = arguments(cls)
    doc = ClassDoc(cls, config={"show_class_members": False})
    parameters, attributes = described(doc["Parameters"]), described(doc["Attributes"])
    if parameters:
        if list(parameters) != list(expected):
            yield f"describes {list(parameters)}, takes {list(expected)}"
    elif not set(expected) <= set(attributes):
        yield f"does not describe {sorted(set(expected) - set(attributes))}"
    for name in attributes:
        if name not in expected and not hasattr(cls, name) and name not in annotations(cls):
            yield f"describes {name!r}, which is no attribute"
    for name, member in vars(cls).items():
        inner = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
        if name.startswith("_"):
            continue
        if inspect.isfunction(inner) and not inherited(cls, name, inner):
            yield from (f".{name} {fault}" for fault in faults_of_function(inner))
        elif isinstance(inner, property) and not inner.__doc__:
            yield f".{name} has no docstring"


def inherited(cls: type, name: str, method: Callable[..., Any]) -> bool:
    """Whether a base class describes the same method with the same arguments."""
    return bool(method.__doc__) and any(
        list(arguments(getattr(base, name))) == list(arguments(method))
        for base in cls.__mro__[1:]
        if name in vars(base) and callable(getattr(base, name))
    )


def annotations(cls: type) -> set[str]:
    """Return annotated names, and those that ``__init__`` assigns."""
    found = {name for base in cls.__mro__ for name in inspect.get_annotations(base)}
    for base in cls.__mro__[:-1]:
        if "__init__" in base.__dict__ and inspect.isfunction(base.__init__):
            found |= set(base.__init__.__code__.co_names)
    return found


@cache
def targets() -> dict[str, Any]:
    """Return every public function and class once, whatever number of names it has."""
    found: dict[int, tuple[str, Any]] = {}
    for name, thing in public_objects():
        if inspect.isfunction(thing) or inspect.isclass(thing):
            found.setdefault(id(thing), (name, thing))
    return dict(found.values())


def faults(thing: Any) -> list[str]:
    return list(faults_of_class(thing) if inspect.isclass(thing) else faults_of_function(thing))


@pytest.mark.parametrize("name", targets())
def test_docstring_says_what_the_signature_says(name):
    assert faults(targets()[name]) == []


def test_faults_are_seen():
    """Negative controls: each kind of untrue docstring is reported."""

    def renamed(new: int) -> None:
        """Do it.

        Parameters
        ----------
        old : int
        """

    def moved(a: int = 3) -> None:
        """Do it.

        Parameters
        ----------
        a : int, default 4
        """

    def silent(a: int) -> int:
        """Do it.

        Parameters
        ----------
        a : int
        """
        return a

    class Short:
        """A thing."""

        def method(self, size: int) -> None:
            """Grow."""

    class Stale:
        """A thing.

        Attributes
        ----------
        gone : int
        """

    assert faults(renamed) == ["describes ['old'], takes ['new']"]
    assert faults(moved) == ["a: 'int, default 4', but the default is 3"]
    assert faults(silent) == ["has no Returns section"]
    assert faults(Short) == [".method does not mention ['size']"]
    assert faults(Stale) == ["describes 'gone', which is no attribute"]
