"""Length penalties: what a log-probability is divided by before texts of different lengths are compared."""

from __future__ import annotations

from collections.abc import Callable


def length_divisor(name: str, alpha: float) -> Callable[[int], float]:
    """Return the divisor as a function of the length, non-decreasing for alpha >= 0 (early stopping relies on it).

    `none`: 1. `average`: length ** alpha, the mean log-probability at alpha 1. `gnmt`: ((5 + length) / 6) **
    alpha (Wu et al. 2016, "Google's Neural Machine Translation System", equation 14).

    Args:
        name: `none`, `average` or `gnmt`.
        alpha: strength; 0 is no penalty.

    Returns:
        A function of the length in tokens, the end token counted.

    Raises:
        ValueError: the name is unknown (`SearchOptions` reports it to users first).
    """
    if name == "none":
        return lambda length: 1.0
    if name == "average":
        return lambda length: float(length) ** alpha
    if name == "gnmt":
        return lambda length: ((5.0 + length) / 6.0) ** alpha
    raise ValueError(f"unknown length penalty {name!r}")
