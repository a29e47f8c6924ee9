"""Statements printed in C20, on the bias of FID and IS and what removes it."""

from __future__ import annotations

from genbounds.bounds import _inequalities as ineq
from genbounds.bounds import _rates as rates
from genbounds.bounds._assumptions import any_law

_FEATURES = any_law("features with four moments")
_POOLS = any_law("pools of more than 5,000 samples")
_LATENT = any_law("generators driven by normal latent variables")
_POSTERIORS = any_law("posteriors on the simplex")
_FUNCTIONS = any_law("functions of bounded Hardy–Krause variation")

STATEMENTS = (
    ineq.INTEGRAL("c20.koksma-hlawka", ineq.koksma_hlawka, factor=1.0, faces=1.0)(
        claim="|I − Î| ≤ V[f] D*_N, V of Hardy and Krause, D*_N the star discrepancy",
        latex=r"|I-\hat I| \le V[f]\,D^*_N",
        source="C20 (9)",
    ),
    rates.BIAS("c20.fid-bias", rates.order, exponent=-1.0)(
        claim="E FD_N = FD + K/N + O(N⁻²), K depends on the generator",
        latex=r"\mathbb E\,\mathrm{FD}_N = \mathrm{FD}+\tfrac KN+O(N^{-2})",
        source="C20 (6)",
        assumptions=_FEATURES,
    ),
    rates.VARIANCE("c20.fid-variance", rates.order, exponent=-1.0)(
        claim="Var FD_N = K₁/N + O(N⁻²)",
        latex=r"\operatorname{Var}\mathrm{FD}_N = \tfrac{K_1}{N}+O(N^{-2})",
        source="C20 (8)",
        assumptions=_FEATURES,
    ),
    rates.BIAS("c20.is-bias", rates.leading_order, exponent=-1.0, lead=0.5)(
        claim="E log IS_N = log IS − (1/2N) Σ_j Var(p_j)/p_j + O(N⁻²)",
        latex=r"\mathbb E\log\mathrm{IS}_N = \log\mathrm{IS}"
        r"-\tfrac1{2N}\sum_j\tfrac{\operatorname{Var}p_j}{p_j}+O(N^{-2})",
        source="C20 (13), multiclass",
        assumptions=_POSTERIORS,
    ),
    rates.BIAS("c20.rank-flip", rates.order, exponent=-1.0)(
        claim="two generators and an N exist with FD_a < FD_b but E FD_{a,N} > E FD_{b,N}",
        latex=r"\exists\,a,b,N:\;\mathrm{FD}_a<\mathrm{FD}_b,\;"
        r"\mathbb E\,\mathrm{FD}_{a,N}>\mathbb E\,\mathrm{FD}_{b,N}",
        source="C20, on (6)",
        assumptions=_FEATURES,
    ),
    rates.BIAS("c20.fid-infinity", ineq.ratio, ratio=0.1)(
        claim="FID∞, the regression of FD_N on 1/N at 15 sizes evenly spaced in N from 5,000 to the"
        " pool, read at 0, of subsets drawn without replacement, is effectively unbiased: at"
        " most a tenth of the pool's own bias is left",
        latex=r"|\mathbb E\,\mathrm{FD}_\infty - \mathrm{FD}| \le \tfrac1{10}"
        r"|\mathbb E\,\mathrm{FD}_N - \mathrm{FD}|",
        source="C20 Algorithm 1",
        repairs="c20.fid-infinity-with-replacement",
        assumptions=_POOLS,
    ),
    rates.BIAS("c20.fid-infinity-with-replacement", ineq.ratio, ratio=0.1)(
        claim="FID∞ as above, of subsets drawn from the pool with replacement, is effectively"
        " unbiased",
        latex=r"|\mathbb E\,\mathrm{FD}_\infty - \mathrm{FD}| \le \tfrac1{10}"
        r"|\mathbb E\,\mathrm{FD}_N - \mathrm{FD}|",
        source="C20 Section 4.3, as the text says",
        assumptions=_POOLS,
    ),
    rates.RATIO("c20.spacing", ineq.ratio, ratio=1.0)(
        claim="sizes evenly spaced in N give a better FD∞ than sizes evenly spaced in 1/N",
        latex=r"\operatorname{MSE}(\text{even in }N) \le \operatorname{MSE}(\text{even in }1/N)",
        source="C20, on extrapolation to FID∞",
        assumptions=_FEATURES,
    ),
    rates.RATIO("c20.sobol", ineq.ratio, ratio=1.0)(
        claim="scrambled Sobol points mapped to normals give FD_N and IS_N of lower variance"
        " than iid",
        latex=r"\operatorname{Var}_{\text{Sobol}} \le \operatorname{Var}_{\text{iid}}",
        source="C20 Table 1",
        assumptions=_LATENT,
    ),
    rates.BIAS("c20.sobol-mean", ineq.ratio, ratio=1.0)(
        claim="scrambled Sobol points mapped to normals always give better means: E FD_N no higher"
        " and E log IS_N no lower than iid",
        latex=r"\mathbb E\,\mathrm{FD}_N^{\text{Sobol}} \le \mathbb E\,\mathrm{FD}_N^{\text{iid}},"
        r"\;\mathbb E\log\mathrm{IS}_N^{\text{Sobol}} \ge \mathbb E\log\mathrm{IS}_N^{\text{iid}}",
        source="C20 Table 1, its caption",
        assumptions=_LATENT,
    ),
    rates.INTEGRAL("c20.sobol-rate", rates.order, exponent=-1.0)(
        claim="scrambled Sobol points: |I − Î_N| = O((log N)^d/N) for functions of bounded"
        " variation, E Î_N = I",
        latex=r"|I-\hat I_N| = O\bigl((\log N)^dN^{-1}\bigr),\quad \mathbb E\hat I_N = I",
        source="C20 (9), the rate below it",
        assumptions=_FUNCTIONS,
    ),
)
