"""What layers read of the settings of a Transformer; nothing here imports Paddle."""

from __future__ import annotations

from typing import Literal, Protocol


class LayerSizes(Protocol):
    """What the settings of a Transformer of any kind say of its layers."""

    @property
    def width(self) -> int:
        """Model width D."""

    @property
    def num_heads(self) -> int:
        """Attention heads."""

    @property
    def inner_width(self) -> int:
        """Width of the feed-forward layer."""

    @property
    def dropout(self) -> float:
        """Rate on each sublayer's output."""

    @property
    def activation(self) -> Literal["relu", "gelu"]:
        """Between the two maps of the feed-forward layer."""

    @property
    def bias(self) -> bool:
        """Whether the linear maps have one."""


class StackSizes(LayerSizes, Protocol):
    """What settings say of the stack."""

    @property
    def num_layers(self) -> int:
        """Layers in the stack."""
