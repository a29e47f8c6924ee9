"""Diversity of real sentences under a real sentence encoder."""
