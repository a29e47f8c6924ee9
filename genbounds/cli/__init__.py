"""The command line: `genbounds score | features | audit | select | bounds`. One file a command."""

from genbounds.cli._app import main as main
from genbounds.cli._app import program as program
