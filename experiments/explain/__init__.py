"""Which kinds of rows a model misses: error rate and power."""
