"""Where a token stands in its sequence: sinusoidal and learned position vectors."""

import paddle
from paddle import nn

from paddle_dialog.layers.sinusoids import sinusoids


def sinusoidal_table(max_length: int, d_model: int) -> paddle.Tensor:
    """The vectors of `sinusoids` as a tensor."""
    return paddle.to_tensor(sinusoids(max_length, d_model))


def _slice_positions(table: paddle.Tensor, length: int, offset: int) -> paddle.Tensor:
    """Cut rows offset .. offset + length out of a [max_length, d] table, as [1, length, d]."""
    max_length = table.shape[0]
    if offset < 0 or offset + length > max_length:
        raise ValueError(
            f"positions {offset} to {offset + length} (length {length}) are asked for, "
            f"but there are only {max_length} (max_length)"
        )
    return table[offset : offset + length].unsqueeze(0)  # [1, T, d]


class SinusoidalPositions(nn.Layer):
    """Fixed position vectors (Vaswani et al. 2017, section 3.5); no parameter, nothing in the state dict.

    Args:
        d_model: vector size.
        max_length: longest sequence served.
    """

    def __init__(self, d_model: int, max_length: int) -> None:
        super().__init__()
        self.register_buffer("table", sinusoidal_table(max_length, d_model), persistable=False)

    def forward(self, length: int, offset: int = 0) -> paddle.Tensor:
        """Return the vectors of positions offset .. offset + length - 1.

        Args:
            length: T, number of positions.
            offset: first position (steps already decoded).

        Returns:
            float32 [1, T, d].

        Raises:
            ValueError: offset + length exceeds max_length.
        """
        return _slice_positions(self.table, length, offset)


class LearnedPositions(nn.Layer):
    """Position vectors trained with the model (Gehring et al. 2017, section 3.1), N(0, 1/d_model) at first.

    Args:
        max_length: longest sequence served.
        d_model: vector size.
    """

    def __init__(self, max_length: int, d_model: int) -> None:
        super().__init__()
        self.weight = self.create_parameter(
            [max_length, d_model], default_initializer=nn.initializer.Normal(0.0, d_model**-0.5)
        )

    def forward(self, length: int, offset: int = 0) -> paddle.Tensor:
        """Return the vectors of positions offset .. offset + length - 1.

        Args:
            length: T, number of positions.
            offset: first position (steps already decoded).

        Returns:
            float32 [1, T, d].

        Raises:
            ValueError: offset + length exceeds max_length.
        """
        return _slice_positions(self.weight, length, offset)
