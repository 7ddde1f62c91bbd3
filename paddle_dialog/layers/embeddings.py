"""Embeddings of tokens and of positions, and the output layer that shares the token embedding's weight."""

from __future__ import annotations

import paddle
from paddle import nn

from paddle_dialog.layers.sinusoids import sinusoids
from paddle_dialog.text.vocabulary import Vocabulary


class TokenEmbedding(nn.Layer):
    """A vector for each token id, drawn from N(0, 1/size); that of padding is zero and stays zero.

    Only an output layer that shares the table gives padding a gradient.

    Args:
        vocab_size: V, number of tokens.
        size: D, vector size.
        scale: multiply the vectors by sqrt(D) (Vaswani et al. 2017, section 3.4).
    """

    def __init__(self, vocab_size: int, size: int, scale: bool = False) -> None:
        super().__init__()
        self.factor = size**0.5 if scale else 1.0
        init = paddle.ParamAttr(initializer=nn.initializer.Normal(0.0, size**-0.5))
        self.table = nn.Embedding(vocab_size, size, padding_idx=Vocabulary.pad_id, weight_attr=init)

    @property
    def weight(self) -> paddle.Tensor:
        """The table [V, D], without the factor."""
        return self.table.weight

    def forward(self, ids: paddle.Tensor) -> paddle.Tensor:
        """Look up ids, int64 of any shape [...], as float [..., D]."""
        vectors = self.table(ids)  # [..., D]
        return vectors if self.factor == 1.0 else vectors * self.factor


class TiedProjection(nn.Layer):
    """Output layer whose weight is the embedding's table (Press & Wolf 2017): logits = x Eᵀ + b.

    The table stays the embedding's parameter: here it is neither counted nor saved a second time. The model
    that holds this layer must hold the embedding too.
    """

    def __init__(self, embedding: TokenEmbedding, bias: bool = True) -> None:
        super().__init__()
        self._owner = (embedding,)  # a tuple, because an attribute of type Layer would be registered
        vocab_size = embedding.weight.shape[0]
        self.bias = self.create_parameter([vocab_size], is_bias=True) if bias else None

    @property
    def table(self) -> paddle.Tensor:
        """The embedding's table [V, D]."""
        return self._owner[0].weight

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        """Map features [..., D] to logits [..., V]."""
        logits = paddle.matmul(x, self.table, transpose_y=True)  # [..., V]
        return logits if self.bias is None else logits + self.bias


class SinusoidalPositions(nn.Layer):
    """The fixed position vectors of `sinusoids`; no parameter, nothing in the state dict."""

    table: paddle.Tensor  # [max_length, width]

    def __init__(self, *, max_length: int, width: int) -> None:
        super().__init__()
        table = paddle.to_tensor(sinusoids(max_length=max_length, width=width))
        self.register_buffer("table", table, persistable=False)

    def forward(self, length: int) -> paddle.Tensor:
        """Return the vectors of the first `length` positions, float32 [1, T, width].

        Raises:
            ValueError: there are fewer than `length`.
        """
        max_length = self.table.shape[0]
        if length > max_length:
            raise ValueError(f"{length} positions are needed, and there are only {max_length} (max_length)")
        return self.table[:length].unsqueeze(0)  # [1, T, width]
