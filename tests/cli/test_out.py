"""`--out`: the document and a page of each command, the same bytes when it is repeated."""

from __future__ import annotations

import numpy as np
import pytest

MODELS = "{real} {good} {bad}"
CALLS = {
    f"score {MODELS}": "Usual number",
    f"gate {MODELS} --margin 0.3": "May the candidate replace the baseline?",
    "track {real} {step-1} {step-2} --looks 30": "Is training still improving?",
    f"mixture {MODELS}": "Is a mixture of models better?",
    f"modes {MODELS}": "pass --images",
    f"select --reference {MODELS}": "certified",
    "reproduce {real} {good} --n 5000": "Predicted",
    "audit o24.gaussian-mean --quick --replications 20": "refuted",
}


@pytest.mark.parametrize("call", CALLS)
def test_the_document_and_a_page_that_repeat_byte_for_byte(run, zoo, tmp_path, call):
    paths = {path.stem: path for path in zoo.glob("*.npy")}
    for step, name in enumerate(("bad", "good"), 1):
        paths[f"step-{step}"] = tmp_path / f"step-{step}.npy"
        np.save(paths[f"step-{step}"], np.load(paths[name]))
    out = tmp_path / "out"
    words = [*call.format(**paths).split(), "--out", out]
    found = run(*words, "--json")
    assert found.code in (0, 1)
    kept = [(out / name).read_bytes() for name in ("results.json", "report.html")]
    assert found.out.encode() == kept[0]
    assert CALLS[call] in kept[1].decode()
    assert run(*words).code == found.code
    assert [(out / name).read_bytes() for name in ("results.json", "report.html")] == kept
