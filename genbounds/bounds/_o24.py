"""Statements printed in O24, on the bandits FID-UCB and IS-UCB."""

from __future__ import annotations

from genbounds.bounds import _assumptions as on
from genbounds.bounds import _frechet as fd
from genbounds.bounds import _inception as inception
from genbounds.bounds import _inequalities as ineq
from genbounds.bounds import _means as means
from genbounds.bounds import _rates as rates
from genbounds.bounds._inception import MAURER_PONTIL

# Constants of the parts of a bonus: of the covariance by its rank, of Tr Σ̂ − Tr Σ, of ‖μ̂−μ‖.
_RANK = {"lead": 20.0, "rank": 4.0}
_TRACE = {"perturbation": 8.0, "trace_root": 8.0, "trace_linear": 0.0, "trace_union": 6.0}
_RANKED = {"rank_lead": 20.0, "rank_rank": 4.0, "rank_union": 3.0}
_MEAN = {"mean_lead": 2.0, "mean_inner": 32.0, "mean_union": 24.0, "mean_power": 0.25}
_BONUS = {**_TRACE, **_RANKED, **_MEAN}
_NAIVE = {"mean_factor": 1.0, "mean_union": 6.0, "rank_tail": 0.5, "rank_union": 6.0}
_ESTIMATES = {"truncation": 0.05, "mean_gap": 0.5, "operator_slack": 1.0, "trace_factor": 1.0}

STATEMENTS = (
    means.GAUSSIAN_MEAN("o24.gaussian-mean", means.gaussian_mean, factor=0.5, union=2.0)(
        claim="|X̄−μ| ≤ √(σ²/(2n) · log(2/δ))",
        latex=r"|\bar X-\mu| \le \sqrt{\tfrac{\sigma^2}{2n}\log\tfrac{2}{\delta}}",
        source="O24 Lemma E.1",
    ),
    means.UNIT_MEAN("o24.hoeffding", means.hoeffding, factor=0.5)(
        claim="E Z − Z̄ ≤ √(log(1/δ)/(2n))",
        latex=r"\mathbb{E}Z-\bar Z \le \sqrt{\tfrac{1}{2n}\log\tfrac{1}{\delta}}",
        source="O24 Lemma E.2",
    ),
    means.UNIT_MEAN("o24.bennett", means.bennett, root=2.0, linear=1.0 / 3.0)(
        claim="E Z − Z̄ ≤ √(2 Var(Z) log(1/δ)/n) + log(1/δ)/(3n)",
        latex=r"\mathbb{E}Z-\bar Z \le \sqrt{\tfrac{2\operatorname{Var}(Z)}{n}\log\tfrac1\delta}"
        r" + \tfrac{1}{3n}\log\tfrac1\delta",
        source="O24 Lemma E.3",
    ),
    means.NORMAL_SQUARES("o24.chi-square-mean", means.root_log, factor=8.0, union=2.0)(
        claim="|n⁻¹ΣZ_i² − 1| ≤ √((8/n) log(2/δ))",
        latex=r"\Bigl|\tfrac1n\sum_i Z_i^2-1\Bigr| \le \sqrt{\tfrac8n\log\tfrac2\delta}",
        source="O24 Lemma E.5",
    ),
    means.SQUARED_NORMAL("o24.squared-mean", means.root_log_over_n, factor=32.0, union=2.0)(
        claim="(n⁻¹Σz_i)² ≤ √((32/n²) log(2/δ))",
        latex=r"\Bigl(\tfrac1n\sum_i z_i\Bigr)^2 \le \sqrt{\tfrac{32}{n^2}\log\tfrac2\delta}",
        source="O24 Lemma E.10",
    ),
    means.NORMAL_PRODUCT("o24.product-of-means", means.root_log_over_n, factor=8.0, union=4.0)(
        claim="|z̄·ū| < (1/n) √(8 log(4/δ))",
        latex=r"|\bar z\,\bar u| < \tfrac1n\sqrt{8\log\tfrac4\delta}",
        source="O24 Lemma E.11",
    ),
    means.GAUSSIAN_NORM("o24.naive-mean-norm", means.naive_mean_norm, factor=1.0, union=2.0)(
        claim="‖μ̂−μ‖ ≤ σ √((d/n) log(2d/δ)), σ² = max_i Σ_ii",
        latex=r"\|\hat\mu-\mu\| \le \sigma\sqrt{\tfrac dn\log\tfrac{2d}{\delta}},"
        r"\quad \sigma^2=\max_i\Sigma_{ii}",
        source="O24 Appendix D.3",
    ),
    means.GAUSSIAN_NORM(
        "o24.mean-norm", means.absolute_sum_mean_norm, lead=2.0, inner=32.0, union=24.0, power=0.25
    )(
        claim="‖μ̂−μ‖ ≤ √(2ℐ/n) · (32 log(24d/δ))^{1/4}, ℐ = Σ_jl |Σ_jl|, w.p. ≥ 1−δ/3",
        latex=r"\|\hat\mu-\mu\| \le \sqrt{\tfrac{2\mathcal I}{n}}"
        r"\Bigl(32\log\tfrac{24d}{\delta}\Bigr)^{1/4},\quad \mathcal I=\sum_{jl}|\Sigma_{jl}|",
        source="O24 Lemma A.2 (22)",
        failure=1.0 / 3.0,
    ),
    means.RAW("o24.covariance-dimension", means.dimension, tail=0.5, union=2.0)(
        claim="‖Σ̂−Σ‖ ≤ ‖Σ‖(2√(d/n) + 2ε + (√(d/n)+ε)²), ε = √(log(2/δ)/(2n)), Σ̂ = n⁻¹Σxxᵀ",
        latex=r"\|\hat\Sigma-\Sigma\| \le \|\Sigma\|\Bigl(2\sqrt{\tfrac dn}+2\varepsilon"
        r"+\bigl(\sqrt{\tfrac dn}+\varepsilon\bigr)^2\Bigr),\quad"
        r" \varepsilon=\sqrt{\tfrac{1}{2n}\log\tfrac2\delta}",
        source="O24 Lemma E.6",
    ),
    means.RAW_BY_RANK(
        "o24.covariance-effective-rank", means.effective_rank_variance, **_RANK, union=1.0
    )(
        claim="‖n⁻¹ΣXXᵀ − Σ‖ ≤ 20σ²‖Σ‖ √((4r(Σ)+log(1/δ))/n), σ² = max_i Σ_ii",
        latex=r"\Bigl\|\tfrac1n\sum_i X_iX_i^\top-\Sigma\Bigr\| \le"
        r" 20\sigma^2\|\Sigma\|\sqrt{\tfrac{4r(\Sigma)+\log(1/\delta)}{n}}",
        source="O24 Lemma E.7 as used in (29)",
    ),
    means.RAW_BY_RANK(
        "o24.covariance-sub-gaussian", means.effective_rank_operator, **_RANK, union=1.0
    )(
        claim="‖n⁻¹ΣXXᵀ − Σ‖ ≤ 20σ²‖Σ‖ √((4r(Σ)+log(1/δ))/n), X ∈ SG(σ²): σ² = ‖Σ‖ if Gaussian",
        latex=r"\Bigl\|\tfrac1n\sum_i X_iX_i^\top-\Sigma\Bigr\| \le"
        r" 20\sigma^2\|\Sigma\|\sqrt{\tfrac{4r(\Sigma)+\log(1/\delta)}{n}},"
        r"\quad\sigma^2=\|\Sigma\|",
        source="O24 Lemma E.7 as printed",
    ),
    means.BY_RANK("o24.covariance", means.centred_variance, **_RANK, union=3.0)(
        claim="‖Σ−Σ̂‖ ≤ 20σ²‖Σ‖√((4r(Σ)+log(3/δ))/n) + ‖μ̂−μ‖²",
        latex=r"\|\Sigma-\hat\Sigma\| \le"
        r" 20\sigma^2\|\Sigma\|\sqrt{\tfrac{4r(\Sigma)+\log(3/\delta)}{n}} + \|\hat\mu-\mu\|^2",
        source="O24 Lemma A.2 (23)",
    ),
    means.COVARIANCE("o24.naive-covariance", means.naive_covariance, tail=0.5, union=2.0)(
        claim="‖Σ̂−Σ‖ ≤ ‖μ̂−μ‖² + ‖Σ‖(2√(d/n) + 2ε + (√(d/n)+ε)²), ε = √(log(2/δ)/(2n))",
        latex=r"\|\hat\Sigma-\Sigma\| \le \|\hat\mu-\mu\|^2+\|\Sigma\|\Bigl(2\sqrt{\tfrac dn}"
        r"+2\varepsilon+\bigl(\sqrt{\tfrac dn}+\varepsilon\bigr)^2\Bigr),\quad"
        r" \varepsilon=\sqrt{\tfrac{1}{2n}\log\tfrac2\delta}",
        source="O24 Appendix D.3",
    ),
    fd.DISTANCE("o24.fd-decomposition", fd.o24_decomposition, **_TRACE)(
        claim="|FD_n − FD| ≤ (‖μ̂−μ‖ + 2‖μ−μ_r‖)‖μ̂−μ‖ + Tr[Σ_r^{1/2}]√(8‖Σ−Σ̂‖)"
        " + Tr(Σ)√((8/n)log(6d/δ)) + ‖μ−μ̂‖(‖μ−μ̂‖ + (2/n)Σ‖f(x_i)−μ̂‖), w.p. ≥ 1−δ/3",
        latex=r"|\mathrm{FD}_n-\mathrm{FD}| \le (\|\hat\mu-\mu\|+2\|\mu-\mu_r\|)\|\hat\mu-\mu\|"
        r"+\operatorname{Tr}[\Sigma_r^{1/2}]\sqrt{8\|\Sigma-\hat\Sigma\|}"
        r"+\operatorname{Tr}(\Sigma)\sqrt{\tfrac8n\log\tfrac{6d}\delta}"
        r"+\|\mu-\hat\mu\|\Bigl(\|\mu-\hat\mu\|+\tfrac2n\sum_i\|f(x_i)-\hat\mu\|\Bigr)",
        source="O24 Theorem A.1 (16)",
        failure=1.0 / 3.0,
    ),
    fd.BONUS("o24.fd-bonus", fd.o24_bonus, **_BONUS)(
        claim="FD_n − FD ≤ C_n√(2ℐ/n)(32 log(24d/δ))^{1/4} + Tr[Σ]√((8/n)log(6d/δ))"
        " + Tr[Σ_r^{1/2}]√(8(20σ²‖Σ‖√((4r(Σ)+log(3/δ))/n) + (2ℐ/n)√(32 log(24d/δ))))",
        latex=r"\mathrm{FD}_n-\mathrm{FD} \le"
        r" C_n\sqrt{\tfrac{2\mathcal I}{n}}\Bigl(32\log\tfrac{24d}\delta\Bigr)^{1/4}"
        r"+\operatorname{Tr}[\Sigma]\sqrt{\tfrac8n\log\tfrac{6d}\delta}"
        r"+\operatorname{Tr}[\Sigma_r^{1/2}]\sqrt{8\Bigl(20\sigma^2\|\Sigma\|"
        r"\sqrt{\tfrac{4r(\Sigma)+\log(3/\delta)}{n}}"
        r"+\tfrac{2\mathcal I}{n}\sqrt{32\log\tfrac{24d}\delta}\Bigr)}",
        source="O24 Theorem 5.1 (7)",
    ),
    fd.BONUS("o24.fd-naive-bonus", fd.o24_naive_bonus, **_TRACE, **_NAIVE)(
        claim="FD_n − FD ≤ C_n σ√((d/n)log(6d/δ)) + Tr[Σ]√((8/n)log(6d/δ))"
        " + Tr[Σ_r^{1/2}]√(8(‖Σ‖(2√(d/n)+2ε+(√(d/n)+ε)²) + (dσ²/n)log(6d/δ))),"
        " ε = √(log(6/δ)/(2n))",
        latex=r"\mathrm{FD}_n-\mathrm{FD} \le C_n\sigma\sqrt{\tfrac dn\log\tfrac{6d}\delta}"
        r"+\operatorname{Tr}[\Sigma]\sqrt{\tfrac8n\log\tfrac{6d}\delta}"
        r"+\operatorname{Tr}[\Sigma_r^{1/2}]\sqrt{8\Bigl(\|\Sigma\|\bigl(2\sqrt{\tfrac dn}"
        r"+2\varepsilon+(\sqrt{\tfrac dn}+\varepsilon)^2\bigr)"
        r"+\tfrac{d\sigma^2}{n}\log\tfrac{6d}\delta\Bigr)}",
        source="O24 (32)",
    ),
    fd.BONUS("o24.fd-bonus-plug-in", fd.o24_plugin_bonus, **_BONUS, **_ESTIMATES)(
        claim="the bonus of O24 (7) with ‖μ−μ_r‖ = 0.5, ‖Σ‖ = max_j σ̂_j² + √(log(1/δ)/n),"
        " ℐ of Σ̂ truncated at τ = 0.05‖Σ_r‖, Tr Σ = Tr[truncate_τ(Σ̂)Σ_r]",
        latex=r"\mathrm{FD}_n-\mathrm{FD} \le \text{(7) with }"
        r"\|\mu-\mu_r\|=\tfrac12,\;\|\Sigma\|=\max_j\hat\sigma_j^2+\sqrt{\tfrac1n\log\tfrac1\delta},"
        r"\;\hat{\mathcal I}=\mathcal I(\operatorname{truncate}_\tau(\hat\Sigma)),"
        r"\;\operatorname{Tr}\Sigma=\operatorname{Tr}[\operatorname{truncate}_\tau(\hat\Sigma)\Sigma_r]",
        source="O24 Appendix D.5 for O24 (7)",
        form="plug-in",
        assumptions=(on.GAUSSIAN, on.DEFINITE_REFERENCE, on.at_least(2)),
    ),
    inception.INCEPTION("o24.is-bound", inception.o24_log_bound, **MAURER_PONTIL)(
        claim="log IS ≤ ℰ(Clip(p̃,ε)) − H̄ + √((2V_H/n)log(4/δ)) + 7C′/(3(n−1))·log(4/δ)",
        latex=r"\log\mathrm{IS} \le \mathcal E(\operatorname{Clip}_{1/e}(\tilde p,\varepsilon))"
        r"-\bar H+\sqrt{\tfrac{2V_H}{n}\log\tfrac{4}\delta}"
        r"+\tfrac{7C'}{3(n-1)}\log\tfrac{4}\delta",
        source="O24 Theorem 6.1 (14)",
    ),
    inception.INCEPTION("o24.is-naive-bound", inception.o24_naive_log_bound, factor=0.5, union=4.0)(
        claim="log IS ≤ ℰ(Clip(p̃,ε)) − H̄ + C′√(log(4/δ)/(2n)), ε_j = √(log(4d/δ)/(2n))",
        latex=r"\log\mathrm{IS} \le \mathcal E(\operatorname{Clip}_{1/e}(\tilde p,\varepsilon))"
        r"-\bar H+C'\sqrt{\tfrac{1}{2n}\log\tfrac4\delta},\quad"
        r" \varepsilon_j=\sqrt{\tfrac{1}{2n}\log\tfrac{4d}\delta}",
        source="O24 (33)",
    ),
    ineq.VISIT_SUM("o24.visit-sum-power", ineq.power_samples, base=2.0)(
        claim="Σ_t n_t^{−α} ≤ ((2b)^α/(1−α)) Σ_g n_g(T)^{1−α}",
        latex=r"\sum_t n_t^{-\alpha} \le \tfrac{(2b)^\alpha}{1-\alpha}\sum_g n_g(T)^{1-\alpha}",
        source="O24 Appendix A.2",
    ),
    ineq.HARMONIC("o24.visit-sum-log", ineq.log_samples, factor=2.0)(
        claim="Σ_t 1/n_t ≤ 2b Σ_g log n_g(T)",
        latex=r"\sum_t n_t^{-1} \le 2b\sum_g\log n_g(T)",
        source="O24 Appendix A.2",
    ),
    ineq.SAMPLES_POWER("o24.visit-total-power", ineq.horizon_power, factor=1.0)(
        claim="Σ_g n_g(T)^{1−α} ≤ G^α T^{1−α}, n_g(T) images",
        latex=r"\sum_g n_g(T)^{1-\alpha} \le G^\alpha T^{1-\alpha}",
        source="O24 Appendix A.2, second inequality",
    ),
    ineq.SAMPLES_LOG("o24.visit-total-log", ineq.horizon_log, factor=1.0)(
        claim="Σ_g log n_g(T) ≤ G log T, n_g(T) images",
        latex=r"\sum_g\log n_g(T) \le G\log T",
        source="O24 Appendix A.2, second inequality",
    ),
    rates.REGRET("o24.fid-ucb-regret", rates.order, exponent=0.75)(
        claim="regret of FID-UCB is Õ(T^{3/4}) in the number of steps",
        latex=r"\operatorname{Regret}(T) = \tilde O(T^{3/4})",
        source="O24 Theorem 5.2",
        assumptions=on.any_law("Gaussian features"),
    ),
    rates.REGRET("o24.is-ucb-regret", rates.order, exponent=0.5)(
        claim="regret of IS-UCB is Õ(√T) in the number of steps",
        latex=r"\operatorname{Regret}(T) = \tilde O(\sqrt T)",
        source="O24 Theorem 6.2",
        assumptions=on.any_law("posteriors on the simplex"),
    ),
)
