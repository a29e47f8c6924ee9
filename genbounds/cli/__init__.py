"""The command line: `genbounds score | gate | plan | track | features | select | …`."""

from __future__ import annotations

import atexit
import io
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

import genbounds as gb

INTERRUPTED = 130

COMMANDS = "score select decisions explain features catalogue"
"""The files of the commands."""


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
    import typer

    from genbounds._text import display
    from genbounds.cli import _command
    from genbounds.cli._terminal import complain, heard, write_errors

    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        for name in COMMANDS.split():
            import_module(f"genbounds.cli.{name}")
        app = typer.main.get_command(_command.app)
        app.epilog = "\n".join(("Examples:\n\n\b", *_command.EXAMPLES))
        with heard("SIGINT"):
            code = app.main(args=given, prog_name="genbounds", standalone_mode=False)
        return code if isinstance(code, int) else _command.DONE
    except _command.UsageError as error:
        _command.complain_of_usage(error, given[:1])
    except gb.InputError as error:
        complain(str(error))
    except OSError as error:  # a path that the system does not take, wherever it is met first
        if error.filename is None:
            raise
        complain(f"{display(error.filename, limit=100)}: {gb.files.reason_of(error)}.")
    except MemoryError:
        complain("not enough memory: use fewer features, or a machine with more.")
    except KeyboardInterrupt:
        return INTERRUPTED
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # `head` has read enough of a help text
            return _command.DONE
        raise
    except Exception:  # of Python that the user named, or a mistake of ours; 1 would be an answer
        import traceback

        write_errors(*(display(line, limit=None) for line in traceback.format_exc().splitlines()))
    return _command.BAD_INPUT


def program() -> NoReturn:
    """Run the program as a process of its own."""
    ctrl_c = signal.getsignal(signal.SIGINT)
    if ctrl_c is signal.default_int_handler:  # else a shell has it ignored
        # While modules are imported, which takes a second or more, there is nothing to keep, and
        # an exception from in there would be a page of traceback.
        signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    import_module("genbounds.cli._command")

    if ctrl_c is signal.default_int_handler:
        signal.signal(signal.SIGINT, ctrl_c)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller, who wants nothing from it
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):  # a terminal without Unicode gets "?"
            stream.reconfigure(errors="replace")
    code = main()
    if code > 128:
        # Now and then the interpreter, on its way out, ends the process by the signal all the same.
        # Workers' semaphores are given back at exit, else their tracker complains.
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
