"""What arrays and tensors are taken for, and what is refused in one clear line."""

from __future__ import annotations

import numpy as np
import pytest

import genbounds as gb
from genbounds.validation import InputError, as_numpy, check_features, check_finite
from tests.refusal import refused

ROWS = np.random.default_rng(0).normal(size=(20, 3))


def tensors():
    torch = pytest.importorskip("torch")

    class Own(torch.Tensor):
        pass

    class Named(Own):
        __module__ = "somebody.else"

    exact = torch.tensor(ROWS)
    return {
        "leaf": (exact.clone().requires_grad_(), 0.0),
        "parameter": (torch.nn.Parameter(exact), 0.0),
        "transposed": (torch.tensor(ROWS.T.copy()).T, 0.0),
        "subclass of a subclass": (torch.nn.Parameter(exact).as_subclass(Named), 0.0),
        "lazily negated": (torch.conj(torch.complex(exact, -exact)).imag, 0.0),
        "float16": (exact.half(), 2.0**-11),
        "bfloat16": (exact.bfloat16(), 2.0**-8),
        "float8": (exact.to(torch.float8_e4m3fn), 2.0**-4),
    }


@pytest.mark.parametrize(
    "kind",
    ["leaf", "parameter", "transposed", "subclass of a subclass", "lazily negated", "float16",
     "bfloat16", "float8"],
)  # fmt: skip
def test_tensors_of_any_kind_are_their_numbers(kind):
    tensor, rounding = tensors()[kind]
    array = check_features("x", tensor)
    assert array.dtype.kind == "f"
    np.testing.assert_allclose(array.astype(float), ROWS, rtol=rounding, atol=rounding / 16.0)


def test_tensors_that_numpy_cannot_hold_are_one_clear_error():
    torch = pytest.importorskip("torch")
    for tensor in (torch.tensor(ROWS).to_sparse(), torch.empty((20, 3), device="meta")):
        with pytest.raises(InputError, match=r"^`x` is a tensor that NumPy cannot hold \(.*dense"):
            as_numpy("x", tensor)
    with pytest.raises(InputError, match=r"^`x` is not a rectangular array.*requires grad"):
        as_numpy("x", list(torch.tensor(ROWS, requires_grad=True)))


def test_a_mask_is_not_looked_through():
    mask = ROWS > 1.0
    assert mask.any()
    with pytest.raises(InputError, match="`x` has masked entries: drop those rows"):
        check_features("x", np.ma.array(ROWS, mask=mask))
    np.testing.assert_array_equal(check_features("x", np.ma.array(ROWS)), ROWS)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (None, "got an object of type NoneType"),
        (ROWS.astype(object), "got dtype object"),
        (ROWS * 1j, "got dtype complex128"),
        ([[1.0, 2.0], [3.0]], r"not a rectangular array of numbers: .*[^.]\.$"),
    ],
)
def test_what_is_no_array_of_numbers_is_named(x, message):
    with pytest.raises(InputError, match=message):
        check_features("x", x)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_entries_whose_squares_overflow_a_narrow_type_are_finite(dtype):
    """Warnings are errors here: sums of squares beyond float16 are those of any 2,048 features."""
    block = np.full((4, 8), np.finfo(dtype).max, dtype=dtype)
    check_finite("x", block)
    block[2, 3] = np.inf
    with pytest.raises(InputError, match="infinite value in row 2"):
        check_finite("x", block)


# --- what somebody else wrote ---------------------------------------------------------------------

OBEYED = "\x1b[2J\u202e\x9b\n"
"""What a terminal would obey rather than show."""


class Unspeakable(Exception):
    def __str__(self):
        raise ValueError("no text")


class Hostile:
    """An array by its own account."""

    def __init__(self, outcome):
        self.outcome = outcome

    def __array__(self, *arguments, **options):
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return np.asarray(self) if self.outcome is None else self.outcome

    def __repr__(self):
        raise RuntimeError(OBEYED)


@pytest.mark.parametrize(
    "outcome",
    [KeyError(OBEYED), Exception(OBEYED), ZeroDivisionError(), Unspeakable(), "no array", None],
    ids=["KeyError", "Exception", "ZeroDivisionError", "Unspeakable", "text", "itself"],
)
@pytest.mark.parametrize(
    "call",
    [
        lambda x: gb.frechet_distance(x, ROWS),
        lambda x: gb.frechet_distance(ROWS, x),
        gb.inception_score,
        gb.Moments.from_features,
        lambda x: gb.Moments(x, np.eye(3), 5),
        lambda x: gb.Moments(np.zeros(3), x, 5),
        lambda x: gb.Sample(ROWS, groups=x),
        lambda x: gb.Sample(ROWS, weights=x),
        lambda x: gb.frechet_distance(ROWS, ROWS, level=x),
        lambda x: gb.vendi_score(ROWS, order=x),
        lambda x: gb.vendi_score(ROWS, bandwidth=x),
        lambda x: gb.vendi_score(ROWS, kernel=x),
        lambda x: gb.compare({"a": ROWS, "b": ROWS}, ROWS, metric=x),
        lambda x: gb.simulate.GaussianArm(x, np.eye(3)),
        gb.select.FeatureArm,
        gb.files.read,
    ],
)
def test_an_array_of_somebody_else_is_one_line(outcome, call):
    with refused():
        call(Hostile(outcome))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: gb.Moments(x[0], np.eye(3), 5),
        lambda x: gb.Moments(np.zeros(3), x[:3], 5),
        lambda x: gb.Sample(ROWS, weights=x[:, 0]),
        lambda x: gb.simulate.GaussianArm(x[0], np.eye(3)),
        lambda x: gb.simulate.GaussianArm(np.zeros(3), x[:3]),
    ],
)
@pytest.mark.parametrize("change", [lambda x: x + 0.5j, lambda x: x.astype(str)], ids=["i", "text"])
def test_numbers_that_are_not_real_are_refused(call, change):
    """NumPy would drop the imaginary part, and read numbers from texts."""
    with refused("real numbers"):
        call(change(np.abs(ROWS)))


def test_a_column_s_name_is_no_property():
    class Table(np.ndarray):
        """As a data frame with a column of that name."""

        @property
        def quasi_random(self):
            return self[:, 0]

    assert check_features("x", ROWS.view(Table)).shape == ROWS.shape


def test_an_error_is_one_printable_line_whatever_it_quotes():
    with refused("\\x1b", "\\n"):
        raise InputError(f"names {OBEYED}", argument=OBEYED, model=OBEYED)
    with refused("one of"):
        gb.frechet_distance(ROWS, ROWS, estimator=np.zeros((50, 3)))


def beyond(kind):
    """Rows that double precision cannot square, or that a narrow type does not hold."""
    x = np.abs(ROWS).repeat(6, axis=0)
    if kind == "1e307":
        x[:, 1] = 1e307
    elif kind == "float16":
        x = x.astype(np.float16)
        x[5, 1], x[9, 1] = np.inf, -np.inf
    else:
        x = x.astype(np.longdouble)
        x[5, 1] = np.longdouble("1e400")
    return x


SCORES = {
    "fd": gb.frechet_distance,
    "kid": gb.kernel_inception_distance,
    "energy": lambda x, y: gb.kernel_distance(x, y, kernel="energy"),
    "sliced": gb.sliced_distance,
    "mifid": gb.mifid,
    "authpct": gb.authpct,
    "recall": gb.precision_recall,
    "vendi": lambda x, y: gb.vendi_score(x),
    "is": lambda x, y: gb.inception_score(x),
}


@pytest.mark.parametrize("kind", ["1e307", "float16", "longdouble"])
@pytest.mark.parametrize("name", SCORES)
def test_nothing_looks_at_rows_before_they_are_refused(name, kind):
    """NumPy's warnings, which are errors here, would come first."""
    if kind == "longdouble" and np.finfo(np.longdouble).maxexp < 2000:
        pytest.skip("no wider type here")
    real = np.random.default_rng(1).normal(size=(120, 3))
    with refused("in row"):
        SCORES[name](beyond(kind), real)
    if name not in {"vendi", "is"}:
        with refused("in row"):
            SCORES[name](real, beyond(kind))
