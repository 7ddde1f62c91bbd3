"""A Transformer of Paddle's own layers, written plainly, as a yardstick for the training benchmark."""

from __future__ import annotations

import paddle
from paddle import Tensor, nn

from paddle_dialog.config.models import TransformerConfig

MASKED = -1e9


class PlainTransformer(nn.Layer):
    """`nn.Transformer` between embeddings and output layer, of a recipe's sizes.

    It shares tables, ties the output and leaves out biases as the recipe says, and draws dropout masks of full
    size. It leaves out an aligned input, which Paddle's layers do not support, and so has less work than ours.

    Args:
        config: sizes and switches.
        vocab_size: V.
    """

    def __init__(self, config: TransformerConfig, vocab_size: int) -> None:
        super().__init__()
        width, bias = config.width, None if config.bias else False
        self.scale = width**0.5
        init = paddle.ParamAttr(initializer=nn.initializer.Normal(0.0, width**-0.5))
        self.source_embedding = nn.Embedding(vocab_size, width, weight_attr=init)
        self.target_embedding = (
            self.source_embedding
            if config.share_embeddings
            else nn.Embedding(vocab_size, width, weight_attr=init)
        )
        self.positions = nn.Embedding(config.max_positions, width, weight_attr=init)
        self.dropout = nn.Dropout(config.dropout)
        self.transformer = nn.Transformer(
            width,
            config.num_heads,
            config.encoder_layers,
            config.decoder_layers,
            config.inner_width,
            dropout=config.dropout,
            activation=config.activation,
            normalize_before=config.norm == "pre",
            bias_attr=bias,
        )
        self.output = None if config.tie_output else nn.Linear(width, vocab_size, bias_attr=bias)

    def forward(self, source: Tensor, source_lengths: Tensor, target: Tensor) -> Tensor:
        """Return logits [B, T, V] for source [B, S] and target [B, T]."""
        real = paddle.arange(source.shape[1]).unsqueeze(0) < source_lengths.unsqueeze(1)  # [B, S]
        padding = ((real.astype("float32") - 1.0) * -MASKED).unsqueeze([1, 2])  # [B, 1, 1, S]
        causal = paddle.triu(paddle.full([target.shape[1]] * 2, MASKED), 1)  # [T, T]
        hidden = self.transformer(
            self._embed(self.source_embedding, source),
            self._embed(self.target_embedding, target),
            padding,
            causal,
            padding,
        )  # [B, T, D]
        if self.output is None:
            return paddle.matmul(hidden, self.target_embedding.weight, transpose_y=True)
        return self.output(hidden)

    def _embed(self, table: nn.Embedding, ids: Tensor) -> Tensor:
        """Embed [B, T] as [B, T, D]."""
        return self.dropout(table(ids) * self.scale + self.positions(paddle.arange(ids.shape[1])))
