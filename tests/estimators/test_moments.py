"""Moments: agreement with the textbook, order independence, no cancellation, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import genbounds as gb


def textbook(x):
    x = np.asarray(x, dtype=np.longdouble)
    mean = x.mean(axis=0)
    centred = x - mean
    return mean.astype(float), (centred.T @ centred / (len(x) - 1)).astype(float)


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 60),
    d=st.integers(1, 5),
    cuts=st.lists(st.integers(1, 59), max_size=4),
    offset=st.sampled_from([0.0, 1.0, 1e6]),
)
@settings(deadline=None, max_examples=60)
def test_any_batching_gives_the_textbook_moments(seed, n, d, cuts, offset):
    x = np.random.default_rng(seed).normal(offset, 1.0, size=(n, d))
    mean, cov = textbook(x)
    pieces = [piece for piece in np.split(x, sorted({c for c in cuts if c < n})) if len(piece)]
    streamed = gb.Moments.from_features(pieces[0])
    for piece in pieces[1:]:
        assert streamed.update(piece) is streamed
    merged = gb.Moments.from_features(pieces[0])
    for piece in pieces[1:]:
        merged = merged.merge(gb.Moments.from_features(piece))
    for moments in (streamed, merged, gb.Moments.from_features(x)):
        assert moments.n == n
        assert_allclose(moments.mean, mean, rtol=1e-14, atol=1e-15)
        # Rounding of a mean of 1e6 leaves 1e-10 per entry; a raw second moment would leave 1e-4.
        assert_allclose(moments.cov, cov, rtol=1e-12, atol=1e-12 + 1e-15 * offset)


def test_blocks_of_a_large_sample():
    """72 MB in double precision, more than is taken up at once."""
    x = np.random.default_rng(1).normal(3.0, 2.0, size=(1_500_000, 6)).astype(np.float32)
    moments = gb.Moments.from_features(x)
    wide = x.astype(np.float64)
    assert_allclose(moments.mean, wide.mean(axis=0), rtol=1e-12)
    assert_allclose(moments.cov, np.cov(wide.T), rtol=1e-12, atol=1e-12)


def test_streamed_moments_need_little_memory():
    """At most four d × d matrices and a block, however many rows; numpy reports its memory."""
    import tracemalloc

    d, rng = 400, np.random.default_rng(12)
    moments = gb.Moments.empty(d)
    tracemalloc.start()
    for _ in range(30):
        moments.update(rng.normal(size=(500, d)))
    assert moments.cov.shape == (d, d)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    batch_and_block = 2 * 500 * d * 8
    assert peak < 4 * d * d * 8 + batch_and_block


def test_the_callers_matrix_is_neither_kept_nor_changed():
    cov = np.array([[2.0, 0.5], [0.5, 1.0]])
    moments = gb.Moments(np.zeros(2), cov, n=10)
    cov[:] = 7.0
    assert np.array_equal(moments.cov, [[2.0, 0.5], [0.5, 1.0]])
    before = moments.cov.copy()
    moments.update([[1.0, 2.0], [3.0, 5.0]])
    assert np.array_equal(before, [[2.0, 0.5], [0.5, 1.0]])
    assert moments.n == 12


def test_merge_leaves_its_operands_alone():
    rng = np.random.default_rng(2)
    a, b = (gb.Moments.from_features(rng.normal(size=(9, 3))) for _ in range(2))
    before = a.cov.copy(), b.cov.copy(), a.n, b.n
    left, right = a.merge(b), b.merge(a)
    assert_allclose(left.cov, right.cov, rtol=1e-13)
    assert_allclose(left.mean, right.mean, rtol=1e-13)
    assert np.array_equal(a.cov, before[0])
    assert np.array_equal(b.cov, before[1])
    assert (a.n, b.n) == before[2:]


def test_half_precision_is_accumulated_in_double():
    x = np.full((5000, 2), 1000.0, dtype=np.float16)
    x[::2] += 1
    moments = gb.Moments.from_features(x)
    assert_allclose(moments.mean, x.astype(float).mean(axis=0), rtol=1e-14)
    assert_allclose(np.diag(moments.cov), 0.25 * 5000 / 4999, rtol=1e-12)


def test_save_and_load_round_trip(tmp_path):
    moments = gb.Moments.from_features(np.random.default_rng(3).normal(size=(50, 4)))
    moments.save(tmp_path / "statistics.npz")
    back = gb.Moments.load(tmp_path / "statistics.npz")
    assert back.n == 50
    assert np.array_equal(back.mean, moments.mean)
    assert_allclose(back.cov, moments.cov, rtol=1e-15)


def test_a_torch_tensor_is_read_like_an_array():
    torch = pytest.importorskip("torch")
    x = np.random.default_rng(4).normal(size=(30, 3)).astype(np.float32)
    for tensor in (torch.from_numpy(x), torch.from_numpy(x).requires_grad_()):
        assert np.array_equal(gb.Moments.from_features(tensor).cov, gb.Moments.from_features(x).cov)
    half = torch.from_numpy(x).bfloat16()
    assert_allclose(gb.Moments.from_features(half).mean, half.double().mean(0).numpy(), rtol=1e-12)


@pytest.mark.parametrize(
    ("mean", "cov", "n", "message"),
    [
        ([0.0], [[1.0, 0.0]], None, r"`cov` must have shape \(d, d\)"),
        ([[0.0]], [[1.0]], None, r"`mean` must have shape"),
        ([np.nan], [[1.0]], None, "`mean` has NaN"),
        ([0.0], [[np.inf]], None, "`cov` has an infinite value"),
        ([0.0, 0.0], [[1.0, 0.5], [0.2, 1.0]], None, "not symmetric"),
        ([0.0], [[-1.0]], None, "negative variance"),
        ([0.0], [[1.0]], 1, "`n` must be a whole number of at least 2"),
        ([0.0], [[1.0]], 2.5, "`n` must be a whole number"),
    ],
)
def test_refuses_what_is_not_a_mean_and_covariance(mean, cov, n, message):
    with pytest.raises(gb.InputError, match=message):
        gb.Moments(mean, cov, n)


def test_a_refused_file_is_named(tmp_path):
    np.savez(tmp_path / "skew.npz", mu=[0.0, 0.0], sigma=[[1.0, 0.5], [0.2, 1.0]])
    with pytest.raises(gb.InputError, match=r"skew\.npz: `cov` is not symmetric"):
        gb.Moments.load(tmp_path / "skew.npz")


def test_another_size_than_the_files_is_said(tmp_path, caplog):
    path = tmp_path / "x.npz"
    gb.Moments(np.zeros(2), np.eye(2), 30).save(path)
    assert [gb.Moments.load(path).n, gb.Moments.load(path, n=30).n] == [30, 30]
    assert not caplog.messages
    assert gb.Moments.load(path, n=50).n == 50
    gb.Moments.from_statistics(gb.files.read_statistics(path), exact=True)
    assert caplog.messages == [
        "The statistics say n = 30; n = 50 is taken, as asked.",
        "The statistics say n = 30; they are taken as exact, as asked.",
    ]


def test_a_refused_batch_changes_nothing():
    moments = gb.Moments.from_features(np.eye(3))
    before = moments.cov.copy()
    for batch, message in (
        ([[1.0, 2.0]], "has 2 features"),
        ([[1.0, np.nan, 0.0]], "NaN in row 0"),
        ([1.0, 2.0, 3.0], "must have shape"),
    ):
        with pytest.raises(gb.InputError, match=message):
            moments.update(batch)
    assert moments.n == 3
    assert np.array_equal(moments.cov, before)


def test_exact_moments_absorb_nothing():
    exact = gb.Moments([0.0], [[1.0]])
    with pytest.raises(gb.InputError, match="exactly known"):
        exact.update([[1.0]])
    with pytest.raises(gb.InputError, match="exactly known"):
        exact.merge(gb.Moments.from_features([[1.0], [2.0]]))


def test_one_sample_has_no_covariance():
    with pytest.raises(gb.InputError, match="at least 2 samples"):
        _ = gb.Moments.from_features([[1.0, 2.0]]).cov
