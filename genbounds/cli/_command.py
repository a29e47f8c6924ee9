"""One skeleton for all commands: a file of a command holds what is its own.

A command is a function of its options that returns an `Answer`. A parameter that is a group of
options (`genbounds.cli._options`) stands for all of them on the command line.
"""

from __future__ import annotations

import functools
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import typer
from typer.core import TyperCommand
from typer.models import OptionInfo

from genbounds.cli._options import ENCODERS, Output, renamed
from genbounds.cli._terminal import interruptible, json_text, keep, reader_may_leave, refuse_others

if TYPE_CHECKING:
    from genbounds.report import Page

NEGATIVE = 1
"""Exit status where the job ran and its answer is no."""

NAMES_IN_FILES = ("groups", "strata", "seeds")
"""Options that name an array of the files: an error about one is about the array."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a command has found.

    Attributes
    ----------
    document : dict
        For ``--json`` and ``results.json``.
    show : callable
        Prints it for people.
    page : callable, optional
        Makes the page of the folder of results.
    negative : bool
        Whether the answer is no.
    """

    document: dict[str, Any]
    show: Callable[[], None]
    page: Callable[[], Page] | None = None
    negative: bool = False


app = typer.Typer(
    name="genbounds",
    help="The statistics of judging generative models.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


class _Command(TyperCommand):
    """A command whose usage line reads as in the documentation, and which lists its metrics."""

    def __init__(
        self,
        *args: Any,
        examples: str,
        metrics: Callable[[], Iterable[str]] | None,
        own_metrics: bool,
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        self.examples, self.metrics, self.own_metrics = examples, metrics, own_metrics
        for parameter in self.params:
            if parameter.param_type_name == "argument":  # else "<list[Path]>" stands beside it
                setattr(parameter, "display_type_rich", lambda ctx: None)  # noqa: B010

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return what follows the name of the command."""
        return [self.options_metavar or ""]

    def metric_lines(self, width: int) -> str:
        """Return what each metric is, in lines of at most `width`; "" if there are none."""
        if self.metrics is None:
            return ""
        from genbounds.estimators import metric_spec

        known = {name: metric_spec(name).summary for name in self.metrics()}
        if self.own_metrics:
            known["module:name"] = "a score of your own (a SmoothScore)"
        return _lines(known, width)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write metrics and examples, their lines as they are."""
        lines = self.metric_lines(formatter.width - 2)
        self.epilog = f"Metrics:\n\n\b\n{lines}\n" if lines else ""
        self.epilog += f"Examples:\n\n\b{self.examples}"
        super().format_epilog(ctx, formatter)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """List metrics or encoders for an option with nothing after it, or with `help`."""
        lists = {"--metric": self.metric_lines}
        if any(parameter.name == "encoder" for parameter in self.params):
            lists["--encoder"] = functools.partial(_lines, ENCODERS)
        for option, lines in lists.items():
            asked = args[-1:] == [option] or (option, "help") in pairwise(args)
            if asked and not ctx.resilient_parsing:  # completion parses as well
                text = lines(ctx.make_formatter().width)
                if text:
                    typer.echo(f"{option[2:].capitalize()}s:\n{text}", nl=False)
                    ctx.exit()
        return super().parse_args(ctx, args)


def _lines(known: Mapping[str, str], width: int) -> str:
    """Return each name and what is said of it, in lines of at most `width`."""
    indent = max(map(len, known)) + 2
    return "".join(
        f"{textwrap.fill(f'{name:<{indent}}{text}', width, subsequent_indent=' ' * indent)}\n"
        for name, text in known.items()
    )


def command(
    usage: str,
    examples: str,
    *,
    metrics: Callable[[], Iterable[str]] | None = None,
    own_metrics: bool = True,
    advice: str = "run the same command again.",
) -> Callable[[Callable[..., Answer]], Callable[..., None]]:
    """Make a command of the program of a function.

    Parameters
    ----------
    usage : str
        What follows the command's name in its usage line, before its options.
    examples : str
        Lines at the end of its help text.
    metrics : callable, optional
        Lists the metrics that it takes.
    own_metrics : bool
        Whether it takes ``module:name`` as well.
    advice : str
        What to do after Ctrl-C.
    """

    def made(function: Callable[..., Answer]) -> Callable[..., None]:
        parameters = _declared(function)
        kinds = get_type_hints(function)
        # Of an argument of the library that an option carries, errors are about the option.
        declared = {each.name: get_args(each.annotation)[1] for each in parameters}
        options = {
            name: f"--{name.replace('_', '-')}"
            for name, each in declared.items()
            if isinstance(each, OptionInfo) and name not in NAMES_IN_FILES
        }

        def run(**given: Any) -> None:
            asked = {
                name: _built(kinds[name], name, given)
                for name in inspect.signature(function).parameters
            }
            # Not by the names of its options: `--out` of `features` is a file.
            output: Output = asked["output"] if "output" in asked else asked["judging"].output
            with interruptible(advice):
                before = refuse_others(output.out, run.__name__)
                with renamed(options):
                    answer = function(**asked)
                keep(output.out, run.__name__, answer.document, before=before, page=answer.page)
            with reader_may_leave():
                if output.as_json:
                    sys.stdout.write(json_text(run.__name__, answer.document))
                else:
                    answer.show()
            if answer.negative:
                raise typer.Exit(NEGATIVE)

        run.__name__, run.__doc__ = function.__name__, function.__doc__
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        own = {"examples": examples, "metrics": metrics, "own_metrics": own_metrics}
        return app.command(
            run.__name__,
            cls=functools.partial(_Command, **own),  # type: ignore[arg-type]
            options_metavar=f"{usage} [OPTIONS]",
            # Left to itself, the list of commands cuts it at the width of the terminal.
            short_help=" ".join((run.__doc__ or "").partition("\n\n")[0].split()),
        )(run)

    return made


def _declared(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the options of a function in order, those of its groups among them."""
    parameters = []
    for parameter in inspect.signature(function, eval_str=True).parameters.values():
        by_name = parameter.kind is parameter.KEYWORD_ONLY
        for name, annotation, declared in _options_of(parameter):
            how = dict(declared.metadata)
            spelt = how.pop("name", f"--{name.replace('_', '-')}")
            kind = typer.Option(spelt, **how) if by_name else typer.Argument(**how)
            required = declared.default is ...
            parameters.append(
                inspect.Parameter(
                    name,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=inspect.Parameter.empty if required else declared.default,
                    annotation=Annotated[annotation, kind],
                )
            )
    return parameters


def _options_of(parameter: inspect.Parameter) -> Iterator[tuple[str, Any, Any]]:
    """Yield name, type and declaration of a parameter, or of all options of a group."""
    if not is_dataclass(parameter.annotation):
        yield parameter.name, parameter.annotation, parameter.default
        return
    for name, annotation, declared in _members(parameter.annotation):
        yield from _options_of(
            parameter.replace(name=name, annotation=annotation, default=declared)
        )


def _members(group: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield name, type and declaration of the options and groups in a group of options.

    A field without a declaration is no option of the command.
    """
    types = get_type_hints(group)
    for each in fields(group):
        if each.metadata or is_dataclass(types[each.name]):
            yield each.name, types[each.name], each


def _built(kind: Any, name: str, given: Mapping[str, Any]) -> Any:
    """Return the option of that name, or the group that such a parameter stands for."""
    if not is_dataclass(kind):
        return given[name]
    return kind(  # type: ignore[operator]
        **{member: _built(each, member, given) for member, each, _ in _members(kind)}
    )
