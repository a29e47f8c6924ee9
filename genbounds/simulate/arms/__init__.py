"""Distributions whose truth is known, a family a file.

Each family draws, states its facts, and owns its exact tails, its list of outcomes and its tilts.
"""
