"""Run the command line as ``python -m genbounds``."""

from genbounds.cli import program

if __name__ == "__main__":
    program()
