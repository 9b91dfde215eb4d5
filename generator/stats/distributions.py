"""Normal, Student t and chi-square distributions without a scientific library.

Accurate to about 1e-13; the tests compare with scipy. Formulas: NIST Digital Library of Mathematical Functions (DLMF),
chapter 8.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

_NORMAL = NormalDist()
_TINY = 1e-300
_STEPS = 500


def normal_cdf(x: float) -> float:
    """Return P(Z <= x) of the standard normal distribution.

    It goes by erfc, so that the lower tail keeps its relative accuracy: p-values live there.
    """
    return 0.5 * math.erfc(-x / math.sqrt(2))


def normal_quantile(p: float) -> float:
    """Return the x with P(Z <= x) = p; -inf at p = 0 and +inf at p = 1."""
    if p <= 0:
        return -math.inf
    return math.inf if p >= 1 else _NORMAL.inv_cdf(p)


def _beta_fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function, by Lentz's method (DLMF 8.17.22)."""
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1)
    d = 1.0 / (d if abs(d) > _TINY else _TINY)
    value = d
    for m in range(1, _STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        # Lentz's method. A zero among the partial denominators is replaced by a tiny number so that the recurrence can
        # go on.
        for term in (even, odd):
            d = 1.0 + term * d
            d = 1.0 / (d if abs(d) > _TINY else _TINY)
            c = 1.0 + term / (c if abs(c) > _TINY else _TINY)
            value *= d * c
        if abs(d * c - 1.0) < 1e-16:
            break
    return value


def beta_cdf(a: float, b: float, x: float) -> float:
    """Return the regularized incomplete beta function I_x(a, b), the distribution function of Beta(a, b).

    Args:
        a, b: above 0.
        x: any number; 0 at and below 0, 1 at and above 1.
    """
    if x <= 0 or x >= 1:
        return float(x >= 1)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    # The fraction converges fast below this point; above it I_x(a, b) = 1 - I_{1-x}(b, a) (DLMF 8.17.4).
    if x < (a + 1) / (a + b + 2):
        return math.exp(log_front) * _beta_fraction(a, b, x) / a
    return 1.0 - math.exp(log_front) * _beta_fraction(b, a, 1 - x) / b


def t_cdf(x: float, df: float) -> float:
    """Return P(T <= x) of Student's t distribution.

    Args:
        x: any number, infinite too.
        df: degrees of freedom, above 0.
    """
    if math.isinf(x):
        return float(x > 0)
    if x * x < 1:  # by the middle: df / (df + x^2) would round to 1 and lose x
        half = 0.5 * beta_cdf(0.5, df / 2, x * x / (df + x * x))
        return 0.5 + half if x > 0 else 0.5 - half
    tail = 0.5 * beta_cdf(df / 2, 0.5, df / (df + x * x))
    return 1.0 - tail if x > 0 else tail


@lru_cache(maxsize=4096)
def t_quantile(p: float, df: float) -> float:
    """Return the x with P(T <= x) = p.

    Bisection runs until two neighboring doubles are left. It works in the lower tail, where probabilities keep their
    relative accuracy, and mirrors the result.

    Args:
        p: strictly between 0 and 1.
        df: degrees of freedom, above 0.
    """
    if p == 0.5:
        return 0.0
    tail = min(p, 1 - p)
    low, high = -1.0, 0.0
    while t_cdf(low, df) > tail:
        low *= 2
    while True:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if t_cdf(middle, df) < tail else (low, middle)
    return high if p < 0.5 else -high


def _gamma_series(a: float, x: float) -> float:
    """Return the sum x^k / (a (a + 1) ... (a + k)) over k, for the lower incomplete gamma function (DLMF 8.11.4)."""
    term = total = 1.0 / a
    for k in range(1, _STEPS):
        term *= x / (a + k)
        total += term
        if term < total * 1e-17:
            break
    return total


def _gamma_fraction(a: float, x: float) -> float:
    """Return the continued fraction of the upper incomplete gamma function, by Lentz's method (DLMF 8.9.2)."""
    b = x + 1.0 - a
    d = 1.0 / b
    c, value = 1.0 / _TINY, d
    for k in range(1, _STEPS):
        term, b = k * (a - k), b + 2.0
        d = b + term * d
        d = 1.0 / (d if abs(d) > _TINY else _TINY)
        c = b + term / c
        c = c if abs(c) > _TINY else _TINY
        value *= d * c
        if abs(d * c - 1.0) < 1e-16:
            break
    return value


def chi_square_upper(x: float, df: float) -> float:
    """Return P(X >= x) of the chi-square distribution; the upper tail keeps its relative accuracy.

    Args:
        x: any number; 1 at and below 0.
        df: degrees of freedom, above 0.
    """
    if x <= 0:
        return 1.0
    a, half = df / 2, x / 2
    front = math.exp(a * math.log(half) - half - math.lgamma(a))
    # Below a + 1 the series converges fast, above it the fraction does; each gives the tail that it can give exactly.
    return 1.0 - front * _gamma_series(a, half) if half < a + 1 else front * _gamma_fraction(a, half)
