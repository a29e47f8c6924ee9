"""The printed algorithms, straight from the text of the papers.

Written by somebody who had seen the papers alone, none of the code that is tested against it:
equation numbers are theirs. O24 and M25 as in docs/bounds.md. What print leaves open is a keyword,
or said beside it: natural logarithms, covariances with divisor n, variances with n - 1, δ divided
by the number of steps in M25 ("δ ← δ/T") and not in O24, the first of equal scores.
"""

import numpy as np
from scipy.special import entr  # entr(p) = -p log p (natural), entr(0) = 0

KAPPA = np.sqrt(8 / 3)
"""Smallest κ of M25 Lemma 6 for Gaussian rows; the paper prints no value."""


def pick(names, score, best, preferred=None):
    """Return the argmin or argmax (best: min or max) of the scores.

    `preferred`: taken where its score is the best one to rounding; no rule for ties is printed.
    """
    top = best(score[g] for g in names)
    tied = [g for g in names if score[g] == top or np.isclose(score[g], top, rtol=1e-9, atol=0)]
    return preferred if preferred in tied else tied[0]


def moments(x):
    """O24 (5) / M25 below (4): mean and covariance, printed divisor n."""
    n = len(x)
    mu = x.sum(axis=0) / n
    c = x - mu
    return mu, c.T @ c / n


def trace_root(a):
    """Tr[a^(1/2)] of a symmetric positive semi-definite matrix."""
    return np.sqrt(np.clip(np.linalg.eigvalsh(a), 0, None)).sum()


def root(a):
    w, v = np.linalg.eigh(a)
    return (v * np.sqrt(np.clip(w, 0, None))) @ v.T


def frechet(mu, sigma, mean, cov):
    """O24 (4), M25 (4).  (sigma cov) has the eigenvalues of cov^(1/2) sigma cov^(1/2)."""
    r = root(cov)
    return ((mu - mean) ** 2).sum() + np.trace(sigma + cov) - 2 * trace_root(r @ sigma @ r)


def fd_bonus(n, mu, sigma, mean, cov, delta):
    """M25 (6) with (23) and (24); Sigma_g is replaced by its estimate (Remark 1 item 2)."""
    norm = np.abs(np.linalg.eigvalsh(sigma)).max()  # ||Sigma_g||_2
    trace = np.trace(sigma)
    trace_sq = np.trace(sigma @ sigma)
    r = trace / norm if norm > 0 else 0.0  # r(Sigma_g), Theorem 1
    l6 = np.log(6 / delta)
    d_mu = np.sqrt((np.sqrt(8 * trace_sq * l6) + 8 * norm * l6) / n)  # (23)
    d_sigma = 20 * KAPPA**2 * norm * np.sqrt((4 * r + np.log(3 / delta)) / n) + d_mu**2  # (24)
    gap = np.sqrt(((mu - mean) ** 2).sum())  # ||mu_hat - mu_r||_2
    return (
        2 * d_mu * (d_mu + gap)  # (6)
        + trace_root(cov) * np.sqrt(8 * d_sigma)
        + trace * np.sqrt(8 / n * l6)
        + 8 * norm / n * l6
    )


def fd_ucb(draw, names, mean, cov, *, steps, batch, delta, burn_in=0, followed=None):
    """M25 Algorithm 1: the names picked at steps 1..T (burn-in draws are not steps)."""
    delta = delta / steps  # Require
    scores = dict.fromkeys(names, -np.inf)  # line 1
    rows = {g: [] for g in names}
    n = dict.fromkeys(names, 0)
    if burn_in > 0:
        for g in names:  # lines 2-5
            rows[g].append(draw(g, burn_in))
            n[g] = burn_in
    picks = []
    for t in range(steps):  # line 6
        g = pick(names, scores, min, followed and followed[t])  # line 7
        rows[g].append(draw(g, batch))  # lines 8-9
        n[g] = n[g] + batch
        mu, sigma = moments(np.concatenate(rows[g]))  # line 10
        bonus = fd_bonus(n[g], mu, sigma, mean, cov, delta)  # (6)
        scores[g] = -bonus + frechet(mu, sigma, mean, cov)  # line 11, (5)
        picks.append(g)
    return picks


def fid_bonus(x, mu, sigma, mean, cov, delta):
    """O24 (7), every unknown by its sample value."""
    n, d = x.shape
    var = np.diag(sigma).max()  # sigma_g^2, Lemma A.2
    gap = np.sqrt(((mu - mean) ** 2).sum())  # ||mu_g - mu_r||
    info = np.abs(sigma).sum()  # I_g
    norm = np.abs(np.linalg.eigvalsh(sigma)).max()  # ||Sigma_g||_2
    trace = np.trace(sigma)
    r = trace / norm if norm > 0 else 0.0
    l24 = np.log(24 * d / delta)
    d_mu = np.sqrt(2 * info / n) * (32 * l24) ** 0.25  # (22), stands for ||mu_g - mu_hat||
    spread = np.sqrt(((x - mu) ** 2).sum(axis=1)).sum() / n
    c = 2 * (gap + d_mu + spread)  # C_g^n, below (7)
    return (
        c * np.sqrt(2 * info / n) * (32 * l24) ** 0.25  # (7)
        + trace * np.sqrt(8 / n * np.log(6 * d / delta))
        + trace_root(cov)
        * np.sqrt(
            8
            * (
                20 * var * norm * np.sqrt((4 * r + np.log(3 / delta)) / n)
                + 2 * info / n * np.sqrt(32 * l24)
            )
        )
    )


def fid_ucb(draw, names, mean, cov, *, steps, batch, delta, followed=None):
    """O24 Algorithm 1."""
    scores = dict.fromkeys(names, -np.inf)  # line 1
    rows = {g: [] for g in names}
    picks = []
    for t in range(steps):  # line 2
        g = pick(names, scores, min, followed and followed[t])  # line 3
        rows[g].append(draw(g, batch))  # lines 4-5
        x = np.concatenate(rows[g])
        mu, sigma = moments(x)  # line 6
        bonus = fid_bonus(x, mu, sigma, mean, cov, delta)
        scores[g] = frechet(mu, sigma, mean, cov) - bonus  # line 7, (6)
        picks.append(g)
    return picks


def clip(p, eps):
    """O24 (13), M25 (12), element by element."""
    c = np.exp(-1)
    out = np.empty_like(p)
    for j in range(len(p)):
        if abs(c - p[j]) >= eps[j]:
            out[j] = p[j] + np.sign(c - p[j]) * eps[j]
        else:
            out[j] = c
    return out


def is_optimistic(p, delta, *, paper):
    """The exponent of the optimistic IS, O24 (14) / M25 (13), from all posteriors of one arm."""
    n, d = p.shape
    if n < 2:  # n-1 = 0: the printed bound is inf
        return np.inf
    h = entr(p).sum(axis=1)  # H(Y|x^i)
    p_tilde = p.sum(axis=0) / n  # line 5
    mean_entropy = h.sum() / n  # line 5; O24 (10), M25 (8)
    var_p = p.var(axis=0, ddof=1)  # line 7
    var_h = h.var(ddof=1)
    l4d = np.log(4 * d / delta)
    eps = np.sqrt(2 * var_p / n * l4d) + 7 / (3 * (n - 1)) * l4d  # O24 (12), M25 (11)
    entropy = entr(clip(p_tilde, eps)).sum()  # O24 (11), M25 (10)
    last = np.log(4 / delta) if paper == "O24" else l4d  # O24 (14), M25 (13); C' = log d
    slack = np.sqrt(2 * var_h / n * last) + 7 * np.log(d) / (3 * (n - 1)) * last
    return entropy - mean_entropy + slack


def is_ucb(draw, names, *, steps, batch, delta, paper, followed=None):
    """O24 / M25 Algorithm 2, on the logarithm of the score."""
    delta = delta / steps if paper == "M25" else delta
    scores = dict.fromkeys(names, np.inf)  # line 1
    rows = {g: [] for g in names}
    picks = []
    for t in range(steps):  # line 2
        g = pick(names, scores, max, followed and followed[t])  # line 3
        rows[g].append(draw(g, batch))  # line 4
        scores[g] = is_optimistic(np.concatenate(rows[g]), delta, paper=paper)  # lines 5-8
        picks.append(g)
    return picks
