"""Paths and names as one printable line."""

from genbounds._text import display as display
