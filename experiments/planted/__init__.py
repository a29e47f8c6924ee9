"""Errors planted on purpose in every statement and every study, and which the audit sees."""
