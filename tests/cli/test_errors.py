"""Every bad call: exit status 2, nothing on standard output, exactly this line."""

from __future__ import annotations

import os

import numpy as np
import pytest

from genbounds.select import POLICIES


@pytest.fixture
def here(zoo, tmp_path, monkeypatch):
    """Work in a folder with good and bad files under short names."""
    for path in zoo.iterdir():
        (tmp_path / path.name).symlink_to(path)
    rng = np.random.default_rng(1)
    x = rng.normal(size=(60, 4))

    def spoiled(value):
        bad = x.copy()
        bad[7, 2] = value
        return bad

    np.save(tmp_path / "nan.npy", spoiled(np.nan))
    np.save(tmp_path / "inf.npy", spoiled(np.inf))
    np.save(tmp_path / "wide.npy", rng.normal(size=(60, 5)))
    np.save(tmp_path / "transposed.npy", x.T)
    np.save(tmp_path / "one.npy", x[:1])
    np.save(tmp_path / "half.npy", np.full((50, 5), 0.1))
    np.save(tmp_path / "nanlogits.npy", np.full((50, 3), np.nan))
    np.savez(tmp_path / "bent.npz", mu=np.zeros(4), sigma=2.0 - np.eye(4))
    (tmp_path / "empty.npy").touch()
    (tmp_path / "x.csv").write_text("1,2\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder.npy").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


FD = "score real.npy "
IS = "score --metric is "
SELECT = "select --reference real.npy good.npy "
FINITE = "drop the row, or fix the encoder that made it."
BENT = (
    "genbounds: `bent.npz` has a covariance with eigenvalue -1 (largest 7): it is not positive "
    "semidefinite. Was it computed in half precision, or truncated?"
)
POLICY_NAMES = ", ".join(map(repr, POLICIES))
METRICS = "one that `--metric help` lists, or module:name"

CALLS = {
    # usage
    "bogus": None,
    "--bogus": None,
    "score": "genbounds score: Missing argument 'FILE'. See 'genbounds score --help'.",
    "select": "genbounds select: Missing argument 'ARM'. See 'genbounds select --help'.",
    FD + "good.npy --bogus": None,
    FD + "good.npy --level": (
        "genbounds score: Option '--level' requires an argument. See 'genbounds score --help'."
    ),
    FD + "good.npy --level x": None,
    SELECT + "--budget x": None,
    SELECT + "--batch 1.5": None,
    "bounds a b": None,
    "score real.npy": (
        "genbounds: --metric fd takes a reference and at least one model; got 1 file."
    ),
    "select good.npy": (
        "genbounds: --metric fd needs a reference: give it first, or as --reference FILE."
    ),
    # options
    FD + "good.npy --metric FDD": (
        f"genbounds: `--metric` must be {METRICS}; got 'FDD'. Did you mean 'fd'?"
    ),
    FD + "good.npy --metric FIDD": (
        f"genbounds: `--metric` must be {METRICS}; got 'FIDD'. Did you mean 'fid'?"
    ),
    "select good.npy --metric vendi": (
        "genbounds: `--reference` is needed by metric 'vendi': all models are scored with one "
        "bandwidth, which comes from its rows (in Python `options` may give a `bandwidth` instead)."
    ),
    FD + "good.npy --convergence": (
        "genbounds: `--convergence` is for the page and the JSON: add --out or --json."
    ),
    FD + "good.npy --convergence --by kind": (
        "genbounds: `--convergence` does not apply with --by: leave one of them out."
    ),
    FD + "good.npy --kernel rbf": "genbounds: `--kernel` is for --metric vendi and rke; got fd.",
    FD + "good.npy --metric rke --bandwidth -1": (
        "genbounds: `--bandwidth` must be a positive, finite number; got -1.0."
    ),
    FD + "good.npy --metric vendi --order 0": (
        "genbounds: `--order` must be a number in (0, 64], or inf; got 0.0."
    ),
    FD + "good.npy --level 1": "genbounds: `--level` must be a real number in (0, 1); got 1.0.",
    FD + "good.npy --level 95": (
        "genbounds: `--level` must be a real number in (0, 1); got 95.0. For 95 % pass 0.95."
    ),
    FD + "good.npy --estimator best": None,
    FD + "good.npy --logits": (
        "genbounds: `--logits` is for class probabilities; --metric fd takes features."
    ),
    SELECT + "--logits": (
        "genbounds: `--logits` is for class probabilities; --metric fd takes features."
    ),
    SELECT + "--metric mmd": (
        f"genbounds: `--metric` must be {METRICS}; got 'mmd'. Did you mean 'cmmd'?"
    ),
    SELECT + "--policy best": f"genbounds: `--policy` must be one of {POLICY_NAMES}; got 'best'.",
    SELECT
    + "--confidence 0": "genbounds: `--confidence` must be a real number in (0, 1); got 0.0.",
    SELECT + "--batch 0": "genbounds: `--batch` must be a whole number of at least 1; got 0.",
    SELECT + "--budget 1": None,
    SELECT + "--seed -1": "genbounds: `--seed` must be a whole number of at least 0; got -1.",
    SELECT + "--policy is-ucb": None,
    "audit o24.nothing": None,
    "audit o24.hoeffding --replications 0": (
        "genbounds: `--replications` must be a whole number of at least 1; got 0."
    ),
    "audit --backend ray": "genbounds: `--backend` must be one of 'loky', 'dask'; got 'ray'.",
    "score real.npy good.npy --metric Precison": (
        f"genbounds: `--metric` must be {METRICS}; got 'Precison'. Did you mean 'precision'?"
    ),
    **{
        f"score real.npy good.npy {option} features": (
            f"genbounds: `{option}` names the features: name an array of one label a row."
        )
        for option in ("--groups", "--strata")
    },
    "score real.npy good.npy --groups=": (
        "genbounds: `--groups` is empty: is a variable of the shell not set?"
    ),
    "audit --scheduler tcp://x:1": (
        "genbounds: `--scheduler` is for clusters; backend 'loky' has none: choose backend 'dask'."
    ),
    "audit --backend dask --scheduler tcp://x:1 --jobs 2": (
        "genbounds: `--jobs` is decided by the cluster where a scheduler is given: leave it out; "
        "got 2."
    ),
    "audit o24.hoeffding --backend dask --scheduler ftp": None,
    "bounds hoefding": None,
    "bounds zzzz": (
        "genbounds: no statement 'zzzz' in the catalogue: `genbounds bounds` lists them."
    ),
    # files
    FD + "gone.npy": "genbounds: gone.npy: no such file: check the path.",
    FD + "folder": "genbounds: folder: is empty: check the path.",
    # before the encoder is looked at, which needs its library, and then its weights
    FD + "folder --encoder what": "genbounds: folder: is empty: check the path.",
    FD + "gone --encoder what": "genbounds: gone: no such file: check the path.",
    "select real.npy good.npy folder --encoder what": (
        "genbounds: folder: is empty: check the path."
    ),
    "memorisation good.npy --train folder --heldout real.npy --encoder what": (
        "genbounds: folder: is empty: check the path."
    ),
    FD + "folder.npy": "genbounds: folder.npy: is a folder: give the file inside it.",
    FD + "x.csv": (
        "genbounds: x.csv: `.csv` files are not read: convert it to one of .npy, .npz, "
        ".safetensors, .pt, .parquet (pickles are never loaded)."
    ),
    FD + "nan.npy": f"genbounds: `nan.npy` has NaN in row 7: {FINITE}",
    FD + "inf.npy": f"genbounds: `inf.npy` has an infinite value in row 7: {FINITE}",
    FD + "wide.npy": (
        "genbounds: `wide.npy` has 5 features and `real.npy` has 4: "
        "both must come from the same encoder."
    ),
    FD + "one.npy": "genbounds: `one.npy` needs at least 2 samples (rows); got 1.",
    "score bent.npz good.npy": BENT,
    "select --reference bent.npz good.npy real.npy": BENT,
    IS + "good.npy": None,
    IS + "half.npy": (
        "genbounds: `half.npy` has entries that sum to 0.5 in row 0: every row must be a "
        "probability vector. If these are logits, apply a softmax first (--logits)."
    ),
    IS + "--logits p_good.npy": (
        "genbounds: `p_good.npy` holds probabilities already (every row sums to 1): leave out "
        "--logits."
    ),
    FD + "transposed.npy": (
        "genbounds: `transposed.npy` has 4 rows of 60 features, and real.npy has 4 features: rows "
        "and columns are probably exchanged. Save one row per sample, one column per feature."
    ),
    IS + "population.npz": (
        "genbounds: population.npz: holds statistics (mu, sigma); --metric is needs the features "
        "themselves."
    ),
    IS + "--logits nanlogits.npy": (
        "genbounds: `nanlogits.npy` has NaN or an infinite value in row 0: drop that row."
    ),
    SELECT + "population.npz": (
        "genbounds: population.npz: holds statistics; an arm needs the features themselves."
    ),
    "select --metric is p_good.npy half.npy": None,
    # what is to be encoded
    "features": "genbounds features: Missing argument 'INPUT'. See 'genbounds features --help'.",
    "features real.npy": ("genbounds: nothing to write: give --out FILE, --moments FILE or both."),
    "features gone --out y.npy": ("genbounds: gone: no such file or folder: check the path."),
    "features x.csv --out y.npy": None,
    "features folder --out y.npy": None,
    "features real.npy --out y.csv": (
        "genbounds: y.csv: features are written as .safetensors, .npy or .npz: "
        "end the name in one of them."
    ),
    "features real.npy --moments y.npy": (
        "genbounds: y.npy: statistics are written as .npz: end the name in .npz."
    ),
    "features good.npy wide.npy --out y.npy": (
        "genbounds: the input holds rows of 4 and rows of 5 features: give files of one encoder."
    ),
    "features real.npy --out y.npy --items songs": (
        "genbounds: `--items` must be one of 'images', 'texts', 'files', 'rows'; got 'songs'."
    ),
    "features real.npy --out y.npy --precision float8": (
        "genbounds: `--precision` must be one of 'float32', 'bfloat16', 'float16'; got 'float8'. "
        "Did you mean 'float32'?"
    ),
    "features real.npy --out y.npy --size 5": (
        "genbounds: `--size` is for images; real.npy holds rows."
    ),
    "features real.npy --out y.npy --mean x": (
        "genbounds: `--mean` must be numbers with commas between them, as in 0.5,0.5,0.5; got 'x'."
    ),
    "features real.npy --out y.npy --weights x": "genbounds: `--weights` needs --encoder.",
    "features real.npy --out y.npy --encoder what": None,
    "features folder --out y.npy --encoder nomodule:f": None,
    "features nan.npy --moments y.npz": f"genbounds: `nan.npy` has NaN in row 7: {FINITE}",
    FD + "good.npy --encoder what": None,
    FD + "good.npy --weights x": "genbounds: `--weights` needs --encoder.",
    SELECT + "--weights x": "genbounds: `--weights` needs --encoder.",
    SELECT + "nomodule:gan --budget 100": (
        "genbounds: nomodule:gan: there is no module 'nomodule' in this folder or among the "
        "installed packages: run this in the module's folder."
    ),
    SELECT + "json:loadz --budget 100": "genbounds: json:loadz: the module has no 'loadz'.",
    SELECT + "json:loads": (
        "genbounds: json:loads never ends: say with --budget N how many samples to draw at most."
    ),
    SELECT + "json:__doc__ --budget 100": (
        "genbounds: json:__doc__: is neither a function of (n, rng) nor an object with a method "
        "draw(n, rng); if it is a class, name an instance."
    ),
    SELECT + "json:loads --budget 100 --logits": None,
    # folders of results
    # before anything is read
    FD + "nan.npy --out empty.npy": (
        "genbounds: empty.npy: cannot be written: "
        "a part of the path is a file, not a folder: check the path."
    ),
    "audit o24.hoeffding --replications 10 --out empty.npy": None,
    "bounds --out empty.npy": (
        "genbounds: empty.npy: cannot be written: "
        "a part of the path is a file, not a folder: check the path."
    ),
}

# Where the words belong to another library or package, the line must hold these.
PARTS = {
    "features x.csv --out y.npy": ["genbounds: x.csv: has no known ending: give"],
    "features folder --out y.npy": ["genbounds: folder: is empty", "check the path."],
    "features real.npy --out y.npy --encoder what": [
        "genbounds: `--encoder` must be one of inception, ",
        "got 'what'",
    ],
    "features folder --out y.npy --encoder nomodule:f": ["genbounds: folder: is empty"],
    FD + "good.npy --encoder what": [
        "genbounds: `--encoder` must be one of inception, ",
        "got 'what'",
    ],
    SELECT + "json:loads --budget 100 --logits": ["`--logits`"],
    "audit o24.hoeffding --backend dask --scheduler ftp": [
        "genbounds: `--scheduler` 'ftp' does not answer",
        "give the address that `dask scheduler` prints",
    ],
    "bogus": ["genbounds: No such command 'bogus'", "See 'genbounds --help'."],
    "--bogus": ["genbounds: No such option: --bogus"],
    FD + "good.npy --size 299": ["No such option: --size", "An option of: features."],
    "gate real.npy good.npy bad.npy --margin 5 %": ["genbounds: '%' stands alone: write 5%"],
    FD + "good.npy --bogus": ["genbounds score: No such option: --bogus"],
    FD + "good.npy --level": ["--level"],
    FD + "good.npy --level x": ["--level"],
    SELECT + "--budget x": ["genbounds select: Invalid value for '--budget'", "integer"],
    SELECT + "--batch 1.5": ["genbounds select: Invalid value for '--batch'", "integer"],
    "bounds a b": ["genbounds bounds: Got unexpected extra argument", "b"],
    FD + "good.npy --estimator best": ["`--estimator` must be one of", "'debiased'", "got 'best'"],
    SELECT + "--budget 1": ["`--budget`"],
    SELECT + "--policy is-ucb": ["is"],
    "audit o24.nothing": ["no statement 'o24.nothing' in the catalogue"],
    "bounds hoefding": ["no statement 'hoefding'", "o24.hoeffding"],
    IS + "good.npy": ["good.npy"],
    "select --metric is p_good.npy half.npy": ["half.npy"],
    "audit o24.hoeffding --replications 10 --out empty.npy": ["empty.npy"],
}


@pytest.mark.parametrize("call", CALLS)
def test_bad_call(run, here, call):
    if "--backend dask --scheduler ftp" in call:
        pytest.importorskip("distributed")
    result = run(*call.split())
    assert result.code == 2
    assert result.out == ""
    assert result.err.endswith("\n")
    assert result.err.count("\n") == 1
    if CALLS[call] is None:
        assert result.err.startswith("genbounds")
        for part in PARTS[call]:
            assert part in result.err
    else:
        assert result.err == CALLS[call] + "\n"


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["score", "real.npy", ""], "an argument"),
        (["score", "real.npy", "good.npy", "--out", ""], "`--out`"),
        (["select", "--contexts", "", "good.npy", "bad.npy"], "`--contexts`"),
    ],
)
def test_what_a_variable_that_is_not_set_leaves(run, here, arguments, what):
    """As a path it would be this folder, as a name no name."""
    line = f"genbounds: {what} is empty: is a variable of the shell not set?\n"
    result = run(*arguments)
    assert (result.code, result.out, result.err) == (2, "", line)


@pytest.mark.parametrize("call", [FD + "nan.npy", SELECT + "--batch 0", "bounds zzzz"])
def test_json_does_not_change_an_error(run, here, call):
    assert run(*call.split(), "--json") == run(*call.split())


def test_full_disk(run, here, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    result = run("score", "real.npy", "good.npy", "--out", "results")
    assert result.code == 2
    assert result.err == (
        "genbounds: results/results.json: cannot be written: the disk is full: "
        "free some space or choose another folder.\n"
    )


def test_out_of_memory(run, here, monkeypatch):
    def exhausted(*args, **kwargs):
        raise MemoryError

    monkeypatch.setattr("numpy.linalg.eigh", exhausted)
    monkeypatch.setattr("scipy.linalg.eigh", exhausted)
    result = run("score", "real.npy", "good.npy")
    assert result.code == 2
    assert result.err.startswith("genbounds: not enough memory")


def test_hostile_file_names(run, here):
    """Control characters, mark-up and undecodable bytes stay one harmless line."""
    for name in ("a\nb.npy", "\x1b[31mred.npy", "[bold]x[-].npy", ":smile:.npy", "\udcff.npy"):
        (here / name).symlink_to(here / "good.npy")
        result = run("score", "real.npy", name, "--json")
        assert result.code == 0
        assert result.json["rows"][0]["model"] == name.removesuffix(".npy")
        text = run("score", "real.npy", name).out
        assert "\x1b" not in text
        assert "a\nb" not in text
        missing = run("score", "real.npy", "no" + name)
        assert missing.code == 2
        assert missing.err.count("\n") == 1
        assert "\x1b" not in missing.err
    assert "[bold]x[-]" in run("score", "real.npy", "[bold]x[-].npy").out
    assert ":smile:" in run("score", "real.npy", ":smile:.npy").out
