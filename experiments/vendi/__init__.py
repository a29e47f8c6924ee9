"""Vendi scores: laws with known spectra, coverage."""
