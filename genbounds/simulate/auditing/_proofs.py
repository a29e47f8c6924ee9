"""Steps of the published proofs, checked exactly: by SymPy, and by intervals that round outwards.

Most steps convert a tail bound into a width: the tail is set equal to δ, solved for ε, and the
printed width must be at least that (`_converts`). Some are identities (`_identity`), which hold
whatever the constants are; the others are functions. `_STEPS` lists them in order of the proofs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import sympy
from mpmath import iv, mp

from genbounds.bounds import Bound, truncate
from genbounds.simulate.auditing._results import Check

Step = Callable[[Bound], Check]


def proof_steps(bound: Bound) -> list[Check]:
    """Check the steps of the statement's proof, as far as they are known here."""
    return [step(bound) for step in _STEPS.get(bound.id, ())]


def _check(claim: str, holds: bool, found: str, kind: str = "fact") -> Check:
    return Check(kind=kind, claim=claim, holds=bool(holds), found=found)


_conversion = partial(_check, kind="conversion")


def _converts(tail: str, printed: str, text: str) -> Step:
    """Solve tail(ε) = δ exactly and compare with the square of the printed width.

    Parameters
    ----------
    tail : str
        Tail probability in the symbols e = ε², n and s = σ².
    printed : str
        Square of the printed width in n, delta and the constants of the statement.
    text : str
        The tail as a reader knows it.
    """

    def check(bound: Bound) -> Check:
        e, n, s, delta = sympy.symbols("e n s delta", positive=True)
        probability = sympy.sympify(tail, locals={"e": e, "n": n, "s": s})
        exact = sympy.solve(sympy.Eq(sympy.log(delta), sympy.expand_log(sympy.log(probability))), e)
        solution = sympy.expand_log(exact[0], force=True)
        width = sympy.sympify(printed, locals={"n": n, "delta": delta, **_rationals(bound)})
        # A number if the unions agree, else monotone in δ and smallest at one of the ends.
        ratio = sympy.simplify((width / solution).subs(s, 1))
        limit, at_one = sympy.limit(ratio, delta, 0, "+"), sympy.limit(ratio, delta, 1, "-")
        return _conversion(
            f"{text} = δ gives ε² = {sympy.sstr(solution)}",
            min(limit, at_one) >= 1,
            f"printed ε² over this: {sympy.sstr(limit)} as δ → 0, {sympy.sstr(at_one)} at δ = 1",
        )

    return check


def _rationals(bound: Bound) -> dict[str, Any]:
    """Turn the constants of the statement into fractions."""
    return {name: sympy.nsimplify(value, rational=True) for name, value in bound.constants.items()}


def _identity(claim: str, text: str, *equations: str, kind: str = "fact") -> Step:
    """Expand the differences of a step that is true of every number.

    `claim` says the step and `text` what came out; an equation is ``"left = right"``, polynomials.
    """

    def check(bound: Bound) -> Check:
        pairs = (map(sympy.sympify, equation.split(" = ")) for equation in equations)
        holds = all(sympy.expand(left - right) == 0 for left, right in pairs)
        return _check(claim, holds, text, kind)

    return check


# --- steps that are functions -------------------------------------------------------------------


def _chi_square_range(bound: Bound) -> Check:
    """Recall that 2 exp(−nε²/8) bounds the tail for ε < 1 only (Wainwright 2019, Example 2.11)."""
    edge = bound.constants["factor"] * math.log(bound.constants["union"] / 1e-8)
    return _conversion(
        "the tail 2 exp(−nε²/8) is known for ε < 1; the statement is for every n",
        False,
        f"ε < 1 needs n > 8 log(2/δ): n > {edge:.4g} at δ = 1e-8",
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
    return _conversion(
        "the tail used, P(|Z² − 1| > t) ≤ 2 exp(−t²/8), at t = 8",
        not least > claimed,
        f"rigorous intervals: the left side is at least {float(least):.6g}, the right "
        f"at most {float(claimed):.6g}",
    )


def _mean_is_covered(bound: Bound) -> Check:
    """O24 E.10: 1/n + ε ≤ the printed width, ε from 2 exp(−n²ε²/8) = δ."""
    constants = _rationals(bound)
    # 1/n + √(8L)/n ≤ √(factor L)/n, L = log(union/δ): true from one L on, so below one δ.
    gain = sympy.sqrt(constants["factor"]) - sympy.sqrt(8)
    edge = constants["union"] * sympy.exp(-1 / gain**2) if gain > 0 else sympy.Integer(0)
    return _conversion(
        "1/n + ε ≤ the printed width for all δ < 1",
        edge >= 1,
        f"true for δ ≤ {sympy.sstr(sympy.simplify(edge))} = {float(edge):.4g}",
    )


def _directions(bound: Bound) -> Check:
    """N(0, Σ) ∈ SG(√‖Σ‖): yᵀX is normal with variance yᵀΣy ≤ ‖Σ‖ for unit y."""
    x, t = sympy.symbols("x t", real=True)
    v = sympy.symbols("v", positive=True)
    density = sympy.exp(-(x**2) / (2 * v)) / sympy.sqrt(2 * sympy.pi * v)
    moment = sympy.integrate(sympy.exp(t * x) * density, (x, -sympy.oo, sympy.oo))
    return _check(
        "N(0, Σ) ∈ SG(√‖Σ‖): E exp(t yᵀX) = exp(t² yᵀΣy/2) ≤ exp(t²‖Σ‖/2), ‖y‖ = 1",
        sympy.simplify(moment - sympy.exp(t**2 * v / 2)) == 0,
        "the integral is exp(t²v/2) with v = yᵀΣy, and ‖Σ‖ − v = Σ_j(‖Σ‖−λ_j)y_j² ≥ 0",
    )


def _psi_norm(bound: Bound) -> Check:
    k = sympy.symbols("k", positive=True)
    # E exp(X²/κ²) = (1 − 2/κ²)^(−1/2) for X ~ N(0, 1); the ψ₂ norm is where it equals 2.
    roots = sympy.solve(sympy.Eq((1 - 2 / k) ** sympy.Rational(-1, 2), 2), k)
    assumed = bound.constants.get("kappa_squared")
    right = assumed is None or math.isclose(assumed, 8 / 3, rel_tol=1e-12)
    return _check(
        "κ² = 8/3 for a Gaussian: (1 − 2/κ²)^(−1/2) = 2",
        roots == [sympy.Rational(8, 3)] and right,
        f"κ² = {', '.join(map(sympy.sstr, roots))}"
        + ("" if assumed is None else f"; the statement uses {assumed:.12g}"),
    )


def sub_exponential_gap(nu_squared: float, alpha: float) -> float:
    """Rigorous lower limit of [ν²λ²/2 − log E e^{λ(Z²−1)}]/λ² over |λ| ≤ 1/α, Z ~ N(0, 1).

    log E e^{λ(Z²−1)} = −λ − ½ log(1−2λ) = λ² Σ_{k≥2} (2^{k−1}/k) λ^{k−2}: no coefficient is
    negative, so that the series is largest at λ = 1/α. Positive: χ²₁ ∈ SE(ν, α).
    """
    if not alpha > 2.0:
        return -math.inf  # the moment generating function is infinite within the range
    with _precision(80):
        edge = 1 / iv.mpf(alpha)
        largest = (-edge - iv.log(1 - 2 * edge) / 2) / edge**2
        return float((iv.mpf(nu_squared) / 2 - largest).a)


def _sub_exponential(bound: Bound) -> Check:
    nu_squared, alpha = bound.constants["root"] / 2.0, bound.constants["linear"] / 2.0
    gap = sub_exponential_gap(nu_squared, alpha)
    return _check(
        f"χ²₁ − 1 is SE(ν, α) with ν² = {nu_squared:g}, α = {alpha:g}: "
        "log E e^{λ(Z²−1)} ≤ ν²λ²/2 on the whole of |λ| ≤ 1/α",
        gap > 0.0,
        f"interval arithmetic: (ν²λ²/2 − log E …)/λ² ≥ {gap:.6f} there",
    )


def _order_one(bound: Bound) -> Check:
    a = sympy.symbols("alpha", positive=True)
    exponent = sympy.limit((1 - a) / a, a, 1)
    return _check(
        "the exponent (1−α)/α at α = 1",
        exponent != 0,
        f"it is {exponent}: both scores enter to the power 0 and the left side is 0",
    )


# Steps between the numbered lines of a proof. One that fails need not take the theorem with it.

_STEP_DELTA = 0.05


def _largest(
    claim: str, d: int, factor: float, union: float, share: float, mean: float, *, two: bool = False
) -> Check:
    """Try whether d squares less `mean` stay below a width; only `two` beyond it may be a miss."""
    width = math.sqrt(factor * math.log(union * d / _STEP_DELTA))
    single = math.erfc(math.sqrt((mean + width) / 2.0))
    miss = -math.expm1(d * math.log1p(-single))
    if two:
        miss -= d * single * (1.0 - single) ** (d - 1)
    allowed = _STEP_DELTA / share
    return _conversion(
        claim,
        miss <= allowed,
        f"at d = {d}, n = 1, δ = {_STEP_DELTA:g} it fails with probability "
        f"{miss:.3g} or more, {allowed:.3g} allowed",
    )


def _largest_square(bound: Bound) -> Check:
    """O24 (20): Lemma E.5 for the largest of d."""
    claim, c = "(20): max_j |n⁻¹Σ_i U_ij² − 1| ≤ √((8/n) log(6d/δ))", bound.constants
    return _largest(claim, 64, c["trace_root"], c["trace_union"], 3.0, 1.0)


def _largest_mean(bound: Bound) -> Check:
    """O24 (25): Lemma E.10 for the largest of d."""
    claim, c = "(25): ‖D‖ = max_j z̄_j² ≤ √(32 log(12d/δ))/n", bound.constants
    return _largest(claim, 2048, c["inner"], c["union"] / 2.0, 6.0, 0.0)


def _largest_pair(bound: Bound) -> Check:
    """O24 (26): Lemma E.11 for the largest of all pairs; two means beyond the root miss it."""
    claim, c = "(26): max_j,l |z̄_j z̄_l| ≤ √(8 log(24d/δ))/n", bound.constants
    return _largest(claim, 2048, c["inner"] / 4.0, c["union"], 6.0, 0.0, two=True)


def _projection_of_a_longer_spectrum(bound: Bound) -> Check:
    """V24 A.5(a): Lemma 2 is for spectra of t entries; those of FKEA have 2t."""
    t = 5
    spectrum = np.full(2 * t, 0.5 / t)
    left = float(np.linalg.norm(truncate(spectrum, t) - spectrum))
    return _check(
        "A.5(a): Lemma 2 gives ‖λ̃^{(t)} − λ^FKEA‖ ≤ ‖λ̃ − λ^FKEA‖, λ^FKEA of 2t entries",
        left <= 0.0,
        f"{left:.3g} > 0 where both spectra are 2t equal entries, t = {t}",
    )


# --- steps that are equations, and the proofs ---------------------------------------------------


def _squares(claim: str) -> Step:
    """|(a+s)² − a²| ≤ (2a + e) e where |s| ≤ e and a, a+s ≥ 0: none of these is negative."""
    up, down = "(e - s)*(2*a + e + s)", "2*a*(e + s) + e**2 + s**2"
    return _identity(
        claim,
        f"right − left is {up} or {down}, |s| ≤ e",
        f"(2*a + e)*e - (a + s)**2 + a**2 = {up}",
        f"(2*a + e)*e + (a + s)**2 - a**2 = {down}",
    )


def _spreads(claim: str) -> Step:
    """n⁻¹Σ(x−μ)² − n⁻¹Σ(x−x̄)² = (x̄−μ)², for each coordinate, from two moments."""
    text = "n⁻¹Σ‖x−μ‖² − n⁻¹Σ‖x−μ̂‖² is ‖μ̂−μ‖², and |a + b| ≤ |a| + |b|"
    return _identity(claim, text, "(m2 - 2*m1*mu + mu**2) - (m2 - m1**2) = (m1 - mu)**2")


_SQUARED = "factor/n*log(union/delta)"
_normal = _converts("2*exp(-n*e/(2*s))", _SQUARED, "2 exp(−nε²/(2σ²))")
_hoeffding = _converts("exp(-2*n*e)", "factor/n*log(1/delta)", "exp(−2nε²)")
_hoeffding_lemma = _identity(
    "Hoeffding's lemma: (log E e^{hZ})″ = x(1−x) ≤ 1/4",
    "1/4 − x(1−x) = (2*x - 1)**2/4, a square",
    "1/4 - x*(1 - x) = (2*x - 1)**2/4",
)
_chi_square = _converts("2*exp(-n*e/8)", _SQUARED, "2 exp(−nε²/8)")
_squared_mean = _converts(
    "2*exp(-n**2*e/8)", "factor/n**2*log(union/delta)/4", "2 exp(−n²ε²/8) (its half: z̄² ≤ 1/n + ε)"
)
_polarisation = _identity(
    "zu = ½Q − ½R with Q = ½(z+u)², R = ½(z−u)²",
    "the difference expands to 0",
    "z*u = (z + u)**2/4 - (z - u)**2/4",
)
# ½|Q−1| + ½|R−1|, both below ε but for 4 exp(−ε²/8)
_product = _converts(
    "4*exp(-n**2*e/8)", "factor/n**2*log(union/delta)", "4 exp(−(nε)²/8), two events"
)
# P(Z² > x) ≤ 2 e^{−x/2} and P(|zu| > x) ≤ 2 e^{−x}: linear in x.
_linear_square = _converts("2*exp(-n*e*1/2)", _SQUARED, "2 exp(−nx/2), x in place of ε²")
_linear_product = _converts("2*exp(-n*e*1)", _SQUARED, "2 exp(−nx), x in place of ε²")
# M25 Lemmas 4 and 5, up to ν²/α and beyond; for weighted χ² variables ν² = 4λ² and α = 4λ.
_ROOT, _LINEAR = "root/n*log(union/delta)", "linear/n*log(union/delta)"
_near_tail = _converts("2*exp(-n*e/(2*s))", _ROOT, "2*exp(-nε²/(2ν²))")
_far_tail = _converts("2*exp(-n*e/2)", _LINEAR, "α′ = α, ε/α′ in place of ε²: 2 exp(−nε/(2α′))")
_weighted_near = _converts("2*exp(-n*e/(8*s))", _ROOT, "2*exp(-nε²/(8λ²))")
_weighted_far = _converts(
    "2*exp(-n*e/8)", _LINEAR, "α′ = ‖Σ‖, ε/α′ in place of ε²: 2 exp(−nε/(8α′))"
)
_covariance = _converts(
    "2*exp(-n*e/2)", "tail/n*log(union/delta)", "2 exp(−nε²/2) (Wainwright 2019, Theorem 6.1)"
)
_eigenvalues = _converts("exp(-n*e/32 + 1/4)", _SQUARED, "exp(−nε²/32 + 1/4) (V24 A.1)")
# ε ≤ 2, where the vector inequality holds.
_eigenvalue_range = _identity(
    "ε ≤ 2 for δ = exp((8−nε²)/32) is the printed δ ≥ exp((2−n)/8)",
    "at ε = 2 the exponent is -(n - 2)/8",
    "(8 - n*4)/32 = (2 - n)/8",
    kind="conversion",
)
_two_halves = _identity(  # two vector Bernstein inequalities at ε/2
    "exp((8 − m(ε/2)²)/32) is exp((32 − mε²)/128)",
    "the exponents differ by 0",
    "(8 - m*e/4)/32 = (32 - m*e)/128",
    kind="conversion",
)
_fkea = _converts(
    "2*exp((32 - n*e)/128)", _SQUARED, "2 exp((32 − mε²)/128), m = min{n, t} (V24 A.5)"
)
_bernstein = _converts(
    "exp(-n*e/(8*s) + 1/4)", "factor/n*(log(1/delta) + offset)", "exp(−nε²/(8c²) + 1/4)"
)
_bounded_differences = _converts(  # of √2/n each
    "exp(-2*e/(n*(sqrt(2)/n)**2))", "tail/n*log(1/delta)", "exp(−2ε²/(n(√2/n)²)) (McDiarmid)"
)

_STEPS: Mapping[str, Sequence[Step]] = {
    "o24.gaussian-mean": [_normal],
    "repaired.gaussian-mean": [_normal],
    "o24.hoeffding": [_hoeffding_lemma, _hoeffding],
    "o24.chi-square-mean": [_chi_square, _chi_square_range],
    "o24.squared-mean": [_squared_mean, _mean_is_covered, _square_tail_used],
    "o24.product-of-means": [_polarisation, _product, _square_tail_used],
    "repaired.squared-mean": [_linear_square],
    "repaired.product-of-means": [_linear_product],
    "o24.mean-norm": [_largest_mean, _largest_pair],
    "m25.weighted-chi-square": [_sub_exponential, _weighted_near, _weighted_far],
    "m25.sub-exponential-mean": [_near_tail, _far_tail],
    "o24.covariance-dimension": [_covariance],
    "repaired.covariance-dimension": [_covariance],
    "o24.covariance-effective-rank": [_directions],
    "m25.covariance-effective-rank": [_directions, _psi_norm],
    "repaired.covariance-effective-rank": [_psi_norm],
    "o24.fd-decomposition": [
        _squares("(17): |‖μ−μ_r‖² − ‖μ̂−μ_r‖²| ≤ (2‖μ−μ_r‖ + ‖μ̂−μ‖)‖μ̂−μ‖, a = ‖μ−μ_r‖"),
        _spreads("(19): |Tr Σ − Tr Σ̂| ≤ |Tr Σ − n⁻¹Σ‖x−μ‖²| + |n⁻¹Σ(‖x−μ‖² − ‖x−μ̂‖²)|"),
        _largest_square,
        _squares("(21): |n⁻¹Σ(‖x−μ‖² − ‖x−μ̂‖²)| ≤ ‖μ̂−μ‖(‖μ̂−μ‖ + (2/n)Σ‖x−μ̂‖), a = ‖x−μ̂‖"),
    ],
    "m25.fd-decomposition": [
        _squares("(19): |‖μ−μ_r‖² − ‖μ̂−μ_r‖²| ≤ (‖μ̂−μ‖ + 2‖μ̂−μ_r‖)‖μ̂−μ‖, a = ‖μ̂−μ_r‖"),
        _spreads("(21): Tr Σ̂ = n⁻¹Σ‖x−μ‖² − ‖μ̂−μ‖²"),
        _spreads("(22): |Tr Σ − Tr Σ̂| ≤ |Tr Σ − n⁻¹Σ‖x−μ‖²| + ‖μ̂−μ‖²"),
    ],
    "v24.eigenvalues": [_eigenvalues, _eigenvalue_range],
    "v24.fkea": [_two_halves, _projection_of_a_longer_spectrum, _fkea],
    "v24.vector-bernstein": [_bernstein],
    "v24.order-one": [_order_one],
    "repaired.kernel-covariance": [_bounded_differences],
}
