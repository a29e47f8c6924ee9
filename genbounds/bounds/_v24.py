"""Statements printed in V24, on the convergence of Vendi scores."""

from __future__ import annotations

import math

from genbounds.bounds import _inequalities as ineq
from genbounds.bounds import _means as means
from genbounds.bounds import _rates as rates
from genbounds.bounds import _vendi as vendi
from genbounds.bounds._assumptions import (
    ANY_ORDER,
    BERNSTEIN_RANGE,
    CENTRED,
    NORM_BOUNDED,
    any_law,
    has,
    orders,
)

STATEMENTS = (
    means.BOUNDED_NORM("v24.vector-bernstein", means.vector_bernstein, factor=8.0, offset=0.25)(
        claim="P(‖z̄‖ ≥ ε) ≤ exp(−nε²/(8c²) + 1/4) for 0 ≤ ε ≤ c",
        latex=r"\mathbb{P}(\|\bar z\|\ge\varepsilon) \le"
        r" \exp\Bigl(-\tfrac{n\varepsilon^2}{8c^2}+\tfrac14\Bigr),\quad 0\le\varepsilon\le c",
        source="V24 Lemma 1",
        assumptions=(NORM_BOUNDED, CENTRED, BERNSTEIN_RANGE),
    ),
    ineq.SPECTRA("v24.hoffman-wielandt", ineq.frobenius, factor=1.0)(
        claim="‖λ(A) − λ(B)‖₂ ≤ ‖A−B‖_F, eigenvalues sorted",
        latex=r"\|\lambda(A)-\lambda(B)\|_2 \le \|A-B\|_F",
        source="V24 Appendix A.1",
    ),
    ineq.PROJECTION("v24.simplex-projection", ineq.rival_distance, factor=1.0)(
        claim="‖v − v^{(t)}‖ ≤ ‖v − w‖ for every w of the t-simplex, v^{(t)}_j = v_j + (1−S_t)/t",
        latex=r"\|v-v^{(t)}\| \le \|v-w\|\;\;\forall w\in\Delta_t,\quad"
        r" v^{(t)}_j=v_j+\tfrac{1-S_t}{t}\;(j\le t)",
        source="V24 Lemma 2",
    ),
    ineq.ALPHA_NORM("v24.norm-embedding", ineq.embedding, root=2.0)(
        claim="‖v‖_α ≤ d^{(2−α)/2} ‖v‖₂, 1 ≤ α < 2",
        latex=r"\|v\|_\alpha \le d^{(2-\alpha)/2}\|v\|_2,\quad 1\le\alpha<2",
        source="V24 Appendix A.3",
    ),
    vendi.SPECTRUM("v24.eigenvalues", means.root_log, factor=32.0, union=2.0)(
        claim="‖λ̂−λ̃‖₂ ≤ √(32 log(2/δ)/n)",
        latex=r"\|\hat\lambda-\tilde\lambda\|_2 \le \sqrt{\tfrac{32}{n}\log\tfrac2\delta}",
        source="V24 Theorem 1",
    ),
    vendi.ORDER("v24.order-ge-2", means.root_log, factor=32.0, union=2.0)(
        claim="|‖λ̂‖_α − ‖λ̃‖_α| ≤ √(32 log(2/δ)/n), α ≥ 2",
        latex=r"\bigl|\|\hat\lambda\|_\alpha-\|\tilde\lambda\|_\alpha\bigr| \le"
        r" \sqrt{\tfrac{32}{n}\log\tfrac2\delta},\quad \alpha\ge2",
        source="V24 Corollary 1",
        assumptions=(*vendi.KERNEL, orders(2.0, math.inf, "α ≥ 2")),
    ),
    vendi.ORDER("v24.order-lt-2", vendi.order_below_two, factor=32.0, union=2.0)(
        claim="|‖λ̂‖_α − ‖λ̃‖_α| ≤ √(32 d^{2−α} log(2/δ)/n), 1 ≤ α < 2",
        latex=r"\bigl|\|\hat\lambda\|_\alpha-\|\tilde\lambda\|_\alpha\bigr| \le"
        r" \sqrt{\tfrac{32\,d^{2-\alpha}}{n}\log\tfrac2\delta},\quad 1\le\alpha<2",
        source="V24 Corollary 2",
        assumptions=(*vendi.KERNEL, orders(1.0, 2.0, "1 ≤ α < 2")),
    ),
    vendi.ORDER("v24.order-one", vendi.order_below_two, factor=32.0, union=2.0)(
        claim="Corollary 2 at α = 1, the order of the Vendi score itself",
        latex=r"\bigl|\mathrm{VENDI}_1(x)^0-\mathrm{VENDI}_1(P)^0\bigr| \le"
        r" \sqrt{\tfrac{32\,d}{n}\log\tfrac2\delta}",
        source="V24 Corollary 2 at α = 1",
        assumptions=(*vendi.KERNEL, orders(1.0, 1.0 + 1e-12, "α = 1")),
    ),
    vendi.TRUNCATED("v24.truncated", vendi.truncated, factor=32.0, union=2.0)(
        claim="|‖λ̂^{(t)}‖_α − ‖λ̃^{(t)}‖_α| ≤ √(32 max{1,t^{2−α}} log(2/δ)/n)",
        latex=r"\bigl|\|\hat\lambda^{(t)}\|_\alpha-\|\tilde\lambda^{(t)}\|_\alpha\bigr| \le"
        r" \sqrt{\tfrac{32\max\{1,t^{2-\alpha}\}}{n}\log\tfrac2\delta}",
        source="V24 Theorem 2",
        assumptions=(*vendi.KERNEL, ANY_ORDER, has("kept", "t eigenvalues kept")),
    ),
    vendi.FKEA("v24.fkea", vendi.fkea, factor=128.0, union=3.0)(
        claim="|‖λ^{FKEA}‖_α − ‖λ̃^{(t)}‖_α| ≤ √(128 max{1,t^{2−α}} log(3/δ)/min{n,t})",
        latex=r"\bigl|\|\lambda^{\mathrm{FKEA}}\|_\alpha-\|\tilde\lambda^{(t)}\|_\alpha\bigr| \le"
        r" \sqrt{\tfrac{128\max\{1,t^{2-\alpha}\}}{\min\{n,t\}}\log\tfrac3\delta}",
        source="V24 Theorem 3(a)",
        assumptions=(
            *vendi.KERNEL,
            ANY_ORDER,
            has("frequencies", "shift-invariant kernel, t random frequencies"),
        ),
    ),
    rates.BIAS("v24.nystrom-product", rates.nystrom_product, union=2.0, offset=0.0)(
        claim="Nyström with t points, where λ_r(K) ≤ τ and t ≥ r τ log n for some r: error"
        " O(√(max{1,t^{2−α}} log(2/δ) t τ² log(n)²/n)) w.p. ≥ 1−δ−2n⁻³",
        latex=r"\lambda_r(K)\le\tau,\;t\ge r\tau\log n:\;"
        r"O\Bigl(\sqrt{\tfrac1n\max\{1,t^{2-\alpha}\}\log\tfrac2\delta\,t\tau^2\log(n)^2}\Bigr)",
        source="V24 Theorem 3(b), the main text",
        assumptions=any_law("normalised kernel"),
    ),
    rates.BIAS("v24.nystrom-proof", rates.order, exponent=-0.5)(
        claim="Nyström with t points, where λ_r(K) ≤ τ and t ≥ C r log n for some r: error"
        " O(√(max{1,t^{2−α}}(log(2/δ) + t log(n)²τ²)/n)) w.p. ≥ 1−δ−2n⁻³",
        latex=r"\lambda_r(K)\le\tau,\;t\ge Cr\log n:\;"
        r"O\Bigl(\sqrt{\tfrac1n\max\{1,t^{2-\alpha}\}(\log\tfrac2\delta+t\log(n)^2\tau^2)}\Bigr)",
        source="V24 Theorem 3(b), Appendix A.5",
        repairs="v24.nystrom-product",
        assumptions=any_law("normalised kernel"),
    ),
    rates.BIAS("v24.nystrom", rates.order, exponent=-0.5)(
        claim="Nyström with t points, where λ_r(K) ≤ τ and t ≥ r τ log n for some r: error"
        " O(√(max{1,t^{2−α}}(log(2/δ) + t log(n)²τ²)/n)) w.p. ≥ 1−δ−2n⁻³",
        latex=r"\lambda_r(K)\le\tau,\;t\ge r\tau\log n:\;"
        r"O\Bigl(\sqrt{\tfrac1n\max\{1,t^{2-\alpha}\}(\log\tfrac2\delta+t\log(n)^2\tau^2)}\Bigr)",
        source="V24 Theorem 3(b), its condition with the error of Appendix A.5",
        assumptions=any_law("normalised kernel"),
    ),
)
