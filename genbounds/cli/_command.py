"""One skeleton for all commands: a file of a command holds what is its own.

A command is a function of its options that returns an `Answer`. A parameter that is a group of
options (`genbounds.cli._options`) stands for all of them on the command line.
"""

from __future__ import annotations

import inspect
import os
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field, fields, is_dataclass
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from signal import SIGINT
from typing import Annotated, Any, ClassVar, cast, get_type_hints

import typer
from typer.core import TyperCommand

import genbounds as gb
from genbounds import __version__
from genbounds._text import display, said_by
from genbounds.cli._options import Output
from genbounds.cli._terminal import check_folder, complain, heard, keep, write_errors

DONE, NEGATIVE, BAD_INPUT, SIGNAL = 0, 1, 2, 128
"""Exit statuses; 1: the job ran and its answer is no; 128 and the number of a signal."""

# Typer's own base class of wrong usage is not public; that of its bad parameter is.
UsageError = cast(type[Exception], typer.BadParameter.__mro__[1])


@contextmanager
def renamed(names: Mapping[str, Path | str]) -> Iterator[None]:
    """Name the file or the option instead of the argument that it was passed as."""
    try:
        yield
    except gb.InputError as error:
        name = names.get(error.argument)
        if name is None:
            raise
        raise error.about(display(name)) from error


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
    page: Callable[[], gb.report.Page] | None = None
    negative: bool = False


app = typer.Typer(
    name="genbounds",
    help="The statistics of judging generative models.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


COMMANDS: dict[str, Callable[..., None]] = {}
"""As `command` makes them."""

EXAMPLES: list[str] = []
"""The first example of each."""


class _Command(TyperCommand):
    """A command whose usage line reads as in the documentation, and which lists its metrics.

    Attributes
    ----------
    examples : str
        Lines at the end of its help text.
    lists : dict of str to callable
        From an option to a function that names its values and says what each is.
    """

    examples: ClassVar[str]
    lists: ClassVar[Mapping[str, Callable[[], Mapping[str, str]]]]

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return what follows the name of the command."""
        return [self.options_metavar or ""]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options."""
        for parameter in self.params:
            if parameter.param_type_name == "argument":  # else "<list[Path]>" stands beside it
                setattr(parameter, "display_type_rich", lambda ctx: None)  # noqa: B010
        super().format_options(ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write metrics and examples, their lines as they are."""
        self.epilog = f"Examples:\n\n\b{self.examples}"
        if "--metric" in self.lists:
            lines = self._listed("--metric", formatter.width - 2)
            self.epilog = f"Metrics:\n\n\b\n{lines}\n{self.epilog}"
        super().format_epilog(ctx, formatter)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """List metrics or encoders for an option with nothing after it, or with `help`.

        Refuse a percentage in two pieces, and what a variable of the shell leaves that is not set:
        as a path nothing is this folder.
        """
        for before, argument in zip(("", *args), args, strict=False):
            if argument == "" or (argument.startswith("--") and argument.endswith("=")):
                empty = argument[:-1] or before
                what = f"`{empty}`" if empty.startswith("-") else "an argument"
                raise gb.InputError(f"{what} is empty: is a variable of the shell not set?")
            if argument == "%":
                raise gb.InputError(f"'%' stands alone: write {display(before)}%, without a space.")
        for option in self.lists:
            asked = args[-1:] == [option] or (option, "help") in pairwise(args)
            if asked and not ctx.resilient_parsing:  # completion parses as well
                lines = self._listed(option, ctx.make_formatter().width)
                typer.echo(f"{option[2:].capitalize()}s:\n{lines}", nl=False)
                ctx.exit()
        return super().parse_args(ctx, args)

    def _listed(self, option: str, width: int) -> str:
        known = self.lists[option]()
        indent = max(map(len, known)) + 2
        return "".join(
            f"{textwrap.fill(f'{name:<{indent}}{text}', width, subsequent_indent=' ' * indent)}\n"
            for name, text in known.items()
        )


def command(
    usage: str, examples: str, *, advice: str | Callable[..., str] = "run the same command again."
) -> Callable[[Callable[..., Answer]], Callable[..., None]]:
    """Make a command of the program of a function.

    Parameters
    ----------
    usage : str
        What follows the command's name in its usage line, before its options.
    examples : str
        Lines at the end of its help text.
    advice : str or callable
        What to do after Ctrl-C; or a function from the parameters of the command to it.
    """

    def made(function: Callable[..., Answer]) -> Callable[..., None]:
        name, declared = function.__name__, _Declared()
        for parameter in inspect.signature(function, eval_str=True).parameters.values():
            declared.add(parameter)

        def run(**given: Any) -> None:
            for group, kind, members in declared.groups:
                given[group] = kind(**{member: given.pop(member) for member in members})
            # Not by the names of its options: `--out` of `features` is a file.
            output: Output = given["output"] if "output" in given else given["judging"].output
            try:
                with redirect_stdout(sys.stderr):  # Python that the user named may print
                    before = check_folder(output.out, name)
                    with renamed(declared.spelt):
                        answer = function(**given)
                    text = keep(output.out, name, answer.document, before=before, page=answer.page)
            except SystemExit as error:  # its exit status is no answer of ours
                raise gb.InputError(
                    "the Python code that was named ended the program "
                    f"({said_by(error) or 'sys.exit'}): let it return, or raise an error."
                ) from error
            except KeyboardInterrupt as error:
                said = advice if isinstance(advice, str) else advice(**given)
                complain(f"interrupted: {said}")
                raise typer.Exit(SIGNAL + getattr(error, "number", SIGINT)) from None
            try:
                if output.as_json:
                    sys.stdout.write(text)
                else:
                    answer.show()
                sys.stdout.flush()
            except (OSError, SystemExit) as error:  # rich turns a broken pipe into the latter
                # What is still in the buffer must not fail again on the way out. A reader who goes
                # away, as `head` does, changes no exit status; a full disk is said.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
                    why = f"standard output cannot be written: {error.strerror}"
                    raise gb.InputError(f"{why}: write to another place.") from error
            if answer.negative:
                raise typer.Exit(NEGATIVE)

        run.__name__, run.__doc__ = name, function.__doc__
        run.__signature__ = inspect.Signature(declared.parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in declared.parameters}
        COMMANDS[name] = app.command(
            name,
            cls=type("Command", (_Command,), {"examples": examples, "lists": declared.lists}),
            options_metavar=f"{usage} [OPTIONS]",
            # Left to itself, the list of commands cuts it at the width of the terminal.
            short_help=" ".join((run.__doc__ or "").partition("\n\n")[0].split()),
        )(run)
        EXAMPLES.append(examples.strip().partition("\n")[0])
        return COMMANDS[name]

    return made


@dataclass(frozen=True, slots=True)
class _Declared:
    """The options of a command.

    Attributes
    ----------
    parameters : list of inspect.Parameter
        As the command line has them, in order.
    groups : list of tuple
        Name and class of each group of options, and what it is made of; a group comes after those
        that it is made of.
    spelt : dict of str to str
        What errors about an argument of the library, which an option carries, call it.
    lists : dict of str to callable
        As in `_Command`.
    """

    parameters: list[inspect.Parameter] = field(default_factory=list)
    groups: list[tuple[str, Any, list[str]]] = field(default_factory=list)
    spelt: dict[str, str] = field(default_factory=dict)
    lists: dict[str, Callable[[], Mapping[str, str]]] = field(default_factory=dict)

    def add(self, parameter: inspect.Parameter) -> None:
        """Add the option, or all options of the group, that a parameter stands for."""
        name, kind, declared = parameter.name, parameter.annotation, parameter.default
        if is_dataclass(kind):
            types = get_type_hints(kind)
            # A field that declares nothing is no option of the command.
            members = [x for x in fields(kind) if x.metadata or is_dataclass(types[x.name])]
            for member in members:
                self.add(
                    parameter.replace(
                        name=member.name, annotation=types[member.name], default=member
                    )
                )
            self.groups.append((name, kind, [member.name for member in members]))
            return
        how = dict(declared.metadata)
        spelt = how.pop("name", f"--{name.replace('_', '-')}")
        if "lists" in how:
            self.lists[spelt] = how.pop("lists")
        if parameter.kind is parameter.KEYWORD_ONLY:
            info = typer.Option(spelt, **how)
            if name not in NAMES_IN_FILES:
                self.spelt[name] = spelt
        else:
            info = typer.Argument(**how)
        self.parameters.append(
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if declared.default is ... else declared.default,
                annotation=Annotated[kind, info],
            )
        )


# --- the program ----------------------------------------------------------------------------------

FILES = "score select decisions explain features catalogue"
"""Of the commands."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program in this process.

    Parameters
    ----------
    arguments : sequence of str, optional
        Those of the process by default.

    Returns
    -------
    int
        Exit status: 0 done, 1 the answer is negative, 2 bad usage or input, 130 interrupted (by
        another signal: 128 and its number).
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        for name in FILES.split():
            import_module(f"genbounds.cli.{name}")
        program = typer.main.get_command(app)
        program.epilog = "\n".join(("Examples:\n\n\b", *EXAMPLES))
        with heard("SIGINT"):
            code = program.main(args=given, prog_name="genbounds", standalone_mode=False)
        return code if isinstance(code, int) else DONE
    except UsageError as error:
        complain_of_usage(error, given[:1])
    except gb.InputError as error:
        complain(str(error))
    except OSError as error:  # a path that the system does not take, wherever it is met first
        if error.filename is None:
            raise
        complain(f"{display(error.filename, limit=100)}: {gb.files.reason_of(error)}.")
    except MemoryError:
        complain("not enough memory: use fewer features, or a machine with more.")
    except KeyboardInterrupt:
        return SIGNAL + SIGINT
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # `head` has read enough of a help text
            return DONE
        raise
    except Exception:  # of Python that the user named, or a mistake of ours; 1 would be an answer
        import traceback

        write_errors(*(display(line, limit=None) for line in traceback.format_exc().splitlines()))
    return BAD_INPUT


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Scores of generative models with confidence intervals, and decisions from them.

    Exit status: 0 done; 1 the answer is negative; 2 bad usage or input; 130 interrupted.
    """
    if version:
        typer.echo(f"genbounds {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


def complain_of_usage(error: Exception, asked: Sequence[str]) -> None:
    """Print what is wrong, and which commands have an option that the one asked for has not."""
    path = " ".join(["genbounds", *(word for word in asked if word in COMMANDS)])
    if (context := getattr(error, "ctx", None)) is not None:
        path = context.command_path
    message = error.format_message() if hasattr(error, "format_message") else str(error)
    text = " ".join(message.split())
    text += "" if text.endswith((".", "?", ")")) else "."
    option = (getattr(error, "option_name", None) or "").lstrip("-").replace("-", "_")
    having = [n for n, each in COMMANDS.items() if option in inspect.signature(each).parameters]
    if having and not {*asked} & {*having}:
        text += f" An option of: {', '.join(having)}."
    complain(f"{text} See '{path} --help'.", program=path)
