"""The Transformer family (Vaswani et al. 2017), with an input aligned to the source where lines correspond."""

from __future__ import annotations

from typing import NamedTuple

import paddle
from paddle import Tensor, nn

from paddle_dialog.config.models import TransformerConfig
from paddle_dialog.layers.dropout import Dropout
from paddle_dialog.layers.embeddings import TiedProjection, TokenEmbedding
from paddle_dialog.layers.linear import Linear
from paddle_dialog.layers.masks import additive_mask, causal_mask, length_mask
from paddle_dialog.layers.multihead import KeyValue
from paddle_dialog.layers.positions import LearnedPositions, SinusoidalPositions
from paddle_dialog.layers.transformer import TransformerDecoder, TransformerEncoder
from paddle_dialog.models.state import gather_rows


class TransformerState(NamedTuple):
    """What a decoding step needs; all tensors have the batch as their first axis."""

    memory: list[KeyValue]  # per layer [B, heads, S, d] each
    cross_mask: Tensor  # additive [B, 1, 1, S]
    aligned: Tensor | None  # [B, S, D], the encoder outputs added to the decoder input position by position
    past: list[KeyValue] | None  # per layer [B, heads, steps so far, d] each


class Transformer(nn.Layer):
    """Transformer encoder-decoder.

    With ``aligned_input`` the decoder's input at position t also holds a projection of the encoder's output at
    position t: for texts that correspond token by token, whose model need not learn where to look.

    Args:
        config: sizes and switches.
        vocab_size: number V of tokens, the same on both sides.
    """

    def __init__(self, config: TransformerConfig, vocab_size: int) -> None:
        super().__init__()
        width = config.width
        self.source_embedding = TokenEmbedding(vocab_size, width, scale=True)
        self.own_target_embedding = (
            None if config.share_embeddings else TokenEmbedding(vocab_size, width, scale=True)
        )
        if config.positions == "sinusoidal":
            self.positions: nn.Layer = SinusoidalPositions(max_length=config.max_positions, width=width)
        else:
            self.positions = LearnedPositions(max_length=config.max_positions, width=width)
        sizes = (width, config.num_heads, config.inner_width, config.dropout, config.norm)
        self.encoder = TransformerEncoder(config.encoder_layers, *sizes, config.activation, config.bias)
        self.decoder = TransformerDecoder(config.decoder_layers, *sizes, config.activation, config.bias)
        self.aligned_projection = Linear(width, width, bias=False) if config.aligned_input else None
        self.dropout = Dropout(config.dropout)
        self.output = (
            TiedProjection(self.target_embedding, bias=config.bias)
            if config.tie_output
            else Linear(width, vocab_size, config.bias)
        )

    @property
    def target_embedding(self) -> TokenEmbedding:
        """The decoder's table; a shared one is registered once, under the source's name."""
        return self.source_embedding if self.own_target_embedding is None else self.own_target_embedding

    def forward(self, source: Tensor, source_lengths: Tensor, target: Tensor) -> Tensor:
        """Logits of every next token, given the true ones before it.

        Args:
            source: ids [B, S].
            source_lengths: real tokens of each source [B].
            target: ids [B, T], begin token first.

        Returns:
            Logits [B, T, V].
        """
        return self.output(self._decode(self.encode(source, source_lengths), target)[0])

    def encode(self, source: Tensor, source_lengths: Tensor) -> TransformerState:
        """The state before the first target token, for a source [B, S] of the given lengths [B]."""
        length = source.shape[1]
        real = length_mask(source_lengths, length)  # [B, S]
        mask = additive_mask(real).unsqueeze([1, 2])  # [B, 1, 1, S]
        embedded = self.source_embedding(source)  # [B, S, D]
        embedded = self.dropout(embedded + self.positions(length).expand_as(embedded))
        outputs = self.encoder(embedded, mask)  # [B, S, D]
        aligned = None
        if self.aligned_projection is not None:
            aligned = self.aligned_projection(outputs) * real.unsqueeze(-1).astype(outputs.dtype)  # [B, S, D]
        return TransformerState(self.decoder.prepare_memory(outputs), mask, aligned, None)

    def step(self, token: Tensor, state: TransformerState) -> tuple[Tensor, TransformerState]:
        """Logits [N, V] after one more token [N], and the new state."""
        hidden, past, _ = self._decode(state, token.unsqueeze(1))  # [N, 1, D]
        return self.output(hidden.squeeze(1)), state._replace(past=past)

    def reorder(self, state: TransformerState, index: Tensor) -> TransformerState:
        """The state of the rows ``index`` [M]."""
        return gather_rows(state, index)

    def reorder_within(self, state: TransformerState, index: Tensor) -> TransformerState:
        """``reorder`` for rows that stay with their input: what belongs to the source is not copied."""
        return state._replace(past=gather_rows(state.past, index))

    def attention_weights(self, source: Tensor, source_lengths: Tensor, target: Tensor) -> Tensor:
        """Head-averaged attention [B, T, S] of the last decoder layer over the source, for heat maps."""
        return self._decode(self.encode(source, source_lengths), target)[2]

    def _decode(self, state: TransformerState, target: Tensor) -> tuple[Tensor, list[KeyValue], Tensor]:
        """Runs the decoder over the positions [B, T] that follow ``state.past``."""
        offset = 0 if state.past is None else state.past[0][0].shape[2]
        length = target.shape[1]
        embedded = self.target_embedding(target)  # [B, T, D]
        embedded = embedded + self.positions(length, offset).expand_as(embedded)
        if state.aligned is not None:
            embedded = embedded + _window(state.aligned, offset, length)
        self_mask = (
            additive_mask(causal_mask(offset + length)[offset:]) if length > 1 else None
        )  # [T, past + T]
        return self.decoder(self.dropout(embedded), state.memory, self_mask, state.cross_mask, state.past)


def _window(x: Tensor, offset: int, length: int) -> Tensor:
    """Positions offset to offset + length of [B, S, D], zeros where the source has ended."""
    window = x[:, offset : offset + length]
    missing = length - window.shape[1]
    if missing == 0:
        return window
    return paddle.concat([window, paddle.zeros([x.shape[0], missing, x.shape[2]], dtype=x.dtype)], axis=1)
