"""Fields of settings with limits."""

from __future__ import annotations

from dataclasses import field
from typing import Any

Problem = tuple[str, str]  # relative key, what is wrong


def at_least(minimum: float, default: Any) -> Any:
    """A field that must not be below ``minimum``."""
    return field(default=default, metadata={"min": minimum})


def rate(default: float) -> Any:
    """A field between 0 and 1."""
    return field(default=default, metadata={"min": 0.0, "max": 1.0})
