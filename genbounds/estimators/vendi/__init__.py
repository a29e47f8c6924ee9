"""The Vendi family: entropies of a kernel's eigenvalues, of every order, with intervals.

`_score` has the public functions, `_exact` and `_methods` those that compute one. `_spectrum` finds
eigenvalues, `_expansion` expands a score in them; `_ceiling` has intervals where none is normal.
"""
