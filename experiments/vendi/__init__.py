"""Vendi scores: distributions with known spectra, coverage."""
