"""What the shell is offered for an argument or the value of an option."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def offer(values: str | Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Return a completion from the values, as in ``"a|b"``, or from a function that lists them."""

    def matching(incomplete: str) -> list[str]:
        known = values.split("|") if isinstance(values, str) else values()
        return [value for value in known if value.startswith(incomplete)]

    return matching


def statements() -> Iterable[str]:
    """List the ids of the catalogue, which is loaded only when somebody asks."""
    from genbounds.bounds import catalog

    return catalog()


def policies() -> Iterable[str]:
    """List the policies of a selection."""
    from genbounds.select import POLICIES

    return POLICIES
