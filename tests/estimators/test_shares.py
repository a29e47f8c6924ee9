"""Class shares: scores at those of a population or the reference; other shares are said."""

from __future__ import annotations

import json

import numpy as np
import pytest

import genbounds as gb
from genbounds.cli import main
from tests.refusal import refused
from tests.warnings_of import codes

SHARES = np.array([0.4, 0.3, 0.2, 0.1])
NAMES = np.array(["ant", "bee", "cat", "dog"])
MEANS = np.random.default_rng(3).normal(size=(4, 5))

SCORES = {
    "fd": gb.frechet_distance,
    "kid": gb.kernel_inception_distance,
    "energy": lambda fake, real: gb.kernel_distance(fake, real, kernel="energy"),
}


def rows(rng, classes):
    return MEANS[classes] + rng.normal(size=(classes.size, 5))


def even(rng, each=100):
    classes = np.repeat(np.arange(4), each)
    return rows(rng, classes), NAMES[classes]


def long_tailed(rng, n=500):
    classes = rng.choice(4, n, p=SHARES)
    return rows(rng, classes), NAMES[classes]


@pytest.fixture
def samples():
    rng = np.random.default_rng(0)
    return even(rng), long_tailed(rng)


@pytest.mark.parametrize("score", SCORES.values(), ids=SCORES)
def test_shares_are_weights_of_the_rows_of_a_class(samples, score):
    (x, of_x), (y, of_y) = samples
    names, counts = np.unique(of_y, return_counts=True)
    shares = dict(zip(names.tolist(), (counts / counts.sum()).tolist(), strict=True))
    weights = np.array([shares[name] for name in of_x.tolist()]) / 100.0
    real = gb.Sample(y, strata=of_y)
    by_hand = score(gb.Sample(x, strata=of_x, weights=weights), real)
    for given in (shares, "reference"):
        told = score(gb.Sample(x, strata=of_x, shares=given), real)
        assert told.value == pytest.approx(by_hand.value, rel=1e-12, abs=1e-14)
        assert told.stderr == pytest.approx(by_hand.stderr, rel=1e-12)


def test_a_smooth_score_and_compare_take_the_reference_shares(samples):
    torch = pytest.importorskip("torch")
    (x, of_x), (y, of_y) = samples

    def gap(x, w, y, v):
        return torch.linalg.vector_norm(w @ x - v @ y) ** 2

    means = gb.SmoothScore(gap, name="means", higher_is_better=False, needs_reference=True)
    fake, real = gb.Sample(x, strata=of_x, shares="reference"), gb.Sample(y, strata=of_y)
    score = means(fake, real, level=0.9)
    assert score.high < means(gb.Sample(x, strata=of_x), real).value
    assert gb.compare({"a": fake, "b": fake}, real).scores["a"].value < 0.1


@pytest.mark.parametrize("score", SCORES.values(), ids=SCORES)
def test_other_shares_than_the_references_are_said_with_the_score_beside_it(samples, score):
    (x, of_x), (y, of_y) = samples
    real = gb.Sample(y, strata=of_y)
    found = score(gb.Sample(x, strata=of_x), real)
    (warning,) = (one for one in found.warnings if one.code == "class-shares")
    assert warning.severity == "caution"
    assert "shares=" in warning.remedy
    at = score(gb.Sample(x, strata=of_x, shares="reference"), real)
    assert f"{at.stderr:.4g}" in warning.message
    for other in (gb.Sample(x, strata=of_x, shares="reference"), x):
        assert "class-shares" not in codes(score(other, real))


@pytest.mark.slow
def test_equal_shares_are_hardly_ever_said_to_differ():
    """H0: said with a probability of at most 1e-6 each, as Pearson's test has it.

    Twice as many rows of one class of four (n = 400 and 500) are said always.
    """
    rng = np.random.default_rng(1)
    for _ in range(100):
        (x, of_x), (y, of_y) = long_tailed(rng, 300), long_tailed(rng, 400)
        score = gb.frechet_distance(gb.Sample(x, strata=of_x), gb.Sample(y, strata=of_y))
        assert "class-shares" not in codes(score)


def test_rows_of_a_group_are_no_evidence_of_other_shares():
    rng = np.random.default_rng(2)
    groups = np.repeat(np.arange(40), 50)
    of_x = NAMES[np.repeat(rng.choice(4, 40, p=SHARES), 50)]
    y, of_y = long_tailed(rng, 2000)
    fake = gb.Sample(rng.normal(size=(2000, 5)), groups=groups, strata=of_x)
    assert "class-shares" not in codes(gb.frechet_distance(fake, gb.Sample(y, strata=of_y)))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"shares": "equal"}, "strata"),
        ({"shares": "fair", "strata": NAMES}, "mapping"),
        ({"shares": {"ant": 1.0}, "strata": NAMES}, "no share of class 'bee'"),
        ({"shares": dict.fromkeys([*NAMES.tolist(), "emu"], 1.0), "strata": NAMES}, "'emu'"),
        ({"shares": dict.fromkeys(NAMES.tolist(), 0.0), "strata": NAMES}, "above 0"),
        ({"shares": "equal", "strata": NAMES, "weights": np.ones(4)}, "weights"),
    ],
)
def test_shares_that_say_nothing_are_refused(options, words):
    with refused(words):
        gb.Sample(np.eye(4), **options)


def test_the_reference_must_have_classes(samples):
    (x, of_x), (y, _) = samples
    with refused("no classes"):
        gb.frechet_distance(gb.Sample(x, strata=of_x, shares="reference"), y)
    with refused("reference"):
        gb.vendi_score(gb.Sample(x, strata=of_x, shares="reference"))


def test_some_rows_keep_their_weights(samples):
    (x, of_x), _ = samples
    whole = gb.Sample(x, strata=of_x, shares=dict(zip(NAMES.tolist(), SHARES, strict=True)))
    part = whole[::2]
    assert part.weights == pytest.approx(whole.weights[::2] / whole.weights[::2].sum())
    assert gb.Sample(x, strata=of_x, shares="reference")[::2].shares == "reference"


def test_the_command_takes_shares(tmp_path, samples, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (x, of_x), (y, of_y) = samples
    np.savez("fake.npz", features=x, strata=of_x)
    np.savez("real.npz", features=y, strata=of_y)
    np.savez("bare.npz", features=y)
    (tmp_path / "even.json").write_text(json.dumps(dict.fromkeys(NAMES.tolist(), 1)))

    def scored(*options):
        assert main(["score", "real.npz", "fake.npz", "--json", *options]) == 0
        return json.loads(capsys.readouterr().out)["rows"][0]["value"]

    real = gb.Sample(y, strata=of_y)
    at = gb.frechet_distance(gb.Sample(x, strata=of_x, shares="reference"), real)
    assert scored("--shares", "reference") == at.value
    assert scored("--shares", "equal") == scored("--shares", "even.json") != scored()
    for files, shares, words in (
        (["real.npz", "bare.npz"], "equal", "--strata"),
        (["real.npz", "fake.npz"], "missing.json", "missing.json"),
        (["real.npz", "fake.npz"], "fake.npz", "--shares"),
    ):
        assert main(["score", *files, "--shares", shares]) == 2
        error = capsys.readouterr().err
        assert words in error
        assert len(error.strip().splitlines()) == 1
