"""Scores, rankings and selections whose exact values are kept in `golden.json`.

Every case goes through the public face of the package, so that the code behind it may change and
these numbers may not. A case returns a flat list of numbers (and names); data are made by NumPy's
frozen `RandomState`, whose streams are the same on every version.
"""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import genbounds as gb
from genbounds.cli import main
from genbounds.estimators import PolynomialKernel, Subsets

Case = Callable[[], list[Any]]


def _numbers(score: Any) -> list[Any]:
    return [score.value, score.low, score.high, score.stderr, score.n]


def _random(seed: int) -> np.random.RandomState:
    return np.random.RandomState(seed)


def _mixing(d: int, seed: int = 7) -> np.ndarray:
    """A square root of a covariance with a decaying spectrum."""
    r = _random(seed)
    q, _ = np.linalg.qr(r.randn(d, d))
    return q * np.arange(1, d + 1) ** -0.5


def gaussian(n: int, d: int, seed: int, *, scale: float = 1.0, shift: float = 0.0) -> np.ndarray:
    return scale * _random(seed).randn(n, d) @ _mixing(d).T + shift


def heavy(n: int, d: int, seed: int) -> np.ndarray:
    r = _random(seed)
    return r.randn(n, d) @ _mixing(d).T / np.sqrt(r.chisquare(6, size=(n, 1)) / 6)


def rectified(n: int, d: int, seed: int) -> np.ndarray:
    return np.maximum(gaussian(n, d, seed) @ _random(3).randn(d, d) / np.sqrt(d) + 0.1, 0.0)


def clusters(n: int, d: int, seed: int, k: int = 6) -> np.ndarray:
    r = _random(seed)
    centres = 2.0 * _random(11).randn(k, d)
    return centres[r.randint(k, size=n)] + 0.3 * r.randn(n, d)


def posteriors(n: int, classes: int, seed: int, sharp: float = 2.0) -> np.ndarray:
    logits = sharp * _random(seed).randn(n, classes)
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


KINDS = {"gaussian": gaussian, "heavy": heavy, "rectified": rectified, "clusters": clusters}


def _frechet() -> Iterator[tuple[str, Case]]:
    fd = gb.frechet_distance
    for kind, make in KINDS.items():
        for n, m, d in ((400, 700, 8), (120, 900, 24), (60, 400, 40), (90, 110, 40), (30, 30, 24)):
            x, y = make(n, d, 1), 1.1 * make(m, d, 2) + 0.05
            yield f"fd/{kind}/{n}x{m}x{d}", lambda x=x, y=y: _numbers(fd(x, y))
        x, y = make(400, 8, 3), make(700, 8, 4) * 0.9
        exact = gb.Moments(y.mean(0), np.cov(y.T))
        counted = gb.Moments(y.mean(0), np.cov(y.T), n=700)
        yield f"fd/{kind}/exact", lambda x=x, r=exact: _numbers(fd(x, r))
        yield f"fd/{kind}/moments", lambda x=x, r=counted: _numbers(fd(x, r))
        yield (
            f"fd/{kind}/both moments",
            lambda x=x, r=counted: _numbers(fd(gb.Moments.from_features(x), r)),
        )
        yield f"fd/{kind}/plugin", lambda x=x, y=y: _numbers(fd(x, y, estimator="plugin"))
        yield f"fd/{kind}/infinity", lambda x=x, y=y: _numbers(fd(x, y, estimator="infinity"))
        few = make(40, 16, 5)
        wide = make(600, 16, 6)
        known = gb.Moments(wide.mean(0), np.cov(wide.T))
        yield f"fd/{kind}/few, exact", lambda x=few, r=known: _numbers(fd(x, r))
        yield (
            f"fd/{kind}/few moments",
            lambda x=few, y=wide: _numbers(fd(gb.Moments.from_features(x), y)),
        )
        yield f"fd/{kind}/single", lambda x=x, y=y: _numbers(fd(np.float32(x), np.float32(y)))
        yield f"fd/{kind}/equal rows", lambda x=x: _numbers(fd(x, x))
    x, y = gaussian(1200, 12, 8), gaussian(1500, 12, 9, scale=1.05)
    yield "fd/second order", lambda: _numbers(fd(x, y))
    yield "fd/level", lambda: _numbers(fd(x, y, level=0.8))
    yield "fd/large", lambda: _numbers(fd(gaussian(9000, 20, 12), gaussian(7000, 20, 13)))
    yield (
        "fd/wide single",
        lambda: _numbers(
            fd(np.float32(gaussian(2400, 520, 14)), np.float32(gaussian(2600, 520, 15)))
        ),
    )
    yield "fd/low rank", lambda: _numbers(fd(x[:, :3] @ np.ones((3, 6)), y[:, :3] @ np.eye(3, 6)))
    # Gaussian rows of fewer samples than dimensions, from 100 directions on.
    yield "fd/wide few", lambda: _numbers(fd(gaussian(300, 120, 16), gaussian(800, 120, 17)))
    yield "fd/wide both few", lambda: _numbers(fd(gaussian(100, 120, 18), gaussian(90, 120, 19)))
    for subsets in (Subsets(points=5), Subsets(points=4, replace=True), Subsets(spacing="1/n")):
        yield (
            f"fd/infinity, {subsets.points} {subsets.spacing} {subsets.replace}",
            lambda s=subsets: _numbers(gb.estimators.frechet_infinity(x, y, subsets=s)),
        )


def _kernel() -> Iterator[tuple[str, Case]]:
    kid = gb.kernel_inception_distance
    for kind, make in KINDS.items():
        for n, m, d in ((60, 80, 4), (500, 300, 12), (1300, 1100, 12)):
            x, y = make(n, d, 21), 1.1 * make(m, d, 22)
            yield f"kid/{kind}/{n}x{m}x{d}", lambda x=x, y=y: _numbers(kid(x, y))
        x, y = make(200, 6, 23), make(300, 6, 24) + 0.1
        yield f"kid/{kind}/plugin", lambda x=x, y=y: _numbers(kid(x, y, estimator="plugin"))
        yield (
            f"kid/{kind}/degree 2",
            lambda x=x, y=y: _numbers(kid(x, y, degree=2, gamma=0.5, offset=0.0)),
        )
    x, y = gaussian(4200, 6, 25), gaussian(4300, 6, 26)
    yield "kid/single", lambda: _numbers(kid(np.float32(x), np.float32(y)))


def _inception() -> Iterator[tuple[str, Case]]:
    score = gb.inception_score
    for n, classes in ((10, 5), (80, 10), (400, 10), (900, 100), (600, 700)):
        p = posteriors(n, classes, 31)
        for estimator in ("debiased", "plugin", *(["infinity"] if n >= 80 else [])):
            yield (
                f"is/{n}x{classes}/{estimator}",
                lambda p=p, e=estimator: _numbers(score(p, estimator=e)),
            )
    p = posteriors(300, 10, 32)
    yield "is/one-hot", lambda: _numbers(score(np.tile(np.eye(5), (20, 1))))
    yield (
        "is/splits",
        lambda: [v for s in gb.estimators.inception_splits(p, splits=3) for v in _numbers(s)],
    )


def _vendi() -> Iterator[tuple[str, Case]]:
    score = gb.vendi_score
    for kind, make in KINDS.items():
        x = make(300, 6, 41)
        for order in (0.5, 1.0, 2.0, 3.0, np.inf):
            for kernel in ("cosine", "rbf"):
                yield (
                    f"vendi/{kind}/{kernel}/{order}",
                    lambda x=x, k=kernel, q=order: _numbers(score(x, kernel=k, order=q)),
                )
        yield (
            f"vendi/{kind}/plugin",
            lambda x=x: _numbers(score(x, kernel="cosine", estimator="plugin")),
        )
        few, wide = make(60, 40, 42), make(40, 60, 43)
        yield f"vendi/{kind}/few", lambda x=few: _numbers(score(x, kernel="cosine"))
        yield f"vendi/{kind}/wide", lambda x=wide: _numbers(score(x, kernel="cosine"))
    x = clusters(400, 8, 44)
    for method, order in (
        ("truncated", 1.0),
        ("nystrom", 1.0),
        ("fkea", 1.0),
        ("fkea", 0.5),
        ("lanczos", 1.0),
        ("lanczos", 1.5),
        ("ustat", 2.0),
        ("truncated", np.inf),
    ):
        components = {} if method == "ustat" else {"components": 20}
        yield (
            f"vendi/{method}/{order}",
            lambda m=method, q=order, c=components: _numbers(score(x, method=m, order=q, **c)),
        )
    yield "vendi/laplace", lambda: _numbers(score(x, kernel="laplace", order=2))
    yield "vendi/polynomial", lambda: _numbers(score(x, kernel=PolynomialKernel(degree=2)))
    yield (
        "vendi/callable",
        lambda: _numbers(score(x, kernel=lambda a, b: (1.0 + a @ b.T) ** 2, order=2)),
    )
    equal = np.repeat(np.eye(5), 60, axis=0) + 0.01 * _random(45).randn(300, 5)
    yield "vendi/ceiling", lambda: _numbers(score(equal, kernel="cosine"))
    yield "vendi/ceiling, order 2", lambda: _numbers(score(equal, kernel="cosine", order=2))
    yield "vendi/tied", lambda: _numbers(score(equal, kernel="cosine", order=np.inf))
    large = clusters(3300, 6, 46)
    yield "vendi/large", lambda: _numbers(score(large))
    yield "vendi/large cosine", lambda: _numbers(score(np.float32(large), kernel="cosine"))
    yield "vendi/bandwidth", lambda: [gb.estimators.median_bandwidth(large)]


def _ranking_numbers(ranking: Any) -> list[Any]:
    found: list[Any] = []
    for name, score in ranking.scores.items():
        found += [name, *_numbers(score)]
    for pair in ranking.differences:
        found += [pair.better, pair.worse, pair.value, pair.low, pair.high, pair.stderr]
    return [*found, *("+".join(group) for group in ranking.groups), *ranking.contenders]


def _rankings() -> Iterator[tuple[str, Case]]:
    real = gaussian(600, 8, 51)
    fakes = {
        "a": gaussian(400, 8, 52),
        "b": gaussian(500, 8, 53, scale=1.2),
        "c": rectified(450, 8, 54),
    }
    for metric in ("fd", "kid", "vendi", "rke"):
        yield (
            f"compare/{metric}",
            lambda m=metric: _ranking_numbers(gb.compare(fakes, real, metric=m)),
        )
    probs = {k: posteriors(300, 10, 55 + i, 1.0 + i) for i, k in enumerate("abc")}
    yield "compare/is", lambda: _ranking_numbers(gb.compare(probs, metric="is"))
    exact = gb.Moments(real.mean(0), np.cov(real.T))
    yield "compare/exact", lambda: _ranking_numbers(gb.compare(fakes, exact))
    yield "compare/level", lambda: _ranking_numbers(gb.compare(fakes, real, level=0.8))
    few = {k: v[:60] for k, v in fakes.items()}
    wide = {"a": gaussian(30, 24, 61), "b": rectified(200, 24, 62), "c": heavy(70, 24, 63)}
    for metric in ("fd", "kid", "vendi", "rke"):
        yield (
            f"compare/few/{metric}",
            lambda m=metric: _ranking_numbers(gb.compare(few, real, metric=m)),
        )
        yield (
            f"compare/mixed sizes/{metric}",
            lambda m=metric: _ranking_numbers(gb.compare(wide, gaussian(500, 24, 64), metric=m)),
        )
    yield (
        "compare/cosine",
        lambda: _ranking_numbers(
            gb.compare(wide, gaussian(500, 24, 64), metric="vendi", options={"kernel": "cosine"})
        ),
    )
    yield (
        "compare/kid options",
        lambda: _ranking_numbers(gb.compare(fakes, real, metric="kid", options={"degree": 2})),
    )
    yield "compare/vendi, no reference", lambda: _ranking_numbers(gb.compare(fakes, metric="vendi"))
    for metric in ("fd", "kid", "vendi"):
        yield (
            f"convergence/{metric}",
            lambda m=metric: [
                v
                for steps in gb.estimators.convergence(fakes, real, metric=m).values()
                for n, score in steps
                for v in (n, *_numbers(score))
            ],
        )


def _selection_numbers(selection: Any) -> list[Any]:
    found = [selection.best, selection.certified, selection.steps, selection.cost]
    found += [v for item in sorted(selection.samples.items()) for v in item]
    for name, score in selection.scores.items():
        found += [name, *_numbers(score)]
    return [*found, *selection.top, *map(int, selection.history.picks[-20:])]


class _Replayed:
    """An arm whose rows do not depend on the generator of the run."""

    def __init__(self, make: Callable[[int, int, int], np.ndarray], d: int, seed: int) -> None:
        self._rows, self._at = make(6000, d, seed), 0

    def draw(self, n: int, rng: Any) -> np.ndarray:
        self._at += n
        return self._rows[self._at - n : self._at]


def _selections() -> Iterator[tuple[str, Case]]:
    real = gaussian(900, 4, 71)
    exact = gb.Moments(real.mean(0), np.cov(real.T))

    def arms() -> dict[str, Any]:
        return {
            "a": _Replayed(gaussian, 4, 72),
            "b": _Replayed(lambda n, d, s: 1.3 * gaussian(n, d, s), 4, 73),
            "c": _Replayed(rectified, 4, 74),
        }

    for policy in gb.select.POLICIES:
        metric = "is" if policy in ("is-ucb", "naive-ucb") else "fd"

        def case(policy: str = policy, metric: str = metric) -> list[Any]:
            if metric == "is":
                taking_part: Any = {
                    name: _Replayed(
                        lambda n, d, s, sharp=1.0 + i: posteriors(n, d, s, sharp), 6, 75 + i
                    )
                    for i, name in enumerate("abc")
                }
                return _selection_numbers(
                    gb.select.run(taking_part, policy=policy, metric="is", budget=900)
                )
            return _selection_numbers(
                gb.select.run(arms(), exact, policy=policy, budget=1500, batch=10)
            )

        yield f"select/{policy}", case
    for metric in ("kid", "vendi", "rke"):
        yield (
            f"select/{metric}",
            lambda m=metric: _selection_numbers(
                gb.select.run(arms(), real, metric=m, budget=1200, batch=20)
            ),
        )
    yield (
        "select/sampled reference",
        lambda: _selection_numbers(gb.select.run(arms(), real, budget=3000, batch=20)),
    )
    yield (
        "select/top",
        lambda: _selection_numbers(
            gb.select.run(arms(), exact, top=2, tolerance=0.05, batch=20, budget=4000)
        ),
    )


def _command_line() -> Iterator[tuple[str, Case]]:
    def score(*arguments: str, files: dict[str, np.ndarray]) -> list[Any]:
        with tempfile.TemporaryDirectory() as folder:
            for name, rows in files.items():
                np.save(Path(folder) / f"{name}.npy", rows)
            paths = [str(Path(folder) / f"{name}.npy") for name in files]
            out = io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
                assert main(["score", *paths, *arguments, "--json"]) == 0
        rows = json.loads(out.getvalue())["rows"]
        return [v for r in rows for v in (r["value"], r["low"], r["high"], r["stderr"], r["n"])]

    features = {"real": gaussian(600, 8, 51), "a": gaussian(400, 8, 52), "b": rectified(90, 8, 54)}
    for metric in ("fd", "kid", "vendi", "rke"):
        yield f"cli/{metric}", lambda m=metric: score("--metric", m, files=features)
    probs = {"a": posteriors(300, 10, 55), "b": posteriors(200, 10, 56)}
    yield "cli/is", lambda: score("--metric", "is", files=probs)
    logits = {"a": _random(81).randn(200, 6), "b": _random(82).randn(150, 6)}
    yield "cli/logits", lambda: score("--metric", "is", "--logits", files=logits)
    yield "cli/plugin", lambda: score("--estimator", "plugin", files=features)


def _others() -> Iterator[tuple[str, Case]]:
    for method in ("inverse", "box-muller"):
        yield (
            f"sobol/{method}",
            lambda m=method: [
                float(v) for v in gb.sobol_normal(3, method=m, rng=1).draw(8).ravel()
            ],
        )

    yield (
        "sobol/scramblings",
        lambda: _numbers(
            gb.score_over_scramblings(
                lambda z: z**2, lambda z: float(z.mean()), d=2, n=64, replicates=4
            )
        ),
    )

    def reproduced(m: int | None) -> list[Any]:
        fake, real = gaussian(600, 4, 92, scale=1.2), gaussian(500, 4, 93)
        found = [
            gb.reproduction(fake, real, n=n, published=0.1, published_reference_n=m)
            for n in (200, 5000)
        ]
        return [v for f in found for v in (f.value, f.predicted, f.stderr, f.pvalue)]

    yield "reproduction/same file", lambda: reproduced(None)
    yield "reproduction/own reference", lambda: reproduced(4000)
    x = gaussian(50, 3, 91)

    def merged() -> list[Any]:
        moments = gb.Moments.from_features(x[:20]).merge(gb.Moments.from_features(x[20:]))
        return [*moments.mean, *moments.cov.ravel(), moments.n]

    yield "moments/merged", merged


def cases() -> dict[str, Case]:
    """Return every case by its name."""
    parts = (
        _frechet,
        _kernel,
        _inception,
        _vendi,
        _rankings,
        _selections,
        _command_line,
        _others,
    )
    found: dict[str, Case] = {}
    for part in parts:
        for name, case in part():
            assert name not in found, name
            found[name] = case
    return found


def value_of(case: Case) -> list[Any]:
    """Run one case; numbers as Python numbers, so that JSON keeps every bit."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = case()
    return [v.item() if isinstance(v, np.generic) else v for v in found]
