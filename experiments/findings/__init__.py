"""What the audit found, written out for a reader who wants to check it by hand."""
