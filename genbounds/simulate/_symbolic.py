"""Exact checks of a statement: its units, its growth as δ → 0 and n → ∞, the steps of its proof.

Nothing is drawn at random. Three checks are decisive, because a failure alone refutes: a width
that vanishes against its error when the features are scaled, one that grows too slowly as δ → 0,
and one that shrinks too fast as n → ∞, for a law that the statement admits. The steps of a proof
are not: a wrong step may leave a true claim.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from genbounds.bounds import Bound, catalog
from genbounds.simulate._spectra import EMBEDDING_NORMS, matched_spectrum


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One exact check.

    Attributes
    ----------
    kind : str
        "units", "growth" (δ → 0), "samples" (n → ∞), "embeddings" (the printed width against a
        proven one at the norms of real embeddings), "conversion", "fact", or "fit" for a fitted
        rate.
    claim : str
        What was checked.
    holds : bool
    found : str
        What came out, with numbers.
    decisive : bool
        Whether the failure alone refutes the statement.
    """

    kind: str
    claim: str
    holds: bool
    found: str
    decisive: bool = False

    @property
    def refutes(self) -> bool:
        """Whether this check alone refutes the statement."""
        return self.decisive and not self.holds

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return asdict(self)


def symbolic_checks(bound: Bound) -> tuple[Check, ...]:
    """Run every check that applies to a statement; what applies hangs on its constants too."""
    checks = list(_units(bound))
    checks += _growth(bound)
    checks += _large_samples(bound)
    checks += _embeddings(bound)
    for identifier, make in _STEPS.items():
        if bound.id in identifier.split():
            checks += make(bound)
    return tuple(checks)


# A generic law (values of no meaning, no two alike) and the power of the unit in each quantity.
_GENERIC: Mapping[str, tuple[float, int]] = MappingProxyType(
    {
        "d": (2.0, 0),
        "variance": (1.7, 2),
        "trace": (2.3, 2),
        "trace_square": (3.1, 4),
        "operator": (1.7, 2),
        "effective_rank": (2.3 / 1.7, 0),
        "max_variance": (1.4, 2),
        "absolute_sum": (2.9, 2),
        "kappa": ((8.0 / 3.0) ** 0.5, 0),
        "radius": (1.9, 1),
        "mean_error_norm": (0.37, 1),
        "mean_gap": (0.83, 1),
        "sample_mean_gap": (0.91, 1),
        "mean_deviation": (1.1, 1),
        "covariance_error": (0.71, 2),
        "reference_root_trace": (1.3, 1),
        "trace_root": (1.9, 2),
        "product_trace": (2.2, 4),
    }
)

# Power of the unit in the error; the power of log(1/δ) with which its quantile grows as δ → 0 for
# Gaussian features and n fixed: 1/2 for a normal variable, 1 for a square of one; and the power of
# n with which it shrinks as n → ∞.
_ERRORS: Mapping[str, tuple[int, float, float]] = MappingProxyType(
    {
        "mean-error": (1, 0.5, -0.5),
        "mean-norm": (1, 0.5, -0.5),
        "mean-norm-squared": (2, 1.0, -1.0),
        "squared-norm-error": (2, 1.0, -0.5),
        "square-error": (0, 1.0, -0.5),
        "squared-mean": (0, 1.0, -1.0),
        "mean-product": (0, 1.0, -1.0),
        "raw-covariance-error": (2, 1.0, -0.5),
        "covariance-error": (2, 1.0, -0.5),
        "distance-excess": (2, 1.0, -0.5),
        "distance-error": (2, 1.0, -0.5),
    }
)


def _generic(bound: Bound, scale: float) -> dict[str, float] | None:
    """Quantities of the width at one scale of the features; None if some are not numbers."""
    names = [name for name in bound.width_needs if name not in ("n", "delta")]
    if any(name not in _GENERIC for name in names):
        return None
    return {name: _GENERIC[name][0] * scale ** _GENERIC[name][1] for name in names}


def _units(bound: Bound) -> Iterator[Check]:
    known = _ERRORS.get(bound.quantity.name)
    base = _generic(bound, 1.0)
    if known is None or base is None or known[0] == 0:
        return
    power = known[0]
    setting = {"n": 50.0, "delta": 0.05}
    unit = float(bound.width(**base, **setting))
    ratios = {}
    for scale in (1e-6, 1e6):
        scaled = _generic(bound, scale)
        assert scaled is not None
        ratios[scale] = float(bound.width(**scaled, **setting)) / (unit * scale**power)
    holds = all(abs(ratio - 1.0) < 1e-9 for ratio in ratios.values())
    # Assumed ‖Σ‖ ≤ 1: large scales are out of bounds.
    small_only = any("‖Σ‖ ≤ 1" in assumption.text for assumption in bound.assumptions)
    vanishing = [s for s, ratio in ratios.items() if ratio < 1e-3 and not (small_only and s > 1.0)]
    yield Check(
        kind="units",
        claim=f"features scaled by s: error scales by s^{power}, so must the width",
        holds=holds,
        found=", ".join(
            f"width/s^{power} changes by the factor {ratio:.6g} at s = {scale:g}"
            for scale, ratio in ratios.items()
        ),
        decisive=bool(vanishing),
    )


def _growth(bound: Bound) -> Iterator[Check]:
    known = _ERRORS.get(bound.quantity.name)
    base = _generic(bound, 1.0)
    gaussian = any("N(" in assumption.text for assumption in bound.assumptions)
    if known is None or base is None or not gaussian or bound.form != "oracle":
        return
    if any("log(" in assumption.text for assumption in bound.assumptions):
        return  # n ≥ … + log(·/δ): δ → 0 at fixed n is out of bounds
    if "covariance_error" in bound.width_needs:
        return  # grows with the error itself
    if bound.constants.keys() & {"share", "sides"}:
        return  # the quantile itself, in double precision only
    needed = known[1]
    logs = np.array([1e3, 1e4])
    widths = []
    for log in logs:
        # Quantities of the sample grow too: at most like a normal variable.
        grown = dict(base)
        for name in {"mean_error_norm", "sample_mean_gap", "mean_deviation"} & base.keys():
            grown[name] = base[name] * math.sqrt(log)
        # Longer than doubles: δ down to e^(-1e4).
        delta = np.exp(-np.longdouble(log))
        width = bound.width_function(bound.constants, **_at(bound, grown, delta))
        widths.append(float(width))
    slope = math.log(widths[1] / widths[0]) / math.log(logs[1] / logs[0])
    yield Check(
        kind="growth",
        claim=f"as δ → 0 at fixed n the error's quantile grows as log(1/δ)^{needed:g}",
        holds=slope > needed - 0.1,
        found=f"the width grows as log(1/δ)^{slope:.3f} between δ = e^-1000 and e^-10000",
        decisive=True,
    )


def _large_samples(bound: Bound) -> Iterator[Check]:
    """Compare the width with the error's quantile as n → ∞ at fixed δ."""
    known = _ERRORS.get(bound.quantity.name)
    base = _generic(bound, 1.0)
    if known is None or base is None or "n" not in bound.width_needs:
        return
    sizes = (1e9, 1e12)
    widths = []
    for n in sizes:
        shrunk = dict(base)
        # Errors of the sample shrink as they do for a law with these moments.
        for name in {"mean_error_norm", "covariance_error"} & base.keys():
            shrunk[name] = base[name] / math.sqrt(n)
        widths.append(float(bound.width(**shrunk, n=n, delta=0.05)))
    slope = math.log(widths[1] / widths[0]) / math.log(sizes[1] / sizes[0])
    needed = known[2]
    yield Check(
        kind="samples",
        claim=f"as n → ∞ at fixed δ the error's quantile shrinks as n^{needed:g}, and the width "
        "must vanish, but no faster",
        holds=needed - 0.01 < slope < -0.01,
        found=f"the width shrinks as n^{slope:.3f} between n = 1e9 and 1e12",
        decisive=slope <= needed - 0.01,
    )


# Statements that are true wherever their width is at least that of the proven one beside them.
_PROVEN: Mapping[str, str] = MappingProxyType(
    {
        "m25.fd-decomposition": "repaired.fd-decomposition",
        "o24.fd-decomposition": "repaired.fd-decomposition",
        "m25.fd-bonus": "repaired.fd-bonus-sharp",
        "o24.fd-bonus": "repaired.fd-bonus-sharp",
        "o24.fd-naive-bonus": "repaired.fd-bonus-sharp",
    }
)
_EMBEDDING_SIZES = (5, 10, 100, 1000, 5000)
_EMBEDDING_DELTAS = (0.2, 0.01, 1e-8, 1e-20)


def _embeddings(bound: Bound) -> Iterator[Check]:
    """Compare with a proven width at the norms that the papers print for real embeddings.

    The reference has the same spectrum, its mean is equal or √Tr Σ away. The printed width stands
    at its smallest: the axes such that max Σ_ii = Tr Σ/d and Σ|Σ_jl| = Tr Σ, which no axes have
    both, and quantities of the sample at 0; in the decompositions both widths have these, the
    proven one with the smaller factors.
    """
    rival = catalog().get(_PROVEN.get(bound.id, ""))
    if rival is None:
        return
    found = []
    for name, (d, trace, frobenius, operator) in EMBEDDING_NORMS.items():
        values = matched_spectrum(d, trace=trace, frobenius=frobenius, operator=operator)
        facts = {
            "families": frozenset({"gaussian"}),
            "reference_definite": True,
            "d": d,
            "trace": trace,
            "trace_square": frobenius**2,
            "operator": operator,
            "effective_rank": trace / operator,
            "max_variance": trace / d,
            "absolute_sum": trace,
            "kappa": (8.0 / 3.0) ** 0.5,
            "reference_root_trace": float(np.sqrt(values).sum()),
            "trace_root": trace,
            "product_trace": frobenius**2,
            "mean_error_norm": 0.0,
            "sample_mean_gap": 0.0,
            "mean_deviation": 0.0,
            "covariance_error": 0.0,
        }
        ratios = [
            float(bound.width(**setting) / rival.width(**setting))
            for gap in (0.0, math.sqrt(trace))
            for n in _EMBEDDING_SIZES
            for delta in _EMBEDDING_DELTAS
            for setting in [{**facts, "mean_gap": gap, "n": float(n), "delta": delta}]
            if not bound.violated(facts, n, delta)
        ]
        found.append((name, min(ratios)))
    yield Check(
        kind="embeddings",
        claim=f"at the norms of real embeddings the width is at least that of {rival.id}, n from "
        f"{_EMBEDDING_SIZES[0]} to {_EMBEDDING_SIZES[-1]}, δ down to {_EMBEDDING_DELTAS[-1]:g}",
        holds=all(ratio >= 1.0 for _, ratio in found),
        found="smallest ratio " + ", ".join(f"{ratio:.3g} ({name})" for name, ratio in found),
    )


def _at(bound: Bound, base: Mapping[str, float], delta: Any) -> dict[str, Any]:
    values = dict(base) | {"n": 3.0, "delta": delta}
    return {name: values[name] for name in bound.width_needs}


def _solved(
    bound: Bound,
    *,
    tail: str,
    squared: Callable[[Any, Any, Mapping[str, float]], Any],
    text: str,
) -> list[Check]:
    """Solve tail(ε) = δ exactly and compare with the square of the printed width.

    `tail` is the tail probability of the proof in the symbols e = ε², n and s = σ²; `squared` the
    square of the printed width from L = log(union/δ), n and the constants.
    """
    import sympy

    e, n, s, delta = sympy.symbols("e n s delta", positive=True)
    expression = sympy.sympify(tail, locals={"e": e, "n": n, "s": s})
    exact = sympy.solve(sympy.Eq(sympy.log(delta), sympy.expand_log(sympy.log(expression))), e)
    solution = sympy.expand_log(exact[0], force=True)
    constants = {k: sympy.nsimplify(v, rational=True) for k, v in bound.constants.items()}
    printed = squared(delta, n, constants)
    # Both are linear in L: the ratio is a number if the unions agree, else its limit at δ → 0.
    ratio = sympy.simplify(printed.subs(s, 1) / solution.subs(s, 1))
    limit = sympy.limit(ratio, delta, 0, "+")
    at_one = sympy.limit(ratio, delta, 1, "-")
    least = min(limit, at_one)
    return [
        Check(
            kind="conversion",
            claim=f"{text} = δ gives ε² = {sympy.sstr(solution)}",
            holds=bool(least >= 1),
            found=f"printed ε² over this: {sympy.sstr(limit)} as δ → 0, "
            f"{sympy.sstr(at_one)} at δ = 1",
        )
    ]


def _log(union: Any, delta: Any) -> Any:
    import sympy

    return sympy.log(union / delta)


def _gaussian_mean(bound: Bound) -> list[Check]:
    return _solved(
        bound,
        tail="2*exp(-n*e/(2*s))",
        squared=lambda delta, n, c: c["factor"] / n * _log(c["union"], delta),
        text="2 exp(−nε²/(2σ²))",
    )


def _chi_square(bound: Bound) -> list[Check]:
    checks = _solved(
        bound,
        tail="2*exp(-n*e/8)",
        squared=lambda delta, n, c: c["factor"] / n * _log(c["union"], delta),
        text="2 exp(−nε²/8)",
    )
    # The tail bound 2 exp(−nε²/8) holds for ε < 1 only (Wainwright 2019, Example 2.11).
    edge = bound.constants["factor"] * math.log(bound.constants["union"] / 1e-8)
    checks.append(
        Check(
            kind="conversion",
            claim="the tail 2 exp(−nε²/8) is known for ε < 1; the statement is for every n",
            holds=False,
            found=f"ε < 1 needs n > 8 log(2/δ): n > {edge:.4g} at δ = 1e-8",
        )
    )
    return checks


def _covariance_dimension(bound: Bound) -> list[Check]:
    return _solved(
        bound,
        tail="2*exp(-n*e/2)",
        squared=lambda delta, n, c: c["tail"] / n * _log(c["union"], delta),
        text="2 exp(−nε²/2) (Wainwright 2019, Theorem 6.1)",
    )


def _hoeffding(bound: Bound) -> list[Check]:
    import sympy

    x = sympy.symbols("x", real=True)
    # d²/dh² log(1 − p + p e^h) = x (1 − x) with x the tilted probability; at most 1/4.
    rest = sympy.factor(sympy.Rational(1, 4) - x * (1 - x))
    return [
        Check(
            kind="fact",
            claim="Hoeffding's lemma: (log E e^{hZ})″ = x(1−x) ≤ 1/4",
            holds=bool(sympy.expand(rest - (x - sympy.Rational(1, 2)) ** 2) == 0),
            found=f"1/4 − x(1−x) = {sympy.sstr(rest)}, a square",
        ),
        *_solved(
            bound,
            tail="exp(-2*n*e)",
            squared=lambda delta, n, c: c["factor"] / n * _log(1, delta),
            text="exp(−2nε²)",
        ),
    ]


def _eigenvalues(bound: Bound) -> list[Check]:
    solved = _solved(
        bound,
        tail="exp(-n*e/32 + 1/4)",
        squared=lambda delta, n, c: c["factor"] / n * _log(c["union"], delta),
        text="exp(−nε²/32 + 1/4) (V24 A.1)",
    )
    return [*solved, _epsilon_range()]


def _epsilon_range() -> Check:
    """V24 A.1: ε ≤ 2, where the vector inequality holds, is δ ≥ exp((2−n)/8)."""
    import sympy

    n = sympy.symbols("n", positive=True)
    least = sympy.Rational(1, 32) * (8 - n * 4)
    return Check(
        kind="conversion",
        claim="ε ≤ 2 for δ = exp((8−nε²)/32) is the printed δ ≥ exp((2−n)/8)",
        holds=sympy.expand(least - (2 - n) / 8) == 0,
        found=f"at ε = 2 the exponent is {sympy.sstr(sympy.factor(least))}",
    )


def _tail_at(threshold: float) -> Check:
    """Is P(|Z² − 1| > t) ≤ 2 exp(−t²/8) for one t ≥ 1: both sides as rigorous intervals."""
    from mpmath import iv, mp

    saved = iv.prec, mp.prec
    try:
        iv.prec = mp.prec = 100
        # P(|Z| > x) between the first two terms of its alternating expansion.
        x = iv.sqrt(1 + iv.mpf(threshold))
        density = iv.sqrt(2 / iv.pi) * iv.exp(-(x**2) / 2)
        least = density / x * (1 - 1 / x**2)
        claimed = 2 * iv.exp(-(iv.mpf(threshold) ** 2) / 8)
        return Check(
            kind="conversion",
            claim=f"the tail used, P(|Z² − 1| > t) ≤ 2 exp(−t²/8), at t = {threshold:g}",
            holds=not least.a > claimed.b,
            found=f"rigorous intervals: the left side is at least {float(least.a):.6g}, the right "
            f"at most {float(claimed.b):.6g}",
        )
    finally:
        iv.prec, mp.prec = saved


def _squared_mean(bound: Bound) -> list[Check]:
    """O24 E.10: ε from 2 exp(−n²ε²/8) = δ, then 1/n + ε ≤ the printed width."""
    import sympy

    checks = _solved(
        bound,
        tail="2*exp(-n**2*e/8)",
        squared=lambda delta, n, c: c["factor"] / n**2 * _log(c["union"], delta) / 4,
        text="2 exp(−n²ε²/8) (its half: z̄² ≤ 1/n + ε)",
    )
    inner, union = (sympy.nsimplify(bound.constants[k], rational=True) for k in ("factor", "union"))
    # 1/n + √(8L)/n ≤ √(factor L)/n, L = log(union/δ): true from one L on, so below one δ.
    room = sympy.sqrt(inner) - sympy.sqrt(8)
    edge = union * sympy.exp(-1 / room**2) if room > 0 else sympy.Integer(0)
    checks.append(
        Check(
            kind="conversion",
            claim="1/n + ε ≤ the printed width for all δ < 1",
            holds=bool(edge >= 1),
            found=f"true for δ ≤ {sympy.sstr(sympy.simplify(edge))} = {float(edge):.4g}",
        )
    )
    return [*checks, _tail_at(8.0)]


def _product_of_means(bound: Bound) -> list[Check]:
    """O24 E.11: ½|Q−1| + ½|R−1| with both below ε but for 4 exp(−ε²/8)."""
    import sympy

    z, u = sympy.symbols("z u", real=True)
    rest = sympy.expand(z * u - (z + u) ** 2 / 4 + (z - u) ** 2 / 4)
    return [
        Check(
            kind="fact",
            claim="zu = ½Q − ½R with Q = ½(z+u)², R = ½(z−u)²",
            holds=rest == 0,
            found=f"the difference expands to {rest}",
        ),
        *_solved(
            bound,
            tail="4*exp(-n**2*e/8)",
            squared=lambda delta, n, c: c["factor"] / n**2 * _log(c["union"], delta),
            text="4 exp(−(nε)²/8), two events",
        ),
        _tail_at(8.0),
    ]


def _fourier(bound: Bound) -> list[Check]:
    """V24 A.5: two vector Bernstein inequalities at ε/2, then 2 exp((32 − mε²)/128) = δ."""
    import sympy

    e, m = sympy.symbols("e m", positive=True)
    rest = sympy.expand((8 - m * e / 4) / 32 - (32 - m * e) / 128)
    return [
        Check(
            kind="conversion",
            claim="exp((8 − m(ε/2)²)/32) is exp((32 − mε²)/128)",
            holds=rest == 0,
            found=f"the exponents differ by {rest}",
        ),
        *_solved(
            bound,
            tail="2*exp((32 - n*e)/128)",
            squared=lambda delta, n, c: c["factor"] / n * _log(c["union"], delta),
            text="2 exp((32 − mε²)/128), m = min{n, t} (V24 A.5)",
        ),
    ]


def _sub_exponential_widths(bound: Bound) -> list[Check]:
    """M25 Lemmas 4 and 5: 2 exp(−nε²/(2ν²)) near the mean, 2 exp(−nε/(2α)) beyond ν²/α."""
    import sympy

    root, linear = bound.constants["root"], bound.constants["linear"]
    e, n, delta = sympy.symbols("e n delta", positive=True)
    if bound.id == "m25.weighted-chi-square":  # ν² = 4λ², α = 4λ
        near_tail, far_tail, near, far = "2*exp(-n*e/(8*s))", 8, root, linear
    else:
        near_tail, far_tail, near, far = "2*exp(-n*e/(2*s))", 2, root, linear
    square = sympy.nsimplify(near, rational=True)
    checks = _solved(
        bound,
        tail=near_tail,
        squared=lambda delta, n, c: square / n * _log(c["union"], delta),
        text=near_tail.replace("*e/", "ε²/").replace("*s", "ν²" if far_tail == 2 else "λ²"),
    )
    needed = sympy.solve(sympy.Eq(sympy.log(2) - n * e / far_tail, sympy.log(delta)), e)[0]
    union = sympy.nsimplify(bound.constants["union"], rational=True)
    ratio = sympy.simplify(
        sympy.nsimplify(far, rational=True) / n * sympy.log(union / delta) / needed
    )
    limits = [sympy.limit(ratio, delta, 0, "+"), sympy.limit(ratio, delta, 1, "-")]
    checks.append(
        Check(
            kind="conversion",
            claim=f"2 exp(−nε/({far_tail}α′)) = δ gives ε = {sympy.sstr(needed)} α′, "
            + ("α′ = ‖Σ‖" if far_tail == 8 else "α′ = α"),
            holds=bool(min(limits) >= 1),
            found=f"printed ε over this: {limits[0]} as δ → 0, {limits[1]} at δ = 1",
        )
    )
    return checks


def _vector_bernstein(bound: Bound) -> list[Check]:
    return _solved(
        bound,
        tail="exp(-n*e/(8*s) + 1/4)",
        squared=lambda delta, n, c: c["factor"] / n * (_log(1, delta) + c["offset"]),
        text="exp(−nε²/(8c²) + 1/4)",
    )


def _kernel_covariance(bound: Bound) -> list[Check]:
    """McDiarmid: differences √2/n each, so that the tail is exp(−2ε²/(n (√2/n)²))."""
    return _solved(
        bound,
        tail="exp(-2*e/(n*(sqrt(2)/n)**2))",
        squared=lambda delta, n, c: c["tail"] / n * _log(1, delta),
        text="exp(−2ε²/(n(√2/n)²)) (McDiarmid)",
    )


def _square_of_normal(bound: Bound) -> list[Check]:
    """P(Z² > x) ≤ 2 e^{−x/2}, and P(|zu| > x) ≤ 2 e^{−x}: linear in x."""
    rate = "1/2" if bound.id == "repaired.squared-mean" else "1"
    return _solved(
        bound,
        tail=f"2*exp(-n*e*{rate})",
        squared=lambda delta, n, c: c["factor"] / n * _log(c["union"], delta),
        text="2 exp(−nx/2), x in place of ε²" if rate == "1/2" else "2 exp(−nx), x in place of ε²",
    )


def _directions(bound: Bound) -> list[Check]:
    """N(0, Σ) ∈ SG(√‖Σ‖): yᵀX is normal with variance yᵀΣy ≤ ‖Σ‖ for unit y."""
    import sympy

    x, t = sympy.symbols("x t", real=True)
    v = sympy.symbols("v", positive=True)
    density = sympy.exp(-(x**2) / (2 * v)) / sympy.sqrt(2 * sympy.pi * v)
    moment = sympy.integrate(sympy.exp(t * x) * density, (x, -sympy.oo, sympy.oo))
    normal = sympy.simplify(moment - sympy.exp(t**2 * v / 2)) == 0
    # Along the eigenvectors, for any number of them: ‖Σ‖ − Σ λ_j y_j² = Σ (‖Σ‖ − λ_j) y_j².
    j = sympy.symbols("j", integer=True)
    count = sympy.symbols("d", integer=True, positive=True)
    top = sympy.symbols("top", positive=True)
    values, unit = sympy.IndexedBase("lam"), sympy.IndexedBase("y")
    left = sympy.Sum(top * unit[j] ** 2 - values[j] * unit[j] ** 2, (j, 1, count))
    right = sympy.Sum((top - values[j]) * unit[j] ** 2, (j, 1, count))
    same = sympy.expand(left.function - right.function) == 0
    return [
        Check(
            kind="fact",
            claim="N(0, Σ) ∈ SG(√‖Σ‖): E exp(t yᵀX) = exp(t² yᵀΣy/2) ≤ exp(t²‖Σ‖/2), ‖y‖ = 1",
            holds=normal and same,
            found="the integral is exp(t²v/2) with v = yᵀΣy, and ‖Σ‖ − v = Σ_j(‖Σ‖−λ_j)y_j² ≥ 0",
        )
    ]


def _psi(bound: Bound) -> list[Check]:
    import sympy

    k = sympy.symbols("k", positive=True)
    # E exp(X²/κ²) = (1 − 2/κ²)^(−1/2) for X ~ N(0, 1); the ψ₂ norm is where it equals 2.
    roots = sympy.solve(sympy.Eq((1 - 2 / k) ** sympy.Rational(-1, 2), 2), k)
    assumed = bound.constants.get("kappa_squared")
    value = sympy.Rational(8, 3)
    holds = roots == [value] and (assumed is None or math.isclose(assumed, 8 / 3, rel_tol=1e-12))
    return [
        Check(
            kind="fact",
            claim="κ² = 8/3 for a Gaussian: (1 − 2/κ²)^(−1/2) = 2",
            holds=holds,
            found=f"κ² = {', '.join(map(sympy.sstr, roots))}"
            + ("" if assumed is None else f"; the statement uses {assumed:.12g}"),
        )
    ]


def sub_exponential_gap(nu_squared: float, alpha: float, *, pieces: int = 64) -> float:
    """Rigorous lower limit of [ν²λ²/2 − log E e^{λ(Z²−1)}]/λ² over |λ| ≤ 1/α, Z ~ N(0, 1).

    log E e^{λ(Z²−1)} = −λ − ½ log(1−2λ) = λ² Σ_{k≥2} (2^{k−1}/k) λ^{k−2}; the series in interval
    arithmetic on every piece, its remainder by a geometric series. Positive: χ²₁ ∈ SE(ν, α).
    """
    from mpmath import iv, mp

    terms = 80
    if not alpha > 2.0:
        return -math.inf  # the moment generating function is infinite within the range
    saved = iv.prec, mp.prec
    try:
        iv.prec = 80
        edge = 1 / iv.mpf(alpha)
        least = math.inf
        for index in range(-pieces, pieces):
            x = iv.mpf([(edge * index / pieces).a, (edge * (index + 1) / pieces).b])
            total = iv.mpf(0)
            power = iv.mpf(1)
            for k in range(2, terms + 1):
                total += iv.mpf(2) ** (k - 1) / k * power
                power *= x
            largest = abs(x).b
            rest = iv.mpf(2) ** terms / (terms + 1) * iv.mpf(largest) ** (terms - 1)
            rest = rest / (1 - 2 * iv.mpf(largest))
            total += rest * iv.mpf([-1, 1])
            gap = iv.mpf(nu_squared) / 2 - total
            least = min(least, float(gap.a))
        return least
    finally:
        iv.prec, mp.prec = saved


def _sub_exponential(bound: Bound) -> list[Check]:
    nu_squared, alpha = bound.constants["root"] / 2.0, bound.constants["linear"] / 2.0
    gap = sub_exponential_gap(nu_squared, alpha)
    return [
        Check(
            kind="fact",
            claim=f"χ²₁ − 1 is SE(ν, α) with ν² = {nu_squared:g}, α = {alpha:g}: "
            "log E e^{λ(Z²−1)} ≤ ν²λ²/2 on the whole of |λ| ≤ 1/α",
            holds=gap > 0.0,
            found=f"interval arithmetic: (ν²λ²/2 − log E …)/λ² ≥ {gap:.6f} there",
        )
    ]


def _order_one(bound: Bound) -> list[Check]:
    import sympy

    a = sympy.symbols("alpha", positive=True)
    exponent = sympy.limit((1 - a) / a, a, 1)
    return [
        Check(
            kind="fact",
            claim="the exponent (1−α)/α at α = 1",
            holds=bool(exponent != 0),
            found=f"it is {exponent}: both scores enter to the power 0 and the left side is 0",
        )
    ]


_STEPS: Mapping[str, Callable[[Bound], list[Check]]] = MappingProxyType(
    {
        "o24.gaussian-mean repaired.gaussian-mean": _gaussian_mean,
        "o24.chi-square-mean": _chi_square,
        "o24.covariance-dimension repaired.covariance-dimension": _covariance_dimension,
        "o24.hoeffding": _hoeffding,
        "o24.squared-mean": _squared_mean,
        "o24.product-of-means": _product_of_means,
        "repaired.squared-mean repaired.product-of-means": _square_of_normal,
        "v24.eigenvalues": _eigenvalues,
        "v24.fkea": _fourier,
        "v24.vector-bernstein": _vector_bernstein,
        "repaired.kernel-covariance": _kernel_covariance,
        "o24.covariance-effective-rank m25.covariance-effective-rank": _directions,
        "m25.covariance-effective-rank repaired.covariance-effective-rank": _psi,
        "m25.weighted-chi-square": _sub_exponential,
        "m25.weighted-chi-square m25.sub-exponential-mean": _sub_exponential_widths,
        "v24.order-one": _order_one,
    }
)
