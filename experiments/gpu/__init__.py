"""What a CUDA card does for every path of the package, against its own ceilings."""
