"""Sums over the visits of a policy: with b samples a batch, generator g is picked N_g(T) times.

n_g(T) = b N_g(T) is the number of its samples, T = Σ_g N_g(T) the horizon.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from genbounds.bounds._assumptions import BURN_IN, POWER, VISITS
from genbounds.bounds._bound import Constants
from genbounds.bounds._inequalities import inequality
from genbounds.bounds._numbers import log, power
from genbounds.validation import Float


def visits_from(picks: Float, batch: Any, burn_in: Any, alpha: Any) -> Float:
    """Σ_t n_t^{−α}: generator g holds N + b (k−1) samples before its k-th batch."""
    steps = np.arange(int(np.max(picks)))
    samples = np.asarray(burn_in)[..., None, None] + np.asarray(batch)[..., None, None] * steps
    terms = power(samples, -np.asarray(alpha)[..., None, None])
    return np.asarray(np.where(steps < picks[..., None], terms, 0).sum(axis=(-2, -1)))


def visit_sum(picks: Float, batch: Any, alpha: Any) -> Float:
    """Σ_t n_t^{−α}: generator g holds b k samples after its k-th batch."""
    return visits_from(picks, batch, batch, alpha)


def harmonic_visits(picks: Float, batch: Any) -> Float:
    """Σ_t 1/n_t."""
    return visit_sum(picks, batch, np.ones(np.shape(batch)))


def picks_power(picks: Float, alpha: Any) -> Float:
    """Σ_g N_g(T)^{1−α}."""
    return np.asarray(power(picks, 1 - np.asarray(alpha)[..., None]).sum(axis=-1))


def samples_power(picks: Float, batch: Any, alpha: Any) -> Float:
    """Σ_g n_g(T)^{1−α}, n_g(T) = b N_g(T)."""
    return picks_power(np.asarray(batch)[..., None] * picks, alpha)


def picks_log(picks: Float) -> Float:
    """Σ_g log N_g(T)."""
    return np.asarray(log(picks).sum(axis=-1))


def samples_log(picks: Float, batch: Any) -> Float:
    """Σ_g log n_g(T)."""
    return picks_log(np.asarray(batch)[..., None] * picks)


def power_samples(c: Constants, picks: Float, batch: Any, alpha: Any) -> Float:
    """Evaluate ((base b)^α/(1−α)) Σ_g n_g(T)^{1−α}."""
    order = np.asarray(alpha)
    factor = power(c["base"] * np.asarray(batch), order) / (1 - order)
    return np.asarray(factor * samples_power(picks, batch, alpha))


def power_picks(c: Constants, picks: Float, batch: Any, alpha: Any) -> Float:
    """(base^α/(b^α(1−α))) Σ_g N_g(T)^{1−α}."""
    order = np.asarray(alpha)
    factor = power(c["base"] / np.asarray(batch), order) / (1 - order)
    return np.asarray(factor * picks_power(picks, alpha))


def log_samples(c: Constants, picks: Float, batch: Any) -> Float:
    """``factor b Σ_g log n_g(T)``."""
    return np.asarray(c["factor"] * np.asarray(batch) * samples_log(picks, batch))


def log_picks(c: Constants, picks: Float, batch: Any) -> Float:
    """(factor/b) Σ_g log N_g(T)."""
    return np.asarray(c["factor"] / np.asarray(batch) * picks_log(picks))


def offset_log_picks(c: Constants, picks: Float, batch: Any) -> Float:
    """Σ_g (offset + log N_g(T))/b."""
    return np.asarray((c["offset"] + log(picks)).sum(axis=-1) / batch)


def horizon_power(c: Constants, picks: Float, alpha: Any) -> Float:
    """Evaluate factor G^α T^{1−α}, T = Σ_g N_g(T)."""
    order = np.asarray(alpha)
    share = power(picks.shape[-1], order) * power(picks.sum(axis=-1), 1 - order)
    return np.asarray(c["factor"] * share)


def horizon_log(c: Constants, picks: Float) -> Float:
    """Evaluate factor G log T."""
    return np.asarray(c["factor"] * picks.shape[-1] * log(picks.sum(axis=-1)))


def sampled_power(c: Constants, picks: Float, batch: Any, alpha: Any) -> Float:
    """Evaluate factor G^α (bT)^{1−α}."""
    return horizon_power(c, np.asarray(batch)[..., None] * picks, alpha)


def sampled_log(c: Constants, picks: Float, batch: Any) -> Float:
    """Evaluate factor G log(bT)."""
    return horizon_log(c, np.asarray(batch)[..., None] * picks)


HARMONIC = inequality("visits", "harmonic-visits", "Σ_t 1/n_t", harmonic_visits, VISITS)
VISIT_SUM = inequality("visits", "visit-sum", "Σ_t n_t^{−α}", visit_sum, VISITS, POWER)
SAMPLES_POWER = inequality(
    "visits", "samples-power", "Σ_g n_g(T)^{1−α}", samples_power, VISITS, POWER
)
PICKS_POWER = inequality("visits", "picks-power", "Σ_g N_g(T)^{1−α}", picks_power, VISITS, POWER)
SAMPLES_LOG = inequality("visits", "samples-log", "Σ_g log n_g(T)", samples_log, VISITS)
PICKS_LOG = inequality("visits", "picks-log", "Σ_g log N_g(T)", picks_log, VISITS)
COUNTED = inequality(
    "visits-burn-in",
    "visits-from",
    "Σ_t n_t^{−α}, n_t = N + b(k−1)",
    visits_from,
    VISITS,
    POWER,
    BURN_IN,
)
