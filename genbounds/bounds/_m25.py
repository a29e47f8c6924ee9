"""Statements printed in M25, on the bandits FD-UCB and IS-UCB."""

from __future__ import annotations

from genbounds.bounds import _assumptions as on
from genbounds.bounds import _frechet as fd
from genbounds.bounds import _inception as inception
from genbounds.bounds import _inequalities as ineq
from genbounds.bounds import _means as means
from genbounds.bounds import _rates as rates
from genbounds.bounds._bound import Bound, kind
from genbounds.bounds._inception import MAURER_PONTIL

_MEAN = {"mean_root": 8.0, "mean_linear": 8.0, "mean_union": 6.0}
_RANK = {"rank_lead": 20.0, "rank_rank": 4.0, "rank_union": 3.0}
_TRACE = {"perturbation": 8.0, "trace_root": 8.0, "trace_linear": 8.0, "trace_union": 6.0}
_BONUS = {**_TRACE, **_MEAN, **_RANK}
_ESTIMATES = {"threshold": 2.0, "kappa": 1.0}
_RANGE = {"perturbation": 8.0, "range": 4.0, "union": 3.0}
_BOUNDED = {**_RANGE, **_RANK, "mean_factor": 2.0, "mean_union": 6.0}
_CHI_SQUARE = {"root": 8.0, "linear": 8.0}


def _thresholded(name: str, theta: str, latex: str, source: str, **parts: float) -> Bound:
    """Return the bonus from the sample, by the threshold θ that has these `parts`."""
    return fd.BONUS(name, fd.m25_plugin_bonus, **_BONUS, **_ESTIMATES, **parts)(
        claim="the bonus of M25 (6) with the norms of the sample covariance thresholded at"
        f" M√(θ_ij log d/n), θ_ij = {theta}, M = 2, κ = 1",
        latex=r"\mathrm{FD}_n-\mathrm{FD} \le \text{(6) with the norms of }"
        r"\hat\sigma_{ij}\text{ where }|\hat\sigma_{ij}| \ge"
        r" M\sqrt{\tfrac{\theta_{ij}\log d}{n}},\;M=2,\;\kappa=1,\;"
        rf"\theta_{{ij}}={latex}",
        source=f"M25 Appendix C.3 for M25 (6), {source}",
        form="plug-in",
        assumptions=(on.GAUSSIAN, on.DEFINITE_REFERENCE, on.at_least(2), on.rank_samples(3.0)),
    )


STATEMENTS = (
    means.UNIT_MEAN(
        "m25.empirical-bernstein", means.empirical_bernstein, root=2.0, union=2.0, linear=7.0 / 3.0
    )(
        claim="E Z − Z̄ ≤ √(2 V_n log(2/δ)/n) + 7 log(2/δ)/(3(n−1))",
        latex=r"\mathbb{E}Z-\bar Z \le \sqrt{\tfrac{2V_n}{n}\log\tfrac2\delta}"
        r" + \tfrac{7}{3(n-1)}\log\tfrac2\delta",
        source="M25 Lemma 12, O24 Lemma E.4 (Maurer & Pontil 2009, Theorem 4)",
        form="plug-in",
        assumptions=(on.UNIT_INTERVAL, on.at_least(2)),
    ),
    kind("sub-exponential", means.MEAN_ERROR, on.SUB_EXPONENTIAL)(
        "m25.sub-exponential-mean", means.sub_exponential_mean, root=2.0, linear=2.0, union=2.0
    )(
        claim="|X̄ − E X| ≤ max{√(2ν² log(2/δ)/n), 2α log(2/δ)/n}",
        latex=r"|\bar X-\mathbb{E}X| \le \max\Bigl\{\sqrt{\tfrac{2\nu^2}{n}\log\tfrac2\delta},"
        r"\;\tfrac{2\alpha}{n}\log\tfrac2\delta\Bigr\}",
        source="M25 Lemma 5",
    ),
    ineq.MOMENTS("m25.sub-exponential-sum", ineq.sub_exponential_sum, factor=1.0)(
        claim="X_i ∈ SE(ν_i, α_i) independent, w_i ≥ 0: Σw_iX_i ∈ SE(√Σw_i²ν_i², max w_iα_i), that"
        " is log E exp(s Σw_i(X_i−μ_i)) ≤ (s²/2) Σw_i²ν_i² for |s| < 1/max w_iα_i",
        latex=r"\sum_iw_iX_i \in \mathrm{SE}\Bigl(\sqrt{\sum_iw_i^2\nu_i^2},"
        r"\;\max_iw_i\alpha_i\Bigr)",
        source="M25 Lemma 3",
    ),
    means.SQUARED_NORMS(
        "m25.weighted-chi-square", means.weighted_chi_square, **_CHI_SQUARE, union=2.0
    )(
        claim="|n⁻¹Σ‖X_i‖² − Tr Σ| ≤ max{√(8 Tr[Σ²] log(2/δ)/n), 8‖Σ‖ log(2/δ)/n}",
        latex=r"\Bigl|\tfrac1n\sum_i\|X_i\|^2-\operatorname{Tr}\Sigma\Bigr| \le"
        r" \max\Bigl\{\sqrt{\tfrac{8\operatorname{Tr}\Sigma^2}{n}\log\tfrac2\delta},"
        r"\;\tfrac{8\|\Sigma\|}{n}\log\tfrac2\delta\Bigr\}",
        source="M25 Lemma 4",
    ),
    means.SQUARED_NORM("m25.mean-norm", means.mean_norm_squared, **_CHI_SQUARE, union=6.0)(
        claim="‖μ̂−μ‖² ≤ (1/n)(√(8 Tr[Σ²] log(6/δ)) + 8‖Σ‖ log(6/δ)), w.p. ≥ 1−δ/3",
        latex=r"\|\hat\mu-\mu\|^2 \le \tfrac1n\Bigl("
        r"\sqrt{8\operatorname{Tr}[\Sigma^2]\log\tfrac6\delta}"
        r" + 8\|\Sigma\|\log\tfrac6\delta\Bigr)",
        source="M25 Lemma 1 (23), squared",
        failure=1.0 / 3.0,
    ),
    means.GAUSSIAN_NORM("m25.mean-norm-as-printed", means.mean_norm, **_CHI_SQUARE, union=6.0)(
        claim="‖μ̂−μ‖ ≤ √((1/n)(√(8 Tr[Σ²] log(6/δ)) + 8‖Σ‖ log(6/δ))) =: Δ_μ, w.p. ≥ 1−δ/3",
        latex=r"\|\hat\mu-\mu\| \le \sqrt{\tfrac1n\Bigl("
        r"\sqrt{8\operatorname{Tr}[\Sigma^2]\log\tfrac6\delta}"
        r" + 8\|\Sigma\|\log\tfrac6\delta\Bigr)}",
        source="M25 Lemma 1 (23)",
        failure=1.0 / 3.0,
    ),
    means.BOUNDED_NORM("m25.bounded-mean-norm", means.bounded_mean_norm, factor=2.0, union=6.0)(
        claim="‖μ̂−μ‖ ≤ √(2dC² log(6d/δ)/n + Tr Σ/n), w.p. ≥ 1−δ/3",
        latex=r"\|\hat\mu-\mu\| \le \sqrt{\tfrac{2dC^2}{n}\log\tfrac{6d}{\delta}"
        r" + \tfrac{\operatorname{Tr}\Sigma}{n}}",
        source="M25 (28)",
        failure=1.0 / 3.0,
    ),
    means.RAW_BY_RANK(
        "m25.covariance-effective-rank", means.effective_rank_psi, lead=20.0, rank=4.0, union=1.0
    )(
        claim="‖n⁻¹ΣXXᵀ − Σ‖ ≤ 20κ²‖Σ‖ √((4r(Σ)+log(1/δ))/n), ‖yᵀX‖_ψ2 ≤ κ√(yᵀΣy)",
        latex=r"\Bigl\|\tfrac1n\sum_i X_iX_i^\top-\Sigma\Bigr\| \le"
        r" 20\kappa^2\|\Sigma\|\sqrt{\tfrac{4r(\Sigma)+\log(1/\delta)}{n}}",
        source="M25 Lemma 6",
        repairs="o24.covariance-sub-gaussian",
        assumptions=(on.SUB_GAUSSIAN, on.CENTRED, on.rank_samples(1.0)),
    ),
    means.BY_RANK("m25.covariance", means.centred_psi, lead=20.0, rank=4.0, union=3.0, **_MEAN)(
        claim="‖Σ−Σ̂‖ ≤ 20κ²‖Σ‖√((4r(Σ)+log(3/δ))/n) + (Δ_μ)², w.p. ≥ 1−2δ/3",
        latex=r"\|\Sigma-\hat\Sigma\| \le"
        r" 20\kappa^2\|\Sigma\|\sqrt{\tfrac{4r(\Sigma)+\log(3/\delta)}{n}} + (\Delta_\mu)^2",
        source="M25 Lemma 1 (24)",
        failure=2.0 / 3.0,
    ),
    ineq.ROOT_CHANGE("m25.trace-root-perturbation", ineq.root_change_bound, factor=2.0)(
        claim="|Tr(ΣΣ_r)^{1/2} − Tr(Σ̂Σ_r)^{1/2}| ≤ Tr[Σ_r^{1/2}] √(2‖Σ−Σ̂‖)",
        latex=r"\bigl|\operatorname{Tr}(\Sigma\Sigma_r)^{1/2}-"
        r"\operatorname{Tr}(\hat\Sigma\Sigma_r)^{1/2}\bigr| \le"
        r" \operatorname{Tr}[\Sigma_r^{1/2}]\sqrt{2\|\Sigma-\hat\Sigma\|}",
        source="M25 Lemma 2, O24 Theorem A.3",
    ),
    ineq.LARGER_ROOT("m25.trace-root-monotone", ineq.root_of_sum_bound, factor=1.0)(
        claim="max{Tr√A, Tr√B} ≤ Tr√(A+B)",
        latex=r"\max\{\operatorname{Tr}\sqrt A,\operatorname{Tr}\sqrt B\} \le"
        r" \operatorname{Tr}\sqrt{A+B}",
        source="M25 Lemma 7, O24 Lemma E.8",
    ),
    ineq.ROOT_OF_SUM("m25.trace-root-subadditive", ineq.sum_of_roots, factor=1.0)(
        claim="Tr√(A+B) ≤ Tr√A + Tr√B",
        latex=r"\operatorname{Tr}\sqrt{A+B} \le \operatorname{Tr}\sqrt A+\operatorname{Tr}\sqrt B",
        source="M25 Lemma 8, O24 Lemma E.9",
    ),
    ineq.INVERSES("m25.inverse-order", ineq.ratio, ratio=1.0)(
        claim="A ⪰ B ≻ 0 implies B⁻¹ ⪰ A⁻¹, that is λ_max(B^{1/2}A⁻¹B^{1/2}) ≤ 1",
        latex=r"A\succeq B\succ0 \;\Rightarrow\; B^{-1}\succeq A^{-1}",
        source="M25 Lemma 9, O24 Lemma E.12",
    ),
    ineq.SPLIT("m25.covariance-split", ineq.split, factor=1.0)(
        claim="‖Σ−Σ̂‖ ≤ ‖Σ − n⁻¹Σ(x−μ)(x−μ)ᵀ‖ + ‖μ−μ̂‖²",
        latex=r"\|\Sigma-\hat\Sigma\| \le"
        r" \Bigl\|\Sigma-\tfrac1n\sum_i(x_i-\mu)(x_i-\mu)^\top\Bigr\|+\|\mu-\hat\mu\|^2",
        source="M25 (25), O24 (28)",
    ),
    ineq.ENTROPY("m25.clip-optimism", ineq.clipped_entropy, point=ineq.CLIP)(
        claim="H(p) ≤ ℰ(Clip_{1/e}(p̃, |p̃−p|))",
        latex=r"H(p) \le \mathcal E\bigl(\operatorname{Clip}_{1/e}(\tilde p,|\tilde p-p|)\bigr)",
        source="M25 Lemma 11, O24 Theorem B.1",
    ),
    fd.DISTANCE("m25.fd-decomposition", fd.m25_decomposition, **_TRACE)(
        claim="|FD_n − FD| ≤ 2‖μ−μ̂‖(‖μ−μ̂‖ + ‖μ̂−μ_r‖) + Tr[Σ_r^{1/2}]√(8‖Σ−Σ̂‖)"
        " + Tr[Σ]√((8/n)log(6/δ)) + (8‖Σ‖/n)log(6/δ), w.p. ≥ 1−δ/3",
        latex=r"|\mathrm{FD}_n-\mathrm{FD}| \le 2\|\mu-\hat\mu\|(\|\mu-\hat\mu\|+\|\hat\mu-\mu_r\|)"
        r"+\operatorname{Tr}[\Sigma_r^{1/2}]\sqrt{8\|\Sigma-\hat\Sigma\|}"
        r"+\operatorname{Tr}[\Sigma]\sqrt{\tfrac8n\log\tfrac6\delta}"
        r"+\tfrac{8\|\Sigma\|}{n}\log\tfrac6\delta",
        source="M25 Theorem 4 (18)",
        failure=1.0 / 3.0,
    ),
    fd.DISTANCE("m25.fd-bounded-decomposition", fd.m25_bounded_decomposition, **_RANGE)(
        claim="|FD_n − FD| ≤ 2(‖μ−μ̂‖ + ‖μ̂−μ_r‖)‖μ̂−μ‖ + Tr[Σ_r^{1/2}]√(8‖Σ−Σ̂‖)"
        " + 4C²√(log(3/δ)/(2n)), w.p. ≥ 1−δ/3",
        latex=r"|\mathrm{FD}_n-\mathrm{FD}| \le 2(\|\mu-\hat\mu\|+\|\hat\mu-\mu_r\|)\|\hat\mu-\mu\|"
        r"+\operatorname{Tr}[\Sigma_r^{1/2}]\sqrt{8\|\Sigma-\hat\Sigma\|}"
        r"+4C^2\sqrt{\tfrac{1}{2n}\log\tfrac3\delta}",
        source="M25 (27)",
        failure=1.0 / 3.0,
        setting="frechet-bounded",
        assumptions=(on.NORM_BOUNDED, on.DEFINITE_REFERENCE),
    ),
    fd.BONUS("m25.fd-bonus", fd.m25_bonus, **_BONUS)(
        claim="FD_n − FD ≤ 2Δ_μ(Δ_μ + ‖μ̂−μ_r‖) + Tr[Σ_r^{1/2}]√(8Δ_Σ)"
        " + Tr[Σ]√((8/n)log(6/δ)) + (8‖Σ‖/n)log(6/δ)",
        latex=r"\mathrm{FD}_n-\mathrm{FD} \le 2\Delta_\mu(\Delta_\mu+\|\hat\mu-\mu_r\|)"
        r"+\operatorname{Tr}[\Sigma_r^{1/2}]\sqrt{8\Delta_\Sigma}"
        r"+\operatorname{Tr}[\Sigma]\sqrt{\tfrac8n\log\tfrac6\delta}"
        r"+\tfrac{8\|\Sigma\|}{n}\log\tfrac6\delta",
        source="M25 Theorem 1 (6)",
        assumptions=(on.GAUSSIAN, on.DEFINITE_REFERENCE, on.rank_samples(3.0)),
    ),
    fd.BONUS("m25.fd-naive-bonus", fd.m25_naive_bonus, **_BONUS)(
        claim="the bonus of M25 (6) with Tr Σ = d, Tr Σ² = d, ‖Σ‖ = 1",
        latex=r"\mathrm{FD}_n-\mathrm{FD} \le \text{(6) with }"
        r"\operatorname{Tr}\Sigma=\operatorname{Tr}\Sigma^2=d,\;\|\Sigma\|=1",
        source="M25 Appendix C.4",
        assumptions=(on.GAUSSIAN, on.DEFINITE_REFERENCE, on.rank_samples(3.0), on.UNIT_OPERATOR),
    ),
    fd.BONUS("m25.fd-bounded-bonus", fd.m25_bounded_bonus, **_BOUNDED)(
        claim="FD_n − FD ≤ 2(Δ₁+‖μ̂−μ_r‖)Δ₁ + Tr[Σ_r^{1/2}]√(8Δ₂) + 4C²√(log(3/δ)/(2n))",
        latex=r"\mathrm{FD}_n-\mathrm{FD} \le 2(\Delta_1+\|\hat\mu-\mu_r\|)\Delta_1"
        r"+\operatorname{Tr}[\Sigma_r^{1/2}]\sqrt{8\Delta_2}"
        r"+4C^2\sqrt{\tfrac{1}{2n}\log\tfrac3\delta}",
        source="M25 Theorem 5",
        setting="frechet-bounded",
        assumptions=(on.NORM_BOUNDED, on.SUB_GAUSSIAN, on.DEFINITE_REFERENCE, on.rank_samples(3.0)),
    ),
    _thresholded(
        "m25.fd-bonus-plug-in",
        "σ̂_iiσ̂_jj + σ̂_ij²",
        r"\hat\sigma_{ii}\hat\sigma_{jj}+\hat\sigma_{ij}^2",
        "Cai & Liu (2011)",
        variances=1.0,
        squares=1.0,
    ),
    _thresholded(
        "m25.fd-bonus-plug-in-program",
        "2σ̂_iiσ̂_jj",
        r"2\hat\sigma_{ii}\hat\sigma_{jj}",
        "as its authors' program has it",
        variances=2.0,
        squares=0.0,
    ),
    inception.MARGINAL("m25.marginal-class", inception.marginal_class, **MAURER_PONTIL)(
        claim="|p̃_j − p_j| ≤ √((2V_j/n)log(4d/δ)) + 7/(3(n−1))·log(4d/δ) for all j, w.p. ≥ 1−δ/2",
        latex=r"|\tilde p_j-p_j| \le \sqrt{\tfrac{2V_j}{n}\log\tfrac{4d}\delta}"
        r"+\tfrac{7}{3(n-1)}\log\tfrac{4d}\delta\quad\forall j",
        source="M25 (11)",
        failure=0.5,
    ),
    inception.INFORMATION("m25.optimistic-entropy", inception.optimistic_entropy, **MAURER_PONTIL)(
        claim="H(p) ≤ ℰ(Clip_{1/e}(p̃, ε)), ε_j of m25.marginal-class, w.p. ≥ 1−δ/2",
        latex=r"H(p) \le \mathcal E(\operatorname{Clip}_{1/e}(\tilde p,\varepsilon))",
        source="M25 Lemma 10, O24 Lemma B.2",
        failure=0.5,
    ),
    inception.INCEPTION("m25.is-bound", inception.m25_log_bound, **MAURER_PONTIL)(
        claim="log IS ≤ ℰ(Clip(p̃,ε)) − H̄ + √((2V_H/n)log(4d/δ)) + (7 log d)/(3(n−1))·log(4d/δ)",
        latex=r"\log\mathrm{IS} \le \mathcal E(\operatorname{Clip}_{1/e}(\tilde p,\varepsilon))"
        r"-\bar H+\sqrt{\tfrac{2V_H}{n}\log\tfrac{4d}\delta}"
        r"+\tfrac{7\log d}{3(n-1)}\log\tfrac{4d}\delta",
        source="M25 Theorem 2 (13)",
    ),
    inception.INCEPTION("m25.is-naive-bound", inception.m25_naive_log_bound, **MAURER_PONTIL)(
        claim="the bound of M25 (13) with V_j = 1 and V_H = (log d)²",
        latex=r"\log\mathrm{IS} \le \text{(13) with } V_j=1,\;V_H=(\log d)^2",
        source="M25 Appendix C.4",
    ),
    ineq.VISIT_SUM("m25.visit-sum-power", ineq.power_picks, base=2.0)(
        claim="Σ_t n_t^{−α} ≤ (2^α/(b^α(1−α))) Σ_g N_g(T)^{1−α}",
        latex=r"\sum_t n_t^{-\alpha} \le"
        r" \tfrac{2^\alpha}{b^\alpha(1-\alpha)}\sum_g N_g(T)^{1-\alpha}",
        source="M25 Appendix A.2",
    ),
    ineq.HARMONIC("m25.visit-sum-log", ineq.log_picks, factor=2.0)(
        claim="Σ_t 1/n_t ≤ (2/b) Σ_g log N_g(T)",
        latex=r"\sum_t n_t^{-1} \le \tfrac2b\sum_g\log N_g(T)",
        source="M25 Appendix A.2",
    ),
    ineq.PICKS_POWER("m25.visit-total-power", ineq.horizon_power, factor=1.0)(
        claim="Σ_g N_g(T)^{1−α} ≤ G^α T^{1−α}, N_g(T) picks",
        latex=r"\sum_g N_g(T)^{1-\alpha} \le G^\alpha T^{1-\alpha}",
        source="M25 Appendix A.2, second inequality",
    ),
    ineq.PICKS_LOG("m25.visit-total-log", ineq.horizon_log, factor=1.0)(
        claim="Σ_g log N_g(T) ≤ G log T, N_g(T) picks",
        latex=r"\sum_g\log N_g(T) \le G\log T",
        source="M25 Appendix A.2, second inequality",
    ),
    ineq.COUNTED("m25.visit-sum-power-as-counted", ineq.power_picks, base=2.0)(
        claim="Σ_t n_t^{−α} ≤ (2^α/(b^α(1−α))) Σ_g N_g(T)^{1−α}, n_t images at the"
        " beginning of step t",
        latex=r"\sum_t n_t^{-\alpha} \le"
        r" \tfrac{2^\alpha}{b^\alpha(1-\alpha)}\sum_g N_g(T)^{1-\alpha},\quad n_t=N+b(k-1)",
        source="M25 Appendix A.2, n_t as that proof defines it",
    ),
    rates.REGRET("m25.fd-ucb-regret", rates.order, exponent=0.75)(
        claim="regret of FD-UCB is Õ(T^{3/4}) in the number of steps",
        latex=r"\operatorname{Regret}(T) = \tilde O(T^{3/4})",
        source="M25 Theorem 3",
        assumptions=on.any_law("Gaussian features"),
    ),
    rates.REGRET("m25.is-ucb-regret", rates.order, exponent=0.5)(
        claim="regret of IS-UCB is Õ(√T) in the number of steps",
        latex=r"\operatorname{Regret}(T) = \tilde O(\sqrt T)",
        source="M25 Theorem 6",
        assumptions=on.any_law("posteriors on the simplex"),
    ),
)
