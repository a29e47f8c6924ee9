"""Run the command line as ``python -m genbounds.cli``."""

import sys

from genbounds.cli import main

if __name__ == "__main__":
    sys.exit(main())
