"""The settings of the couplet task."""

from __future__ import annotations

from dataclasses import dataclass

from paddle_dialog.config.schema import ExperimentConfig


@dataclass
class CoupletConfig(ExperimentConfig):
    """A couplet recipe; nothing beyond what all tasks share yet."""
