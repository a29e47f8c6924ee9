"""Damaged and altered stores: the true result, or one line; never another verdict, no traceback."""

from __future__ import annotations

import shutil
import sqlite3

import pytest

from genbounds import InputError
from genbounds.bounds import catalog
from genbounds.simulate import GaussianArm, coverage
from tests.refusal import refused

NAME = "coverage.sqlite"


def run(out=None):
    """A study of a few chunks, some hundredths of a second each."""
    bound = catalog()["o24.gaussian-mean"]
    arm = GaussianArm([0.0], [[1.0]])
    return coverage(bound, arm, 8, 0.05, 40, 3, out=out)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Return a finished store and its true result."""
    folder = tmp_path_factory.mktemp("study")
    truth = run()
    assert run(folder) == truth
    return folder / NAME, truth


def true_or_one_line(store, truth, folder, flip):
    content = bytearray(store.read_bytes())
    content[flip // 8] ^= 1 << flip % 8
    (folder / NAME).write_bytes(content)
    refusal, result = None, None
    try:
        result = run(folder)
    except InputError as error:
        refusal = str(error)
    if refusal is not None:
        assert NAME in refusal, flip
        assert refusal.isprintable(), flip
        return "refused"
    assert result == truth, flip
    return "true"


def test_every_bit_of_a_row(study, tmp_path, caplog):
    """What is kept of the first chunk, its key and its checksum: each flip is seen, or harmless."""
    store, truth = study
    content = store.read_bytes()
    with sqlite3.connect(store) as connection:
        ((value,),) = connection.execute("SELECT value FROM work LIMIT 1").fetchall()
    connection.close()
    at = content.index(value.encode())
    for flip in range(8 * at, 8 * (at + len(value)), 7):
        caplog.clear()
        assert true_or_one_line(store, truth, tmp_path, flip) == "true"
        assert NAME in caplog.text


STATEMENTS = {
    "counts": "UPDATE work SET value = replace(value, '\"misses\": ', '\"misses\": 9')",
    "another row's": "UPDATE work SET value = '{}', checksum = checksum",
    "a number": "UPDATE work SET value = 7",
    "nothing": "UPDATE work SET value = NULL, checksum = NULL",
    "bytes": "UPDATE work SET value = x'ff00', checksum = x'00'",
    "no JSON": "UPDATE work SET value = '['",
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_rows_made_by_hand_are_computed_again(study, tmp_path, caplog, name):
    store, truth = study
    shutil.copy(store, tmp_path)
    with sqlite3.connect(tmp_path / NAME) as connection:
        before = connection.execute("SELECT value FROM work").fetchall()
        connection.execute(STATEMENTS[name])
        assert connection.execute("SELECT value FROM work").fetchall() != before
    connection.close()
    assert run(tmp_path) == truth
    assert "altered" in caplog.text
    caplog.clear()
    assert run(tmp_path) == truth  # mended
    assert caplog.text == ""


def test_rows_of_another_study_are_not_taken(study, tmp_path, caplog):
    """The checksum knows the configuration: a row that is right elsewhere is not right here."""
    store, truth = study
    shutil.copy(store, tmp_path)
    with sqlite3.connect(tmp_path / NAME) as connection:
        connection.execute("UPDATE configuration SET value = '2' WHERE key = 'threads'")
    connection.close()
    bound = catalog()["o24.gaussian-mean"]
    arm = GaussianArm([0.0], [[1.0]])
    again = coverage(bound, arm, 8, 0.05, 40, 3, out=tmp_path, threads=2)
    assert again.misses == truth.misses
    assert "altered" in caplog.text


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE VIEW more AS SELECT 1",
        "CREATE TRIGGER sly AFTER INSERT ON work BEGIN DELETE FROM configuration; END",
        "CREATE TABLE holiday (photo TEXT)",
        "DROP TABLE work",
    ],
)
def test_a_store_with_anything_else_is_refused(study, tmp_path, statement):
    shutil.copy(study[0], tmp_path)
    with sqlite3.connect(tmp_path / NAME) as connection:
        connection.execute(statement)
    connection.close()
    before = (tmp_path / NAME).read_bytes()
    with refused(NAME):
        run(tmp_path)
    assert (tmp_path / NAME).read_bytes() == before


@pytest.mark.parametrize("size", [50, 4096, 5000])
def test_a_store_that_is_cut_is_refused(study, tmp_path, size):
    (tmp_path / NAME).write_bytes(study[0].read_bytes()[:size])
    with refused(NAME):
        run(tmp_path)


def test_a_store_of_odd_words_reaches_no_terminal(study, tmp_path):
    shutil.copy(study[0], tmp_path)
    with sqlite3.connect(tmp_path / NAME) as connection:
        connection.execute("UPDATE configuration SET value = char(27) || '[2J' || char(10)")
    connection.close()
    with refused(NAME, "\\x1b"):
        run(tmp_path)
