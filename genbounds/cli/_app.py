"""The commands, errors as one line, exit statuses."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from inspect import signature
from typing import Annotated, cast

import typer

from genbounds import __version__
from genbounds._errors import InputError
from genbounds._text import display
from genbounds.cli import INTERRUPTED
from genbounds.cli._command import app
from genbounds.cli._terminal import complain, heard, write_errors

EXAMPLES = """Examples:

\b
genbounds score real.npy a.npy b.npy
genbounds gate real.npy old.npy new.npy --margin 2%
genbounds plan real.npy pilot.npy --half-width 10%
genbounds select real.npy a.npy b.npy
genbounds track real.npy step-*.npy
genbounds memorisation gan.npy --train a.npy --heldout b.npy
genbounds mixture real.npy a.npy b.npy
genbounds modes real.npy gan.npy
genbounds reproduce real.npy gan.npy --n 50000 --published 2.31
genbounds features photos/ --encoder dinov2 --out real.safetensors
genbounds audit --quick
genbounds bounds o24.hoeffding
"""

DONE, BAD_INPUT = 0, 2

# Typer's own base class of wrong usage is not public; that of its bad parameter is.
_UsageError = cast(type[Exception], typer.BadParameter.__mro__[1])

NAMES = "score select gate plan track memorisation mixture modes reproduce features audit bounds"
# Each is a function in a file of its name.
COMMANDS = {name: getattr(import_module(f"genbounds.cli.{name}"), name) for name in NAMES.split()}


@app.callback(invoke_without_command=True, epilog=EXAMPLES)
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit status, as `genbounds.cli.main`."""
    try:
        given = list(sys.argv[1:] if arguments is None else arguments)
        _refuse_by_sight(given)
        with heard():
            code = typer.main.get_command(app).main(
                args=given,
                prog_name="genbounds",
                standalone_mode=False,
            )
    except _UsageError as error:
        context = getattr(error, "ctx", None)
        path = " ".join(["genbounds", *(word for word in given[:1] if word in COMMANDS)])
        if context is not None:
            path = context.command_path
        where = _elsewhere(getattr(error, "option_name", None), given[:1])
        complain(f"{_one_line(error)}{where} See '{path} --help'.", program=path)
        return BAD_INPUT
    except InputError as error:
        complain(str(error))
        return BAD_INPUT
    except OSError as error:  # a path that the system does not take, wherever it is met first
        if error.filename is None:
            raise
        from genbounds.files import reason_of

        complain(f"{display(error.filename, limit=100)}: {reason_of(error)}.")
        return BAD_INPUT
    except MemoryError:
        complain("not enough memory: use fewer features, or a machine with more.")
        return BAD_INPUT
    except KeyboardInterrupt:
        return INTERRUPTED
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # `head` has read enough of a help text
            return DONE
        raise
    except Exception:  # of Python that the user named, or a mistake of ours; 1 would be an answer
        import traceback

        write_errors(*(display(line, limit=None) for line in traceback.format_exc().splitlines()))
        return BAD_INPUT
    return code if isinstance(code, int) else DONE


def _refuse_by_sight(arguments: Sequence[str]) -> None:
    """Refuse a percentage in two pieces, and what a variable of the shell leaves that is not set.

    As a path nothing is this folder.
    """
    for before, argument in zip(("", *arguments), arguments, strict=False):
        if argument == "" or (argument.startswith("--") and argument.endswith("=")):
            option = argument[:-1] or before
            what = f"`{option}`" if option.startswith("-") else "an argument"
            raise InputError(f"{what} is empty: is a variable of the shell not set?")
        if argument == "%":
            raise InputError(f"'%' stands alone: write {display(before)}%, without a space.")


def _elsewhere(option: str | None, asked: Sequence[str]) -> str:
    """Say which commands have an option that the one which was asked for has not."""
    name = "" if option is None else option.lstrip("-").replace("-", "_")
    having = [each for each in COMMANDS if name in signature(COMMANDS[each]).parameters]
    return "" if not having or {*asked} & {*having} else f" An option of: {', '.join(having)}."


def _one_line(error: Exception) -> str:
    message = error.format_message() if hasattr(error, "format_message") else str(error)
    text = " ".join(message.split())
    return text if text.endswith((".", "?", ")")) else text + "."
