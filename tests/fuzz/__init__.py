"""Hostile files: seeds, mutations, and what a reader may do with them.

A run of a few seconds is part of the tests; `make fuzz` runs a million inputs, guided by coverage
where atheris can be installed.
"""
