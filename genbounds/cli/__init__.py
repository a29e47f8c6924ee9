"""The command line: `genbounds score | gate | plan | track | features | select | …`."""

from __future__ import annotations

import atexit
import io
import os
import signal
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from genbounds.cli._command import main as main


def __getattr__(name: str) -> Any:
    """Import `main` when it is asked for, so that a signal is heard before."""
    if name != "main":
        raise AttributeError(f"module 'genbounds.cli' has no attribute {name!r}")
    globals()[name] = value = import_module("genbounds.cli._command").main
    return value


def program() -> NoReturn:
    """Run the program as a process of its own."""
    ctrl_c = signal.getsignal(signal.SIGINT)
    if ctrl_c is signal.default_int_handler:  # else a shell has it ignored
        # While modules are imported, which takes a second or more, there is nothing to keep, and
        # an exception from in there would be a page of traceback.
        signal.signal(signal.SIGINT, lambda *_: os._exit(128 + signal.SIGINT))
    from genbounds.cli._command import main

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
