"""How samples were drawn: identities, bias and variance by brute force, coverage, wrong designs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg
from scipy.spatial.distance import cdist
from scipy.stats import binom

import genbounds as gb
from genbounds.estimators import (
    FrechetReference,
    KernelReference,
    inception_estimate,
    vendi_estimate,
)
from tests.warnings_of import codes

EXACT = gb.Moments(np.full(4, 0.3), 1.5 * np.eye(4))
OTHERS = np.random.default_rng(100).normal(0.5, 1.0, (600, 4))


def softmax(x):
    p = np.exp(1.5 * x)
    return p / p.sum(axis=1, keepdims=True)


SCORES = {
    "fd": lambda x, **kw: gb.frechet_distance(gb.Sample(x, **kw), EXACT),
    "kid": lambda x, **kw: gb.kernel_inception_distance(gb.Sample(x, **kw), gb.Sample(OTHERS)),
    "energy": lambda x, **kw: gb.kernel_distance(
        gb.Sample(x, **kw), gb.Sample(OTHERS), kernel="energy"
    ),
    "rke": lambda x, **kw: gb.vendi_score(gb.Sample(x, **kw), bandwidth=2.0, order=2.0),
    "is": lambda x, **kw: gb.inception_score(gb.Sample(softmax(x), **kw)),
}


def both(score):
    return score.value, score.stderr


# Identities ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCORES)
def test_designs_that_say_nothing_change_nothing(name):
    """Groups of one row, equal weights and a single stratum are independent rows."""
    score, x = SCORES[name], np.random.default_rng(0).normal(size=(160, 4))
    expected = pytest.approx(both(score(x)), rel=1e-12)
    assert both(score(x, groups=np.arange(160))) == expected
    assert both(score(x, weights=np.full(160, 7.0))) == expected
    assert both(score(x, strata=np.zeros(160, dtype=int))) == expected
    groups = np.repeat(np.arange(40), 4)
    alone = score(x, groups=groups)
    assert both(score(x, groups=groups, strata=["all"] * 160)) == pytest.approx(both(alone), 1e-12)


@pytest.mark.parametrize("name", SCORES)
def test_order_of_rows_and_names_do_not_matter(name):
    """Units are taken in the order of their names: names in the same order give the same result.

    In another order random partners and pairs are others: the noise of the standard error.
    """
    rng = np.random.default_rng(1)
    score, x, order = SCORES[name], rng.normal(size=(160, 4)), rng.permutation(160)
    groups, strata = np.repeat(np.arange(40), 4), np.repeat(np.arange(5), 32)
    found = score(x, groups=groups, strata=strata)
    words = np.array([f"prompt {k:02}" for k in groups])
    classes = np.array(["ant", "bee", "cat", "dog", "elk"])[strata]
    moved = score(x[order], groups=words[order], strata=classes[order])
    assert both(moved) == pytest.approx(both(found), rel=1e-9)
    renamed = score(x, groups=rng.permutation(40)[groups], strata=(strata * 3) % 5)
    assert abs(renamed.value - found.value) < 0.5 * found.stderr
    assert renamed.stderr == pytest.approx(found.stderr, rel=0.25)


@pytest.mark.parametrize("name", SCORES)
def test_repeated_rows_count_once(name):
    """Told as groups, or found; a standard error of rows taken as independent is too small.

    Equal up to random pairs, random halves and what the divisors n - 1 and n leave of order n⁻².
    """
    score, half = SCORES[name], np.random.default_rng(2).normal(size=(300, 4))
    twice = np.repeat(half, 2, axis=0)
    expected = score(half)
    told = score(twice, groups=np.repeat(np.arange(300), 2))
    assert told.value == pytest.approx(expected.value, abs=0.02 * expected.stderr)
    if name in ("kid", "energy", "is"):
        assert told.value == pytest.approx(expected.value, rel=1e-9)
    assert told.stderr == pytest.approx(expected.stderr, rel=0.05)
    assert (
        told.stderr > (1.1 if name in ("kid", "energy") else 1.2) * score(twice).stderr
    )  # of the reference


@pytest.mark.parametrize("name", SCORES)
def test_weights_are_repeated_rows_of_a_group(name):
    rng = np.random.default_rng(3)
    score, x, counts = SCORES[name], rng.normal(size=(60, 4)), 1 + np.arange(60) % 3
    groups = np.repeat(np.arange(20), 3)
    weighed = score(x, groups=groups, weights=5.0 * counts)
    repeated = score(np.repeat(x, counts, axis=0), groups=np.repeat(groups, counts))
    assert weighed.value == pytest.approx(repeated.value, rel=1e-9)
    # How far the transport map is shrunk depends on the number of rows.
    assert weighed.stderr == pytest.approx(repeated.stderr, rel=0.05 if name == "fd" else 1e-9)


# Bias and variance by brute force --------------------------------------------------------------


def weight_steps(n, *, groups=None, strata=None, weights=None):
    """Weights w (n,), those a_I of every unit and its steps p_I, f_I^½, and shares of strata.

    Σ p_I p_Iᵀ is the covariance of the weights when the study is repeated. ``shares[I, J]`` is
    the share m_I of a stratum that has J as well.
    """
    w = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
    names = np.arange(n) if groups is None else np.asarray(groups)
    classes = np.zeros(n, dtype=int) if strata is None else np.asarray(strata)
    _, first = np.unique(names, return_index=True)
    a = np.where(names[first][:, None] == names, w / w.sum(), 0.0)
    same = classes[first][:, None] == classes[first]
    m = a.sum(axis=1) / (same @ a.sum(axis=1))
    left = np.maximum(1.0 - 2.0 * m, 0.2)
    f = np.sqrt(1.0 / (left + left * (same @ (m**2 / left))))
    f[same.sum(axis=1) == 2] = np.sqrt(2.0)
    shares = m[:, None] * same
    return w / w.sum(), a, f[:, None] * (a - shares @ a), f, shares


def kernel(x, y):
    """Of the published KID, for three features."""
    return (x @ y.T / 3.0 + 1.0) ** 3


def plugin_fd(x, w):
    w = w / w.sum()
    mean = w @ x
    cov = (w[:, None] * (x - mean)).T @ (x - mean)
    cross = np.sqrt(linalg.eigvals(cov @ REAL.cov).real).sum()
    gap = mean - REAL.mean
    return gap @ gap + np.trace(cov) + np.trace(REAL.cov) - 2.0 * cross


def plugin_kid(x, w):
    w = w / w.sum()
    return w @ kernel(x, x) @ w - 2.0 * (w @ kernel(x, REALS)).mean()


def plugin_rbf(x, w):
    w = w / w.sum()
    near = [np.exp(-cdist(x, y, "sqeuclidean") / 8.0) for y in (x, REALS)]
    return 100.0 * (w @ near[0] @ w - 2.0 * (w @ near[1]).mean())


def plugin_energy(x, w):
    w = w / w.sum()
    return 2.0 * (w @ cdist(x, REALS)).mean() - w @ cdist(x, x) @ w


def of_kernel(kernel, bandwidth=None):
    return KernelReference(gb.Sample(REALS), kernel=kernel, bandwidth=bandwidth).estimate


def plugin_is(p, w):
    w = w / w.sum()
    q = w @ p
    return w @ (p * np.log(p)).sum(axis=1) - q @ np.log(q)


def plugin_vendi(x, w):
    w = w / w.sum()
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    values = np.linalg.eigvalsh((w[:, None] * unit).T @ unit)
    return -(values @ np.log(values))


REAL = gb.Moments(np.array([0.8, -0.5]), np.array([[2.0, 0.3], [0.3, 1.0]]))
REALS = np.random.default_rng(4).normal(1.0, 1.0, (50, 3))
BRUTE = {
    "fd": (plugin_fd, lambda s: FrechetReference(REAL).estimate(s, estimator="plugin")),
    "kid": (plugin_kid, lambda s: KernelReference(gb.Sample(REALS)).estimate(s)),
    "kad": (plugin_rbf, lambda s: of_kernel("kad", 2.0)(s)),
    "energy": (plugin_energy, lambda s: of_kernel("energy")(s)),
    "is": (plugin_is, lambda s: inception_estimate(s, estimator="plugin")),
    "vendi": (plugin_vendi, lambda s: vendi_estimate(s, kernel="cosine", estimator="plugin")),
}
LEFT = {"fd": 0.02, "kid": 0.05, "kad": 0.05, "energy": 0.05, "is": 0.004, "vendi": 1e-6}
"""What else enters the variance: a shrunk transport map, noise of the reference, halves."""

DESIGNS = {
    "groups": {"groups": np.repeat(np.arange(24), 3)},
    "unequal groups": {"groups": np.repeat(np.arange(24), np.tile([1, 2, 6], 8))},
    "strata": {"strata": np.repeat(np.arange(24), 3)},
    "groups in strata": {
        "groups": np.repeat(np.arange(36), 2),
        "strata": np.repeat(np.arange(18), 4),
    },
    "weights": {"weights": 1.0 + np.arange(72) % 5},
    "all": {
        "groups": np.repeat(np.arange(36), np.tile([1, 3], 18)),
        "strata": np.repeat(np.arange(36), np.tile([1, 3], 18)) // 3,
        "weights": 1.0 + np.arange(72) % 5,
    },
}


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("name", BRUTE)
def test_bias_and_variance_follow_from_the_covariance_of_the_weights(name, design):
    """By differences of the plug-in score along the steps p_I: nothing of the library's formulas.

    bias = Σ b_I - r/(r-1) (m_I - 1/r) G_I, with b_I = ½ f_I d²T/dp_I² or, within strata, what is
    left of a unit less its partners, of which there are one or two; G_I is freed of b_I. The
    transport map in the distance's influence is shrunk, which unequal units bring in. The variance,
    before half of the noise of the other units is taken back, is leave-one-out.
    """
    x = np.random.default_rng(5).standard_t(8, size=(72, 3)) + np.array([0.0, 0.5, 2.0])
    x = x[:, :2] if name == "fd" else softmax(x) if name == "is" else x
    plugin, estimate = BRUTE[name]
    told = DESIGNS[design]
    w, units, steps, f, shares = weight_steps(72, **told)
    h = 1e-3 * w.min() / np.abs(steps).max()

    def score(v):
        return plugin(x, v)

    linear, own = derivatives(score, w, steps / f[:, None], steps, h)
    linear, own = linear / f, f * own / 2.0
    m, r = np.diag(shares), (shares > 0.0).sum(axis=1)
    if "strata" not in told:
        alone = (own / f**2 - m**2 * own.sum()) / (1.0 - 2.0 * m)
    else:
        mates = (m[:, None] / m * (shares > 0.0) - np.eye(r.size)) / (r[:, None] - 1.0)
        mass = units - units.sum(axis=1, keepdims=True) * w
        alone = own = derivatives(score, w, mass, mass - mates @ mass, h)[1] / 2.0
    loo = linear - 2.0 * alone
    own = own - r / (r - 1.0) * (m - 1.0 / r) * (loo - shares @ loo)
    found = estimate(gb.Sample(x, **told)).sample
    assert found.bias == pytest.approx(own.sum(), rel=2e-2 if name == "fd" else 1e-4)
    # CR2: a unit with the share m of its stratum has the factor 1 / (1 - m), R / (r - 1) if equal.
    first = ((linear - 2.0 * (own - shares @ own)) ** 2 / (1.0 - m)).sum()
    loo = found.variance + found.quadratic_variance + 2.0 * found.mixed_variance
    assert found.quadratic_variance < 0.4 * loo
    assert loo == pytest.approx(first, rel=LEFT[name])


def derivatives(score, w, ones, twos, h):
    """d/dt along every two, and d²/dtds along every one and two."""
    linear = [(score(w + h * two) - score(w - h * two)) / (2.0 * h) for two in twos]
    signs = ((1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0))
    mixed = [
        sum(s * t * score(w + h * (s * one + t * two)) for s, t in signs) / (4.0 * h**2)
        for one, two in zip(ones, twos, strict=True)
    ]
    return np.array(linear), np.array(mixed)


@pytest.mark.parametrize("design", ["groups", "strata"])
def test_variance_of_the_quadratic_part(design):
    """2 Σ M_IJ² over pairs of steps, as a matrix. The library takes random pairs: 40 orders.

    Their mean has a relative standard error of 0.06; with 24 units f⁴ is 1.09. A factor of two
    in either direction is seen.
    """
    rng = np.random.default_rng(6)
    x, real = rng.normal(size=(72, 3)), gb.Sample(rng.normal(size=(40, 3)))
    groups, strata = np.repeat(np.arange(24), 3), np.repeat(np.arange(2), 36)
    steps = weight_steps(72, groups=groups, strata=strata if design == "strata" else None)[2]
    products = steps @ kernel(x, x) @ steps.T
    expected = 2.0 * ((products**2).sum() - (np.diagonal(products) ** 2).sum())
    found = []
    for _ in range(40):
        order = rng.permutation(12)
        names = np.concatenate([order, 12 + order])[groups]
        sample = gb.Sample(x, groups=names, strata=strata if design == "strata" else None)
        found.append(KernelReference(real).estimate(sample).sample.quadratic_variance)
    assert 0.62 < np.mean(found) / expected < 1.3


@pytest.mark.parametrize(
    ("design", "moved"),
    [("groups", 0.0), ("unequal groups", 0.3), pytest.param("strata", 0.0, marks=pytest.mark.slow)],
)
def test_curvature_is_a_sum_over_pairs_of_units(design, moved):
    """Σ G_I G_J M_IJ over I ≠ J, M by differences of the plug-in along both steps.

    Near a distance of 0 as well, where influences are small: there a constant in G, which h takes
    out of the sum over all pairs and not out of its diagonal, would be all of it. The interval
    knows it by its ratio to the standard error cubed.
    """
    rng = np.random.default_rng(8)
    x = REAL.mean + moved + rng.normal(size=(72, 2)) @ np.linalg.cholesky(REAL.cov).T
    told = DESIGNS[design]
    w, units, steps, f, shares = weight_steps(72, **told)
    h = 1e-3 * w.min() / np.abs(steps).max()

    def score(v):
        return plugin_fd(x, v)

    linear = derivatives(score, w, steps, steps, h)[0]
    inside = np.array([derivatives(score, w, [p] * len(steps), steps, h)[1] / 2 for p in steps])
    own = f * derivatives(score, w, units - units.sum(axis=1, keepdims=True) * w, steps, h)[1]
    g = linear - f * (own - shares @ own)
    expected = g @ inside @ g - g**2 @ np.diagonal(inside)
    found = FrechetReference(REAL).estimate(gb.Sample(x, **told), estimator="plugin").sample
    assert found.curvature == pytest.approx(expected, rel=0.2, abs=0.1 * found.variance**1.5)


@pytest.mark.parametrize("design", ["groups", "groups in strata"])
@pytest.mark.parametrize("name", ["kid", "energy"])
def test_units_that_both_samples_share_move_them_together(name, design):
    """Bias and variance of kernel distances by steps p_I of the weights of both samples at once."""
    rng = np.random.default_rng(7)
    told = DESIGNS[design]
    shared = rng.normal(size=(72, 3))
    x, y = shared + 0.3 * rng.normal(size=(72, 3)), 1.1 * shared + 0.6 * rng.normal(size=(72, 3))
    w, _, steps, f, _ = weight_steps(72, **told)
    k, options = (kernel, {}) if name == "kid" else (lambda a, b: -cdist(a, b), {"kernel": name})
    both = np.block([[k(x, x), -k(x, y)], [-k(y, x), k(y, y)]])
    steps = np.hstack([steps, steps])
    weights = np.concatenate([w, w])
    found = {
        way: KernelReference(gb.Sample(y, **told), **options).estimate(
            gb.Sample(x, **told), estimator=way
        )
        for way in ("plugin", "debiased")
    }
    own = np.einsum("ij,jk,ik->i", steps, both, steps)
    assert found["plugin"].value == pytest.approx(weights @ both @ weights, rel=1e-9)
    removed = found["plugin"].value - found["debiased"].value
    assert removed == pytest.approx(own.sum(), rel=1e-9)
    first = ((2.0 * steps @ both @ weights - 2.0 * f * own) ** 2).sum()
    products = steps @ both @ steps.T
    second = 2.0 * ((products**2).sum() - (np.diagonal(products) ** 2).sum())
    # Random pairs again; two samples taken as apart would have twice that.
    assert found["debiased"].variance == pytest.approx(first - second, rel=0.3)


# Coverage --------------------------------------------------------------------------------------


def covers(draw, score, truth, *, runs):
    """How often told and untold intervals cover: draw(rng) gives samples with their designs.

    An interval below the range of the score, which is not believed, does not count.
    """
    hits = np.zeros(2, dtype=int)
    for stream in np.random.SeedSequence(0).spawn(runs):
        drawn = draw(np.random.default_rng(stream))
        for k, known in enumerate((True, False)):
            samples = [gb.Sample(x, **design) if known else gb.Sample(x) for x, design in drawn]
            found = score(*samples)
            believed = "out-of-range" not in codes(found, "unreliable")
            hits[k] += believed and found.low <= truth <= found.high
    return hits


def distance(mean, cov, other_mean, other_cov):
    cross = np.sqrt(linalg.eigvals(cov @ other_cov).real).sum()
    return float((mean - other_mean) @ (mean - other_mean) + np.trace(cov + other_cov) - 2 * cross)


def balanced_rows(classes, each, d, rng, within=0.3):
    """Rows of Gaussian classes of fixed sizes, and mean and covariance if classes were drawn."""
    centres = 2.0 * np.random.default_rng(1).normal(size=(classes, d))
    k = np.repeat(np.arange(classes), each)
    cov = np.cov(centres.T, bias=True) + within * np.eye(d)
    return k, centres[k] + np.sqrt(within) * rng.normal(size=(k.size, d)), centres.mean(axis=0), cov


def gate(runs):
    """Fewest hits of intervals that cover 90 %, missed with a probability of 1e-6."""
    return binom.ppf(1e-6, runs, 0.9)


def test_balanced_classes_of_features():
    """H0: at least 90 % of 40 at nominal 95 %, α = 1e-6. Untold, none: power 1."""
    d, classes, each = 8, 25, 8
    _, _, mean, cov = balanced_rows(classes, each, d, np.random.default_rng(0))
    real = gb.Moments(mean, 1.1 * cov)

    def draw(rng):
        k, x, _, _ = balanced_rows(classes, each, d, rng)
        return [(x, {"strata": k})]

    truth = distance(mean, cov, mean, 1.1 * cov)
    told, untold = covers(draw, lambda x: gb.frechet_distance(x, real), truth, runs=40)
    assert told >= gate(40) > untold


def test_balanced_classes_of_vendi_scores():
    """The same for 25 of 40 orthogonal directions; untold none of 25 covers."""
    d, classes, each = 40, 25, 8
    basis = 4.0 * np.linalg.qr(np.random.default_rng(0).normal(size=(d, d)))[0]

    def rows(k, rng):
        return basis[k] + 0.3 * rng.normal(size=(k.size, d))

    many = rows(np.arange(classes).repeat(4000), np.random.default_rng(1)) @ basis.T / 16.0
    many /= np.linalg.norm(many, axis=1, keepdims=True)
    p = np.sort((many**2).mean(axis=0))  # directions stay apart: the covariance is diagonal
    p = np.concatenate(
        [np.full(d - classes, p[: d - classes].mean()), np.full(classes, p[d - classes :].mean())]
    )
    truth = np.exp(-(p @ np.log(p)))
    k = np.repeat(np.arange(classes), each)

    def score(x):
        return gb.vendi_score(x, kernel="cosine")

    told, untold = covers(lambda rng: [(rows(k, rng), {"strata": k})], score, truth, runs=25)
    assert told >= gate(25) > untold


def test_balanced_classes_of_posteriors():
    """Posteriors of 200 classes, sure up to a tenth of the rows: log IS in closed form."""
    classes = 200

    def draw(rng):
        k = np.repeat(np.arange(classes), 2)
        label = np.where(rng.random(k.size) < 0.1, rng.integers(classes, size=k.size), k)
        p = np.full((k.size, classes), 0.1 / (classes - 1))
        p[np.arange(k.size), label] = 0.9
        return [(p, {"strata": k})]

    truth = np.exp(0.9 * np.log(0.9) + 0.1 * np.log(0.1 / (classes - 1)) + np.log(classes))
    told, untold = covers(draw, gb.inception_score, truth, runs=25)
    assert told >= gate(25) > untold


def test_groups_of_four():
    """75 sources of four rows that have 0.8 of the variance in common, against exact moments.

    Untold at most 45 %: 70 runs tell them apart with power 1 - 1e-4.
    """
    d = 8

    def draw(rng):
        groups = np.repeat(np.arange(75), 4)
        x = np.sqrt(0.8) * rng.normal(size=(75, d))[groups] + np.sqrt(0.2) * rng.normal(
            size=(300, d)
        )
        return [(x, {"groups": groups})]

    real = gb.Moments(np.full(d, 0.2), 1.2 * np.eye(d))
    truth = distance(np.zeros(d), np.eye(d), real.mean, real.cov)
    told, untold = covers(draw, lambda x: gb.frechet_distance(x, real), truth, runs=70)
    assert told >= gate(70) > untold


@pytest.mark.slow
def test_prompts_that_both_samples_share():
    """Row i of both from one prompt, 0.9 of the variance common; untold none of 25 covers."""
    d, n = 16, 120

    def draw(rng):
        common = np.sqrt(0.9) * rng.normal(size=(n, d))
        x, y = (common + np.sqrt(0.1) * rng.normal(size=(n, d)) for _ in range(2))
        return [(x, {"groups": np.arange(n)}), (1.1 * y + 0.1, {"groups": np.arange(n)})]

    truth = distance(np.zeros(d), np.eye(d), np.full(d, 0.1), 1.21 * np.eye(d))
    told, untold = covers(draw, gb.frechet_distance, truth, runs=25)
    assert told >= gate(25) > untold


def test_models_with_the_same_prompts():
    """Common noise cancels in the difference of two models: covered (as above), and narrower."""
    d, n = 6, 150

    def draw(rng):
        common = np.sqrt(0.9) * rng.normal(size=(n, d))
        rows = (common + np.sqrt(0.1) * rng.normal(size=(n, d)) for _ in range(2))
        return [scale * x for scale, x in zip((1.3, 1.4), rows, strict=True)]

    real, groups = gb.Moments(np.zeros(d), np.eye(d)), np.arange(n)
    truth, hits, widths = d * (0.3**2 - 0.4**2), 0, []
    for stream in np.random.SeedSequence(1).spawn(40):
        models = dict(zip("ab", draw(np.random.default_rng(stream)), strict=True))
        told = {name: gb.Sample(x, groups=groups) for name, x in models.items()}
        pairs = [gb.compare(given, real).differences[0] for given in (told, models)]
        sign = 1.0 if pairs[0].better == "a" else -1.0
        low, high = sorted((sign * pairs[0].low, sign * pairs[0].high))
        hits += low <= truth <= high
        widths.append([pair.stderr for pair in pairs])
    assert hits >= gate(40)
    told, untold = np.mean(widths, axis=0)
    assert told < 0.6 * untold


# Wrong designs ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("design", "words"),
    [
        ({"groups": [1, 1, 2, 2, 3, 3], "strata": [0, 0, 0, 1, 1, 1]}, "group 2 in two strata"),
        (
            {"groups": list("aabbcc"), "strata": list("xxxyyy")},
            "group 'b' in two strata, 'y' and 'x'",
        ),
        ({"strata": [0, 0, 0, 0, 0, 7]}, r"stratum with a single row \(7\)"),
        ({"groups": [1, 1, 2, 2, 3, 3], "strata": list("ppppqq")}, r"single group \('q'\)"),
        ({"groups": [5] * 6}, "a single group"),
        ({"groups": [1, 1, 2, 2, 3]}, r"`groups` must have shape \(6,\).*got shape \(5,\)"),
        ({"strata": [[0, 1]] * 6}, r"got shape \(6, 2\)"),
        ({"groups": [1, 1, 2, 2, np.nan, 3]}, "an id is missing"),
        ({"strata": ["a", "a", "b", "b", None, "a"]}, "an id is missing"),
        ({"groups": [1.5, 1, 2, 2, 3, 3]}, "integers or strings"),
        ({"weights": [1, 1, 1, 1, 1, -1]}, "non-negative"),
        ({"weights": [1, 0, 0, 0, 0, 0]}, "at least 2 rows"),
        ({"weights": [1.0, 1.0]}, r"`weights` must have shape \(6,\)"),
    ],
)
def test_a_wrong_design_gets_one_clear_line(design, words):
    x = np.random.default_rng(8).dirichlet(np.ones(3), 6)
    with pytest.raises(gb.InputError, match=words) as caught:
        gb.inception_score(gb.Sample(x, **design))
    assert "\n" not in str(caught.value)
    assert "np." not in str(caught.value)


def test_whole_floats_are_ids_as_tables_hold_them():
    x = np.random.default_rng(9).normal(size=(60, 4))
    groups = np.repeat(np.arange(15), 4)
    assert both(SCORES["fd"](x, groups=groups.astype(float))) == both(
        SCORES["fd"](x, groups=groups)
    )


@pytest.mark.parametrize("metric", ["fd", "kid", "rke"])
def test_models_share_units_by_name_in_whatever_order_their_rows_are(metric):
    rng = np.random.default_rng(7)
    ids, order = np.arange(300), rng.permutation(300)
    common = rng.normal(size=(300, 3))
    a, b = (common + 0.3 * rng.normal(size=(300, 3)) for _ in range(2))
    real = rng.normal(size=(600, 3))

    def stderr(b, ids_of_b):
        models = {"a": gb.Sample(a, groups=ids), "b": gb.Sample(b, groups=ids_of_b)}
        return gb.compare(models, real, metric=metric).differences[0].stderr

    paired = stderr(b, ids)
    assert stderr(b[order], ids[order]) == pytest.approx(paired, rel=1e-6)
    assert stderr(b, ids + 300) > 1.2 * paired


@pytest.mark.parametrize("metric", [gb.frechet_distance, gb.kernel_inception_distance])
def test_both_samples_share_units_by_name_in_whatever_order_their_rows_are(metric):
    rng = np.random.default_rng(7)
    ids, order = np.repeat(np.arange(30), 2), rng.permutation(60)
    x = rng.normal(size=(60, 3))
    y = x + 0.3 * rng.normal(size=(60, 3))
    found = metric(gb.Sample(x, groups=ids), gb.Sample(y, groups=ids))
    other = metric(gb.Sample(x, groups=ids), gb.Sample(y[order], groups=ids[order]))
    assert both(other) == pytest.approx(both(found), rel=1e-6)


@pytest.mark.parametrize("design", ["groups", "strata"])
def test_heavy_tails_are_seen_however_the_rows_were_drawn(design):
    """One group of rows, or one row, makes up most of the variance; without it nothing is said."""
    rng = np.random.default_rng(29)
    x, ids = rng.normal(size=(800, 4)), np.arange(800)
    labels = {"groups": ids // 2} if design == "groups" else {"strata": ids % 8}
    known = gb.Moments(np.zeros(4), np.eye(4))
    assert "heavy-tails" not in codes(gb.frechet_distance(gb.Sample(x, **labels), known))
    x[17] *= 40.0
    assert "heavy-tails" in codes(gb.frechet_distance(gb.Sample(x, **labels), known))


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize(("groups", "doubted"), [(8, True), (10, False)])
def test_so_few_groups_say_nothing_of_their_spread(name, groups, doubted):
    """8 groups of 20 rows cover 77 to 91 % where 95 should."""
    x = np.random.default_rng(0).normal(size=(20 * groups, 4))
    score = SCORES[name](x, groups=np.arange(len(x)) % groups)
    few = [one for one in score.warnings if "independent groups" in one.message]
    assert [one.severity for one in few] == ["unreliable"] * doubted
    assert all("Use 10 groups or more" in one.remedy for one in few)


@pytest.mark.parametrize("factor", range(1, 8))
def test_rounding_makes_no_sample_too_small(factor):
    """1 / Σ w² of equal weights is now and then a little less than their number."""
    weights = np.full(50, 0.1 * factor)
    x = np.random.default_rng(0).normal(size=(50, 4))
    known = gb.Moments(np.zeros(4), np.eye(4))
    assert "few-samples" not in codes(gb.frechet_distance(gb.Sample(x, weights=weights), known))


def test_curvature_of_the_published_kid_of_groups():
    """Without it nearly all misses of the interval are on one side.

    Σ G_I G_J p_I K p_J over I ≠ J, the units of both samples; the reference has negative weights.
    """
    rng = np.random.default_rng(9)
    ids = np.repeat(np.arange(24), 3)
    x, y = (rng.normal(size=(24, 3))[ids] + rng.normal(size=(72, 3)) for _ in range(2))
    w, units, p, f, means = weight_steps(72, groups=ids)
    both = np.concatenate([x, y])
    gram = kernel(both, both)
    signed = np.concatenate([w, -w])
    steps, further = linalg.block_diag(p, -p), linalg.block_diag(units - w / 24, w / 24 - units)
    own = np.tile(f, 2) * 2.0 * np.einsum("ai,ij,aj->a", further, gram, steps)
    own -= linalg.block_diag(means, means) @ own
    g = 2.0 * steps @ gram @ signed - np.tile(f, 2) * own
    inside = steps @ gram @ steps.T
    expected = g @ inside @ g - g**2 @ np.diagonal(inside)
    score = KernelReference(gb.Sample(y, groups=ids + 100)).estimate(gb.Sample(x, groups=ids))
    assert score.sample.curvature + score.reference.curvature == pytest.approx(expected, rel=0.2)


@pytest.mark.statistical
def test_intervals_of_one_large_and_few_small_groups_cover():
    """A group of 300 and eleven of 10, 800 means. H0: at least 90 %, gate at 1e-6.

    Squares times r/(r - 1) with r - 1 degrees of freedom cover 70 % (600 runs): power 1.
    """
    rng, hits, runs = np.random.default_rng(8), 0, 800
    groups = np.repeat(np.arange(12), [300, *[10] * 11])
    for _ in range(runs):
        x = rng.normal(size=12)[groups] + rng.normal(size=groups.size)
        score = gb.mean_score(x, groups=groups)
        hits += score.low <= 0.0 <= score.high
    assert hits >= binom.ppf(1e-6, runs, 0.90)


@pytest.mark.statistical
def test_a_group_with_much_of_the_rows_leaves_no_bias():
    """A kernel distance of two equal distributions, quadratic and so without bias: 0.

    H0: it is, 300 runs; at 5.5 standard errors a false alarm has 1e-6 (of a normal mean, 4e-8). The
    factor r/(r - 1) leaves 3.2, eleven standard errors: power 1.
    """
    rng, found = np.random.default_rng(10), []
    groups = np.repeat(np.arange(11), [24, *[4] * 10])
    for _ in range(300):
        x = rng.normal(size=(11, 2))[groups] + 0.5 * rng.normal(size=(64, 2))
        y = np.sqrt(1.25) * rng.normal(size=(40, 2))
        found.append(of_kernel_to(y, gb.Sample(x, groups=groups)).value)
    assert abs(np.mean(found)) < 5.5 * np.std(found, ddof=1) / np.sqrt(300)


def of_kernel_to(real, fake):
    return KernelReference(gb.Sample(real), kernel="kad", bandwidth=2.0).estimate(fake)


def test_halving_adds_its_noise_to_the_inception_score_of_rows_and_of_groups():
    """A ninth of the variance of the quadratic part, and none to a plug-in, which is not halved."""
    p = softmax(np.random.default_rng(10).normal(size=(60, 4)))
    for sample in (gb.Sample(p), gb.Sample(p, groups=np.repeat(np.arange(30), 2))):
        debiased, plugin = (
            inception_estimate(sample, estimator=estimator).sample
            for estimator in ("debiased", "plugin")
        )
        added = debiased.variance - plugin.variance
        assert added == pytest.approx(plugin.quadratic_variance / 9.0, rel=1e-6)
        assert added > 0.0


@pytest.mark.parametrize(("largest", "doubted"), [(60, False), (200, True)])
def test_one_group_with_much_of_the_weight_is_told(largest, doubted):
    """Fourteen groups of 10 beside it: its value leans by 0.7 standard errors at 200 rows."""
    rng = np.random.default_rng(11)
    groups = np.repeat(np.arange(15), [largest, *[10] * 14])
    x = rng.normal(size=(15, 3))[groups] + rng.normal(size=(groups.size, 3))
    real = gb.Moments(np.zeros(3), np.eye(3))
    score = gb.frechet_distance(gb.Sample(x, groups=groups), real)
    assert ("few-samples" in codes(score, "unreliable")) == doubted


def captioned(rng):
    """One generated and one real row for each of 200 captions."""
    caption, ids = rng.normal(size=(200, 4)), np.arange(200)
    fake, real = (a * caption + 0.5 * rng.normal(size=(200, 4)) for a in (0.9, 1.0))
    return gb.Sample(fake + 0.4, groups=ids), gb.Sample(real, groups=ids)


def test_captions_in_both_samples_count_once_for_every_estimator():
    """The plug-in and FD∞ forgot them: twice the standard error, and a bias of the wrong sign."""
    fake, real = captioned(np.random.default_rng(0))
    found = {
        name: FrechetReference(real).estimate(fake, estimator=name)
        for name in ("plugin", "infinity", "debiased")
    }
    for name in ("plugin", "infinity"):
        assert found[name].stderr == pytest.approx(found["debiased"].stderr, rel=0.35)
        assert found[name].shared_variance < -0.5 * found[name].sample.variance


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["plugin", "infinity"])
def test_standard_errors_of_captions_in_both_samples(name):
    """H0: the standard error is that of 120 repetitions, with a variance of 0.5 to 2.1 of it.

    χ² of 119 degrees: a false alarm has 3e-7. It was 4 and 2.5 times: power 1 and 0.9.
    """
    draws = (captioned(np.random.default_rng(seed)) for seed in range(120))
    found = [FrechetReference(real).estimate(fake, estimator=name) for fake, real in draws]
    said = np.mean([one.variance for one in found])
    assert 0.5 < said / np.var([one.value for one in found], ddof=1) < 2.1


@pytest.mark.statistical
def test_generated_from_the_classes_of_the_reference():
    """H0: 93 % or more of 300 are covered by strata on both sides (false alarm 1e-6).

    Untold, the value is 1.7 standard deviations too low, where the mean of 300 has 0.06: power 1.
    """
    k, d, n, runs = 10, 8, 400, 300
    law = np.random.default_rng(99)
    means, shift = 1.5 * law.normal(size=(k, d)), 0.15 * law.normal(size=d)
    shares = law.dirichlet(np.full(k, 20.0))

    def rows(classes, rng, moved):
        noise = rng.normal(size=(n, d)) * (1.0 + 0.1 * moved)
        return means[classes] + moved * shift + noise

    def moments(moved):
        between = (means - shares @ means).T * shares @ (means - shares @ means)
        within = (1.0 + 0.1 * moved) ** 2 * np.eye(d)
        return gb.Moments(shares @ means + moved * shift, between + within)

    truth = gb.frechet_distance(moments(1.0), moments(0.0)).value
    covered, untold = 0, []
    for run in range(runs):
        rng = np.random.default_rng(run)
        classes = rng.choice(k, n, p=shares)
        asked = rng.permutation(classes)
        fake, real = rows(asked, rng, 1.0), rows(classes, rng, 0.0)
        told = gb.frechet_distance(gb.Sample(fake, strata=asked), gb.Sample(real, strata=classes))
        covered += told.low <= truth <= told.high
        untold.append(gb.frechet_distance(fake, real).value - truth)
    assert covered >= binom.ppf(1e-6, runs, 0.93)
    assert np.mean(untold) < -np.std(untold)
