from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import genbounds as gb
from genbounds import features
from genbounds.estimators import metric_names
from genbounds.report import number

ROW = {
    "model", "metric", "estimator", "value", "low", "high", "level", "stderr", "n", "method",
    "reliable", "warnings", "assumptions", "details", "title", "reference_n", "encoder", "notes",
}  # fmt: skip


def test_json_is_the_contract_and_nothing_else(run, zoo):
    result = run("score", zoo / "real.npy", zoo / "good.npy", zoo / "bad.npy", "--json")
    assert result.code == 0
    assert result.err == ""
    assert [row["model"] for row in result.json["rows"]] == ["good", "bad"]
    for row in result.json["rows"]:
        assert row.keys() == ROW
        assert row["metric"] == "fd"
        assert row["level"] == 0.95
        assert row["n"] == 500
        assert row["low"] <= row["value"] <= row["high"]
    assert result.json["ranking"]["contenders"] == ["good"]
    assert result.json["ranking"]["differences"][0]["distinguishable"] is True


@pytest.mark.parametrize("estimator", ["debiased", "plugin"])
def test_numbers_are_the_library_s(run, zoo, estimator):
    row = run(
        "score", zoo / "real.npy", zoo / "bad.npy", "--estimator", estimator, "--level", "0.9",
        "--json",
    ).json["rows"][0]  # fmt: skip
    expected = gb.frechet_distance(
        np.load(zoo / "bad.npy"), np.load(zoo / "real.npy"), estimator=estimator, level=0.9
    )
    assert {key: row[key] for key in expected.to_dict()} == expected.to_dict()


def test_plugin_has_no_ranking(run, zoo):
    files = [zoo / "real.npy", zoo / "good.npy", zoo / "bad.npy"]
    assert "ranking" not in run("score", *files, "--estimator", "plugin", "--json").json
    assert "ranking" not in run("score", *files[:2], "--json").json


def test_reference_statistics(run, zoo):
    known = run("score", zoo / "population.npz", zoo / "good.npy", "--json").json
    counted = run("score", zoo / "counted.npz", zoo / "good.npy", "--json").json
    (row,) = known["rows"]
    assert not row["reliable"]
    codes = [warning["code"] for warning in row["warnings"]]
    assert "reference-size-unknown" in codes
    assert counted["rows"][0]["reliable"]
    assert counted["rows"][0]["stderr"] > row["stderr"]
    told = run("score", zoo / "population.npz", zoo / "good.npy", "--reference-n", 900, "--json")
    assert told.json["rows"] == counted["rows"]
    exact = run("score", zoo / "population.npz", zoo / "good.npy", "--reference-exact", "--json")
    assert exact.json["rows"][0]["reliable"]
    assert exact.json["rows"][0]["stderr"] == row["stderr"]


@pytest.mark.parametrize("metric", ["is", "rke"])
def test_without_a_reference_all_files_are_models(run, zoo, metric):
    names = ["p_bad", "p_good"] if metric == "is" else ["bad", "good"]
    files = [zoo / f"{name}.npy" for name in names]
    document = run("score", *files, "--metric", metric, "--json").json
    assert [row["model"] for row in document["rows"]] == names
    assert "reference" not in document
    assert len(document["ranking"]["differences"]) == 1
    named = run("score", *files[1:], "--reference", files[0], "--metric", metric, "--json").json
    assert [row["model"] for row in named["rows"]] == names[1:]
    assert named["reference"]["model"] == names[0]
    assert "ranking" not in named


def test_logits_are_posteriors_after_a_softmax(run, zoo):
    plain = run("score", zoo / "p_good.npy", "--metric", "is", "--json").json["rows"][0]
    logits = run(
        "score", zoo / "p_good_logits.npy", "--metric", "is", "--logits", "--json"
    ).json["rows"][0]  # fmt: skip
    assert logits["value"] == pytest.approx(plain["value"], rel=1e-9)


def test_softmax_of_extremes(run, tmp_path):
    """Logits whose differences overflow are certain of one class each."""
    logits = np.array([[1e308, -1e308, 0.0], [0.0, 0.0, 0.0], [-800.0, 0.0, -800.0]])
    np.save(tmp_path / "logits.npy", np.repeat(logits, 20, axis=0))
    np.save(tmp_path / "p.npy", np.repeat([[1, 0, 0], [1 / 3] * 3, [0, 1, 0]], 20, axis=0))
    found = [
        run("score", tmp_path / name, *option, "--metric", "is", "--json").json["rows"][0]["value"]
        for name, option in (("logits.npy", ["--logits"]), ("p.npy", []))
    ]
    assert found[0] == pytest.approx(found[1], rel=1e-12)


def columns(text: str) -> dict[str, list[str]]:
    """Return the table that was printed, by heading."""
    lines = text.splitlines()
    rule = next(i for i, line in enumerate(lines) if set(line) == {"─"})
    heading = lines[rule - 1]
    starts = [match.start() for match in re.finditer(r"(?<=\s\s)\S|^\S", heading)]
    rows = []
    for line in lines[rule + 1 :]:
        if not line.strip():
            break
        rows.append(re.split(r"\s{2,}", line.strip()))
    names = re.split(r"\s{2,}", heading.strip())
    assert len(starts) == len(names)
    return {name: [row[i] if i < len(row) else "" for row in rows] for i, name in enumerate(names)}


def test_the_table_is_the_ranking(run, zoo):
    files = [zoo / f"{name}.npy" for name in ("real", "bad", "good", "close")]
    result = run("score", *files)
    assert result.code == 0
    assert "\x1b" not in result.out
    document = run("score", *files, "--json").json
    table = columns(result.out)
    letters = document["ranking"]["letters"]
    assert table["Model"] == list(letters)  # best first
    assert table["Model"][-1] == "bad"
    assert table["Group"] == list(letters.values())
    best, *others = letters
    pairs = {frozenset((p["better"], p["worse"])): p for p in document["ranking"]["differences"]}
    chance = [pairs[frozenset((best, name))]["pvalue_adjusted"] for name in others]
    assert chance[0] > 0.0001 > chance[1]
    assert [table["p"][0], table["p"][2]] == ["–", "<0.0001"]
    assert float(table["p"][1]) == pytest.approx(chance[0], abs=0.05)
    assert f"p is the p-value of no difference from {best}, adjusted for all 3 pairs." in result.out
    by_name = {row["model"]: row for row in document["rows"]}
    for name, value in zip(table["Model"], table["Score"], strict=True):
        assert float(value) == pytest.approx(by_name[name]["value"], rel=1e-3)


def test_the_verdict_names_every_rival_of_the_best(run, zoo):
    files = {name: zoo / f"{name}.npy" for name in ("real", "bad", "good", "close")}
    verdict = run("score", *files.values()).out.split("\n\n")[2]
    assert "good" in verdict
    assert "close" in verdict
    assert "bad" not in verdict
    alone = run("score", files["real"], files["good"], files["bad"]).out.split("\n\n")[2]
    assert "good" in alone
    assert "bad" not in alone


def test_methods_are_printed_only_on_request(run, zoo):
    files = [zoo / "real.npy", zoo / "good.npy"]
    assert "second-order" not in run("score", *files).out
    assert "second-order" in run("score", *files, "--verbose").out


# --- files that are not what they are taken for ---------------------------------------------------


@pytest.fixture
def strange(tmp_path):
    rng = np.random.default_rng(5)
    np.save(tmp_path / "real.npy", rng.normal(size=(600, 4)))
    np.save(tmp_path / "good.npy", rng.normal(size=(500, 4)))
    np.save(tmp_path / "constant.npy", np.full((500, 4), 0.25))
    np.save(tmp_path / "pixels.npy", rng.integers(0, 256, size=(500, 4), dtype=np.uint8))
    for name in ("wide", "wide_too"):
        np.save(tmp_path / f"{name}.npy", rng.normal(size=(4, 500)))
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reference", "model", "code", "severity"),
    [
        ("real", "constant", "no-variation", "unreliable"),
        ("constant", "good", "no-variation", "unreliable"),
        ("real", "pixels", "implausible-input", "caution"),
        ("wide", "wide_too", "implausible-input", "caution"),
        ("real", "good", None, None),
    ],
)
def test_implausible_files_are_named(run, strange, reference, model, code, severity):
    """In the row of the model that they concern, in its warnings, and as a mark in the table."""
    files = [strange / f"{reference}.npy", strange / f"{model}.npy"]
    row = run("score", *files, "--json").json["rows"][0]
    found = {(w["code"], w["severity"]) for w in row["warnings"]}
    text = run("score", *files).out
    if code is None:
        assert not found
        assert "Warnings" not in text
        return
    assert (code, severity) in found
    assert row["reliable"] == all(w["severity"] != "unreliable" for w in row["warnings"])
    (mark,) = columns(text)["Warnings"]
    assert mark == ("caution" if row["reliable"] else "unreliable")


def test_unreliable_warnings_come_first_and_name_their_models(run, strange):
    files = [strange / f"{name}.npy" for name in ("real", "pixels", "constant", "good")]
    text = run("score", *files).out
    warnings = re.findall(r"^\* (\w+): (.*)$", text.split("\nWarnings\n")[1], flags=re.MULTILINE)
    kinds = [kind for kind, _ in warnings if kind in ("unreliable", "caution")]
    assert kinds == sorted(kinds, reverse=True)
    assert len(set(kinds)) == 2
    assert all("(constant)" in rest for kind, rest in warnings if kind == "unreliable")


def test_few_rows_of_a_known_encoder_are_not_taken_for_columns(run, tmp_path):
    metadata = np.frombuffer(b'{"encoder": "ours", "weights": "1"}', dtype=np.uint8)
    rng = np.random.default_rng(0)
    for name, known in {"told": {"metadata": metadata}, "untold": {}}.items():
        for role in ("real", "fake"):
            rows = rng.normal(size=(20, 2100)).astype(np.float32)
            np.savez(tmp_path / f"{name}-{role}.npz", features=rows, **known)
    for name, said in (("told", False), ("untold", True)):
        files = [tmp_path / f"{name}-{role}.npz" for role in ("real", "fake")]
        assert ("rows and columns" in run("score", *files).out) == said


def test_what_cannot_be_relied_on_has_no_group_and_no_p(run, tmp_path):
    rng = np.random.default_rng(0)
    sizes = {"real": 400, "a": 12, "b": 12, "c": 12, "many": 400, "more": 400}
    for name, n in sizes.items():
        scale = {"b": 3.0, "more": 2.0}.get(name, 1.0)
        np.save(tmp_path / f"{name}.npy", scale * rng.normal(size=(n, 8)))
    real, a, b, c, many, more = (tmp_path / f"{name}.npy" for name in sizes)
    few = run("score", real, a, b, c, "--out", tmp_path / "few")
    head = next(line for line in few.out.splitlines() if line.startswith("Model"))
    assert head.split() == ["Model", "Score", "Interval", "n", "Warnings"]
    assert "p-value" not in few.out
    page = (tmp_path / "few" / "report.html").read_text(encoding="utf-8")
    assert "Which models differ significantly" not in page
    assert "Better than the next by" not in page
    mixed = run("score", real, b, many, more).out
    rows = {line.split()[0]: line for line in mixed.splitlines() if "unreliable" in line}
    assert "<0.0001" in mixed
    assert not re.search(r" [abc] ", rows["b"].partition("]")[2])


def test_the_page_shows_the_usual_number_beside_ours(run, zoo, tmp_path):
    """As pytorch-fid prints it: of the rows as they lie, however they were drawn."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 4))
    np.savez(tmp_path / "grouped.npz", features=x, groups=np.arange(400) // 20)
    call = ("score", tmp_path / "grouped.npz", zoo / "good.npy", "--out", tmp_path / "out")
    assert run(*call).code == 0
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    usual = gb.fid(np.load(zoo / "good.npy"), x, estimator="plugin").value
    assert "Usual number" in page
    assert f">{number(usual)}</td>" in page
    run("score", zoo / "real.npy", zoo / "good.npy", "--metric", "kid", "--out", tmp_path / "kid")
    assert "Usual number" not in (tmp_path / "kid" / "report.html").read_text(encoding="utf-8")


# --- results that are kept ------------------------------------------------------------------------


def test_says_on_a_terminal_where_the_page_is(run, zoo, tmp_path, monkeypatch):
    call = ("score", zoo / "real.npy", zoo / "good.npy", "--out", tmp_path, "--json")
    assert run(*call).err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    result = run(*call)
    assert result.err.endswith(f"report: {tmp_path / 'report.html'}\n")
    assert result.json["rows"]


def test_one_model_has_no_group(run, zoo):
    assert "Group" not in run("score", zoo / "real.npy", zoo / "good.npy").out
    assert "Group" in run("score", zoo / "real.npy", zoo / "good.npy", zoo / "bad.npy").out


def test_convergence_is_on_the_page_and_in_the_json_if_asked_for(run, zoo, tmp_path):
    """Numbers are the library's; a model without rows is left out, with a note."""
    files = [zoo / name for name in ("real.npy", "good.npy", "bad.npy", "counted.npz")]
    plain = run("score", *files, "--json").json
    assert "convergence" not in plain
    out = run("score", *files, "--convergence", "--json", "--out", tmp_path).json
    assert {key: out[key] for key in ("rows", "ranking")} == {
        key: plain[key] for key in ("rows", "ranking")
    }
    fakes = {name: np.load(zoo / f"{name}.npy") for name in ("good", "bad")}
    grown = gb.estimators.convergence(fakes, np.load(zoo / "real.npy"))
    assert out["convergence"].keys() == grown.keys()
    for name, points in grown.items():
        rows = out["convergence"][name]
        assert [row["n"] for row in rows] == [62, 125, 250, 500] == [n for n, _ in points]
        for row, (_, score) in zip(rows, points, strict=True):
            assert (row["value"], row["low"], row["high"]) == pytest.approx(
                (score.value, score.low, score.high), rel=1e-9
            )
    assert out["warnings"][-1]["code"] == "moments-only"
    assert "counted.npz" in out["notes"][-1]
    page = (tmp_path / "report.html").read_text()
    assert page.count("<title>good, n = 62") == 2


@pytest.mark.parametrize(
    "metric",
    ["is", "vendi", "precision"],  # without a reference, by another order of files, of four scores
)
def test_convergence_of_other_metrics(run, zoo, metric):
    stem = "p_" if metric == "is" else ""
    files = [zoo / f"{stem}good.npy", "--reference", zoo / f"{stem}real.npy"]
    document = run("score", *files, "--metric", metric, "--convergence", "--json").json
    (points,) = document["convergence"].values()
    assert [row["n"] for row in points] == [points[-1]["n"] >> k for k in (3, 2, 1, 0)][
        -len(points) :
    ]
    assert points[-1]["value"] == document["rows"][0]["value"]


def test_what_is_finished_is_kept(run, zoo, tmp_path):
    """Marked as incomplete, and without the page of an earlier run beside it."""
    np.save(tmp_path / "broken.npy", np.full((50, 4), np.nan))
    out = tmp_path / "out"
    files = [zoo / "real.npy", zoo / "good.npy", tmp_path / "broken.npy"]
    assert run("score", *files[:2], "--out", out).code == 0
    assert json.loads((out / "results.json").read_text())["complete"] is True
    assert (out / "report.html").exists()
    assert run("score", *files, "--out", out).code == 2
    kept = json.loads((out / "results.json").read_text())
    assert [row["model"] for row in kept["rows"]] == ["good"]
    assert kept["complete"] is False
    assert not (out / "report.html").exists()


def test_ctrl_c_leaves_incomplete_results(run, zoo, tmp_path, monkeypatch):
    out = tmp_path / "out"
    files = [zoo / name for name in ("real.npy", "good.npy", "bad.npy")]
    assert run("score", *files, "--out", out).code == 0

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("genbounds.estimators.rank", interrupt)
    stopped = run("score", *files, "--out", out)
    assert stopped.code == 130
    assert stopped.err.count("\n") == 1
    kept = json.loads((out / "results.json").read_text())
    assert [row["model"] for row in kept["rows"]] == ["good", "bad"]
    assert kept["complete"] is False
    assert {path.name for path in out.iterdir()} == {"results.json"}


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["a.npy", "b.npy"], ["a", "b"]),
        (["gan/x.npy", "vae/x.npy", "y.npy"], ["gan/x", "vae/x", "y"]),
        (["1/gan/x.npy", "2/gan/x.npy"], ["1/gan/x", "2/gan/x"]),
        (["x.npy", "x.npz"], ["x.npy", "x.npz"]),
        (["x.npy", "x.npy", "x.npy"], ["x.npy", "x.npy (2)", "x.npy (3)"]),
        (["gan/x.npy", "x.npy"], ["gan/x", "x"]),
    ],
)
def test_model_names_are_short_and_unique(run, zoo, tmp_path, monkeypatch, paths, names):
    monkeypatch.chdir(tmp_path)
    for path in map(Path, dict.fromkeys(paths)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(zoo / ("good.npy" if path.suffix == ".npy" else "counted.npz"))
    document = run("score", zoo / "population.npz", *paths, "--json").json
    assert [row["model"] for row in document["rows"]] == names


def test_every_metric_of_the_library_is_on_offer(run):
    names = gb.estimators.metric_names()
    text = run("score", "--help").out
    for name in names:  # from a line of its own on
        words = map(re.escape, gb.estimators.metric_spec(name).summary.split())
        summary = r"\s+".join(words)
        assert re.search(rf"^  {name} +{summary}$", text, flags=re.MULTILINE), name
    assert "\n  module:name  " in text
    selectable = run("select", "--help").out
    listed = [name for name in names if f"\n  {name} " in selectable]
    assert listed == [name for name in names if not gb.estimators.metric_spec(name).fixed_size]


def test_diversity_needs_no_reference_and_one_bandwidth(run, zoo):
    """A reference gives the bandwidth and is scored for orientation."""
    real, good = (np.load(zoo / name) for name in ("real.npy", "good.npy"))
    sigma = gb.estimators.median_bandwidth(real)
    call = ("score", zoo / "good.npy", "--reference", zoo / "real.npy", "--metric", "rke")
    document = run(*call, "--json").json
    expected = gb.vendi_score(good, order=2.0, bandwidth=sigma)
    assert document["rows"][0]["value"] == pytest.approx(expected.value, rel=1e-12)
    assert document["reference"]["model"] == "real"
    alone = run("score", zoo / "good.npy", "--metric", "vendi", "--kernel", "cosine", "--json").json
    assert alone["rows"][0]["value"] == pytest.approx(
        gb.vendi_score(good, kernel="cosine").value, rel=1e-12
    )


def test_a_kernel_has_the_bandwidth_that_is_given(run, zoo):
    call = ("score", zoo / "real.npy", zoo / "good.npy", "--metric", "kad", "--bandwidth", "2.5")
    good, real = (np.load(zoo / f"{name}.npy") for name in ("good", "real"))
    expected = gb.kernel_distance(good, real, kernel="kad", bandwidth=2.5).value
    assert run(*call, "--json").json["rows"][0]["value"] == expected


def test_vendi_of_few_rows(run, zoo, tmp_path):
    """No more rows than eigenvalues are usually kept: fewer are, and the details say how many."""
    few = np.load(zoo / "good.npy")[:60]
    np.save(tmp_path / "few.npy", few)
    call = ("score", tmp_path / "few.npy", "--reference", zoo / "real.npy", "--metric", "vendi")
    given = run(*call, "--json").json
    for row in (given["rows"][0], given["reference"]):
        assert row["method"] == "truncated"
        assert any("59" in detail for detail in row["details"])


def test_values_may_have_one_dimension(run, tmp_path):
    """As `mean_score` takes them; 8-bit ratings are no pixels."""
    ratings = np.random.default_rng(0).integers(1, 6, size=300).astype(np.uint8)
    np.save(tmp_path / "flat.npy", ratings)
    np.save(tmp_path / "column.npy", ratings[:, np.newaxis])
    np.savez(tmp_path / "asked.npz", features=ratings, groups=np.arange(300) // 3)
    found = run("score", *tmp_path.glob("*"), "--metric", "mean", "--json").json
    rows = {row["model"]: row for row in found["rows"]}
    assert [row["value"] for row in rows.values()] == pytest.approx([ratings.mean()] * 3)
    assert not any(row["warnings"] for row in rows.values())
    assert rows["flat"]["low"] == rows["column"]["low"] != rows["asked"]["low"]
    assert run("score", tmp_path / "flat.npy", tmp_path / "flat.npy").code == 2


@pytest.fixture(scope="module")
def modes(tmp_path_factory):
    """Write real rows of two modes, a model of both and a narrow one of one."""
    folder = tmp_path_factory.mktemp("modes")
    rng = np.random.default_rng(11)
    real = rng.normal(size=(300, 4)) + 6.0 * rng.integers(0, 2, (300, 1))
    both = rng.normal(size=(300, 4)) + 6.0 * rng.integers(0, 2, (300, 1))
    for name, rows in {"real": real, "both": both, "one": 0.3 * rng.normal(size=(300, 4))}.items():
        np.save(folder / f"{name}.npy", rows)
    return folder


@pytest.mark.parametrize("metric", ["precision", "coverage"])
def test_all_four_scores_stand_in_every_row_with_their_ratios(run, modes, metric):
    files = [modes / f"{name}.npy" for name in ("real", "both", "one")]
    rows = run("score", *files, "--metric", metric, "--k", "3", "--level", "0.9", "--json").json[
        "rows"
    ]
    for row, path in zip(rows, files[1:], strict=True):
        found = gb.precision_recall(np.load(path), np.load(files[0]), k=3, level=0.9)
        assert row.keys() == ROW | {"together"}
        assert row["together"] == json.loads(json.dumps(found.to_dict()))
        assert row["value"] == row["together"][metric]["value"]


def test_all_four_are_printed_and_shown_with_their_warnings(run, modes, tmp_path):
    files = [modes / f"{name}.npy" for name in ("real", "both", "one")]
    result = run("score", *files, "--metric", "precision", "--out", tmp_path)
    found = gb.precision_recall(np.load(files[2]), np.load(files[0]))
    assert found.calibrated.recall.value < 0.7 < found.calibrated.precision.value
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for name, score in found.calibrated.items():
        line = next(x for x in result.out.splitlines() if x.startswith("one") and name in x)
        assert f"{getattr(found, name).value:.4g}" in line
        assert f"{score.value:.4g}" in line
        assert f"{score.value:.4g}" in page
    assert any(not score.reliable for score in found.scores.values())
    for warning in found.warnings:
        assert warning.message in result.out
        assert warning.message in page


def test_other_metrics_have_one_score_and_no_neighbours(run, zoo):
    files = [zoo / "real.npy", zoo / "good.npy"]
    assert "together" not in run("score", *files, "--metric", "kid", "--json").json["rows"][0]
    refused = run("score", *files, "--k", "3")
    assert refused.code == 2
    assert (
        "`--k` is for --metric precision, recall, density, coverage, f_score, clipped-"
        in refused.err
    )


@pytest.mark.parametrize(
    "words",
    [["--metric"], ["--metric", "help"], ["a.npy", "--metric"], ["--metric", "help", "--json"]],
)
def test_metric_without_a_name_lists_all_of_them(run, words):
    found = run("score", *words)
    lines = found.out.splitlines()[1:]
    names = [line.split()[0] for line in lines if not line.startswith(" ")]  # long ones go on
    assert (found.code, found.err) == (0, "")
    assert names == [*metric_names(), "module:name"]


@pytest.mark.parametrize("words", [["--encoder"], ["a/", "--encoder", "help"]])
@pytest.mark.parametrize("command", ["score", "features", "modes"])
def test_encoder_without_a_name_lists_all_of_them(run, command, words):
    found = run(command, *words)
    lines = found.out.splitlines()[1:]
    names = {line.split()[0].partition(":")[0] for line in lines if not line.startswith(" ")}
    assert (found.code, found.err) == (0, "")
    assert {"dinov2", "clip", "module"} < names
    assert names - {"dinov2", "clip", "module"} == set(features.FAMILIES) - {"python"}


def test_a_command_lists_its_own_metrics(run):
    for command in ("mixture", "select", "plan"):
        assert "precision" not in run(command, "--metric").out
    assert run("modes", "--metric").code == 2
