"""What every score is made from: samples and designs, one second-order expansion, estimates.

A score is a function of weighted rows: its first derivative gives the error, its second derivative
the bias, and the design says which weights could have come out differently.
"""
