"""How wide an interval is for so many samples: the table of docs/how_many.md."""
