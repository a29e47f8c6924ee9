"""What must not change unnoticed, beside the numbers of `tests.golden`.

Every record is a readable file. ``python -m tests.frozen`` writes them anew; the difference in the
files then shows a reviewer what changed for users.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import itertools
import json
import math
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import genbounds as gb
from experiments.benchmarks.hard import pairs
from genbounds.cli import main
from tests.docs.public import public_objects

FOLDER = Path(__file__).parent


def files(folder: Path) -> None:
    """Write the inputs of all commands."""
    rng = np.random.default_rng(20_261_126)
    for name, scale in {"real": 1.0, "a": 1.1, "b": 1.6, "c": 1.1}.items():
        np.save(folder / f"{name}.npy", scale * rng.normal(size=(300, 4)))
    np.savez(
        folder / "prompts.npz",
        features=rng.normal(size=(60, 4))[np.arange(300) // 5] + rng.normal(size=(300, 4)),
        groups=np.arange(300) // 5,
    )
    np.savez(folder / "stats.npz", mu=np.zeros(4), sigma=np.eye(4), n=900)
    for step, scale in {1: 2.0, 2: 1.4, 3: 1.1}.items():
        np.save(folder / f"step-{step}.npy", scale * rng.normal(size=(300, 4)))
    for name, alpha in {"p": 0.1, "q": 0.5}.items():
        np.save(folder / f"{name}.npy", rng.dirichlet([alpha] * 5, size=300))
    np.save(folder / "rate.npy", (rng.random((200, 1)) < 0.9).astype(float))
    np.save(folder / "nan.npy", np.full((50, 4), np.nan))
    copies = rng.normal(size=(300, 8))
    np.save(folder / "train.npy", copies)
    np.save(folder / "heldout.npy", rng.normal(size=(300, 8)))
    np.save(folder / "copier.npy", np.concatenate([copies[:40] + 0.01, rng.normal(size=(200, 8))]))


COMMANDS = {
    "score": "score real.npy a.npy b.npy --json",
    "score plugin": "score real.npy a.npy --estimator plugin --json",
    "score kid": "score real.npy a.npy b.npy --metric kid --json",
    "score is": "score p.npy q.npy --metric is --json",
    "score vendi": "score a.npy b.npy --metric vendi --order 2 --json",
    "score recall": "score real.npy a.npy b.npy --metric recall --json",
    "score mean": "score rate.npy --metric mean --json",
    "score statistics": "score stats.npz a.npy --json",
    "score groups": "score real.npy prompts.npz --groups groups --json",
    "gate": "gate real.npy b.npy a.npy --margin 2% --json",
    "gate fails": "gate real.npy a.npy b.npy --margin 2% --json",
    "plan": "plan real.npy a.npy --half-width 0.05 --json",
    "plan confidence": "plan real.npy a.npy b.npy --confidence 0.9 --json",
    "track": "track real.npy step-1.npy step-2.npy step-3.npy --json",
    "reproduce": "reproduce real.npy a.npy --n 5000 --published 0.02 --json",
    "reproduce not": "reproduce real.npy b.npy --n 5000 --published 0.02 --json",
    "modes": "modes real.npy a.npy b.npy --json",
    "memorisation": "memorisation copier.npy --train train.npy --heldout heldout.npy --json",
    "mixture": "mixture real.npy a.npy b.npy --json",
    "select": "select --reference real.npy a.npy b.npy --json",
    "audit": "audit m25.mean-norm --quick --replications 20 --json",
    "bounds": "bounds --json",
    "one bound": "bounds o24.hoeffding --json",
    "no file": "score real.npy none.npy --json",
    "no number": "score real.npy nan.npy --json",
    "no command": "nonsense",
    "no metric": "score real.npy a.npy --metric nonsense --json",
    "two widths": "score real.npy p.npy --json",
    "no encoder": "features real.npy --out out.npz --json",
    "no steps": "track real.npy a.npy b.npy --json",
    "no margin": "gate real.npy a.npy b.npy --json",
}


def documents(folder: Path) -> dict[str, Any]:
    """JSON document and exit status of every command; of a refusal that it is one line."""
    files(folder)
    found = {}
    before = Path.cwd()
    os.chdir(folder)
    try:
        for name, line in COMMANDS.items():
            out, err = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = main(line.split())
            text = out.getvalue()
            said = {"status": code, "lines of errors": err.getvalue().count("\n")}
            found[name] = {**said, "document": plain(json.loads(text)) if text else None}
    finally:
        os.chdir(before)
    return found


PROSE = {"message", "remedy", "notes", "assumptions", "details", "verdict", "reason", "claim"}
PROSE |= {"formula", "source", "title", "summary", "version", "versions", "about", "why", "note"}


def plain(document: Any) -> Any:
    """Keep keys, numbers to six digits, codes and names; of prose its kind alone."""
    if isinstance(document, dict):
        return {k: "…" if k in PROSE and v else plain(v) for k, v in document.items()}
    if isinstance(document, list):
        return [plain(v) for v in document[:40]]
    if isinstance(document, float) and math.isfinite(document):
        return float(f"{document:.6g}")
    return document


def signatures() -> dict[str, str]:
    """Names and arguments of all that is public."""
    return {name: _signature(thing) for name, thing in sorted(dict(public_objects()).items())}


def _signature(thing: Any) -> str:
    try:
        text = str(inspect.signature(thing))
    except (TypeError, ValueError):
        return type(thing).__name__
    return re.sub(r"<[^>]*>", "<…>", text)


def warnings() -> dict[str, list[str]]:
    """Codes and severities of warnings over the hard inputs."""
    scores: dict[str, Callable[[Any, Any], Any]] = {
        "fd": gb.frechet_distance,
        "kid": gb.kernel_inception_distance,
        "energy": lambda x, y: gb.kernel_distance(x, y, kernel="energy"),
        "vendi": lambda x, y: gb.vendi_score(x, kernel="cosine"),
    }
    found = {}
    for pair in pairs():
        for name, score in scores.items():
            try:
                said = score(pair.fake, pair.real).warnings
                codes = sorted({f"{w.code} ({w.severity})" for w in said})
            except gb.InputError:
                codes = ["refused"]
            found[f"{pair.name}: {name}"] = codes
    return found


def streams() -> dict[str, Any]:
    """First draws of the arms, and the histories of every policy."""
    found: dict[str, Any] = {}
    arms = {
        "gaussian": gb.simulate.GaussianArm(np.zeros(3), np.diag([1.0, 2.0, 0.5])),
        "student": gb.simulate.StudentArm(np.zeros(3), np.eye(3), df=5.0),
    }
    for name, arm in arms.items():
        rows = arm.draw(4, np.random.default_rng(1))
        found[f"arm {name}"] = [float(f"{x:.9g}") for x in np.asarray(rows).ravel()]
    line_up = {
        name: gb.simulate.GaussianArm(np.zeros(3), scale * np.eye(3))
        for name, scale in {"x": 1.1, "y": 1.4, "z": 2.0}.items()
    }
    classifiers = {
        name: (lambda n, rng, alpha=alpha: rng.dirichlet(np.full(4, alpha), size=n))
        for name, alpha in {"x": 0.1, "y": 0.3, "z": 1.0}.items()
    }
    real = np.random.default_rng(2).normal(size=(400, 3))
    for policy in gb.select.policies.POLICIES:
        asked: dict[str, Any] = {"policy": policy, "seed": 3, "batch": 20}
        arms: dict[str, Any] = dict(line_up)
        if policy == "is-ucb":
            arms, asked["metric"] = classifiers, "is"
        else:
            asked["reference"] = real
        found[f"policy {policy}"] = _course(gb.select.run(arms, budget=900, **asked))
        # Costs, an arm that joins late, one that runs out: every rule of who draws next.
        draw = arms["z"] if policy == "is-ucb" else line_up["z"].draw
        arms = arms | {"z": gb.select.FeatureArm(draw(150, np.random.default_rng(4)))}
        uneven = {"cost": {"y": 2.0}, "joins": {"x": 4}, "first_look": 100, "budget": 1500}
        found[f"policy {policy}, uneven arms"] = _course(gb.select.run(arms, **asked, **uneven))
    return found


def _course(run: Any) -> dict[str, Any]:
    """Return the answer of a run and the order of its draws."""
    return {
        "best": run.best,
        "certified": run.certified,
        "samples": dict(run.samples),
        "steps": run.steps,
        "picks": _runs_of(run.history.picks.tolist()),
    }


def _runs_of(picks: list[int]) -> str:
    """Write the order of draws: "0 1 2x3" is arm 0, arm 1, then arm 2 three times."""
    runs = [(arm, len(list(same))) for arm, same in itertools.groupby(picks)]
    return " ".join(f"{arm}x{times}" if times > 1 else f"{arm}" for arm, times in runs)


def imports() -> list[str]:
    """Every import path that the documentation and the scripts of the gallery use."""
    root = FOLDER.parents[1]
    pages = [*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("docs/gallery/*.py")]
    found: set[str] = set()
    for page in pages:
        if "_build" in page.parts:
            continue
        text = page.read_text(encoding="utf-8")
        for module, names in re.findall(r"^from (genbounds[\w.]*) import ([\w, ]+)", text, re.M):
            found |= {f"{module}:{name.strip()}" for name in names.split(",") if name.strip()}
        found |= set(re.findall(r"^import (genbounds[\w.]*)", text, re.M))
    return sorted(found)


RECORDS: dict[str, Callable[[Path], Any]] = {
    "commands": documents,
    "signatures": lambda folder: signatures(),
    "warnings": lambda folder: warnings(),
    "streams": lambda folder: streams(),
    "imports": lambda folder: imports(),
}


def path_of(name: str) -> Path:
    """Return where a record lies."""
    return FOLDER / f"{name}.json"
