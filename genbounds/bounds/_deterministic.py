"""Printed deterministic inequalities: the error is the left side, the width the right side.

A positive semi-definite matrix A enters by a factor F with A = F Fᵀ: Tr √A is then the sum of the
singular values of F, which keeps its digits where A is singular. All inputs may carry leading
batch axes.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from genbounds.bounds._bound import Assumption, Bound, Constants, Facts, Quantity
from genbounds.bounds._quantities import operator_norm
from genbounds.validation import Float

CLIP = float(np.exp(-1.0))


def _nuclear(matrices: Float) -> Float:
    return np.asarray(np.linalg.svd(matrices, compute_uv=False).sum(axis=-1))


def _gram(factor: Float) -> Float:
    return factor @ np.swapaxes(factor, -1, -2)


def _trace_root(factor: Float, reference_factor: Float) -> Float:
    """Tr (Σ Σ_r)^{1/2} of Σ = F Fᵀ, Σ_r = R Rᵀ: the nuclear norm of Fᵀ R."""
    return _nuclear(np.swapaxes(factor, -1, -2) @ reference_factor)


def root_change(factor: Float, other_factor: Float, reference_factor: Float) -> Float:
    return np.abs(
        _trace_root(factor, reference_factor) - _trace_root(other_factor, reference_factor)
    )


def root_change_bound(
    c: Constants, factor: Float, other_factor: Float, reference_factor: Float
) -> Float:
    """Tr[Σ_r^{1/2}] √(factor ‖Σ−Σ̂‖)."""
    gap = operator_norm(_gram(factor) - _gram(other_factor))
    return np.asarray(_nuclear(reference_factor) * np.sqrt(c["factor"] * gap))


def larger_root(factor: Float, other_factor: Float) -> Float:
    return np.maximum(_nuclear(factor), _nuclear(other_factor))


def root_of_sum(factor: Float, other_factor: Float) -> Float:
    return _nuclear(np.concatenate([factor, other_factor], axis=-1))


def root_of_sum_bound(c: Constants, factor: Float, other_factor: Float) -> Float:
    """Tr √(A+B), times the printed factor 1."""
    return c["factor"] * root_of_sum(factor, other_factor)


def sum_of_roots(c: Constants, factor: Float, other_factor: Float) -> Float:
    """Tr √A + Tr √B, times the printed factor 1."""
    return c["factor"] * (_nuclear(factor) + _nuclear(other_factor))


def inverse_ratio(larger: Float, smaller: Float) -> Float:
    """Largest eigenvalue of B^{1/2} A⁻¹ B^{1/2}: at most 1 exactly if B⁻¹ ⪰ A⁻¹."""
    root = np.linalg.cholesky(smaller)
    return np.asarray(operator_norm(np.swapaxes(root, -1, -2) @ np.linalg.solve(larger, root)))


def one(c: Constants) -> float:
    """Ratio 1: the printed order itself."""
    return c["ratio"]


def entropy_sum(z: Float) -> Float:
    """ℰ(z) = −Σ_j z_j log z_j over the last axis."""
    from scipy.special import entr

    return np.asarray(entr(z).sum(axis=-1))


def clip(p: Float, epsilon: Float, *, point: float = CLIP) -> Float:
    """Move each entry of `p` by `epsilon` towards `point`, and no further than there."""
    step = np.where(p < point, epsilon, -epsilon)
    return np.where(np.abs(p - point) >= epsilon, p + step, point)


def entropy(p: Float) -> Float:
    return entropy_sum(p)


def clipped_entropy(c: Constants, p: Float, p_estimate: Float) -> Float:
    """ℰ(Clip_{point}(p̃, |p̃−p|))."""
    return entropy_sum(clip(p_estimate, np.abs(p_estimate - p), point=c["point"]))


def spectral_distance(a: Float, b: Float) -> Float:
    return np.asarray(np.linalg.norm(np.linalg.eigvalsh(a) - np.linalg.eigvalsh(b), axis=-1))


def frobenius(c: Constants, a: Float, b: Float) -> Any:
    """‖A−B‖_F, times the printed factor 1."""
    return c["factor"] * np.linalg.norm(a - b, axis=(-2, -1))


def truncate(v: Float, t: Any) -> Float:
    """v_j + (1−S_t)/t for j ≤ t and 0 beyond, S_t the sum of the first `t` entries of `v`."""
    kept = np.arange(v.shape[-1]) < np.asarray(t)[..., None]
    head = np.where(kept, v, 0.0)
    lift = (1.0 - head.sum(axis=-1, keepdims=True)) / np.asarray(t)[..., None]
    return np.where(kept, head + lift, 0.0)


def projection_distance(v: Float, t: Any) -> Float:
    return np.asarray(np.linalg.norm(v - truncate(v, t), axis=-1))


def rival_distance(c: Constants, v: Float, w: Float) -> Any:
    """‖v−w‖ for another point w of the t-simplex, times the printed factor 1."""
    return c["factor"] * np.linalg.norm(v - w, axis=-1)


def alpha_norm(v: Float, alpha: Any) -> Float:
    order = np.asarray(alpha)
    return np.asarray((np.abs(v) ** order[..., None]).sum(axis=-1) ** (1.0 / order))


def embedding(c: Constants, v: Float, alpha: Any) -> Any:
    """d^{(2−α)/root} ‖v‖₂."""
    power = (2.0 - np.asarray(alpha)) / c["root"]
    return v.shape[-1] ** power * np.linalg.norm(v, axis=-1)


def visit_sum(picks: Float, batch: Any, alpha: Any) -> Float:
    """Σ_t n_t^{−α}: generator g holds b k samples after its k-th batch, k ≤ N_g."""
    steps = np.arange(1.0, float(np.max(picks)) + 1.0)
    held = np.asarray(batch)[..., None, None] * steps
    terms = held ** -np.asarray(alpha)[..., None, None]
    return np.asarray(np.where(steps <= picks[..., None], terms, 0.0).sum(axis=(-2, -1)))


def harmonic_visits(picks: Float, batch: Any) -> Float:
    return visit_sum(picks, batch, np.ones(np.shape(batch)))


def power_samples(c: Constants, picks: Float, batch: Any, alpha: Any) -> Float:
    """Evaluate ((base b)^α/(1−α)) Σ_g n_g(T)^{1−α} with n_g(T) = b N_g."""
    order, b = np.asarray(alpha), np.asarray(batch)
    total = ((b[..., None] * picks) ** (1.0 - order[..., None])).sum(axis=-1)
    return np.asarray((c["base"] * b) ** order / (1.0 - order) * total)


def power_picks(c: Constants, picks: Float, batch: Any, alpha: Any) -> Float:
    """(base^α/(b^α(1−α))) Σ_g N_g(T)^{1−α}."""
    order = np.asarray(alpha)
    total = (picks ** (1.0 - order[..., None])).sum(axis=-1)
    return np.asarray((c["base"] / np.asarray(batch)) ** order / (1.0 - order) * total)


def log_samples(c: Constants, picks: Float, batch: Any) -> Float:
    """``factor b Σ_g log n_g(T)`` with n_g(T) = b N_g."""
    b = np.asarray(batch)
    return np.asarray(c["factor"] * b * np.log(b[..., None] * picks).sum(axis=-1))


def log_picks(c: Constants, picks: Float, batch: Any) -> Float:
    """(factor/b) Σ_g log N_g(T)."""
    return np.asarray(c["factor"] / np.asarray(batch) * np.log(picks).sum(axis=-1))


def _full_rank(name: str, facts: Facts, n: int, delta: float) -> bool:
    return bool(np.linalg.matrix_rank(facts[name]) == facts[name].shape[-2])


def _ordered(facts: Facts, n: int, delta: float) -> bool:
    gap = np.linalg.eigvalsh(facts["larger"] - facts["smaller"]).min()
    slack = 1e-12 * operator_norm(facts["larger"])
    return bool(gap >= -slack and np.linalg.eigvalsh(facts["smaller"]).min() > 0.0)


def _distributions(names: tuple[str, ...], facts: Facts, n: int, delta: float) -> bool:
    return all(
        bool((facts[name] >= 0.0).all() and abs(facts[name].sum() - 1.0) <= 1e-12) for name in names
    )


def _symmetric(facts: Facts, n: int, delta: float) -> bool:
    return all(bool((facts[name] == facts[name].T).all()) for name in ("a", "b"))


def _between(low: float, high: float, facts: Facts, n: int, delta: float) -> bool:
    return bool(low <= facts["alpha"] < high)


def _visits(facts: Facts, n: int, delta: float) -> bool:
    return bool((facts["picks"] >= 1).all() and facts["batch"] >= 1)


def _by_factors(facts: Facts, n: int, delta: float) -> bool:
    return all(np.isfinite(facts[name]).all() for name in ("factor", "other_factor"))


PSD = Assumption(text="A, B ⪰ 0 (given by factors)", predicate=_by_factors)
VISITS = Assumption(text="every generator picked at least once, b ≥ 1", predicate=_visits)
POWER = Assumption(text="0 ≤ α < 1", predicate=partial(_between, 0.0, 1.0))
HARMONIC = Quantity(name="harmonic-visits", text="Σ_t 1/n_t", function=harmonic_visits)
_VISIT_SUM = Quantity(name="visit-sum", text="Σ_t n_t^{−α}", function=visit_sum)

STATEMENTS = (
    Bound(
        id="m25.trace-root-perturbation",
        claim="|Tr(ΣΣ_r)^{1/2} − Tr(Σ̂Σ_r)^{1/2}| ≤ Tr[Σ_r^{1/2}] √(2‖Σ−Σ̂‖)",
        latex=r"\bigl|\operatorname{Tr}(\Sigma\Sigma_r)^{1/2}-"
        r"\operatorname{Tr}(\hat\Sigma\Sigma_r)^{1/2}\bigr| \le"
        r" \operatorname{Tr}[\Sigma_r^{1/2}]\sqrt{2\|\Sigma-\hat\Sigma\|}",
        source="M25 Lemma 2, O24 Theorem A.3",
        setting="factor-triple",
        form="deterministic",
        assumptions=(
            Assumption(
                text="Σ_r ≻ 0 (given by factors)", predicate=partial(_full_rank, "reference_factor")
            ),
        ),
        quantity=Quantity(
            name="root-change",
            text="|Tr(ΣΣ_r)^{1/2} − Tr(Σ̂Σ_r)^{1/2}|",
            function=root_change,
        ),
        constants={"factor": 2.0},
        width_function=root_change_bound,
    ),
    Bound(
        id="m25.trace-root-monotone",
        claim="max{Tr√A, Tr√B} ≤ Tr√(A+B)",
        latex=r"\max\{\operatorname{Tr}\sqrt A,\operatorname{Tr}\sqrt B\} \le"
        r" \operatorname{Tr}\sqrt{A+B}",
        source="M25 Lemma 7, O24 Lemma E.8",
        setting="factor-pair",
        form="deterministic",
        assumptions=(PSD,),
        quantity=Quantity(name="larger-root", text="max{Tr√A, Tr√B}", function=larger_root),
        constants={"factor": 1.0},
        width_function=root_of_sum_bound,
    ),
    Bound(
        id="m25.trace-root-subadditive",
        claim="Tr√(A+B) ≤ Tr√A + Tr√B",
        latex=r"\operatorname{Tr}\sqrt{A+B} \le \operatorname{Tr}\sqrt A+\operatorname{Tr}\sqrt B",
        source="M25 Lemma 8, O24 Lemma E.9",
        setting="factor-pair",
        form="deterministic",
        assumptions=(PSD,),
        quantity=Quantity(name="root-of-sum", text="Tr√(A+B)", function=root_of_sum),
        constants={"factor": 1.0},
        width_function=sum_of_roots,
    ),
    Bound(
        id="m25.inverse-order",
        claim="A ⪰ B ≻ 0 implies B⁻¹ ⪰ A⁻¹, that is λ_max(B^{1/2}A⁻¹B^{1/2}) ≤ 1",
        latex=r"A\succeq B\succ0 \;\Rightarrow\; B^{-1}\succeq A^{-1}",
        source="M25 Lemma 9, O24 Lemma E.12",
        setting="ordered-pair",
        form="deterministic",
        assumptions=(Assumption(text="A ⪰ B ≻ 0", predicate=_ordered),),
        quantity=Quantity(
            name="inverse-ratio", text="λ_max(B^{1/2}A⁻¹B^{1/2})", function=inverse_ratio
        ),
        constants={"ratio": 1.0},
        width_function=one,
    ),
    Bound(
        id="m25.clip-optimism",
        claim="H(p) ≤ ℰ(Clip_{1/e}(p̃, |p̃−p|))",
        latex=r"H(p) \le \mathcal E\bigl(\operatorname{Clip}_{1/e}(\tilde p,|\tilde p-p|)\bigr)",
        source="M25 Lemma 11, O24 Theorem B.1",
        setting="distribution-pair",
        form="deterministic",
        assumptions=(
            Assumption(
                text="p, p̃ distributions", predicate=partial(_distributions, ("p", "p_estimate"))
            ),
        ),
        quantity=Quantity(name="entropy", text="H(p)", function=entropy),
        constants={"point": CLIP},
        width_function=clipped_entropy,
    ),
    Bound(
        id="v24.hoffman-wielandt",
        claim="‖λ(A) − λ(B)‖₂ ≤ ‖A−B‖_F, eigenvalues sorted",
        latex=r"\|\lambda(A)-\lambda(B)\|_2 \le \|A-B\|_F",
        source="V24 Appendix A.1",
        setting="symmetric-pair",
        form="deterministic",
        assumptions=(Assumption(text="A, B symmetric", predicate=_symmetric),),
        quantity=Quantity(
            name="spectral-distance", text="‖λ(A) − λ(B)‖₂", function=spectral_distance
        ),
        constants={"factor": 1.0},
        width_function=frobenius,
    ),
    Bound(
        id="v24.simplex-projection",
        claim="‖v − v^{(t)}‖ ≤ ‖v − w‖ for every w of the t-simplex, v^{(t)}_j = v_j + (1−S_t)/t",
        latex=r"\|v-v^{(t)}\| \le \|v-w\|\;\;\forall w\in\Delta_t,\quad"
        r" v^{(t)}_j=v_j+\tfrac{1-S_t}{t}\;(j\le t)",
        source="V24 Lemma 2",
        setting="simplex-triple",
        form="deterministic",
        assumptions=(
            Assumption(
                text="v a distribution, w a distribution on the first t entries",
                predicate=partial(_distributions, ("v", "w")),
            ),
        ),
        quantity=Quantity(
            name="projection-distance", text="‖v − v^{(t)}‖", function=projection_distance
        ),
        constants={"factor": 1.0},
        width_function=rival_distance,
    ),
    Bound(
        id="v24.norm-embedding",
        claim="‖v‖_α ≤ d^{(2−α)/2} ‖v‖₂, 1 ≤ α < 2",
        latex=r"\|v\|_\alpha \le d^{(2-\alpha)/2}\|v\|_2,\quad 1\le\alpha<2",
        source="V24 Appendix A.3",
        setting="vector-order",
        form="deterministic",
        assumptions=(Assumption(text="1 ≤ α < 2", predicate=partial(_between, 1.0, 2.0)),),
        quantity=Quantity(name="alpha-norm", text="‖v‖_α", function=alpha_norm),
        constants={"root": 2.0},
        width_function=embedding,
    ),
    Bound(
        id="o24.visit-sum-power",
        claim="Σ_t n_t^{−α} ≤ ((2b)^α/(1−α)) Σ_g n_g(T)^{1−α}",
        latex=r"\sum_t n_t^{-\alpha} \le \tfrac{(2b)^\alpha}{1-\alpha}\sum_g n_g(T)^{1-\alpha}",
        source="O24 Appendix A.2",
        setting="visits",
        form="deterministic",
        assumptions=(VISITS, POWER),
        quantity=_VISIT_SUM,
        constants={"base": 2.0},
        width_function=power_samples,
    ),
    Bound(
        id="o24.visit-sum-log",
        claim="Σ_t 1/n_t ≤ 2b Σ_g log n_g(T)",
        latex=r"\sum_t n_t^{-1} \le 2b\sum_g\log n_g(T)",
        source="O24 Appendix A.2",
        setting="visits",
        form="deterministic",
        assumptions=(VISITS,),
        quantity=HARMONIC,
        constants={"factor": 2.0},
        width_function=log_samples,
    ),
    Bound(
        id="m25.visit-sum-power",
        claim="Σ_t n_t^{−α} ≤ (2^α/(b^α(1−α))) Σ_g N_g(T)^{1−α}",
        latex=r"\sum_t n_t^{-\alpha} \le"
        r" \tfrac{2^\alpha}{b^\alpha(1-\alpha)}\sum_g N_g(T)^{1-\alpha}",
        source="M25 Appendix A.2",
        setting="visits",
        form="deterministic",
        assumptions=(VISITS, POWER),
        quantity=_VISIT_SUM,
        constants={"base": 2.0},
        width_function=power_picks,
    ),
    Bound(
        id="m25.visit-sum-log",
        claim="Σ_t 1/n_t ≤ (2/b) Σ_g log N_g(T)",
        latex=r"\sum_t n_t^{-1} \le \tfrac2b\sum_g\log N_g(T)",
        source="M25 Appendix A.2",
        setting="visits",
        form="deterministic",
        assumptions=(VISITS,),
        quantity=HARMONIC,
        constants={"factor": 2.0},
        width_function=log_picks,
    ),
)
