"""Population spectra from fewer rows than the expansion in 1/n can use, even fewer than dimensions.

The Marchenko–Pastur law says how a sample spreads the eigenvalues of its population; its equations
are inverted along a contour or by fitting a smooth spectrum, for one sample or for both at once.
"""
