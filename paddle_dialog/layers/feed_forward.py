"""Position-wise feed-forward layers: linear maps, and convolutions over the neighbouring positions."""

from __future__ import annotations

from typing import Literal

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_dialog.layers.dropout import Dropout
from paddle_dialog.layers.linear import Linear

Padding = Literal["left", "both"]


class SequenceConvolution(nn.Layer):
    """A convolution of width 3 over a sequence, as one product of three neighbouring positions.

    Args:
        input_size: width D of the input.
        output_size: width O of the output.
        padding: `left` sees the position and the two before it (causal), `both` one on either side.
    """

    WIDTH = 3

    def __init__(self, input_size: int, output_size: int, padding: Padding = "left") -> None:
        super().__init__()
        self.padding = padding
        self.projection = Linear(self.WIDTH * input_size, output_size)

    def forward(self, x: Tensor, past: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Map [B, T, D] to [B, T, O]; the ends are padded with zeros.

        Args:
            x: the positions to compute.
            past: the two inputs before them [B, 2, D] in cached decoding; `left` only.

        Returns:
            Output [B, T, O] and the last two inputs [B, 2, D], the next call's `past`.
        """
        length, around = x.shape[1], self.WIDTH - 1
        if self.padding == "both":
            padded = F.pad(x, [1, 1], data_format="NLC")  # [B, T + 2, D]
        else:
            before = paddle.zeros([x.shape[0], around, x.shape[2]], x.dtype) if past is None else past
            padded = paddle.concat([before, x], axis=1)  # [B, T + 2, D]
        windows = [padded[:, start : start + length] for start in range(self.WIDTH)]
        return self.projection(paddle.concat(windows, axis=-1)), padded[:, -around:]


class PositionwiseFeedForward(nn.Layer):
    """Linear maps and convolutions in a row, with ReLU and then dropout between them.

    Unlike `transformer.FeedForward` the hidden layers have dropout and may be convolutions.

    Args:
        width: model width D.
        inner_width: width of the hidden layers.
        kinds: a letter a layer, `l` for linear and `c` for a convolution, e.g. `ll` or `cc`.
        padding: of the convolutions.
        dropout: rate between the layers.
    """

    def __init__(
        self,
        width: int,
        inner_width: int,
        kinds: str = "cc",
        padding: Padding = "left",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if len(kinds) < 2 or set(kinds) - set("lc"):
            raise ValueError(f"kinds is {kinds!r}; give two or more letters out of l and c, e.g. 'cc'")
        sizes = [width, *[inner_width] * (len(kinds) - 1), width]
        self.layers = nn.LayerList(
            [
                SequenceConvolution(sizes[i], sizes[i + 1], padding)
                if kind == "c"
                else Linear(sizes[i], sizes[i + 1])
                for i, kind in enumerate(kinds)
            ]
        )
        self.dropout = Dropout(dropout)

    def forward(
        self, x: Tensor, mask: Tensor | None = None, past: list[Tensor] | None = None
    ) -> tuple[Tensor, list[Tensor]]:
        """Map [B, T, D] to [B, T, D].

        Args:
            x: the positions to compute.
            mask: float [B, T, 1], 0 on padding, which a convolution would otherwise let into real positions.
            past: what the call for the positions before returned, in cached decoding.

        Returns:
            Output [B, T, D] and, for each convolution, its last two inputs [B, 2, ·].
        """
        tails: list[Tensor] = []
        for number, layer in enumerate(self.layers):
            if number:
                x = self.dropout(F.relu(x))  # [B, T, inner]
            if isinstance(layer, SequenceConvolution):
                x, tail = layer(x if mask is None else x * mask, None if past is None else past[len(tails)])
                tails.append(tail)
            else:
                x = layer(x)
        return x, tails
