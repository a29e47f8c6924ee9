"""How often the answers of `genbounds.explain` are wrong, and what they find."""
