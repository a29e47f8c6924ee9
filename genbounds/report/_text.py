"""Numbers and names as people read them."""

from __future__ import annotations

import math

_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: object, *, digits: int = 4) -> str:
    """Format `value` to so many significant `digits` for people; None and NaN become a dash."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")
    if not isinstance(value, float):
        return str(value)
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    magnitude = abs(value)
    if magnitude and not 1e-4 <= magnitude < 1e7:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        power = str(int(exponent)).translate(_SUPERSCRIPT)
        return f"{mantissa}·10{power}".replace("-", "−")
    decimals = max(0, digits - 1 - (math.floor(math.log10(magnitude)) if magnitude else 0))
    text = f"{value:,.{min(decimals, 8)}f}"
    return text.replace(",", "\N{NARROW NO-BREAK SPACE}").replace("-", "−")


def short(value: float) -> str:
    """Format a `value` known exactly: no digits beyond its own, powers of ten as such."""
    if value > 0 and not 1e-3 <= value < 1e5 and math.log10(value) % 1.0 < 1e-9:
        return "10" + str(round(math.log10(value))).translate(_SUPERSCRIPT)
    return f"{value:,.6g}".replace(",", "\N{NARROW NO-BREAK SPACE}").replace("-", "−")


def percent(value: float) -> str:
    """Format `value` as a percentage: 0.95 -> "95 %"; as many decimals as it has."""
    return f"{100 * value:.6g}\N{NARROW NO-BREAK SPACE}%"


def interval(low: float | None, high: float | None) -> str:
    """Format the interval from `low` to `high` for people."""
    return f"[{number(low)}, {number(high)}]"


def rate(miss: float, low: float, high: float) -> str:
    """Format the measured rate `miss` with its interval (`low`, `high`); if exact, without."""
    return f"{number(miss)} (exact)" if low == high else f"{number(miss)} {interval(low, high)}"


def metric_title(metric: str) -> str:
    """Title of a registered metric; any other name as it is."""
    from genbounds.estimators import metric_names, metric_spec

    return metric_spec(metric).title if metric in metric_names() else metric
