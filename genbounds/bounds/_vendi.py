"""Printed statements about Vendi scores; VENDI_α^{(1−α)/α} is ‖λ‖_α, the norm of the spectrum."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from genbounds.bounds._assumptions import NORMALISED_KERNEL, VENDI_SAMPLES
from genbounds.bounds._bound import Assumption, Bound, Constants, Facts, Quantity
from genbounds.bounds._deterministic import truncate
from genbounds.validation import Float


def alpha_norm(spectrum: Float, order: float) -> Float:
    """‖λ‖_α over the last axis; α = ∞ is the largest eigenvalue."""
    return np.asarray(np.linalg.norm(spectrum, ord=order, axis=-1))


def _spectrum_error(sample_spectrum: Float, kernel_spectrum: Float) -> Float:
    return np.asarray(np.linalg.norm(sample_spectrum - kernel_spectrum, axis=-1))


def _order_error(sample_spectrum: Float, kernel_spectrum: Float, order: float) -> Float:
    return np.abs(alpha_norm(sample_spectrum, order) - alpha_norm(kernel_spectrum, order))


def _truncated_error(
    sample_spectrum: Float, kernel_spectrum: Float, order: float, kept: int
) -> Float:
    return _order_error(truncate(sample_spectrum, kept), truncate(kernel_spectrum, kept), order)


def _fkea_error(
    fourier_spectrum: Float, kernel_spectrum: Float, order: float, frequencies: int
) -> Float:
    # A kernel of d features has no more than d eigenvalues: with t ≥ d nothing is cut off.
    kept = min(frequencies, kernel_spectrum.shape[-1])
    return _order_error(fourier_spectrum, truncate(kernel_spectrum, kept), order)


def _spectrum_range() -> Any:
    return np.sqrt(2.0)


def _span(d: Any, order: float) -> Float:
    """1 − d^{(1−α)/α}: norms of distributions on d points differ by no more."""
    power = -1.0 if np.isinf(order) else (1.0 - order) / order
    return np.asarray(1.0 - float(d) ** power)


def _truncated_span(kept: Any, order: float) -> Float:
    return _span(kept, order)


SPECTRUM_ERROR = Quantity(name="spectrum-error", text="‖λ̂−λ̃‖₂", function=_spectrum_error)
SPECTRUM_RANGE = Quantity(name="spectrum-range", text="√2", function=_spectrum_range)
ORDER_ERROR = Quantity(name="order-error", text="|‖λ̂‖_α − ‖λ̃‖_α|", function=_order_error)
SPAN = Quantity(name="span", text="1 − d^{(1−α)/α}", function=_span)
TRUNCATED_ERROR = Quantity(
    name="truncated-error", text="|‖λ̂^{(t)}‖_α − ‖λ̃^{(t)}‖_α|", function=_truncated_error
)
TRUNCATED_SPAN = Quantity(name="truncated-span", text="1 − t^{(1−α)/α}", function=_truncated_span)
FKEA_ERROR = Quantity(name="fkea-error", text="|‖λ^{FKEA}‖_α − ‖λ̃^{(t)}‖_α|", function=_fkea_error)


def eigenvalues(c: Constants, n: Any, delta: Any) -> Any:
    """√(factor log(union/δ)/n)."""
    return np.sqrt(c["factor"] / n * np.log(c["union"] / delta))


def order_below_two(c: Constants, n: Any, delta: Any, d: Any, order: Any) -> Any:
    """√(factor d^{2−α} log(union/δ)/n)."""
    return np.sqrt(float(d) ** (2.0 - order)) * eigenvalues(c, n, delta)


def truncated(c: Constants, n: Any, delta: Any, order: Any, kept: Any) -> Any:
    """√(factor max{1, t^{2−α}} log(union/δ)/n)."""
    power = float(kept) ** (2.0 - order)
    return np.sqrt(np.maximum(1.0, power)) * eigenvalues(c, n, delta)


def fkea(c: Constants, n: Any, delta: Any, order: Any, frequencies: Any) -> Float:
    """√(factor max{1, t^{2−α}} log(union/δ)/min{n, t})."""
    power = np.sqrt(np.maximum(1.0, float(frequencies) ** (2.0 - order)))
    return np.asarray(power * eigenvalues(c, np.minimum(n, frequencies), delta))


def _between(low: float, high: float, facts: Facts, n: int, delta: float) -> bool:
    order = facts.get("order", -1.0)
    return bool(low <= order < high or order == high == np.inf)


def _known(name: str, facts: Facts, n: int, delta: float) -> bool:
    return name in facts


def _orders(low: float, high: float, text: str) -> Assumption:
    return Assumption(text=text, predicate=partial(_between, low, high))


def _has(name: str, text: str) -> Assumption:
    return Assumption(text=text, predicate=partial(_known, name))


_ANY_ORDER = _orders(1.0, np.inf, "α ≥ 1")

STATEMENTS = (
    Bound(
        id="v24.eigenvalues",
        claim="‖λ̂−λ̃‖₂ ≤ √(32 log(2/δ)/n)",
        latex=r"\|\hat\lambda-\tilde\lambda\|_2 \le \sqrt{\tfrac{32}{n}\log\tfrac2\delta}",
        source="V24 Theorem 1",
        setting="spectra",
        assumptions=(NORMALISED_KERNEL, VENDI_SAMPLES),
        quantity=SPECTRUM_ERROR,
        constants={"factor": 32.0, "union": 2.0},
        width_function=eigenvalues,
        limit=SPECTRUM_RANGE,
    ),
    Bound(
        id="v24.order-ge-2",
        claim="|‖λ̂‖_α − ‖λ̃‖_α| ≤ √(32 log(2/δ)/n), α ≥ 2",
        latex=r"\bigl|\|\hat\lambda\|_\alpha-\|\tilde\lambda\|_\alpha\bigr| \le"
        r" \sqrt{\tfrac{32}{n}\log\tfrac2\delta},\quad \alpha\ge2",
        source="V24 Corollary 1",
        setting="kernels",
        assumptions=(NORMALISED_KERNEL, VENDI_SAMPLES, _orders(2.0, np.inf, "α ≥ 2")),
        quantity=ORDER_ERROR,
        constants={"factor": 32.0, "union": 2.0},
        width_function=eigenvalues,
        limit=SPAN,
    ),
    Bound(
        id="v24.order-lt-2",
        claim="|‖λ̂‖_α − ‖λ̃‖_α| ≤ √(32 d^{2−α} log(2/δ)/n), 1 ≤ α < 2",
        latex=r"\bigl|\|\hat\lambda\|_\alpha-\|\tilde\lambda\|_\alpha\bigr| \le"
        r" \sqrt{\tfrac{32\,d^{2-\alpha}}{n}\log\tfrac2\delta},\quad 1\le\alpha<2",
        source="V24 Corollary 2",
        setting="kernels",
        assumptions=(NORMALISED_KERNEL, VENDI_SAMPLES, _orders(1.0, 2.0, "1 ≤ α < 2")),
        quantity=ORDER_ERROR,
        constants={"factor": 32.0, "union": 2.0},
        width_function=order_below_two,
        limit=SPAN,
    ),
    Bound(
        id="v24.order-one",
        claim="Corollary 2 at α = 1, the order of the Vendi score itself",
        latex=r"\bigl|\mathrm{VENDI}_1(x)^0-\mathrm{VENDI}_1(P)^0\bigr| \le"
        r" \sqrt{\tfrac{32\,d}{n}\log\tfrac2\delta}",
        source="V24 Corollary 2 at α = 1",
        setting="kernels",
        assumptions=(NORMALISED_KERNEL, VENDI_SAMPLES, _orders(1.0, 1.0 + 1e-12, "α = 1")),
        quantity=ORDER_ERROR,
        constants={"factor": 32.0, "union": 2.0},
        width_function=order_below_two,
        limit=SPAN,
    ),
    Bound(
        id="v24.truncated",
        claim="|‖λ̂^{(t)}‖_α − ‖λ̃^{(t)}‖_α| ≤ √(32 max{1,t^{2−α}} log(2/δ)/n)",
        latex=r"\bigl|\|\hat\lambda^{(t)}\|_\alpha-\|\tilde\lambda^{(t)}\|_\alpha\bigr| \le"
        r" \sqrt{\tfrac{32\max\{1,t^{2-\alpha}\}}{n}\log\tfrac2\delta}",
        source="V24 Theorem 2",
        setting="kernels",
        assumptions=(
            NORMALISED_KERNEL,
            VENDI_SAMPLES,
            _ANY_ORDER,
            _has("kept", "t eigenvalues kept"),
        ),
        quantity=TRUNCATED_ERROR,
        constants={"factor": 32.0, "union": 2.0},
        width_function=truncated,
        limit=TRUNCATED_SPAN,
    ),
    Bound(
        id="v24.fkea",
        claim="|‖λ^{FKEA}‖_α − ‖λ̃^{(t)}‖_α| ≤ √(128 max{1,t^{2−α}} log(3/δ)/min{n,t})",
        latex=r"\bigl|\|\lambda^{\mathrm{FKEA}}\|_\alpha-\|\tilde\lambda^{(t)}\|_\alpha\bigr| \le"
        r" \sqrt{\tfrac{128\max\{1,t^{2-\alpha}\}}{\min\{n,t\}}\log\tfrac3\delta}",
        source="V24 Theorem 3(a)",
        setting="fourier-kernels",
        assumptions=(
            NORMALISED_KERNEL,
            VENDI_SAMPLES,
            _ANY_ORDER,
            _has("frequencies", "shift-invariant kernel, t random frequencies"),
        ),
        quantity=FKEA_ERROR,
        constants={"factor": 128.0, "union": 3.0},
        width_function=fkea,
        limit=SPAN,
    ),
)
