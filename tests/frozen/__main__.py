"""Write the records anew: ``python -m tests.frozen [NAME ...]``."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from tests.frozen.records import RECORDS, path_of

if __name__ == "__main__":
    for name in sys.argv[1:] or RECORDS:
        with tempfile.TemporaryDirectory() as folder:
            record = RECORDS[name](Path(folder))
        text = json.dumps(record, indent=1, ensure_ascii=False, sort_keys=True)
        path_of(name).write_text(text + "\n", encoding="utf-8")
        print(f"wrote {path_of(name)}")
