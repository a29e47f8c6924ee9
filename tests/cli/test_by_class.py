"""`genbounds score --by NAME`: every class, worst first, with pictures on the page."""

from __future__ import annotations

import numpy as np
import pytest

import genbounds as gb

KINDS = np.array(["cat", "dog", "owl"])
BAD_NAME = '<script>alert("x")&.npz'


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("classes")
    rng = np.random.default_rng(0)
    for name, shift in {"real.npz": 0.0, "gan.npz": 1.5, BAD_NAME: 0.0}.items():
        kind = rng.integers(3, size=900)
        rows = rng.normal(size=(900, 4)) + shift * (kind == 2)[:, None]
        np.savez(folder / name, features=rows, kind=KINDS[kind])
        shades = np.broadcast_to((60 * kind)[:, None, None], (900, 8, 8)).astype(np.uint8)
        np.save(folder / f"{name}-images.npy", shades)
    np.savez(folder / "two.npz", features=rng.normal(size=(300, 4)), kind=KINDS[np.arange(300) % 2])
    numbers = rng.integers(3, size=300)
    np.savez(folder / "numbers.npz", features=rng.normal(size=(300, 4)), kind=numbers)
    np.save(folder / "bare.npy", rng.normal(size=(300, 4)))
    np.savez(folder / "stats.npz", mu=np.zeros(4), sigma=np.eye(4), n=100)
    return folder


def held(path):
    with np.load(path) as found:
        return found["features"], found["kind"]


def test_the_classes_are_those_of_the_library_and_on_the_page_with_pictures(run, folder, tmp_path):
    files = [folder / "real.npz", folder / "gan.npz", folder / BAD_NAME]
    shades = [word for f in files for word in ("--images", folder / f"{f.name}-images.npy")]
    document = run("score", *files, "--by", "kind", *shades, "--out", tmp_path, "--json").json
    (x, labels), (real, real_labels) = held(files[1]), held(files[0])
    told = gb.frechet_by_class(x, real, labels, real_labels)
    rows = [row for row in document["rows"] if row["model"] == "gan"]
    assert [row["class"] for row in rows] == [str(name) for name in told.classes]
    assert [row["low"] for row in rows] == [score.low for score in told.classes.values()]
    model = document["models"][0]
    assert (model["worst"], model["whole"]["value"]) == (["owl"], told.whole.value)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    for kind in KINDS:  # of both models
        assert page.count(f"{kind}: real") == page.count(f"{kind}: generated") == 2
    assert "data:image/png" in page


def test_the_table(run, folder):
    found = run("score", folder / "real.npz", folder / "gan.npz", "--by", "kind")
    assert (found.code, found.err) == (0, "")
    lines = found.out.splitlines()
    assert lines[2].startswith("gan: owl is the worst of 3 classes")
    assert next(line for line in lines if line.startswith("owl")) == lines[6]
    assert any(line.startswith("mean over classes: ") for line in lines)


def test_without_pictures_the_page_says_how_to_show_them(run, folder, tmp_path):
    run("score", folder / "real.npz", folder / "gan.npz", "--by", "kind", "--out", tmp_path)
    assert "pass --images" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_damaged_pictures_are_counted_on_the_page(run, folder, tmp_path):
    photos = tmp_path / "photos"
    photos.mkdir()
    for number in range(900):
        (photos / f"{number:03}.png").write_bytes(b"\x89PNG damaged")
    images = ["--images", folder / "real.npz-images.npy", "--images", photos]
    files = [folder / "real.npz", folder / "gan.npz"]
    assert run("score", *files, "--by", "kind", *images, "--out", tmp_path / "out").code == 0
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "owl: generated; 8 of 8 pictures are missing or damaged<" in page
    assert "owl: real<" in page


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["real.npz", "gan.npz", "--by", "nope"], "has no array nope, only: features, kind"),
        (["real.npz", "bare.npy", "--by", "kind"], "bare.npy"),
        (["real.npz", "two.npz", "--by", "kind"], "two.npz` has 0 rows of class owl"),
        (
            ["two.npz", "real.npz", "--by", "kind"],
            "model 'real': `two.npz` has 0 rows of class owl",
        ),
        (["real.npz", "gan.npz", "--by", "kind", "--metric", "kid"], "`--by` is for --metric fd"),
        (["real.npz", "gan.npz", "--by", "kind", "--estimator", "plugin"], "--estimator debiased"),
        (["real.npz", "gan.npz", "--images", "x"], "`--images` is for the page by class"),
        (
            ["real.npz", "numbers.npz", "--by", "kind"],
            "no class of the reference: its first one is 0",
        ),
    ],
)
def test_refusals_are_one_line(run, folder, monkeypatch, words, expected):
    monkeypatch.chdir(folder)
    found = run("score", *words)
    assert found.code == 2
    assert found.err.count("\n") == 1
    assert expected in found.err


def test_a_model_that_lacks_a_class_is_named_before_another_one_is_scored(run, folder, monkeypatch):
    monkeypatch.setattr("genbounds.estimators.frechet_by_class", None)  # not called
    found = run("score", folder / "real.npz", folder / "gan.npz", folder / "two.npz", "--by=kind")
    assert found.code == 2
    assert "two.npz` has 0 rows of class owl" in found.err


@pytest.mark.parametrize("given", ["nowhere", "gan.npz-images.npy"])
def test_pictures_that_do_not_fit_are_refused_before_anything_is_computed(
    run, folder, tmp_path, given
):
    """There are none there, or of another number of rows."""
    images = ["--images", folder / "real.npz-images.npy", "--images", folder / given]
    files = [folder / "real.npz", folder / "two.npz"]
    found = run("score", *files, "--by", "kind", *images, "--out", tmp_path / "out")
    assert (found.code, found.err.count("\n")) == (2, 1)
    assert "--images" in found.err
    assert not (tmp_path / "out" / "results.json").exists()


def test_a_class_without_a_name_is_seen(run, folder, tmp_path):
    kind = np.array(["", "owl"] * 60)
    for name in ("a", "b"):
        rows = np.random.default_rng(0).normal(size=(120, 3))
        np.savez(tmp_path / f"{name}.npz", features=rows, kind=kind)
    found = run("score", tmp_path / "a.npz", tmp_path / "b.npz", "--by", "kind")
    assert any(line.startswith("'' ") for line in found.out.splitlines())


def test_labels_that_were_not_asked_for_are_no_strata_of_the_classes(run, tmp_path):
    """They are balanced, and every class has rows of both."""
    rng = np.random.default_rng(0)
    for name in ("a", "b"):
        arrays = {"labels": np.arange(240) // 4 % 2, "groups": np.arange(240) // 4}
        kind = rng.integers(3, size=60).repeat(4)
        np.savez(tmp_path / f"{name}.npz", features=rng.normal(size=(240, 3)), kind=kind, **arrays)
    files = tmp_path / "a.npz", tmp_path / "b.npz"
    assert "2 classes" not in run("score", *files, "--by", "kind").out
    assert "within 2 classes" in run("score", *files).out
