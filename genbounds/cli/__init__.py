"""The command line: `genbounds score | gate | plan | track | features | select | …`."""

from __future__ import annotations

import atexit
import io
import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

INTERRUPTED = 130


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
    from genbounds.cli import _command

    return _command.main(arguments)


def program() -> NoReturn:
    """Run the program as a process of its own."""
    ctrl_c = signal.getsignal(signal.SIGINT)
    if ctrl_c is signal.default_int_handler:  # else a shell has it ignored
        # While modules are imported, which takes a second or more, there is nothing to keep, and
        # an exception from in there would be a page of traceback.
        signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    from genbounds.cli import _command

    if ctrl_c is signal.default_int_handler:
        signal.signal(signal.SIGINT, ctrl_c)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller, who wants nothing from it
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):  # a terminal without Unicode gets "?"
            stream.reconfigure(errors="replace")
    code = _command.main()
    if code > 128:
        # Now and then the interpreter, on its way out, ends the process by the signal all the same.
        # Workers' semaphores are given back at exit, else their tracker complains.
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
