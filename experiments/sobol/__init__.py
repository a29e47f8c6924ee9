"""Sobol sampling: where it helps and where it does not."""
