"""Folders of pictures that differ in what moves a distance by itself: a typed line for each."""

from __future__ import annotations

import json
import tarfile
import zipfile

import numpy as np
import pytest
from PIL import Image
from scipy import stats

from genbounds.cli import main
from genbounds.features import extract, load_encoder, open_source, origin_warnings
from genbounds.files import read_metadata
from genbounds.validation import InputError

RNG = np.random.default_rng(0)
N = 20


def folder(path, *, n=N, ending="png", side=32, mode="RGB", orientation=None):
    """Write pictures of noise, no two alike."""
    path.mkdir(exist_ok=True)
    first = sum(1 for _ in path.iterdir())
    for number in range(first, first + n):
        pixels = RNG.integers(0, 256, size=(side, side, 3), dtype=np.uint8)
        if mode == "I;16":
            image = Image.fromarray(pixels[..., 0].astype(np.uint16) * 257)
        else:
            image = Image.fromarray(pixels).convert(mode)
        exif = Image.Exif()
        if orientation:
            exif[0x0112] = orientation
        image.save(path / f"{number:04d}.{ending}", exif=exif)
    return path


def origin(*inputs, encoder="toy", **options):
    """Return what a file of features says of the pictures it was made from."""
    out = inputs[0].with_name(f"{inputs[0].name}.safetensors")
    toy = load_encoder("tests.features.toy:flat")
    extract(open_source(inputs), toy, out=out, **options)
    return read_metadata(out) | {"encoder": encoder}


def codes(*origins):
    found = origin_warnings({f"f{number}": one for number, one in enumerate(origins)})
    return [(one.code, one.severity) for one in found]


DIFFERENT = {
    "file format": {"ending": "jpg"},
    "resolution": {"side": 48},
    "colour mode": {"mode": "L"},
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_each_difference_is_one_line(tmp_path, what):
    real = origin(folder(tmp_path / "real"))
    other = origin(folder(tmp_path / "other", **DIFFERENT[what]))
    (found,) = origin_warnings({"real": real, "gan": other, "vae": other})
    assert (found.code, found.severity) == ("unlike-pictures", "caution")
    assert f"differ in {what} (real: " in found.message
    assert "; gan: " in found.message
    assert "; vae: " in found.message


def test_formats_that_store_the_same_pixels_are_alike(tmp_path):
    real = origin(folder(tmp_path / "real"))
    pixels = RNG.integers(0, 256, size=(N, 32, 32, 3), dtype=np.uint8)
    np.save(tmp_path / "array.npy", pixels)
    assert codes(real, origin(folder(tmp_path / "bmp", ending="bmp"))) == []
    assert codes(real, origin(tmp_path / "array.npy")) == []


def test_what_the_encoder_does_not_see(tmp_path):
    turned = folder(tmp_path / "turned", n=N - 3, ending="jpg")
    turned = origin(folder(turned, n=3, ending="jpg", orientation=6))
    assert codes(turned) == [("pixels-lost", "caution")]
    deep = folder(tmp_path / "deep", mode="I;16")
    assert codes(origin(deep)) == []  # this encoder takes 16 bits as they are
    assert codes(origin(deep, encoder="inception:pytorch")) == [("pixels-lost", "caution")]
    shallow = tmp_path / "shallow"
    shallow.mkdir()
    for number in range(N):
        pixels = RNG.integers(0, 256, size=(32, 32)).astype(np.uint16)
        Image.fromarray(pixels).save(shallow / f"{number}.png")
    assert codes(origin(shallow, encoder="inception:pytorch")) == []  # nothing is above 255


def test_thumbnails(tmp_path):
    mixed = folder(folder(tmp_path / "mixed", n=58, side=64), n=2, side=16)
    assert codes(origin(mixed)) == [("thumbnails", "caution")]


def test_repeated_pictures_and_other_folders_on_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    folder(tmp_path / "real", n=80)
    folder(tmp_path / "gan", n=60, ending="jpg")
    for number in range(20):  # the padding of a loader, say
        name = f"gan/{number:04d}.jpg"
        (tmp_path / f"gan/again-{number}.jpg").write_bytes((tmp_path / name).read_bytes())
    call = "score real gan --metric kid --encoder tests.features.toy:flat --json".split()
    assert main(call) == 0
    answer = json.loads(capsys.readouterr().out)
    found = {one["code"] for row in answer["rows"] for one in row["warnings"]}
    found |= {one["code"] for one in answer.get("warnings", [])}
    assert {"unlike-pictures", "duplicates"} <= found
    call = "features real --encoder tests.features.toy:flat --out r.npz --json".split()
    assert main(call) == 0
    assert json.loads(capsys.readouterr().out)["notes"] == []


def test_archives_shares_and_chains_say_the_same(tmp_path):
    real = folder(tmp_path / "real")
    whole = origin(real)["pictures"]
    with zipfile.ZipFile(tmp_path / "real.zip", "w") as archive:
        for path in sorted(real.iterdir()):
            archive.write(path, path.name)
    assert origin(tmp_path / "real.zip")["pictures"] == whole
    for ending, mode in {"tar": "w", "tar.gz": "w:gz"}.items():
        with tarfile.open(tmp_path / f"real.{ending}", mode) as archive:
            archive.add(real, "real")
        assert origin(tmp_path / f"real.{ending}")["pictures"] == whole
    assert origin(real, part=(2, 2), batch=5)["pictures"] == whole
    twice = json.loads(origin(tmp_path / "real.zip", tmp_path / "real.tar")["pictures"])
    assert twice["format"] == {"PNG": 2 * N}


def test_a_damaged_picture_is_left_to_its_reader(tmp_path):
    real = folder(tmp_path / "real")
    (real / "0003.png").write_bytes(b"no picture")
    counts = open_source([real]).survey()
    assert sum(counts["side"].values()) == N - 1
    with pytest.raises(InputError, match="0003"):
        origin(real)


@pytest.mark.parametrize(
    "text",
    ["", "[", "null", "[]", "{}", '{"format": 3}', '{"format": {"PNG": "x"}}', "[" * 5000]
    + [
        json.dumps({"format": {"A": 1}, "mode": {"A": 1}, "side": {side: n}, "lost": {}})
        for side, n in [("x", 1), ("nan", 1), ("-1", 1), ("inf", 1), ("8", 0), ("8", -1)]
    ],
)
def test_damaged_metadata_say_nothing(tmp_path, text):
    good = origin(folder(tmp_path / "real"))
    assert codes(good | {"pictures": text}, good) == []


def test_names_in_metadata_are_escaped():
    facts = {"mode": {"RGB": N}, "side": {"8": N}, "lost": {}}
    one, two = (json.dumps(facts | {"format": {form: N}}) for form in ("JPEG", "\x1b[31m"))
    (found,) = origin_warnings({"a": {"pictures": one}, "b": {"pictures": two}})
    assert "\x1b" not in found.message


def test_like_folders_are_not_accused():
    """H0: both are drawn from one mixture of formats, sizes and modes; no false alarm in 300.

    Where 50 pictures and 1,000 are looked at, a share is called different with a probability of
    at most 2e-4 (exact binomials, at 2 % of JPEG), at the shares here below 1e-6; of 300 pairs
    with four shares each none with a probability of 99.9 %. No side is a quarter of the usual one,
    which is 6.9 standard deviations away: in 210,000 pictures with a probability of 1e-6. The
    generator is the test's own: whichever tests ran before, it draws the same. A folder with 30 %
    of JPEG instead of 60 % is seen in more than 99 %.
    """
    rng = np.random.default_rng(0)

    def facts(n, jpeg):
        counts = lambda *pairs: {key: int(k) for key, k in pairs if k}  # noqa: E731
        form, grey = rng.binomial(n, jpeg), rng.binomial(n, 0.1)
        sides = np.unique(rng.lognormal(6.0, 0.2, size=n).astype(int), return_counts=True)
        return {
            "pictures": json.dumps(
                {
                    "format": counts(("JPEG", form), ("PNG", n - form)),
                    "mode": counts(("L", grey), ("RGB", n - grey)),
                    "side": counts(*zip(map(str, sides[0]), sides[1], strict=True)),
                    "lost": {},
                }
            )
        }

    assert all(
        codes(facts(n, 0.6), facts(m, 0.6)) == []
        for n in (50, 300)
        for m in (50, 1000)
        for _ in range(75)
    )
    seen = sum(bool(codes(facts(400, 0.6), facts(400, 0.3))) for _ in range(100))
    assert stats.binom.cdf(seen, 100, 0.99) > 1e-6
