"""`SmoothScore`: what it refuses, and that everything else takes it."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import genbounds as gb
from tests.estimators.smooth.scores import gap, log_inception
from tests.warnings_of import codes

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(0)
X, Y = RNG.normal(0.5, 1.0, size=(120, 3)), RNG.normal(size=(90, 3))
Z = RNG.normal(1.0, 1.0, size=(120, 3))
MEANS = gb.SmoothScore(gap, name="means", higher_is_better=False, needs_reference=True)


def of(function, **more):
    return gb.SmoothScore(
        function, name="mine", higher_is_better=False, needs_reference=True, **more
    )


def test_the_plug_in_keeps_the_bias():
    found = gb.estimators.metric_spec(MEANS).prepared(Y)
    debiased, plugin = (found.estimate(X, estimator=way) for way in ("debiased", "plugin"))
    assert plugin.value == pytest.approx(((X.mean(0) - Y.mean(0)) ** 2).sum(), rel=1e-12)
    expected = X.var(0, ddof=1).sum() / 120 + Y.var(0, ddof=1).sum() / 90
    assert plugin.value - debiased.value == pytest.approx(expected, rel=0.2)  # 16 probes
    assert "bias-left" in codes(plugin)


def test_probes_have_a_seed_and_leave_other_random_numbers_alone():
    state = torch.random.get_rng_state()
    assert MEANS(X, Y) == MEANS(X, Y)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert of(gap, seed=1)(X, Y).value != of(gap, seed=2)(X, Y).value


def test_tensors_of_any_float_and_a_prepared_function():
    class Prepared:
        def __init__(self):
            self.calls = 0

        def __call__(self, x, w, y, v):
            return self.of_rows(x, y)(w, v)

        def of_rows(self, x, y):
            self.calls += 1
            return lambda w, v: gap(x, w, y, v)

    function = Prepared()
    half = torch.tensor(X, dtype=torch.float16)
    assert of(function)(half, Y).value == of(gap)(half.double(), Y).value
    assert function.calls == 3  # for the rows, and for some of them once and twice


def test_posteriors_that_are_sure_are_no_duplicates():
    score = gb.SmoothScore(log_inception, name="i", higher_is_better=True, needs_reference=False)
    p = np.random.default_rng(1).dirichlet(np.full(6, 0.05), size=300)
    assert not codes(score(p)) & {"near-duplicates", "dependent-rows"}


def test_leaks_and_few_rows_are_said():
    assert "leak" in codes(MEANS(Y, Y[::-1]))
    assert "few-samples" in codes(MEANS(X[:30], Y))


def raises(x, w, y, v):
    raise KeyError("a\x1b[31mred\nline")


def leaves(x, w, y, v):
    sys.exit(3)


REFUSED = {
    "raises": (raises, r"^`function` of mine fails: KeyError: 'a\\x1b\[31mred\\nline'\.$"),
    "exit": (leaves, r"^`function` of mine fails: SystemExit: 3\.$"),
    "number": (lambda x, w, y, v: 1.0, "must return one number, as a torch tensor"),
    "vector": (lambda x, w, y, v: w, "must return one number"),
    "constant": (lambda x, w, y, v: x.sum(), "without a gradient"),
    "single": (lambda x, w, y, v: gap(x, w, y, v).float(), "returns torch.float32"),
    "nan": (lambda x, w, y, v: (w @ x).sum() * float("nan"), "returns nan"),
    "root": (lambda x, w, y, v: (0.0 * (w @ x).sum()).sqrt(), "not finite"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("derivative", ["hessian", "secant"])
def test_what_a_function_does_wrong_is_one_line(name, derivative):
    function, message = REFUSED[name]
    with pytest.raises(gb.InputError, match=message) as caught:
        of(function, derivative=derivative)(X, Y)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"function": 3}, "must be a function"),
        ({"function": dict}, "must be a function"),
        ({"name": " "}, "`name` must be a text"),
        ({"derivative": "exact"}, "`derivative` must be one of"),
        ({"probes": 1}, "`probes` must be a whole number of at least 2"),
        ({"seed": -1}, "`seed`"),
    ],
)
def test_arguments(arguments, message):
    legal = {"function": gap, "name": "n", "higher_is_better": False, "needs_reference": True}
    given = legal | arguments
    with pytest.raises(gb.InputError, match=message):
        gb.SmoothScore(given.pop("function"), **given)


def test_samples_that_do_not_fit():
    with pytest.raises(gb.InputError, match="needs a reference"):
        MEANS(X)
    with pytest.raises(gb.InputError, match="`fake` has 2 features"):
        MEANS(X[:, :2], Y)
    with pytest.raises(gb.InputError, match="given by its moments"):
        MEANS(X, gb.Moments(np.zeros(3), np.eye(3)))
    with pytest.raises(gb.InputError, match="at least 8"):
        MEANS(X[:7], Y)
    with pytest.raises(gb.InputError, match="NaN"):
        MEANS(np.where(X > 2, np.nan, X), Y)


@pytest.mark.parametrize("factor", [1e60, 1e-60, 1e120])
@pytest.mark.parametrize("derivative", ["hessian", "secant"])
def test_a_score_without_an_error_in_double_precision_is_one_line(factor, derivative):
    with pytest.raises(gb.InputError, match="multiply all samples by a common"):
        of(gap, derivative=derivative)(factor * X, factor * Y)


def test_without_torch_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(gb.InputError, match=r"needs torch: pip install 'genbounds\[torch\]'"):
        of(gap)
    with pytest.raises(gb.InputError, match="needs torch"):
        gb.sliced_distance(X, Y)
    with pytest.raises(gb.InputError, match="needs torch"):
        gb.check_score(gap, X, Y)


def test_a_score_that_counts_rows_is_unreliable():
    """With n - 1 in place of the weights the derivative misses a part: 65 % of intervals hold."""

    def signal(x, w):
        return (w @ x).sum() / x.std()

    found = gb.SmoothScore(signal, name="snr", higher_is_better=True, needs_reference=False)(X)
    assert "not-smooth" in {w.code for w in found.warnings}
    assert not found.reliable


def test_a_score_may_differentiate_by_itself():
    """A gradient penalty, say: nothing around the function switches derivatives off."""

    def penalised(x, w):
        at = x.clone().requires_grad_()
        (slope,) = torch.autograd.grad((at**2).sum(), at, create_graph=True)
        return w @ (slope**2).sum(dim=1)

    own = gb.SmoothScore(penalised, name="slope", higher_is_better=False, needs_reference=False)
    assert own(X).value == pytest.approx(float((4.0 * X**2).sum(axis=1).mean()))


def test_a_score_that_is_zero_is_no_function_of_counts():
    """Means that cancel to rounding are equal, once and twice."""
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(151, 3))
    rows -= rows.mean(axis=0)
    once, twice = (np.full(k * 151, 1 / (k * 151)) @ np.tile(rows, (k, 1)) for k in (1, 2))
    assert (once != twice).any()  # rounding only

    def mean(x, w):
        return (w @ x).sum()

    own = gb.SmoothScore(mean, name="mean", higher_is_better=False, needs_reference=False)
    assert "not-smooth" not in {warning.code for warning in own(rows).warnings}
