"""The textbook's couplet model, written plainly, as a yardstick for the training benchmark.

Every step of the decoder projects the encoder output anew and runs cell by cell under `nn.RNN`: the same function as
`LstmAttention` at its reference size, without its optimisations.
"""

from __future__ import annotations

from typing import Any

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_dialog.benchmark.yardstick import PlainCriterion, Yardstick
from paddle_dialog.config.models import LstmAttentionConfig
from paddle_dialog.errors import UserError
from tasks.couplet.config import CoupletConfig

MASKED = -1e9


class BookAttention(nn.Layer):
    """Dot-product attention over projected encoder outputs."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.input_proj = nn.Linear(size, size)
        self.output_proj = nn.Linear(2 * size, size)

    def forward(self, hidden: Tensor, encoder_output: Tensor, padding: Tensor) -> Tensor:
        """Attend from `hidden` [B, H] over [B, S, H]; `padding` is 0 or -1e9, [B, 1, S]."""
        memory = self.input_proj(encoder_output)  # [B, S, H]
        scores = paddle.matmul(hidden.unsqueeze(1), memory, transpose_y=True) + padding  # [B, 1, S]
        context = paddle.matmul(F.softmax(scores), memory).squeeze(1)  # [B, H]
        return self.output_proj(paddle.concat([context, hidden], axis=1))


class BookCell(nn.RNNCellBase):
    """Stacked LSTM cells with dropout, attention and input feeding."""

    def __init__(self, size: int, num_layers: int, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.lstm_cells = nn.LayerList(
            [nn.LSTMCell(2 * size if layer == 0 else size, size) for layer in range(num_layers)]
        )
        self.attention = BookAttention(size)

    def forward(self, inputs: Tensor, states: Any, encoder_output: Tensor, padding: Tensor) -> Any:
        """Take one step from `inputs` [B, E]; return the output [B, H] and the new states."""
        lstm_states, feed = states
        x, new_states = paddle.concat([inputs, feed], axis=1), []
        for cell, state in zip(self.lstm_cells, lstm_states, strict=True):
            out, new_state = cell(x, state)
            x = self.dropout(out)
            new_states.append(new_state)
        out = self.attention(x, encoder_output, padding)
        return out, [new_states, out]


class BookModel(nn.Layer):
    """Encoder and decoder.

    Args:
        vocab_size: V.
        size: width of embeddings and states.
        num_layers: of encoder and decoder each.
        dropout: between layers.
    """

    def __init__(self, vocab_size: int, size: int = 256, num_layers: int = 2, dropout: float = 0.2) -> None:
        super().__init__()
        self.source_embedding = nn.Embedding(vocab_size, size)
        self.encoder = nn.LSTM(size, size, num_layers, dropout=dropout)
        self.target_embedding = nn.Embedding(vocab_size, size)
        self.decoder = nn.RNN(BookCell(size, num_layers, dropout))
        self.output = nn.Linear(size, vocab_size)

    def forward(self, source: Tensor, source_lengths: Tensor, target: Tensor) -> Tensor:
        """Return logits [B, T, V] for source [B, S] and target [B, T]."""
        encoder_output, (hidden, cell) = self.encoder(self.source_embedding(source), None, source_lengths)
        states = [
            [(hidden[layer], cell[layer]) for layer in range(hidden.shape[0])],
            paddle.zeros_like(hidden[0]),
        ]
        real = paddle.arange(source.shape[1]).unsqueeze(0) < source_lengths.unsqueeze(1)  # [B, S]
        padding = ((real.astype("float32") - 1.0) * -MASKED).unsqueeze(1)  # [B, 1, S]
        output, _ = self.decoder(
            self.target_embedding(target), states, encoder_output=encoder_output, padding=padding
        )
        return self.output(output)


def textbook(config: CoupletConfig, vocab_size: int) -> Yardstick:
    """Build the book's model at a recipe's sizes; it is also trained on random batches, as the book makes them.

    Raises:
        UserError: the recipe's model is of another family, or has an option that the book's lacks.
    """
    model = config.model
    if not isinstance(model, LstmAttentionConfig) or model.embedding_size != model.hidden_size:
        raise UserError(
            "--against book needs a recipe whose model.name is lstm_attention and whose embedding_size and "
            "hidden_size are equal, such as configs/reference/couplet_lstm.yaml"
        )
    network = BookModel(vocab_size, model.hidden_size, model.num_layers, model.dropout)
    return Yardstick(network, PlainCriterion(), random_batches=True)
