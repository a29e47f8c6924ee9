"""Statements that hold where printed ones do not, or are sharper; derivations: docs/bounds.md."""

from __future__ import annotations

from genbounds.bounds import _assumptions as on
from genbounds.bounds import _frechet as fd
from genbounds.bounds import _inequalities as ineq
from genbounds.bounds import _means as means
from genbounds.bounds import _v24 as vendi
from genbounds.bounds._bound import kind

_RANK = {"lead": 20.0, "kappa_squared": 8.0 / 3.0, "rank": 4.0}
_MEAN = {"mean_root": 2.0, "mean_linear": 2.0}
_BONUS = {"tail": 2.0, "perturbation": 2.0}
_CHI_SQUARE = {"root": 2.0, "linear": 2.0}
_SHARP = {"tail": 2.0, **_CHI_SQUARE, "bias": 0.5}

STATEMENTS = (
    means.GAUSSIAN_MEAN("repaired.gaussian-mean", means.gaussian_mean, factor=2.0, union=2.0)(
        claim="|X̄−μ| ≤ √(2σ² log(2/δ)/n)",
        latex=r"|\bar X-\mu| \le \sqrt{\tfrac{2\sigma^2}{n}\log\tfrac2\delta}",
        source="Chernoff; e.g. Wainwright (2019), High-Dimensional Statistics, (2.10)",
        repairs="o24.gaussian-mean",
    ),
    means.GAUSSIAN_MEAN("repaired.gaussian-mean-exact", means.normal_quantile, sides=2.0)(
        claim="|X̄−μ| ≤ z_{1−δ/2} σ/√n, with equality in probability",
        latex=r"|\bar X-\mu| \le z_{1-\delta/2}\,\sigma/\sqrt n",
        source="The distribution of X̄ itself",
        repairs="o24.gaussian-mean",
    ),
    kind("gaussian-sequence", means.RUNNING_ERROR, on.GAUSSIAN, on.SCALAR)(
        "repaired.gaussian-mean-uniform", means.normal_mixture, tuned_for=100.0, union=2.0
    )(
        claim="|X̄_t−μ| ≤ σ√((t+ρ)(log((t+ρ)/ρ) + 2 log(1/δ)))/t for all t at once, ρ = 100",
        latex=r"\forall t:\;|\bar X_t-\mu| \le \tfrac{\sigma}{t}\sqrt{(t+\rho)\Bigl("
        r"\log\tfrac{t+\rho}{\rho}+2\log\tfrac1\delta\Bigr)},\quad\rho=100",
        source="Robbins (1970): normal mixture and Ville's inequality",
        repairs="o24.gaussian-mean",
    ),
    kind("unit-sequence", means.RUNNING_SHORTFALL, on.UNIT_INTERVAL)(
        "repaired.hoeffding-uniform", means.stitched, lead=1.7, slope=0.72, union=5.2
    )(
        claim="E Z − Z̄_t ≤ 0.85 √((log log(2t) + 0.72 log(5.2/δ))/t) for all t at once",
        latex=r"\forall t:\;\mathbb EZ-\bar Z_t \le 0.85\sqrt{\tfrac1t\bigl("
        r"\log\log(2t)+0.72\log\tfrac{5.2}\delta\bigr)}",
        source="Howard, Ramdas, McAuliffe & Sekhon (2021), Ann. Statist. 49, (1.2): stitching",
        repairs="o24.hoeffding",
    ),
    means.UNIT_MEAN("repaired.betting", means.betting, largest=0.9, bets=6.0)(
        claim="E Z ≤ the largest mean that a mixture of bets on W = 1−Z does not reject at 1/δ",
        latex=r"1-\mathbb EZ \ge \inf\Bigl\{m:\tfrac16\sum_{j=0}^{5}\prod_{i}"
        r"\bigl(1+\theta_j((1-Z_i)/m-1)\bigr)<\tfrac1\delta\Bigr\},\quad \theta_j=0.9\cdot2^{-j}",
        source="Waudby-Smith & Ramdas (2024), JRSS B 86, with fixed stakes",
        repairs="m25.empirical-bernstein",
        setting="unit-betting",
        form="plug-in",
    ),
    means.NORMAL_SQUARES(
        "repaired.chi-square-mean", means.laurent_massart_squares, **_CHI_SQUARE, union=2.0
    )(
        claim="|n⁻¹ΣZ_i² − 1| ≤ 2√(L/n) + 2L/n, L = log(2/δ)",
        latex=r"\Bigl|\tfrac1n\sum_i Z_i^2-1\Bigr| \le 2\sqrt{\tfrac Ln}+\tfrac{2L}{n},"
        r"\quad L=\log\tfrac2\delta",
        source="Laurent & Massart (2000), Lemma 1",
        repairs="o24.chi-square-mean",
    ),
    means.SQUARED_NORMAL("repaired.squared-mean", means.log_over_n, factor=2.0, union=2.0)(
        claim="(n⁻¹Σz_i)² ≤ 2 log(2/δ)/n",
        latex=r"\Bigl(\tfrac1n\sum_i z_i\Bigr)^2 \le \tfrac2n\log\tfrac2\delta",
        source="Chernoff for √n z̄ ~ N(0, 1), squared",
        repairs="o24.squared-mean",
    ),
    means.NORMAL_PRODUCT("repaired.product-of-means", means.log_over_n, factor=1.0, union=2.0)(
        claim="|z̄·ū| ≤ log(2/δ)/n",
        latex=r"|\bar z\,\bar u| \le \tfrac1n\log\tfrac2\delta",
        source="zu = (a²−b²)/2 with independent standard normals a, b; P(a² > 2x) ≤ e^(−x)",
        repairs="o24.product-of-means",
    ),
    means.NORMAL_PRODUCT("repaired.product-of-means-exact", means.product_quantile, share=1.0)(
        claim="|z̄·ū| ≤ q_δ/n, P(|zu| > q_δ) = δ for independent standard normals",
        latex=r"|\bar z\,\bar u| \le q_\delta/n,\quad"
        r" \tfrac2\pi\int_{q_\delta}^\infty K_0 = \delta",
        source="The density K₀(|x|)/π of the product of two standard normals",
        repairs="o24.product-of-means",
    ),
    means.SQUARED_NORMS(
        "repaired.weighted-chi-square", means.laurent_massart, **_CHI_SQUARE, union=2.0
    )(
        claim="|n⁻¹Σ‖X_i‖² − Tr Σ| ≤ 2√(Tr[Σ²] L/n) + 2‖Σ‖L/n, L = log(2/δ)",
        latex=r"\Bigl|\tfrac1n\sum_i\|X_i\|^2-\operatorname{Tr}\Sigma\Bigr| \le"
        r" 2\sqrt{\tfrac{\operatorname{Tr}\Sigma^2 L}{n}}+\tfrac{2\|\Sigma\|L}{n},"
        r"\quad L=\log\tfrac2\delta",
        source="Laurent & Massart (2000), Lemma 1; sharper than M25 Lemma 4",
        repairs="m25.weighted-chi-square",
    ),
    means.GAUSSIAN_NORM("repaired.mean-norm", means.borell_mean_norm, tail=2.0, union=1.0)(
        claim="‖μ̂−μ‖ ≤ √(Tr Σ/n) + √(2‖Σ‖ log(1/δ)/n)",
        latex=r"\|\hat\mu-\mu\| \le \sqrt{\tfrac{\operatorname{Tr}\Sigma}{n}}"
        r" + \sqrt{\tfrac{2\|\Sigma\|}{n}\log\tfrac1\delta}",
        source="Borell–Tsirelson–Ibragimov–Sudakov; Boucheron et al. (2013), Theorem 5.6",
        repairs="m25.mean-norm-as-printed",
    ),
    means.SQUARED_NORM(
        "repaired.mean-norm-squared", means.laurent_massart_mean_norm, **_CHI_SQUARE, union=1.0
    )(
        claim="‖μ̂−μ‖² ≤ (Tr Σ + 2√(Tr[Σ²] L) + 2‖Σ‖L)/n, L = log(1/δ)",
        latex=r"\|\hat\mu-\mu\|^2 \le \tfrac1n\bigl(\operatorname{Tr}\Sigma"
        r"+2\sqrt{\operatorname{Tr}[\Sigma^2]L}+2\|\Sigma\|L\bigr),\quad L=\log\tfrac1\delta",
        source="Laurent & Massart (2000), Lemma 1: the printed bound with Tr Σ put back",
        repairs="m25.mean-norm",
    ),
    means.GAUSSIAN_NORM("repaired.mean-norm-exact", means.exact_mean_norm, share=1.0)(
        claim="‖μ̂−μ‖ ≤ √(q_δ/n), P(Σ_j λ_j Z_j² > q_δ) = δ",
        latex=r"\|\hat\mu-\mu\| \le \sqrt{q_\delta/n},\quad"
        r" \mathbb P\Bigl(\sum_j\lambda_jZ_j^2>q_\delta\Bigr)=\delta",
        source="The distribution of ‖μ̂−μ‖² itself, by a saddle-point contour (Rice 1980)",
        repairs="o24.mean-norm",
    ),
    means.GAUSSIAN_NORM("repaired.naive-mean-norm", means.naive_mean_norm, factor=2.0, union=2.0)(
        claim="‖μ̂−μ‖ ≤ σ √(2(d/n) log(2d/δ)), σ² = max_i Σ_ii",
        latex=r"\|\hat\mu-\mu\| \le \sigma\sqrt{\tfrac{2d}{n}\log\tfrac{2d}{\delta}}",
        source="One Gaussian tail per coordinate and a union bound",
        repairs="o24.naive-mean-norm",
    ),
    means.RAW("repaired.covariance-dimension", means.dimension, tail=2.0, union=2.0)(
        claim="‖Σ̂−Σ‖ ≤ ‖Σ‖(2√(d/n) + 2ε + (√(d/n)+ε)²), ε = √(2 log(2/δ)/n)",
        latex=r"\|\hat\Sigma-\Sigma\| \le \|\Sigma\|\Bigl(2\sqrt{\tfrac dn}+2\varepsilon"
        r"+\bigl(\sqrt{\tfrac dn}+\varepsilon\bigr)^2\Bigr),\quad"
        r" \varepsilon=\sqrt{\tfrac2n\log\tfrac2\delta}",
        source="Wainwright (2019), Theorem 6.1 and Example 6.3",
        repairs="o24.covariance-dimension",
    ),
    means.RAW_BY_RANK(
        "repaired.covariance-effective-rank", means.effective_rank_gaussian, **_RANK, union=1.0
    )(
        claim="‖n⁻¹ΣXXᵀ − Σ‖ ≤ (160/3)‖Σ‖ √((4r(Σ)+log(1/δ))/n)",
        latex=r"\Bigl\|\tfrac1n\sum_i X_iX_i^\top-\Sigma\Bigr\| \le"
        r" \tfrac{160}{3}\|\Sigma\|\sqrt{\tfrac{4r(\Sigma)+\log(1/\delta)}{n}}",
        source="Zhivotovskiy (2024), Theorem 1, with κ² = 8/3: σ² is no factor of it",
        repairs="o24.covariance-effective-rank",
    ),
    means.RAW("repaired.covariance-gordon", means.gordon, offset=1.0, tail=2.0, union=2.0)(
        claim="‖n⁻¹ΣXXᵀ − Σ‖ ≤ ‖Σ‖(2η+η²), η = (√r(Σ) + 1 + √(2 log(2/δ)))/√n, every n",
        latex=r"\Bigl\|\tfrac1n\sum_i X_iX_i^\top-\Sigma\Bigr\| \le \|\Sigma\|(2\eta+\eta^2),\quad"
        r" \eta=\tfrac{1}{\sqrt n}\Bigl(\sqrt{r(\Sigma)}+1+\sqrt{2\log\tfrac2\delta}\Bigr)",
        source="Koltchinskii & Lounici (2017) with constants, by Gordon's comparison:"
        " docs/bounds.md",
        repairs="m25.covariance-effective-rank",
    ),
    means.BY_RANK("repaired.covariance", means.centred_covariance, **_RANK, **_MEAN, union=3.0)(
        claim="‖Σ−Σ̂‖ ≤ (160/3)‖Σ‖√((4r(Σ)+L)/n) + (Tr Σ + 2√(Tr[Σ²]L) + 2‖Σ‖L)/n,"
        " L = log(3/δ), w.p. ≥ 1−2δ/3",
        latex=r"\|\Sigma-\hat\Sigma\| \le"
        r" \tfrac{160}{3}\|\Sigma\|\sqrt{\tfrac{4r(\Sigma)+L}{n}}"
        r"+\tfrac1n\bigl(\operatorname{Tr}\Sigma+2\sqrt{\operatorname{Tr}[\Sigma^2]L}"
        r"+2\|\Sigma\|L\bigr),\quad L=\log\tfrac3\delta",
        source="repaired.covariance-effective-rank and repaired.mean-norm-squared at δ/3 each",
        failure=2.0 / 3.0,
        repairs="o24.covariance",
    ),
    means.COVARIANCE("repaired.naive-covariance", means.naive_covariance, tail=2.0, union=2.0)(
        claim="‖Σ̂−Σ‖ ≤ ‖μ̂−μ‖² + ‖Σ‖(2√(d/n) + 2ε + (√(d/n)+ε)²), ε = √(2 log(2/δ)/n)",
        latex=r"\|\hat\Sigma-\Sigma\| \le \|\hat\mu-\mu\|^2+\|\Sigma\|\Bigl(2\sqrt{\tfrac dn}"
        r"+2\varepsilon+\bigl(\sqrt{\tfrac dn}+\varepsilon\bigr)^2\Bigr),\quad"
        r" \varepsilon=\sqrt{\tfrac2n\log\tfrac2\delta}",
        source="m25.covariance-split with Wainwright (2019), Theorem 6.1",
        repairs="o24.naive-covariance",
    ),
    fd.DISTANCE(
        "repaired.fd-decomposition",
        fd.distance_decomposition,
        **_CHI_SQUARE,
        perturbation=2.0,
        union=6.0,
    )(
        claim="|FD_n − FD| ≤ 2‖μ−μ_r‖‖μ̂−μ‖ + 2√(Tr[Σ²]L/n) + 2‖Σ‖L/n"
        " + 2Tr[Σ_r^{1/2}]√‖Σ̂−Σ‖, L = log(6/δ), w.p. ≥ 1−δ/3",
        latex=r"|\mathrm{FD}_n-\mathrm{FD}| \le 2\|\mu-\mu_r\|\|\hat\mu-\mu\|"
        r"+2\sqrt{\tfrac{\operatorname{Tr}[\Sigma^2]L}{n}}+\tfrac{2\|\Sigma\|L}{n}"
        r"+2\operatorname{Tr}[\Sigma_r^{1/2}]\sqrt{\|\hat\Sigma-\Sigma\|},"
        r"\quad L=\log\tfrac6\delta",
        source="docs/bounds.md: an identity, and Laurent & Massart (2000) for its middle term",
        failure=1.0 / 3.0,
        repairs="o24.fd-decomposition",
        assumptions=(on.GAUSSIAN,),
    ),
    fd.BONUS("repaired.fd-bonus", fd.distance_bonus, **_RANK, **_MEAN, union=4.0, **_BONUS)(
        claim="FD_n − FD ≤ 2‖μ−μ_r‖√(2‖Σ‖L/n) + 2√(Tr[Σ²]L/n) + 2‖Σ‖L/n"
        " + 2Tr[Σ_r^{1/2}]√E, E as in repaired.covariance, L = log(4/δ)",
        latex=r"\mathrm{FD}_n-\mathrm{FD} \le 2\|\mu-\mu_r\|\sqrt{\tfrac{2\|\Sigma\|L}{n}}"
        r"+2\sqrt{\tfrac{\operatorname{Tr}[\Sigma^2]L}{n}}+\tfrac{2\|\Sigma\|L}{n}"
        r"+2\operatorname{Tr}[\Sigma_r^{1/2}]\sqrt{E},\quad L=\log\tfrac4\delta",
        source="docs/bounds.md: four events at δ/4 each",
        repairs="o24.fd-bonus",
        assumptions=(on.GAUSSIAN, on.rank_samples(4.0)),
    ),
    fd.BONUS(
        "repaired.fd-naive-bonus",
        fd.distance_naive_bonus,
        **_MEAN,
        union=4.0,
        raw_union=8.0,
        **_BONUS,
    )(
        claim="FD_n − FD ≤ 2‖μ−μ_r‖√(2‖Σ‖L/n) + 2√(Tr[Σ²]L/n) + 2‖Σ‖L/n + 2Tr[Σ_r^{1/2}]√E,"
        " E from repaired.covariance-dimension at δ/4 plus the bound on ‖μ̂−μ‖², L = log(4/δ)",
        latex=r"\mathrm{FD}_n-\mathrm{FD} \le 2\|\mu-\mu_r\|\sqrt{\tfrac{2\|\Sigma\|L}{n}}"
        r"+2\sqrt{\tfrac{\operatorname{Tr}[\Sigma^2]L}{n}}+\tfrac{2\|\Sigma\|L}{n}"
        r"+2\operatorname{Tr}[\Sigma_r^{1/2}]\sqrt{E},\quad"
        r" \varepsilon=\sqrt{\tfrac2n\log\tfrac8\delta}",
        source="docs/bounds.md: four events at δ/4 each",
        repairs="o24.fd-naive-bonus",
        assumptions=(on.GAUSSIAN,),
    ),
    fd.BONUS("repaired.fd-bonus-sharp", fd.sharp_bonus, **_SHARP, union=3.0)(
        claim="FD_n − FD ≤ 2‖μ−μ_r‖√(2‖Σ‖L/n) + 2√(Tr[Σ²]L/n) + 2‖Σ‖L/n"
        " + 2(R − √(1−1/n)·max{R(1−(d+1)/(2m)) − √(2 Tr[ΣΣ_r]L/m), R(1−√(d/m)−√(2L/m)), 0}),"
        " R = Tr(ΣΣ_r)^{1/2}, m = n−1, L = log(3/δ)",
        latex=r"\mathrm{FD}_n-\mathrm{FD} \le 2\|\mu-\mu_r\|\sqrt{\tfrac{2\|\Sigma\|L}{n}}"
        r"+2\sqrt{\tfrac{\operatorname{Tr}[\Sigma^2]L}{n}}+\tfrac{2\|\Sigma\|L}{n}"
        r"+2R-2\sqrt{\tfrac mn}\max\Bigl\{R\bigl(1-\tfrac{d+1}{2m}\bigr)"
        r"-\sqrt{\tfrac{2\operatorname{Tr}[\Sigma\Sigma_r]L}{m}},\;"
        r"R\bigl(1-\sqrt{\tfrac dm}-\sqrt{\tfrac{2L}{m}}\bigr),\;0\Bigr\},\quad"
        r" R=\operatorname{Tr}(\Sigma\Sigma_r)^{1/2},\;m=n-1,\;L=\log\tfrac3\delta",
        source="docs/bounds.md: order n^(-1/2) where the published bonuses have n^(-1/4)",
        repairs="m25.fd-bonus",
        assumptions=(on.GAUSSIAN, on.at_least(2)),
    ),
    fd.BONUS("repaired.fd-bonus-data-driven", fd.data_driven_bonus, **_SHARP, union=7.0)(
        claim="the bonus of repaired.fd-bonus-sharp with upper limits of R, Tr Σ, ‖Σ‖ and"
        " ‖μ−μ_r‖ from the sample, L = log(7/δ)",
        latex=r"\mathrm{FD}_n-\mathrm{FD} \le 2\bar g\sqrt{\tfrac{2\bar aL}{n}}"
        r"+2\sqrt{\tfrac{\bar a\bar TL}{n}}+\tfrac{2\bar aL}{n}"
        r"+2\bigl(\bar R-\operatorname{Tr}(\hat\Sigma\Sigma_r)^{1/2}\bigr),"
        r"\quad L=\log\tfrac7\delta",
        source="docs/bounds.md: seven events at δ/7 each, nothing unknown in the width",
        repairs="o24.fd-bonus-plug-in",
        form="plug-in",
        assumptions=(on.GAUSSIAN, on.DEFINITE_REFERENCE, on.at_least(2)),
    ),
    vendi.SPECTRUM("repaired.kernel-covariance", vendi.kernel_covariance, tail=1.0)(
        claim="‖λ̂−λ̃‖₂ ≤ ‖C_n−C‖_F ≤ √((1−‖C‖_F²)/n) + √(log(1/δ)/n), every n and δ",
        latex=r"\|\hat\lambda-\tilde\lambda\|_2 \le \|C_n-C\|_F \le"
        r" \sqrt{\tfrac{1-\|C\|_F^2}{n}}+\sqrt{\tfrac1n\log\tfrac1\delta}",
        source="McDiarmid (1989) and Hoffman–Wielandt: docs/bounds.md",
        repairs="v24.eigenvalues",
        assumptions=(on.NORMALISED_KERNEL,),
    ),
    vendi.LANDMARKS("repaired.nystrom", vendi.landmark_width, mean=1.0, tail=1.0)(
        claim="‖λ^Nys−λ̃‖₂ ≤ ρ + (1 + √log(1/δ))/√n, ρ = 1 − n⁻¹Tr K^Nys, any landmarks, every n"
        " and δ",
        latex=r"\|\lambda^{\mathrm{Nys}}-\tilde\lambda\|_2 \le \rho"
        r"+\tfrac{1}{\sqrt n}\Bigl(1+\sqrt{\log\tfrac1\delta}\Bigr),\quad"
        r" \rho=1-\tfrac1n\operatorname{Tr}K^{\mathrm{Nys}}",
        source="K^Nys ⪯ K and Weyl's inequality, with repaired.kernel-covariance: docs/bounds.md",
        repairs="v24.nystrom",
        form="plug-in",
    ),
    vendi.LANDMARKS("repaired.nystrom-classes", vendi.seen_classes, mean=1.0, tail=1.0, unseen=1.0)(
        claim="k(x, y) = [x = y], classes of probabilities p_j: ‖λ^Nys−λ̃‖₂ ≤ (1 + √log(1/δ′))/√n,"
        " δ′ = δ − Σ_j (1−p_j)^t",
        latex=r"\|\lambda^{\mathrm{Nys}}-\tilde\lambda\|_2 \le"
        r" \tfrac{1}{\sqrt n}\Bigl(1+\sqrt{\log\tfrac1{\delta'}}\Bigr),\quad"
        r" \delta'=\delta-\sum_j(1-p_j)^t",
        source="all classes are seen but for Σ(1−p_j)^t, with repaired.kernel-covariance",
        repairs="v24.nystrom-proof",
        assumptions=(on.CLASSES,),
    ),
    kind("spectra", vendi.COLLISION_ERROR, on.NORMALISED_KERNEL, on.at_least(2), limit=vendi.UNIT)(
        "repaired.rke-u-statistic", vendi.collision, union=2.0, pairs=2.0
    )(
        claim="|U_n(k²) − 1/RKE| ≤ √(log(2/δ)/(2⌊n/2⌋)), RKE = VENDI_2 = 1/E k(x,x′)²",
        latex=r"\bigl|U_n(k^2)-\mathrm{RKE}^{-1}\bigr| \le"
        r" \sqrt{\tfrac{1}{2\lfloor n/2\rfloor}\log\tfrac2\delta}",
        source="Hoeffding (1963), Section 5: U-statistics of a kernel in [0, 1]",
        repairs="v24.order-ge-2",
    ),
    kind("spectra", vendi.LOG_SCORE_ERROR, on.NORMALISED_KERNEL, limit=vendi.LOG_DIMENSION)(
        "repaired.vendi-order-one", vendi.fannes_audenaert, tail=1.0, half=0.5
    )(
        claim="|log VENDI_1(x) − log VENDI_1(P)| ≤ T log(d−1) + h(T) up to T = 1−1/d, then log d,"
        " T = ½√d(√((1−‖C‖_F²)/n) + √(log(1/δ)/n))",
        latex=r"\bigl|\log\mathrm{VENDI}_1(x)-\log\mathrm{VENDI}_1(P)\bigr| \le"
        r" T\log(d-1)+h(T),\quad T=\tfrac{\sqrt d}{2}\Bigl("
        r"\sqrt{\tfrac{1-\|C\|_F^2}{n}}+\sqrt{\tfrac1n\log\tfrac1\delta}\Bigr)",
        source="Audenaert (2007), sharp Fannes inequality, with repaired.kernel-covariance",
        repairs="v24.order-one",
    ),
    ineq.HARMONIC("repaired.visit-sum-log", ineq.offset_log_picks, offset=1.0)(
        claim="Σ_t 1/n_t ≤ (1/b) Σ_g (1 + log N_g(T))",
        latex=r"\sum_t n_t^{-1} \le \tfrac1b\sum_g\bigl(1+\log N_g(T)\bigr)",
        source="Harmonic sums: 1 + 1/2 + … + 1/N ≤ 1 + log N",
        repairs="m25.visit-sum-log",
    ),
    ineq.HARMONIC("repaired.visit-sum-log-samples", ineq.offset_log_picks, offset=1.0)(
        claim="Σ_t 1/n_t ≤ (1/b) Σ_g (1 + log(n_g(T)/b))",
        latex=r"\sum_t n_t^{-1} \le \tfrac1b\sum_g\bigl(1+\log\tfrac{n_g(T)}{b}\bigr)",
        source="The same, by n_g(T) = b N_g(T)",
        repairs="o24.visit-sum-log",
    ),
    ineq.COUNTED("repaired.visit-sum-power-burn-in", ineq.power_picks, base=1.0)(
        claim="Σ_t n_t^{−α} ≤ (1/(b^α(1−α))) Σ_g N_g(T)^{1−α}, n_t = N + b(k−1), N ≥ b",
        latex=r"\sum_t n_t^{-\alpha} \le \tfrac{1}{b^\alpha(1-\alpha)}\sum_g N_g(T)^{1-\alpha},"
        r"\quad N\ge b",
        source="N + b(k−1) ≥ bk; 1 + 2^{−α} + … + N^{−α} ≤ N^{1−α}/(1−α)",
        repairs="m25.visit-sum-power-as-counted",
        setting="visits-long-burn-in",
        assumptions=(on.VISITS, on.POWER, on.LONG_BURN_IN),
    ),
    ineq.SAMPLES_POWER("repaired.visit-total-power", ineq.sampled_power, factor=1.0)(
        claim="Σ_g n_g(T)^{1−α} ≤ G^α (bT)^{1−α}",
        latex=r"\sum_g n_g(T)^{1-\alpha} \le G^\alpha (bT)^{1-\alpha}",
        source="Jensen; Σ_g n_g(T) = bT",
        repairs="o24.visit-total-power",
    ),
    ineq.SAMPLES_LOG("repaired.visit-total-log", ineq.sampled_log, factor=1.0)(
        claim="Σ_g log n_g(T) ≤ G log(bT)",
        latex=r"\sum_g\log n_g(T) \le G\log(bT)",
        source="n_g(T) ≤ bT",
        repairs="o24.visit-total-log",
    ),
)
