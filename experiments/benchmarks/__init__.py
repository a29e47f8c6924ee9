"""Time and memory against the tools people use, in the same run."""
