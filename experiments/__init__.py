"""Scripts on real models and data, accuracy studies, benchmarks: nothing here is installed."""
