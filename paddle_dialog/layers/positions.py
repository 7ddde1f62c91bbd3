"""Position vectors, sinusoidal and learned."""

from __future__ import annotations

import paddle
from paddle import Tensor, nn

from paddle_dialog.layers.sinusoids import sinusoids


class Positions(nn.Layer):
    """A vector for each position, the rows of `table` [max_length, width]."""

    table: Tensor

    def forward(self, length: int, offset: int = 0) -> Tensor:
        """Return the vectors of positions offset to offset + length - 1.

        Args:
            length: T, number of positions.
            offset: first position (steps already decoded).

        Returns:
            float32 [1, T, width].

        Raises:
            ValueError: offset + length exceeds max_length.
        """
        max_length = self.table.shape[0]
        if offset < 0 or offset + length > max_length:
            raise ValueError(
                f"positions {offset} to {offset + length} (length {length}) are asked for, "
                f"but there are only {max_length} (max_length)"
            )
        return self.table[offset : offset + length].unsqueeze(0)  # [1, T, width]


class SinusoidalPositions(Positions):
    """Fixed position vectors, see `sinusoids`; no parameter, nothing in the state dict.

    Args:
        max_length: longest sequence served.
        width: vector size.
    """

    def __init__(self, *, max_length: int, width: int) -> None:
        super().__init__()
        table = paddle.to_tensor(sinusoids(max_length=max_length, width=width))
        self.register_buffer("table", table, persistable=False)


class LearnedPositions(Positions):
    """Position vectors trained with the model (Gehring et al. 2017, section 3.1), N(0, 1/width) at first.

    Args:
        max_length: longest sequence served.
        width: vector size.
    """

    def __init__(self, *, max_length: int, width: int) -> None:
        super().__init__()
        self.weight = self.create_parameter(
            [max_length, width], default_initializer=nn.initializer.Normal(0.0, width**-0.5)
        )

    @property
    def table(self) -> Tensor:
        """The parameter."""
        return self.weight
