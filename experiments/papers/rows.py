"""The rows of the map, paper by paper, in the papers' order."""

from __future__ import annotations

from dataclasses import dataclass

BOUNDS = "genbounds/bounds/"
POLICIES = "genbounds/select/policies/"
AUDIT = "genbounds audit"
REGRET = "python -m experiments.selection.regret main"
NOISE = "python -m experiments.selection.noise"
REAL = "python -m experiments.selection.real --reference real.npy --files model_a.npy model_b.npy"
REAL_IS = "python -m experiments.selection.real --metric is --files classes_a.npy classes_b.npy"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One numbered item of a paper.

    Attributes
    ----------
    item, what : str
        Its number, and what it is.
    ids : tuple of str
        Statements of the catalogue; their verdicts are read from the findings.
    file : str
        Where it is, from the root of the repository.
    command : str
        What runs it; empty: the audit of its statements.
    note : str
        Why there is no verdict, or what there is in its place.
    proof, step : str
        The statement in whose proof this is a step, and how the claim of its exact check begins.
    """

    item: str
    what: str
    ids: tuple[str, ...] = ()
    file: str
    command: str = ""
    note: str = ""
    proof: str = ""
    step: str = ""


def stated(item: str, what: str, ids: str, note: str = "") -> Row:
    """Return the row of a statement of the catalogue, which has a file for each paper."""
    names = tuple(ids.split())
    paper = names[0].partition(".")[0]
    return Row(item=item, what=what, ids=names, file=f"{BOUNDS}_{paper}.py", note=note)


def step(item: str, what: str, proof: str, begins: str = "") -> Row:
    """Return the row of a step between the numbered lines of a proof, which is checked exactly."""
    return Row(item=item, what=what, file="genbounds/simulate/auditing/_proofs.py",
               command=f"{AUDIT} {proof}", proof=proof, step=begins or item)  # fmt: skip


def images(item: str, what: str, data: str, here: str, command: str = REGRET) -> Row:
    """Return the row of a figure of real images, which are not here; `here` is in their place."""
    file = "docs/evidence/regret.md"
    note = f"{data} are not here: {here}"
    return Row(item=item, what=what, file=file, command=command, note=note)


_NORMS = "Gaussian arms with the printed norms stand for them"
_NOISE = "digits with a probability of noise of each arm stand for them"
_POSTERIORS = "Dirichlet posteriors, and the digits' generators, stand for them"
_DIALS = "no recorded study has the dial of truncation 0.01 … 0.1 on real images"

O24 = (
    stated("Theorem 5.1 (7)", "optimistic FID", "o24.fd-bonus"),
    Row(item="Algorithm 1", what="FID-UCB", file=POLICIES + "_published.py", command=REGRET,
        note="built: `FidUcb(as_published=True)`, pick by pick; "
        "regret.md has norms refreshed as the sample grows"),
    stated("Theorem 5.2", "regret of FID-UCB", "o24.fid-ucb-regret"),
    stated("Theorem 6.1 (14)", "optimistic IS", "o24.is-bound"),
    Row(item="Algorithm 2", what="IS-UCB", file=POLICIES + "_published.py", command=REGRET,
        note="built: `IsUcb(source='o24')`, pick by pick but for exact ties"),
    stated("Theorem 6.2 (15)", "regret of IS-UCB", "o24.is-ucb-regret",
           "the order in T; the factors G, d, m and Δ of the bound are not fitted"),
    stated("Theorem A.1 (16)", "decomposition of FD", "o24.fd-decomposition"),
    step("(17)", "squared distance of the means", "o24.fd-decomposition"),
    stated("(18), Theorem A.3", "trace of the root", "m25.trace-root-perturbation"),
    step("(19)", "trace of the covariance, split in two", "o24.fd-decomposition"),
    step("(20)", "its largest coordinate, by Lemma E.5", "o24.fd-decomposition"),
    step("(21)", "the spread about either mean", "o24.fd-decomposition"),
    stated("A.2, first inequalities", "visits and samples",
           "o24.visit-sum-power o24.visit-sum-log"),
    stated("A.2, second inequalities", "samples and horizon",
           "o24.visit-total-power o24.visit-total-log"),
    stated("Lemma A.2 (22), (27)", "norm of the mean", "o24.mean-norm",
           "(27) is its square"),
    step("(25)", "norm of the diagonal D, by Lemma E.10", "o24.mean-norm"),
    step("(26)", "largest pair of means, by Lemma E.11", "o24.mean-norm"),
    stated("Lemma A.2 (23)", "covariance", "o24.covariance"),
    stated("(28)", "split of the covariance", "m25.covariance-split",
           "the same inequality in M25"),
    stated("(29)", "Lemma E.7 with σ² = max Σ_ii", "o24.covariance-effective-rank"),
    stated("Theorem B.1", "clipping is optimistic", "m25.clip-optimism"),
    stated("Lemma B.2", "optimistic marginal entropy", "m25.optimistic-entropy"),
    stated("D.3, mean", "norm of the mean by dimension", "o24.naive-mean-norm"),
    stated("D.3, covariance", "covariance by dimension", "o24.naive-covariance"),
    stated("(32)", "naive bonus of FID", "o24.fd-naive-bonus"),
    stated("(33)", "naive bound on IS", "o24.is-naive-bound"),
    stated("D.5", "bonus from estimates", "o24.fd-bonus-plug-in"),
    stated("Lemma E.1", "Gaussian mean", "o24.gaussian-mean"),
    stated("Lemma E.2", "Hoeffding", "o24.hoeffding"),
    stated("Lemma E.3", "Bennett", "o24.bennett"),
    stated("Lemma E.4", "empirical Bernstein", "m25.empirical-bernstein"),
    stated("Lemma E.5", "χ² mean", "o24.chi-square-mean"),
    stated("Lemma E.6", "covariance by dimension", "o24.covariance-dimension"),
    stated("Lemma E.7", "covariance by effective rank", "o24.covariance-sub-gaussian"),
    stated("Lemma E.8", "trace of the root, monotone", "m25.trace-root-monotone"),
    stated("Lemma E.9", "trace of the root, subadditive", "m25.trace-root-subadditive"),
    stated("Lemma E.10", "square of a mean", "o24.squared-mean"),
    stated("Lemma E.11", "product of means", "o24.product-of-means"),
    stated("Lemma E.12", "order of inverses", "m25.inverse-order"),
    images("Figures 1, 5, 6", "FID-UCB, three encoders", "CIFAR-10, ImageNet and FFHQ", _NORMS),
    images("Figures 2, 7", "FID-UCB, truncated models", "FFHQ and AFHQ Dog", _DIALS),
    images("Figure 3", "IS-UCB", "CIFAR-10, ImageNet and FFHQ", _POSTERIORS),
    images("Figures 4, 9", "IS-UCB, truncated models", "FFHQ and AFHQ", _DIALS),
    Row(item="Figure 8", what="images queried by IS-UCB", file="experiments/digits/picks.py",
        command="python -m experiments.digits.picks",
        note="a sheet of the digits' generators, not FFHQ"),
)  # fmt: skip

O24_EARLIER = (
    Row(item="all", what="the earlier text of the same paper", file="docs/bounds.md",
        command=AUDIT + " 'o24.*'",
        note="its Theorems 5.1 to 6.2, A.1 to B.2 and Lemmas E.1 to E.12 are those above"),
)  # fmt: skip

M25 = (
    stated("Theorem 1 (6)", "optimistic FD", "m25.fd-bonus"),
    Row(item="Remark 1", what="bonus from a known norm", file=POLICIES + "_published.py",
        command=AUDIT + " m25.fd-bounded-bonus",
        note="built: `FdUcb(radius=…)`, the bonus of Theorem 5 with Tr Σ and ‖Σ‖ at C²"),
    Row(item="Protocol 1", what="online evaluation and selection", file="genbounds/select/_loop.py",
        command=REGRET, note="built: `gb.select.run`"),
    Row(item="Algorithm 1", what="FD-UCB", file=POLICIES + "_published.py", command=REGRET,
        note="built: `FdUcb(as_published=True)`, pick by pick; regret.md has the "
        "regret of `FdUcb()` and with printed constants, norms refreshed as the sample grows"),
    stated("(11)", "error of the marginal", "m25.marginal-class"),
    stated("Theorem 2 (13)", "optimistic IS", "m25.is-bound"),
    Row(item="Algorithm 2", what="IS-UCB", file=POLICIES + "_published.py", command=REGRET,
        note="built: `IsUcb()`, pick by pick but for exact ties"),
    stated("Theorem 3 (14)", "regret of FD-UCB", "m25.fd-ucb-regret",
           "the order in T"),
    Row(item="(15) to (17)", what="D₁, D₂, D₃", file="experiments/selection/factors.py",
        command="python -m experiments.selection.factors",
        note="constants inside an order; the powers of G, b and D₁ in the regret are fitted in "
        "regret.md"),
    stated("A.2, first inequalities", "visits and picks",
           "m25.visit-sum-power m25.visit-sum-log"),
    stated("A.2, n_t as counted", "visits after a burn-in", "m25.visit-sum-power-as-counted"),
    stated("A.2, second inequalities", "picks and horizon",
           "m25.visit-total-power m25.visit-total-log"),
    stated("Theorem 4 (18)", "decomposition of FD", "m25.fd-decomposition"),
    step("(19)", "squared distance of the means", "m25.fd-decomposition"),
    step("(21)", "trace of the sample covariance", "m25.fd-decomposition"),
    step("(22)", "trace of the covariance, split in two", "m25.fd-decomposition"),
    stated("Lemma 1 (23)", "norm of the mean", "m25.mean-norm-as-printed m25.mean-norm",
           "the second is its square"),
    stated("Lemma 1 (24)", "covariance", "m25.covariance"),
    stated("(25)", "split of the covariance", "m25.covariance-split"),
    stated("(26), Lemma 6 (33)", "covariance by effective rank", "m25.covariance-effective-rank"),
    stated("Theorem 5", "bonus of bounded features", "m25.fd-bounded-bonus"),
    stated("(27)", "decomposition for bounded features", "m25.fd-bounded-decomposition",
           "log(3/δ) as printed; the step before has log(6/δ)"),
    stated("(28)", "norm of the mean, bounded", "m25.bounded-mean-norm"),
    Row(item="(29)", what="covariance of bounded features", file=BOUNDS + "_frechet.py",
        command=AUDIT + " m25.fd-bounded-bonus",
        note="(26) and (28) added, as Δ₂ inside m25.fd-bounded-bonus; no row of its own"),
    stated("(20), Lemma 2 (30)", "trace of the root", "m25.trace-root-perturbation"),
    Row(item="Definitions 1 to 3", what="sub-Gaussian, sub-exponential",
        file=BOUNDS + "_assumptions.py", command=AUDIT + " m25.sub-exponential-mean",
        note="definitions: assumptions of the statements"),
    stated("Lemma 3", "weighted sums of sub-exponential variables", "m25.sub-exponential-sum",
           "on sums of gamma and normal variables"),
    stated("Lemma 4 (31)", "squared norm of a Gaussian", "m25.weighted-chi-square"),
    stated("Lemma 5", "mean of sub-exponential variables", "m25.sub-exponential-mean"),
    stated("Lemma 7", "trace of the root, monotone", "m25.trace-root-monotone"),
    stated("Lemma 8", "trace of the root, subadditive", "m25.trace-root-subadditive"),
    stated("Lemma 9", "order of inverses", "m25.inverse-order"),
    stated("Theorem 6 (36)", "regret of IS-UCB", "m25.is-ucb-regret",
           "the order in T"),
    Row(item="(37)", what="sum over the steps without clipping", file=BOUNDS + "_rates.py",
        command=AUDIT + " m25.is-ucb-regret",
        note="an order inside the proof of Theorem 6, judged with it"),
    stated("Lemma 10", "optimistic marginal entropy", "m25.optimistic-entropy"),
    stated("Lemma 11", "clipping is optimistic", "m25.clip-optimism"),
    stated("Lemma 12", "empirical Bernstein", "m25.empirical-bernstein"),
    stated("C.3", "bonus from estimates", "m25.fd-bonus-plug-in m25.fd-bonus-plug-in-program",
           "θ_ij of Cai & Liu; of the authors' program and of `FdUcb`"),
    stated("C.4, FD", "naive bonus of FD", "m25.fd-naive-bonus"),
    stated("C.4, IS", "naive bound on IS", "m25.is-naive-bound"),
    Row(item="Tables 1 to 3", what="norms of features of three encoders",
        file="experiments/selection/norms.py", command="python -m experiments.selection.norms",
        note="arms are made of the 5,000-image columns; 50 Gaussian rows with those norms stand "
        "beside the 50-image columns: ImageNet and the models' images cannot be had here"),
    images("Figures 1, 5", "FD-UCB on three CIFAR-10 models", "CIFAR-10", _NORMS),
    images("Figures 2, 7, 8", "FD-UCB, three encoders", "CIFAR-10, ImageNet and FFHQ", _NORMS),
    images("Figure 3", "IS-UCB", "CIFAR-10, ImageNet and FFHQ", _POSTERIORS),
    images("Figures 4, 13", "IS-UCB, truncated models", "FFHQ and AFHQ Dog", _DIALS),
    images("Figure 6", "audio, FAD", "Magnatagatune and VGGish (FAD)", _NOISE, NOISE),
    images("Figures 9 to 11", "FD-UCB, truncated models", "FFHQ and AFHQ", _DIALS),
    images("Figure 12", "video and audio",
           "MSR-VTT with I3D (FVD) and Magnatagatune with VGGish (FAD)", _NOISE, NOISE),
    Row(item="Figure 14", what="batch, κ and threshold of FD-UCB", file="docs/evidence/regret.md",
        command="python -m experiments.selection.regret ablation",
        note="on arms with CLIP's norms, not CIFAR-10"),
    Row(item="Figure 15", what="a new model every 200 steps", file="docs/evidence/regret.md",
        command="python -m experiments.selection.regret joining",
        note="on arms with the printed norms, not the models' images"),
)  # fmt: skip

_SOBOL = "python -m experiments.sobol.variance_ratio"
_LATENTS = "python -m experiments.digits.sobol_latents"
_CONVERGENCE = "python -m experiments.digits.convergence"
C20 = (
    Row(item="(1)", what="FID", file="genbounds/estimators/frechet/_distance.py",
        command=_CONVERGENCE, note="a definition: `gb.frechet_distance`"),
    Row(item="(2)", what="Inception score", file="genbounds/estimators/inception.py",
        command=_CONVERGENCE, note="a definition: `gb.inception_score`"),
    Row(item="(3), (4)", what="Monte Carlo and its variance", file="docs/sobol.md",
        command=_SOBOL, note="textbook facts, not claims of the paper"),
    stated("(5) to (7)", "bias of FID_N", "c20.fid-bias"),
    stated("(8)", "variance of FID_N", "c20.fid-variance"),
    stated("(9)", "Koksma–Hlawka", "c20.koksma-hlawka",
           "on products of step functions, whose variation is known; that of an encoder is not"),
    stated("(9), the rate below it", "error of randomised Sobol points", "c20.sobol-rate"),
    stated("(10) to (13)", "bias of IS_N", "c20.is-bias"),
    Row(item="(14), (15)", what="uniform to normal: inverse, Box–Muller",
        file="genbounds/estimators/_sobol.py", command=_SOBOL,
        note="built: `gb.sobol_normal(method=…)`"),
    stated("Section 3.1, Figure 3", "ranks flip", "c20.rank-flip"),
    stated("Algorithm 1", "FID∞ without replacement", "c20.fid-infinity"),
    stated("Section 4.3", "FID∞ with replacement", "c20.fid-infinity-with-replacement"),
    stated("Section 4.3, spacing", "even in N against even in 1/N", "c20.spacing"),
    stated("Table 1", "variance and mean from Sobol points", "c20.sobol c20.sobol-mean",
           "on random networks; the trained GANs of CelebA and ImageNet cannot be had "
           "here. Its own row of BigGAN has a lower IS for Sobol points by Box–Muller (92.89 "
           "against 92.96)"),
    Row(item="Listing 1", what="sampler of normals", file="genbounds/estimators/_sobol.py",
        command=_LATENTS, note="built: `gb.sobol_normal`, `gb.sobol_cache`"),
    Row(item="Figure 1", what="random and Sobol points", file="docs/evidence/sobol.md",
        command=_SOBOL, note="an illustration; the page has the measured gain in its place"),
    Row(item="Figure 2", what="FID against 1/N", file="docs/evidence/experiments.md",
        command=_CONVERGENCE, note="on the digits' GAN; CelebA's and ImageNet's GANs cannot be "
        "had here"),
    *(
        Row(item=f"Figure {number}", what=what, file="experiments/digits/prediction.py",
            command="python -m experiments.digits.prediction", note=note)
        for number, what, note in (
            (4, "lines of one DCGAN", "the lines of Figures 5 and 6 here, as numbers"),
            (5, "predicted FID at 100,000", "at 16,384 from 8,192 images of the digits' GAN"),
            (6, "FID∞, three samplers, two spacings", "on the digits' GAN"),
            (7, "FID∞ of a VAE", "on the digits' VAE, not CelebA"),
            (9, "predicted IS at 100,000", "at 16,384 from 8,192 images of the digits' GAN and "
             "VAE, not BigGAN"),
        )
    ),
    Row(item="Figure 8", what="IS against 1/N", file="docs/evidence/experiments.md",
        command=_CONVERGENCE, note="on the digits' GAN, not BigGAN"),
    Row(item="Figure 10", what="GANs trained with Sobol latents",
        file="docs/evidence/experiments.md", command=_LATENTS,
        note="twelve GANs a sampler on the digits, not CelebA"),
)  # fmt: skip

_VENDI = "python -m experiments.vendi"
_KINETICS = (
    "on known spectra and digits, n to 2,000, and to 20,000 by `experiments.vendi.large`; "
    "ImageNet, FFHQ and Kinetics cannot be had here: with "
    "the features, `genbounds score features.npy --metric vendi`"
)
V24 = (
    Row(item="Definition 1", what="Vendi statistic", file="genbounds/estimators/vendi/_score.py",
        command=_VENDI, note="a definition: `gb.vendi_score`"),
    stated("Theorem 1", "eigenvalues", "v24.eigenvalues"),
    stated("Corollary 1", "α ≥ 2", "v24.order-ge-2"),
    stated("Corollary 2", "1 ≤ α < 2", "v24.order-lt-2 v24.order-one"),
    Row(item="Definition 2", what="truncated statistic",
        file="genbounds/estimators/vendi/_methods.py", command=_VENDI,
        note="a definition: `gb.vendi_score(method=\"truncated\")`"),
    stated("Theorem 2", "truncated", "v24.truncated"),
    stated("Theorem 3(a)", "FKEA", "v24.fkea"),
    stated("Theorem 3(b)", "Nyström", "v24.nystrom-product",
           "a product under the root, which is 0 where λ_r = 0"),
    Row(item="Section 5, Nyström", what="t landmarks, scikit-learn's map",
        file="genbounds/estimators/vendi/_methods.py", command=_VENDI,
        note="`gb.vendi_score(method=\"nystrom\", components=t, landmarks=t)`; the default is 5t "
        "landmarks, nearer to the truncated score"),
    stated("Theorem 3(b), landmarks", "t ≥ r τ log n", "v24.nystrom",
           "with the error of App. A.5, a sum under the root"),
    stated("A.5", "Theorem 3(b) as proved, t ≥ C r log n", "v24.nystrom-proof",
           "C universal, as printed"),
    step("A.5(a), Lemma 2", "the projection, of FKEA's 2t eigenvalues", "v24.fkea", "A.5(a)"),
    stated("Lemma 1", "vector Bernstein", "v24.vector-bernstein"),
    stated("A.1", "Hoffman–Wielandt", "v24.hoffman-wielandt"),
    stated("A.3", "norms in d dimensions", "v24.norm-embedding"),
    stated("Lemma 2", "projection on the simplex", "v24.simplex-projection"),
    Row(item="B.1", what="spread of the scores against n", file="experiments/vendi/spread.py",
        command="python -m experiments.vendi.spread",
        note="in percent, on known spectra and digits, not ImageNet and FFHQ"),
    Row(item="B.2, Figure 6", what="choice of a bandwidth", file="docs/evidence/experiments.md",
        command=_VENDI, note="measured on known spectra and digits"),
    Row(item="Figures 1 and 2", what="convergence, finite and infinite kernels",
        file="docs/evidence/experiments.md", command=_VENDI, note=_KINETICS),
    Row(item="Figure 3", what="scores under truncation", file="docs/evidence/experiments.md",
        command=_VENDI, note="a dial of diversity made here, not StyleGAN3 on FFHQ"),
    Row(item="Figures 4 and 5", what="StyleGAN-XL and StyleGAN3 under truncation",
        file="docs/evidence/experiments.md", command=_VENDI,
        note="a dial of diversity made here, not ImageNet and FFHQ"),
    Row(item="text", what="diversity of a corpus", file="docs/evidence/experiments.md",
        command="python -m experiments.text",
        note="on Python's own reference, not GPT-4's corpus"),
    Row(item="text, curves", what="convergence", file="docs/evidence/experiments.md",
        command="python -m experiments.text.growth",
        note="on Python's own reference, up to 1,120 sentences, by their words; GPT-4's corpus and "
        "text-embedding-3-large cannot be had here"),
)  # fmt: skip

PAPERS = {
    "O24: An Optimism-based Approach to Online Evaluation of Generative Models": O24,
    "O24, its earlier text": O24_EARLIER,
    "M25: A Multi-Armed Bandit Approach to Online Selection and Evaluation of Generative Models":
        M25,
    "C20: Effectively Unbiased FID and Inception Score and where to find them": C20,
    "V24: On the Statistical Complexity of Estimating VENDI Scores from Empirical Data": V24,
}  # fmt: skip
