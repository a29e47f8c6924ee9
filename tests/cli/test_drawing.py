"""Options that say how the samples were drawn, and what files say of it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

import genbounds as gb
from genbounds.samples import class_pairs
from tests.budget import opened

CLASSES, D = 20, 3


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return a folder of class-balanced features, and the rows and classes by file name."""
    folder = tmp_path_factory.mktemp("drawn")
    rng = np.random.default_rng(0)
    centres = 2.0 * rng.normal(size=(CLASSES, D))
    drawn = {}
    for name, each, scale in (("real", 20, 1.0), ("good", 10, 1.0), ("bad", 10, 1.6)):
        classes = np.repeat(np.arange(CLASSES), each)
        rows = scale * (centres[classes] + rng.normal(size=(len(classes), D)))
        np.savez(folder / f"{name}.npz", features=rows, strata=classes)
        drawn[name] = rows, classes
    rows, classes = drawn["good"]
    names = np.array([f"class {label:02}" for label in classes])
    np.savez(folder / "labelled.npz", features=rows, labels=names)
    np.savez(folder / "unequal.npz", features=rows[5:], labels=names[5:])
    np.savez(folder / "prompts.npz", features=rows, prompt=np.arange(len(rows)) // 4)
    np.save(folder / "plain.npy", rows)
    real = drawn["real"][0]
    np.savez(folder / "statistics.npz", mu=real.mean(0), sigma=np.cov(real.T))
    return folder, drawn


def row(run, *arguments):
    done = run("score", *arguments, "--json")
    assert done.code == 0, done.err
    (found,) = done.json["rows"]
    return found


def same(found, score):
    assert (found["value"], found["stderr"]) == pytest.approx((score.value, score.stderr))


def test_strata_of_a_file_are_read(run, files):
    folder, drawn = files
    real, good = (gb.Sample(drawn[name][0], strata=drawn[name][1]) for name in ("real", "good"))
    told = gb.frechet_distance(good, real)
    same(row(run, folder / "real.npz", folder / "good.npz"), told)
    asked = row(run, folder / "real.npz", folder / "labelled.npz", "--strata", "labels")
    same(asked, told)
    fewer = gb.Sample(good.features[5:], strata=good.strata[5:])
    asked = row(run, folder / "real.npz", folder / "unequal.npz", "--strata", "labels")
    same(asked, gb.frechet_distance(fewer, real))


def labelled(folder, name, units, each, *, dropped=0, of="class"):
    """Write rows with so many labels; return the rows and the labels."""
    rng = np.random.default_rng(len(name))
    codes = np.repeat(np.arange(units), each)[dropped:]
    rows = rng.normal(size=(units, D))[codes] + rng.normal(size=(codes.size, D))
    labels = np.array([f"{of} {code}" for code in codes])
    np.savez(folder / f"{name}.npz", features=rows, labels=labels)
    return rows, labels


def test_classes_of_both_samples_are_strata(run, tmp_path):
    """Many rows of each; two images of one class failed."""
    real = labelled(tmp_path, "real", 10, 40)
    fake = labelled(tmp_path, "generated", 10, 30, dropped=1)
    told = gb.frechet_distance(*(gb.Sample(x, strata=labels) for x, labels in (fake, real)))
    files = tmp_path / "real.npz", tmp_path / "generated.npz"
    same(row(run, *files), told)
    said = run("score", *files).err.splitlines()
    assert [line.split(": ", 1)[1] for line in said] == [
        f"{files[0]}: 10 labels of 40 rows each are taken as strata (--groups labels for groups)",
        f"{files[1]}: 10 labels of 29 to 30 rows each are taken as strata (--groups labels for "
        "groups)",
    ]


def of_classes(rng, codes):
    """Rows of eight classes far from one another, as much for either sample."""
    centres = 3.0 * np.random.default_rng(9).normal(size=(8, D))
    return centres[codes] + rng.normal(size=(codes.size, D))


def test_as_many_rows_of_each_label_as_in_the_reference(run, tmp_path):
    """The labels of the reference were used to generate, their order lost: no class is balanced."""
    rng = np.random.default_rng(0)
    codes = rng.choice(8, size=300, p=np.arange(1, 9) / 36.0)
    files = tmp_path / "real.npz", tmp_path / "generated.npz"
    mixed = rng.permutation(codes)
    np.savez(files[0], features=of_classes(rng, codes), labels=codes)
    np.savez(files[1], features=of_classes(rng, mixed), labels=mixed)
    asked = run("score", *files)
    assert "as many rows of each label as in" in asked.err
    free = row(run, *files, "--iid")
    assert row(run, *files)["stderr"] < 0.8 * free["stderr"]
    mixed[0] = (mixed[0] + 1) % 8  # one row more of one class: as random as any other
    np.savez(files[1], features=np.load(files[1])["features"], labels=mixed)
    assert run("score", *files).err == ""
    same(row(run, *files), gb.frechet_distance(*(np.load(x)["features"] for x in files[::-1])))


@pytest.mark.statistical
def test_rows_of_the_classes_of_the_reference_are_covered():
    """200 pairs, 20 classes far apart, a shift of .2; as independent rows 37 % cover.

    H0: at least 93 %; α = 1e-6.
    """
    hits, centres = 0, 3.0 * np.random.default_rng(9).normal(size=(20, 16))
    for seed in range(200):
        rng = np.random.default_rng(seed)
        codes = rng.choice(20, size=500, p=np.arange(4, 24) / 270.0)
        mixed = rng.permutation(codes)
        fake, real = (
            gb.Sample(centres[own] + rng.normal(shift, 1.0, (500, 16)), groups=groups)
            for own, shift, groups in zip(
                (mixed, codes), (0.2, 0.0), class_pairs(mixed, codes), strict=True
            )
        )
        found = gb.frechet_distance(fake, real)
        hits += found.low <= 0.64 <= found.high
    assert hits >= binom.ppf(1e-6, 200, 0.93)


def test_many_labels_of_few_rows_are_groups(run, tmp_path):
    """Slices of patients: other patients would come next time."""
    real, _ = labelled(tmp_path, "real", 40, 8, of="patient")
    np.save(tmp_path / "real.npy", real)
    fake, patients = labelled(tmp_path, "generated", 40, 8, of="other")
    told = gb.frechet_distance(gb.Sample(fake, groups=patients), real)
    files = tmp_path / "real.npy", tmp_path / "generated.npz"
    same(row(run, *files), told)
    assert "40 labels of 8 rows each are taken as groups" in run("score", *files).err
    asked = row(run, *files, "--strata", "labels")
    same(asked, gb.frechet_distance(gb.Sample(fake, strata=patients), real))
    assert asked["stderr"] < 0.8 * told.stderr  # the reading that would be wrong


@pytest.mark.parametrize(("units", "each"), [(10, 30), (20, 10), (25, 4), (40, 25)])
@pytest.mark.parametrize("command", ["score", "plan"])
def test_labels_that_can_be_either_are_asked_for(run, tmp_path, units, each, command):
    """Of one sample only; few of few rows; the narrower interval is never taken in silence."""
    labelled(tmp_path, "generated", units, each)
    np.save(tmp_path / "real.npy", np.random.default_rng(3).normal(size=(200, D)))
    files = tmp_path / "real.npy", tmp_path / "generated.npz"
    more = ("--half-width", "0.5") if command == "plan" else ()
    done = run(command, *files, *more)
    assert done.code == 2
    assert done.err == (
        f"genbounds: {files[1]}: {units} labels of {each} rows each can be groups (others would be "
        "drawn next time) or strata (the same classes again): pass --groups labels or --strata "
        "labels, or --iid for neither.\n"
    )
    for option in ("--groups", "--strata"):
        assert run(command, *files, option, "labels", *more).code == 0
    assert run(command, *files, "--iid", *more).code == 0


def test_groups_go_before_labels_that_they_go_across(run, files, tmp_path):
    """Of the same seeds for every class, say; within the labels both are used."""
    folder, drawn = files
    rows, classes = drawn["good"]
    real = gb.Sample(drawn["real"][0], strata=drawn["real"][1])
    within = np.arange(len(rows)) // 2
    across = np.arange(len(rows)) % 10
    file = tmp_path / "both.npz"
    np.savez(file, features=rows, labels=classes, across=across, within=within)
    said = row(run, folder / "real.npz", file, "--groups", "across")
    same(said, gb.frechet_distance(gb.Sample(rows, groups=across), real))
    said = row(run, folder / "real.npz", file, "--groups", "within", "--strata", "labels")
    same(said, gb.frechet_distance(gb.Sample(rows, groups=within, strata=classes), real))
    told = run("score", folder / "real.npz", file, "--groups", "across", "--strata", "labels")
    assert "has group 0 in two strata" in told.err


def test_unequal_labels_are_taken_for_random(run, files):
    folder, drawn = files
    rows, classes = drawn["real"]
    found = gb.frechet_distance(drawn["good"][0][5:], gb.Sample(rows, strata=classes))
    same(row(run, folder / "real.npz", folder / "unequal.npz"), found)


def test_iid_ignores_them_and_looks_for_nothing(run, files):
    folder, drawn = files
    plain = gb.frechet_distance(gb.Sample(drawn["good"][0]), gb.Sample(drawn["real"][0]))
    found = row(run, folder / "real.npz", folder / "good.npz", "--iid")
    same(found, plain)
    assert "dependent-rows" not in [warning["code"] for warning in found["warnings"]]


def test_groups_by_name(run, files):
    folder, drawn = files
    rows, classes = drawn["real"]
    groups = np.arange(len(drawn["good"][0])) // 4
    expected = gb.frechet_distance(
        gb.Sample(drawn["good"][0], groups=groups), gb.Sample(rows, strata=classes)
    )
    same(row(run, folder / "real.npz", folder / "prompts.npz", "--groups", "prompt"), expected)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("real.npz", "plain.npy", "--groups", "prompt"),
         "plain.npy: has no array prompt, only: features. Name one of these, or save it with them "
         "(.npz)."),
        (("real.npz", "good.npz", "--strata", "folders"),
         "`--strata` good.npz does not say which sub-folder each row comes from: are there "
         "sub-folders?"),
        (("real.npz", "good.npz", "--iid", "--groups", "x"),
         "`--iid` says that rows are independent: leave out --groups."),
        (("real.npz", "good.npz", "--reference-n", "100"),
         "`--reference-n` is for a reference known by its statistics (mu, sigma); real.npz holds "
         "features, whose number is known."),
        (("statistics.npz", "good.npz", "--reference-n", "100", "--reference-exact"),
         "`--reference-exact` contradicts --reference-n: leave out one."),
        (("good.npz", "bad.npz", "--metric", "vendi", "--reference-n", "100"),
         "`--reference-n` is for a reference known by its statistics (mu, sigma); here is no "
         "reference."),
        (("statistics.npz", "good.npz", "--reference-n", "1"),
         "`--reference-n` must be a whole number of at least 2; got 1."),
    ],
)  # fmt: skip
def test_one_line_says_what_is_wrong(run, files, arguments, line, monkeypatch):
    monkeypatch.chdir(files[0])
    done = run("score", *arguments)
    assert done.code == 2
    assert done.err == f"genbounds: {line}\n"


def test_a_file_is_read_once(run, files):
    """Once for its header; then rows, labels and metadata of a model are of one moment."""
    folder, _ = files
    named = (folder / "statistics.npz", folder / "good.npz")
    counts = opened(lambda: row(run, *named, "--reference-n", 400))
    assert [counts[path.name] for path in named] == [2, 2]


def test_selection_draws_by_the_design(run, files):
    folder, _ = files
    models = (folder / "good.npz", folder / "bad.npz")
    done = run("select", "--reference", folder / "real.npz", *models, "--json")
    assert done.code == 0
    assert done.json["best"] == "good"
    assumed = done.json["scores"]["good"]["assumptions"]
    assert any("classes whose numbers were fixed" in assumption for assumption in assumed)


def test_a_model_that_is_given_twice_is_named(run, files):
    folder, drawn = files
    np.savez(folder / "again.npz", features=drawn["good"][0], strata=drawn["good"][1])
    done = run("score", folder / "real.npz", folder / "good.npz", folder / "again.npz", "--json")
    codes = [warning["code"] for warning in done.json["ranking"]["warnings"]]
    assert codes == ["same-rows"]


def test_the_order_of_rows_is_read(run, tmp_path):
    """Only where it is asked for; within groups, if there are any."""
    rng = np.random.default_rng(6)
    noise, rows = rng.normal(size=(900, D)), np.zeros((900, D))
    for row_of, now in enumerate(noise):
        rows[row_of] = now + (0.7 * rows[row_of - 1] if row_of % 300 else 0.0)
    real = rng.normal(size=(500, D))
    mixed = rng.permutation(900)
    np.save(tmp_path / "real.npy", real)
    held = {"frame": mixed, "clip": mixed // 300, "place": mixed % 300, "text": mixed.astype(str)}
    np.savez(tmp_path / "told.npz", features=rows[mixed], **held)
    np.savez(tmp_path / "classes.npz", features=rows[mixed], frame=mixed, strata=mixed // 300)
    paths = tmp_path / "real.npy", tmp_path / "told.npz"
    whole = gb.Sample(rows[mixed], order=mixed)
    same(row(run, *paths, "--row-order", "frame"), gb.frechet_distance(whole, real))
    clips = gb.Sample(rows[mixed], groups=mixed // 300, order=mixed % 300)
    told = row(run, *paths, "--row-order", "place", "--groups", "clip")
    same(told, gb.frechet_distance(clips, real))
    for name, options, part in (
        ("told", ("--row-order", "place"), "groups"),
        ("told", ("--row-order", "other"), "no array other"),
        ("told", ("--row-order", "text"), "finite numbers"),
        ("told", ("--row-order", "frame", "--iid"), "--iid"),
        ("classes", ("--row-order", "frame"), "strata"),
    ):
        done = run("score", tmp_path / "real.npy", tmp_path / f"{name}.npz", *options)
        assert done.code == 2
        assert part in done.err
        assert len(done.err.strip().splitlines()) == 1, done.err


def test_seeds_that_all_groups_share_are_read(run, tmp_path):
    """Told by name, or as sub-folders whose labels nobody called groups; refused without groups."""
    rng = np.random.default_rng(5)
    rows = (rng.normal(size=(40, 1, D)) + rng.normal(size=(1, 6, D))).reshape(-1, D)
    rows += rng.normal(size=rows.shape)
    prompt, seed = np.repeat(np.arange(40), 6), np.tile(np.arange(6), 40)
    real = rng.normal(size=(500, D))
    np.save(tmp_path / "real.npy", real)
    np.savez(tmp_path / "told.npz", features=rows, groups=prompt, noise=seed)
    np.savez(tmp_path / "alone.npz", features=rows, noise=seed)
    told = gb.frechet_distance(gb.Sample(rows, groups=prompt, seeds=seed), real)
    same(row(run, tmp_path / "real.npy", tmp_path / "told.npz", "--seeds", "noise"), told)
    for name, options, part in (
        ("alone", ("--seeds", "noise"), "groups"),
        ("told", ("--seeds", "other"), "no array other"),
        ("told", ("--seeds", "noise", "--iid"), "--iid"),
        ("told", ("--seeds", "noise", "--metric", "precision"), "has seeds"),
    ):
        done = run("score", tmp_path / "real.npy", tmp_path / f"{name}.npz", *options)
        assert done.code == 2
        assert part in done.err
        assert len(done.err.strip().splitlines()) == 1, done.err
