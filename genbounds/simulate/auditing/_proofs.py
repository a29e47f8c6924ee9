"""Steps of the published proofs, checked exactly: by SymPy, and by intervals that round outwards.

Most steps convert a tail bound into a width: the tail is set equal to δ, solved for ε, and the
printed width must be at least that. `_CONVERSIONS` lists these; the other steps are functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import sympy
from mpmath import iv, mp

from genbounds.bounds import Bound, truncate
from genbounds.simulate.auditing._results import Check


def proof_steps(bound: Bound) -> list[Check]:
    """Check the steps of the statement's proof, as far as they are known here."""
    checks = [step(bound) for step in _FACTS_BEFORE.get(bound.id, ())]
    if bound.id in _CONVERSIONS:
        checks.append(convert(bound, _CONVERSIONS[bound.id]))
    return checks + [step(bound) for step in _FACTS_AFTER.get(bound.id, ())]


@dataclass(frozen=True, slots=True)
class Conversion:
    """A tail bound of a proof, and the square of the width that is made of it.

    Attributes
    ----------
    tail : str
        Tail probability in the symbols e = ε², n and s = σ².
    printed : str
        Square of the printed width in n, delta and the constants of the statement.
    text : str
        The tail as a reader knows it.
    """

    tail: str
    printed: str
    text: str


def convert(bound: Bound, step: Conversion) -> Check:
    """Solve tail(ε) = δ exactly and compare with the square of the printed width."""
    e, n, s, delta = sympy.symbols("e n s delta", positive=True)
    tail = sympy.sympify(step.tail, locals={"e": e, "n": n, "s": s})
    exact = sympy.solve(sympy.Eq(sympy.log(delta), sympy.expand_log(sympy.log(tail))), e)
    solution = sympy.expand_log(exact[0], force=True)
    printed = sympy.sympify(step.printed, locals={"n": n, "delta": delta, **_rationals(bound)})
    # Both are linear in log(1/δ): the ratio is a number if the unions agree, else it is monotone
    # in δ and smallest at one of the ends.
    ratio = sympy.simplify(printed.subs(s, 1) / solution.subs(s, 1))
    limit, at_one = sympy.limit(ratio, delta, 0, "+"), sympy.limit(ratio, delta, 1, "-")
    return Check(
        kind="conversion",
        claim=f"{step.text} = δ gives ε² = {sympy.sstr(solution)}",
        holds=bool(min(limit, at_one) >= 1),
        found=f"printed ε² over this: {sympy.sstr(limit)} as δ → 0, {sympy.sstr(at_one)} at δ = 1",
    )


def _rationals(bound: Bound) -> dict[str, Any]:
    """Turn the constants of the statement into fractions."""
    return {name: sympy.nsimplify(value, rational=True) for name, value in bound.constants.items()}


_SQUARED = "factor/n*log(union/delta)"
_COVARIANCE = Conversion(
    "2*exp(-n*e/2)", "tail/n*log(union/delta)", "2 exp(−nε²/2) (Wainwright 2019, Theorem 6.1)"
)
_NORMAL = Conversion("2*exp(-n*e/(2*s))", _SQUARED, "2 exp(−nε²/(2σ²))")

_CONVERSIONS: Mapping[str, Conversion] = MappingProxyType(
    {
        "o24.gaussian-mean": _NORMAL,
        "repaired.gaussian-mean": _NORMAL,
        "o24.chi-square-mean": Conversion("2*exp(-n*e/8)", _SQUARED, "2 exp(−nε²/8)"),
        "o24.covariance-dimension": _COVARIANCE,
        "repaired.covariance-dimension": _COVARIANCE,
        "o24.hoeffding": Conversion("exp(-2*n*e)", "factor/n*log(1/delta)", "exp(−2nε²)"),
        "o24.squared-mean": Conversion(
            "2*exp(-n**2*e/8)",
            "factor/n**2*log(union/delta)/4",
            "2 exp(−n²ε²/8) (its half: z̄² ≤ 1/n + ε)",
        ),
        "o24.product-of-means": Conversion(
            "4*exp(-n**2*e/8)",
            "factor/n**2*log(union/delta)",
            "4 exp(−(nε)²/8), two events",
        ),
        # P(Z² > x) ≤ 2 e^{−x/2} and P(|zu| > x) ≤ 2 e^{−x}: linear in x.
        "repaired.squared-mean": Conversion(
            "2*exp(-n*e*1/2)", _SQUARED, "2 exp(−nx/2), x in place of ε²"
        ),
        "repaired.product-of-means": Conversion(
            "2*exp(-n*e*1)", _SQUARED, "2 exp(−nx), x in place of ε²"
        ),
        "v24.eigenvalues": Conversion(
            "exp(-n*e/32 + 1/4)", _SQUARED, "exp(−nε²/32 + 1/4) (V24 A.1)"
        ),
        "v24.fkea": Conversion(
            "2*exp((32 - n*e)/128)", _SQUARED, "2 exp((32 − mε²)/128), m = min{n, t} (V24 A.5)"
        ),
        "v24.vector-bernstein": Conversion(
            "exp(-n*e/(8*s) + 1/4)", "factor/n*(log(1/delta) + offset)", "exp(−nε²/(8c²) + 1/4)"
        ),
        # Differences of √2/n each.
        "repaired.kernel-covariance": Conversion(
            "exp(-2*e/(n*(sqrt(2)/n)**2))",
            "tail/n*log(1/delta)",
            "exp(−2ε²/(n(√2/n)²)) (McDiarmid)",
        ),
        "m25.weighted-chi-square": Conversion(  # ν² = 4λ²
            "2*exp(-n*e/(8*s))", "root/n*log(union/delta)", "2*exp(-nε²/(8λ²))"
        ),
        "m25.sub-exponential-mean": Conversion(
            "2*exp(-n*e/(2*s))", "root/n*log(union/delta)", "2*exp(-nε²/(2ν²))"
        ),
    }
)


def _chi_square_range(bound: Bound) -> Check:
    """Recall that 2 exp(−nε²/8) bounds the tail for ε < 1 only (Wainwright 2019, Example 2.11)."""
    edge = bound.constants["factor"] * math.log(bound.constants["union"] / 1e-8)
    return Check(
        kind="conversion",
        claim="the tail 2 exp(−nε²/8) is known for ε < 1; the statement is for every n",
        holds=False,
        found=f"ε < 1 needs n > 8 log(2/δ): n > {edge:.4g} at δ = 1e-8",
    )


def _hoeffding_lemma(bound: Bound) -> Check:
    x = sympy.symbols("x", real=True)
    # d²/dh² log(1 − p + p e^h) = x (1 − x) with x the tilted probability; at most 1/4.
    difference = sympy.factor(sympy.Rational(1, 4) - x * (1 - x))
    return Check(
        kind="fact",
        claim="Hoeffding's lemma: (log E e^{hZ})″ = x(1−x) ≤ 1/4",
        holds=bool(sympy.expand(difference - (x - sympy.Rational(1, 2)) ** 2) == 0),
        found=f"1/4 − x(1−x) = {sympy.sstr(difference)}, a square",
    )


def _epsilon_range(bound: Bound) -> Check:
    """V24 A.1: ε ≤ 2, where the vector inequality holds, is δ ≥ exp((2−n)/8)."""
    n = sympy.symbols("n", positive=True)
    least = sympy.Rational(1, 32) * (8 - n * 4)
    return Check(
        kind="conversion",
        claim="ε ≤ 2 for δ = exp((8−nε²)/32) is the printed δ ≥ exp((2−n)/8)",
        holds=sympy.expand(least - (2 - n) / 8) == 0,
        found=f"at ε = 2 the exponent is {sympy.sstr(sympy.factor(least))}",
    )


@contextmanager
def _precision(bits: int) -> Iterator[None]:
    """Interval arithmetic of so many bits."""
    saved = iv.prec, mp.prec
    iv.prec = mp.prec = bits
    try:
        yield
    finally:
        iv.prec, mp.prec = saved


def square_tail(threshold: float) -> tuple[Any, Any]:
    """Return a lower limit of P(|Z² − 1| > t) for one t ≥ 1, and an upper one of 2 exp(−t²/8)."""
    with _precision(100):
        # P(|Z| > x) between the first two terms of its alternating expansion.
        x = iv.sqrt(1 + iv.mpf(threshold))
        density = iv.sqrt(2 / iv.pi) * iv.exp(-(x**2) / 2)
        least = density / x * (1 - 1 / x**2)
        claimed = 2 * iv.exp(-(iv.mpf(threshold) ** 2) / 8)
        return least.a, claimed.b


def _square_tail_used(bound: Bound) -> Check:
    """Try the tail that O24 E.10 and E.11 use at every t; at t = 8 it is wrong."""
    least, claimed = square_tail(8.0)
    return Check(
        kind="conversion",
        claim="the tail used, P(|Z² − 1| > t) ≤ 2 exp(−t²/8), at t = 8",
        holds=not least > claimed,
        found=f"rigorous intervals: the left side is at least {float(least):.6g}, the right "
        f"at most {float(claimed):.6g}",
    )


def _mean_is_covered(bound: Bound) -> Check:
    """O24 E.10: 1/n + ε ≤ the printed width, ε from 2 exp(−n²ε²/8) = δ."""
    constants = _rationals(bound)
    # 1/n + √(8L)/n ≤ √(factor L)/n, L = log(union/δ): true from one L on, so below one δ.
    gain = sympy.sqrt(constants["factor"]) - sympy.sqrt(8)
    edge = constants["union"] * sympy.exp(-1 / gain**2) if gain > 0 else sympy.Integer(0)
    return Check(
        kind="conversion",
        claim="1/n + ε ≤ the printed width for all δ < 1",
        holds=bool(edge >= 1),
        found=f"true for δ ≤ {sympy.sstr(sympy.simplify(edge))} = {float(edge):.4g}",
    )


def _product_as_squares(bound: Bound) -> Check:
    """O24 E.11: ½|Q−1| + ½|R−1| with both below ε but for 4 exp(−ε²/8)."""
    z, u = sympy.symbols("z u", real=True)
    difference = sympy.expand(z * u - (z + u) ** 2 / 4 + (z - u) ** 2 / 4)
    return Check(
        kind="fact",
        claim="zu = ½Q − ½R with Q = ½(z+u)², R = ½(z−u)²",
        holds=difference == 0,
        found=f"the difference expands to {difference}",
    )


def _fourier_exponents(bound: Bound) -> Check:
    """V24 A.5: two vector Bernstein inequalities at ε/2."""
    e, m = sympy.symbols("e m")
    difference = sympy.expand((8 - m * e / 4) / 32 - (32 - m * e) / 128)
    return Check(
        kind="conversion",
        claim="exp((8 − m(ε/2)²)/32) is exp((32 − mε²)/128)",
        holds=difference == 0,
        found=f"the exponents differ by {difference}",
    )


def _far_tail(rate: int, alpha: str) -> Callable[[Bound], Check]:
    """M25 Lemmas 4 and 5 beyond ν²/α, where the tail is 2 exp(−nε/(rate α′))."""

    def check(bound: Bound) -> Check:
        e, n, delta = sympy.symbols("e n delta", positive=True)
        needed = sympy.solve(sympy.Eq(sympy.log(2) - n * e / rate, sympy.log(delta)), e)[0]
        constants = _rationals(bound)
        printed = constants["linear"] / n * sympy.log(constants["union"] / delta)
        ratio = sympy.simplify(printed / needed)
        limits = [sympy.limit(ratio, delta, 0, "+"), sympy.limit(ratio, delta, 1, "-")]
        return Check(
            kind="conversion",
            claim=f"2 exp(−nε/({rate}α′)) = δ gives ε = {sympy.sstr(needed)} α′, α′ = {alpha}",
            holds=bool(min(limits) >= 1),
            found=f"printed ε over this: {limits[0]} as δ → 0, {limits[1]} at δ = 1",
        )

    return check


def _directions(bound: Bound) -> Check:
    """N(0, Σ) ∈ SG(√‖Σ‖): yᵀX is normal with variance yᵀΣy ≤ ‖Σ‖ for unit y."""
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
    return Check(
        kind="fact",
        claim="N(0, Σ) ∈ SG(√‖Σ‖): E exp(t yᵀX) = exp(t² yᵀΣy/2) ≤ exp(t²‖Σ‖/2), ‖y‖ = 1",
        holds=normal and same,
        found="the integral is exp(t²v/2) with v = yᵀΣy, and ‖Σ‖ − v = Σ_j(‖Σ‖−λ_j)y_j² ≥ 0",
    )


def _psi_norm(bound: Bound) -> Check:
    k = sympy.symbols("k", positive=True)
    # E exp(X²/κ²) = (1 − 2/κ²)^(−1/2) for X ~ N(0, 1); the ψ₂ norm is where it equals 2.
    roots = sympy.solve(sympy.Eq((1 - 2 / k) ** sympy.Rational(-1, 2), 2), k)
    assumed = bound.constants.get("kappa_squared")
    value = sympy.Rational(8, 3)
    holds = roots == [value] and (assumed is None or math.isclose(assumed, 8 / 3, rel_tol=1e-12))
    return Check(
        kind="fact",
        claim="κ² = 8/3 for a Gaussian: (1 − 2/κ²)^(−1/2) = 2",
        holds=holds,
        found=f"κ² = {', '.join(map(sympy.sstr, roots))}"
        + ("" if assumed is None else f"; the statement uses {assumed:.12g}"),
    )


def sub_exponential_gap(nu_squared: float, alpha: float, *, pieces: int = 64) -> float:
    """Rigorous lower limit of [ν²λ²/2 − log E e^{λ(Z²−1)}]/λ² over |λ| ≤ 1/α, Z ~ N(0, 1).

    log E e^{λ(Z²−1)} = −λ − ½ log(1−2λ) = λ² Σ_{k≥2} (2^{k−1}/k) λ^{k−2}; the series in interval
    arithmetic on every piece, its remainder by a geometric series. Positive: χ²₁ ∈ SE(ν, α).
    """
    terms = 80
    if not alpha > 2.0:
        return -math.inf  # the moment generating function is infinite within the range
    with _precision(80):
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
            tail = iv.mpf(2) ** terms / (terms + 1) * iv.mpf(largest) ** (terms - 1)
            tail = tail / (1 - 2 * iv.mpf(largest))
            total += tail * iv.mpf([-1, 1])
            gap = iv.mpf(nu_squared) / 2 - total
            least = min(least, float(gap.a))
        return least


def _sub_exponential(bound: Bound) -> Check:
    nu_squared, alpha = bound.constants["root"] / 2.0, bound.constants["linear"] / 2.0
    gap = sub_exponential_gap(nu_squared, alpha)
    return Check(
        kind="fact",
        claim=f"χ²₁ − 1 is SE(ν, α) with ν² = {nu_squared:g}, α = {alpha:g}: "
        "log E e^{λ(Z²−1)} ≤ ν²λ²/2 on the whole of |λ| ≤ 1/α",
        holds=gap > 0.0,
        found=f"interval arithmetic: (ν²λ²/2 − log E …)/λ² ≥ {gap:.6f} there",
    )


def _order_one(bound: Bound) -> Check:
    a = sympy.symbols("alpha", positive=True)
    exponent = sympy.limit((1 - a) / a, a, 1)
    return Check(
        kind="fact",
        claim="the exponent (1−α)/α at α = 1",
        holds=bool(exponent != 0),
        found=f"it is {exponent}: both scores enter to the power 0 and the left side is 0",
    )


# Steps between the numbered lines of a proof. One that fails need not take the theorem with it.


def _difference_of_squares(text: str) -> Callable[[Bound], Check]:
    """|(a+s)² − a²| ≤ (2a + e) e where |s| ≤ e and a, a+s ≥ 0."""

    def check(bound: Bound) -> Check:
        a, e, s = sympy.symbols("a e s")
        most, change = (2 * a + e) * e, (a + s) ** 2 - a**2
        # None of these is negative.
        up, down = (e - s) * (2 * a + e + s), 2 * a * (e + s) + e**2 + s**2
        return Check(
            kind="fact",
            claim=text,
            holds=sympy.expand(most - change - up) == 0 == sympy.expand(most + change - down),
            found=f"right − left is {sympy.sstr(up)} or {sympy.sstr(down)}, |s| ≤ e",
        )

    return check


def _two_spreads(text: str) -> Callable[[Bound], Check]:
    """n⁻¹Σ(x−μ)² − n⁻¹Σ(x−x̄)² = (x̄−μ)², for each coordinate."""

    def check(bound: Bound) -> Check:
        square, mean, centre = sympy.symbols("m2 m1 mu")
        around = square - 2 * mean * centre + centre**2
        difference = sympy.expand(around - (square - mean**2) - (mean - centre) ** 2)
        return Check(
            kind="fact",
            claim=text,
            holds=difference == 0,
            found="n⁻¹Σ‖x−μ‖² − n⁻¹Σ‖x−μ̂‖² is ‖μ̂−μ‖², and |a + b| ≤ |a| + |b|",
        )

    return check


_STEP_DELTA = 0.05


def _most(text: str, d: int, miss: float, allowed: float) -> Check:
    return Check(
        kind="conversion",
        claim=text,
        holds=miss <= allowed,
        found=f"at d = {d}, n = 1, δ = {_STEP_DELTA:g} it fails with probability "
        f"{miss:.3g} or more, {allowed:.3g} allowed",
    )


def _any_of(d: int, single: float) -> float:
    """Probability that one of d independent events occurs."""
    return -math.expm1(d * math.log1p(-single))


def _largest_square(bound: Bound) -> Check:
    """O24 (20): Lemma E.5 for the largest of d."""
    d, c = 64, bound.constants
    width = math.sqrt(c["trace_root"] * math.log(c["trace_union"] * d / _STEP_DELTA))
    miss = _any_of(d, math.erfc(math.sqrt((1.0 + width) / 2.0)))
    return _most("(20): max_j |n⁻¹Σ_i U_ij² − 1| ≤ √((8/n) log(6d/δ))", d, miss, _STEP_DELTA / 3.0)


def _largest_mean(bound: Bound) -> Check:
    """O24 (25): Lemma E.10 for the largest of d."""
    d, c = 2048, bound.constants
    width = math.sqrt(c["inner"] * math.log(c["union"] / 2.0 * d / _STEP_DELTA))
    miss = _any_of(d, math.erfc(math.sqrt(width / 2.0)))
    return _most("(25): ‖D‖ = max_j z̄_j² ≤ √(32 log(12d/δ))/n", d, miss, _STEP_DELTA / 6.0)


def _largest_pair(bound: Bound) -> Check:
    """O24 (26): Lemma E.11 for the largest of all pairs; two means beyond the root miss it."""
    d, c = 2048, bound.constants
    width = math.sqrt(c["inner"] / 4.0 * math.log(c["union"] * d / _STEP_DELTA))
    single = math.erfc(math.sqrt(width / 2.0))
    miss = _any_of(d, single) - d * single * (1.0 - single) ** (d - 1)
    return _most("(26): max_j,l |z̄_j z̄_l| ≤ √(8 log(24d/δ))/n", d, miss, _STEP_DELTA / 6.0)


def _projection_of_a_longer_spectrum(bound: Bound) -> Check:
    """V24 A.5(a): Lemma 2 is for spectra of t entries; those of FKEA have 2t."""
    t = 5
    spectrum = np.full(2 * t, 0.5 / t)
    left = float(np.linalg.norm(truncate(spectrum, t) - spectrum))
    return Check(
        kind="fact",
        claim="A.5(a): Lemma 2 gives ‖λ̃^{(t)} − λ^FKEA‖ ≤ ‖λ̃ − λ^FKEA‖, λ^FKEA of 2t entries",
        holds=left <= 0.0,
        found=f"{left:.3g} > 0 where both spectra are 2t equal entries, t = {t}",
    )


Step = Callable[[Bound], Check]

# In the order of the proofs: before and after the conversion of the tail.
_FACTS_BEFORE: Mapping[str, tuple[Step, ...]] = MappingProxyType(
    {
        "o24.hoeffding": (_hoeffding_lemma,),
        "o24.product-of-means": (_product_as_squares,),
        "v24.fkea": (_fourier_exponents, _projection_of_a_longer_spectrum),
        "o24.fd-decomposition": (
            _difference_of_squares(
                "(17): |‖μ−μ_r‖² − ‖μ̂−μ_r‖²| ≤ (2‖μ−μ_r‖ + ‖μ̂−μ‖)‖μ̂−μ‖, a = ‖μ−μ_r‖"
            ),
            _two_spreads("(19): |Tr Σ − Tr Σ̂| ≤ |Tr Σ − n⁻¹Σ‖x−μ‖²| + |n⁻¹Σ(‖x−μ‖² − ‖x−μ̂‖²)|"),
            _largest_square,
            _difference_of_squares(
                "(21): |n⁻¹Σ(‖x−μ‖² − ‖x−μ̂‖²)| ≤ ‖μ̂−μ‖(‖μ̂−μ‖ + (2/n)Σ‖x−μ̂‖), a = ‖x−μ̂‖"
            ),
        ),
        "o24.mean-norm": (_largest_mean, _largest_pair),
        "m25.fd-decomposition": (
            _difference_of_squares(
                "(19): |‖μ−μ_r‖² − ‖μ̂−μ_r‖²| ≤ (‖μ̂−μ‖ + 2‖μ̂−μ_r‖)‖μ̂−μ‖, a = ‖μ̂−μ_r‖"
            ),
            _two_spreads("(21): Tr Σ̂ = n⁻¹Σ‖x−μ‖² − ‖μ̂−μ‖²"),
            _two_spreads("(22): |Tr Σ − Tr Σ̂| ≤ |Tr Σ − n⁻¹Σ‖x−μ‖²| + ‖μ̂−μ‖²"),
        ),
        "m25.weighted-chi-square": (_sub_exponential,),
    }
)
_FACTS_AFTER: Mapping[str, tuple[Step, ...]] = MappingProxyType(
    {
        "o24.chi-square-mean": (_chi_square_range,),
        "o24.squared-mean": (_mean_is_covered, _square_tail_used),
        "o24.product-of-means": (_square_tail_used,),
        "v24.eigenvalues": (_epsilon_range,),
        "o24.covariance-effective-rank": (_directions,),
        "m25.covariance-effective-rank": (_directions, _psi_norm),
        "repaired.covariance-effective-rank": (_psi_norm,),
        "m25.weighted-chi-square": (_far_tail(8, "‖Σ‖"),),  # α = 4λ
        "m25.sub-exponential-mean": (_far_tail(2, "α"),),
        "v24.order-one": (_order_one,),
    }
)
