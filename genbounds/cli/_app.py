"""The program: commands, errors as one line, exit statuses."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from typing import Annotated, NoReturn, cast

import typer

from genbounds import __version__
from genbounds.cli import audit, bounds, features, score, select
from genbounds.cli._terminal import complain
from genbounds.validation import InputError

EXAMPLES = """Examples:

\b
genbounds score real.npy a.npy b.npy          which model is better, and how sure is that
genbounds select --reference real.npy *.npy   the best model from as few samples as possible
genbounds features photos/ --encoder timm:vit_small_patch14_dinov2 --out real.safetensors
genbounds audit --quick                       do the field's inequalities hold as printed
genbounds bounds o24.hoeffding                one statement explained
"""

DONE, NEGATIVE, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130

# Typer's own base class of wrong usage is not public; that of its bad parameter is.
_UsageError = cast(type[Exception], typer.BadParameter.__mro__[1])

app = typer.Typer(
    name="genbounds",
    help="The statistics of judging generative models.",
    epilog=EXAMPLES,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Judge generative models: scores with honest intervals, audited bounds, certified selection.

    Exit status: 0 done; 1 the answer is negative; 2 bad usage or input; 130 interrupted.
    """
    if version:
        typer.echo(f"genbounds {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


app.command("score", epilog=score.EXAMPLES)(score.score)
app.command("select", epilog=select.EXAMPLES)(select.select)
app.command("features", epilog=features.EXAMPLES)(features.features)
app.command("audit", epilog=audit.EXAMPLES)(audit.audit)
app.command("bounds", epilog=bounds.EXAMPLES)(bounds.bounds)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program.

    Parameters
    ----------
    arguments : sequence of str, optional
        Those of the process by default.

    Returns
    -------
    int
        Exit status: 0 done, 1 the answer is negative, 2 bad usage or input, 130 interrupted.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller, who wants nothing from it
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal without Unicode gets "?"
            stream.reconfigure(errors="replace")
    try:
        code = typer.main.get_command(app).main(
            args=None if arguments is None else list(arguments),
            prog_name="genbounds",
            standalone_mode=False,
        )
    except _UsageError as error:
        context = getattr(error, "ctx", None)
        path = "genbounds" if context is None else context.command_path
        complain(f"{_one_line(error)} See '{path} --help'.", program=path)
        return BAD_INPUT
    except InputError as error:
        complain(str(error))
        return BAD_INPUT
    except KeyboardInterrupt:  # outside the long work, which says what it kept
        complain("interrupted; what was written is whole.")
        return INTERRUPTED
    except MemoryError:
        complain("not enough memory: use fewer features, or a machine with more.")
        return BAD_INPUT
    return code if isinstance(code, int) else DONE


def program() -> NoReturn:
    """Run the program as a process of its own."""
    code = main()
    if code == INTERRUPTED:
        # Now and then the interpreter, on its way out, ends the process by SIGINT all the same.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _one_line(error: Exception) -> str:
    message = error.format_message() if hasattr(error, "format_message") else str(error)
    text = " ".join(message.split())
    return text if text.endswith((".", "?", ")")) else text + "."
