"""The families as Paddle networks: encoders of sources with decoders of targets, and language models.

Decoders read all positions of known targets at once. Step by step, a family decodes in NumPy, or through
`decoding.paddle_steps`, which reads the prefix again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_dialog.config.models import (
    CausalLmConfig,
    CausalTransformerConfig,
    LstmAttentionConfig,
    RecurrentLmConfig,
    TransformerConfig,
)
from paddle_dialog.layers.embeddings import SinusoidalPositions, TiedProjection, TokenEmbedding
from paddle_dialog.layers.masks import additive_mask, causal_mask
from paddle_dialog.layers.operators import Dropout
from paddle_dialog.layers.recurrent import AttentionCell, AttentionMemory, RecurrentEncoder, StateBridge
from paddle_dialog.layers.transformer import (
    CausalTransformer,
    CopyAttention,
    DecoderStack,
    EncoderStack,
    KeyValue,
)

NO_POSITION = -1e30  # from which no text continues


class Encoder(nn.Layer):
    """Reads embedded sources.

    Attributes:
        output_size: width H of the outputs.
    """

    output_size: int

    def forward(self, embedded: Tensor, lengths: Tensor, real: Tensor) -> tuple[Tensor, Any]:
        """Encode sources.

        Args:
            embedded: [B, S, E].
            lengths: [B].
            real: bool [B, S], False on padding.

        Returns:
            Outputs [B, S, H], and the encoder's final states for the decoder, or None.
        """
        raise NotImplementedError


class Decoder(nn.Layer):
    """Reads embedded targets after their sources."""

    def forward(self, embedded: Tensor, outputs: Tensor, real: Tensor, final: Any) -> tuple[Tensor, Tensor]:
        """Decode all positions of known targets.

        Args:
            embedded: [B, T, E].
            outputs: of the encoder [B, S, H].
            real: bool [B, S], False on padding.
            final: the encoder's final states, or None.

        Returns:
            Hidden [B, T, width], and attention over the source [B, T, S], 0 on padding.
        """
        raise NotImplementedError


class LstmEncoder(Encoder):
    """LSTM or GRU layers; their final states are the decoder's start."""

    def __init__(self, config: LstmAttentionConfig) -> None:
        super().__init__()
        self.stack = RecurrentEncoder(config)
        self.output_size = config.encoder_size

    def forward(self, embedded: Tensor, lengths: Tensor, real: Tensor) -> tuple[Tensor, Any]:
        """Encode; arguments as for `Encoder`."""
        return self.stack(embedded, lengths)


class LstmDecoder(Decoder):
    """The attention cell over the target; `decoding.reference` steps it under `nn.BeamSearchDecoder`."""

    def __init__(self, config: LstmAttentionConfig, encoder: Encoder) -> None:
        super().__init__()
        self.bridge = StateBridge(config)
        self.cell = AttentionCell(config)

    def start(self, outputs: Tensor, real: Tensor, final: Any) -> tuple[AttentionMemory, Any]:
        """Return the projected source and the cell's first states; the input feed starts at zero."""
        return self.cell.prepare_memory(outputs, real), self.cell.initial_states(self.bridge(final))

    def forward(self, embedded: Tensor, outputs: Tensor, real: Tensor, final: Any) -> tuple[Tensor, Tensor]:
        """Decode; arguments as for `Decoder`."""
        memory, states = self.start(outputs, real, final)
        return self.cell.unroll(embedded, states, memory)


class TransformerEncoder(Encoder):
    """Positions, embedding dropout, and the encoder's layers."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.output_size = config.width
        self.positions = SinusoidalPositions(max_length=config.max_positions, width=config.width)
        self.dropout = Dropout(config.dropout)
        self.projection = _projection(config)
        self.stack = EncoderStack(config)

    def forward(self, embedded: Tensor, lengths: Tensor, real: Tensor) -> tuple[Tensor, None]:
        """Encode; arguments as for `Encoder`."""
        x = _with_positions(embedded, self.positions(embedded.shape[1]), self.projection, self.dropout)
        keep = real.astype(embedded.dtype).unsqueeze(-1)  # [B, S, 1]
        return self.stack(x, additive_mask(real).unsqueeze([1, 2]), keep), None


class TransformerDecoder(Decoder):
    """Positions, embedding dropout, and the decoder's layers.

    With `aligned_input` the input at position t also holds a projection of the encoder's output at position t, for
    texts that correspond token by token: the model need not learn where to look.
    """

    def __init__(self, config: TransformerConfig, encoder: Encoder) -> None:
        super().__init__()
        self.positions = SinusoidalPositions(max_length=config.max_positions, width=config.width)
        self.dropout = Dropout(config.dropout)
        self.projection = _projection(config)
        self.stack = DecoderStack(config)
        self.aligned_projection = (
            nn.Linear(config.width, config.width, bias_attr=False) if config.aligned_input else None
        )

    def forward(self, embedded: Tensor, outputs: Tensor, real: Tensor, final: None) -> tuple[Tensor, Tensor]:
        """Decode; arguments as for `Decoder`."""
        length, keep = embedded.shape[1], real.astype(outputs.dtype)  # [B, S]
        if self.aligned_projection is not None:
            aligned = self.aligned_projection(outputs) * keep.unsqueeze(-1)  # [B, S, D]
            missing = max(length - aligned.shape[1], 0)  # positions after the end of all sources
            embedded = embedded + F.pad(aligned[:, :length], [0, missing], data_format="NLC")
        x = _with_positions(embedded, self.positions(length), self.projection, self.dropout)  # [B, T, D]
        own, mask = additive_mask(causal_mask(length)), additive_mask(real).unsqueeze([1, 2])
        x, weights = self.stack(x, outputs, own, mask)
        # The softmax leaves about 1e-28 on padding; copying needs exact zeros.
        return x, weights * keep.unsqueeze(1)


def _projection(config: TransformerConfig) -> nn.Linear | None:
    """Return the map that embeddings pass before the layers, where they do."""
    return nn.Linear(config.width, config.width, bias_attr=False) if config.project_embeddings else None


def _with_positions(
    embedded: Tensor, positions: Tensor, projection: nn.Layer | None, dropout: Dropout
) -> Tensor:
    """Return the input [B, T, D] of a stack, of embedded tokens [B, T, D] at `positions` [1, T, D]."""
    if projection is not None:
        return projection(dropout(embedded)) + positions
    return dropout(embedded + positions.expand_as(embedded))


class CausalSource(NamedTuple):
    """A source as the positions after it see it."""

    layers: list[KeyValue]  # keys and values [B, heads, S, d] of each layer
    lengths: Tensor  # [B]


class CausalEncoder(Encoder):
    """Positions, embedding dropout, and the causal stack, through which the decoder's targets pass too."""

    def __init__(self, config: CausalTransformerConfig) -> None:
        super().__init__()
        self.output_size = config.width
        self.positions = SinusoidalPositions(max_length=config.max_positions, width=config.width)
        self.dropout = Dropout(config.dropout)
        self.stack = CausalTransformer(config)

    def forward(self, embedded: Tensor, lengths: Tensor, real: Tensor) -> tuple[Tensor, CausalSource]:
        """Encode; arguments as for `Encoder`."""
        positions = self.positions(embedded.shape[1]).expand_as(embedded)
        outputs, layers = self.stack(self.dropout(embedded + positions))  # [B, S, D]
        return outputs, CausalSource(layers, lengths)

    def decode(self, embedded: Tensor, source: CausalSource, mask: Tensor) -> Tensor:
        """Return outputs [B, T, D] of the positions [B, T, D] after each source; `mask` is additive [B, 1, 1, S]."""
        places = source.lengths.unsqueeze(1) + paddle.arange(embedded.shape[1])  # [B, T]
        x = self.dropout(embedded + F.embedding(places, self.positions.table))  # [B, T, D]
        return self.stack.decode(x, source.layers, mask)


class CausalDecoder(Decoder):
    """The encoder's own stack after each source's last real position, and the head that copies."""

    def __init__(self, config: CausalTransformerConfig, encoder: CausalEncoder) -> None:
        super().__init__()
        self._encoder = (encoder,)  # a tuple, because the layers belong to the encoder
        self.copy = CopyAttention(config.width, config.copy_size)

    def forward(
        self, embedded: Tensor, outputs: Tensor, real: Tensor, final: CausalSource
    ) -> tuple[Tensor, Tensor]:
        """Decode; arguments as for `Decoder`."""
        mask = additive_mask(real).unsqueeze([1, 2])  # [B, 1, 1, S]
        x = self._encoder[0].decode(embedded, final, mask)  # [B, T, D]
        weights = self.copy(x, outputs, mask.squeeze(1))  # [B, T, S]
        return x, weights * real.astype(weights.dtype).unsqueeze(1)


# Encoder and decoder of each family.
PAIRS: dict[str, tuple[type[Any], type[Any]]] = {
    LstmAttentionConfig.name: (LstmEncoder, LstmDecoder),
    TransformerConfig.name: (TransformerEncoder, TransformerDecoder),
    CausalTransformerConfig.name: (CausalEncoder, CausalDecoder),
}


class CausalLm(nn.Layer):
    """A language model (Radford et al. 2018): predicts each next token of packed texts, none of which sees another.

    Positions count from a text's begin token; those of what precedes it (a title, a style) are negative.

    Args:
        vocab_size: number V of tokens.
    """

    def __init__(self, config: CausalLmConfig, vocab_size: int) -> None:
        super().__init__()
        width = config.width
        self.embedding = TokenEmbedding(vocab_size, width, scale=True)
        init = paddle.ParamAttr(initializer=nn.initializer.Normal(0.0, 0.1))
        self.positions = nn.Embedding(config.max_positions, width, weight_attr=init)
        self.stack = CausalTransformer(config)
        self.dropout = Dropout(config.dropout)
        self.output = TiedProjection(self.embedding)

    def forward(self, ids: Tensor, positions: Tensor) -> Tensor:
        """Return logits of every next token.

        Args:
            ids: int64 [B, T].
            positions: int64 [B, T]. A text begins where a position is not one above that before it.

        Returns:
            Logits [B, T, V].
        """
        return self.output(self._read(ids, positions))

    def next_scores(self, source: Tensor, lengths: Tensor, target: Tensor) -> Tensor:
        """Return logits [B, V] of the token after each target [B, T], begin token first; see `PrefixModel`.

        Args:
            source: what precedes the begin token, ids [B, S].
            lengths: [B].
        """
        size = source.shape[1]
        # Sources move to the right, so that padding comes first, where each position is a text of its own.
        places = paddle.arange(size).unsqueeze(0) - (size - lengths).unsqueeze(
            1
        )  # [B, S], negative on padding
        moved = paddle.take_along_axis(source, paddle.clip(places, min=0), axis=1)
        before = paddle.where(places < 0, paddle.zeros_like(places), places - lengths.unsqueeze(1))
        after = paddle.arange(target.shape[1]).unsqueeze(0).expand_as(target)
        ids, positions = paddle.concat([moved, target], axis=1), paddle.concat([before, after], axis=1)
        return self.output(self._read(ids, positions)[:, -1])

    def _read(self, ids: Tensor, positions: Tensor) -> Tensor:
        """Return the stack's outputs [B, T, D]."""
        mask = additive_mask(_same_text(positions) & causal_mask(ids.shape[1])).unsqueeze(1)  # [B, 1, T, T]
        # The vectors of negative positions are at the table's end.
        vectors = self.positions(positions % self.positions.weight.shape[0])  # [B, T, D]
        return self.stack(self.dropout(self.embedding(ids) + vectors), mask)[0]


def _same_text(positions: Tensor) -> Tensor:
    """Return whether two places of a row [B, T] belong to one text, as bool [B, T, T]."""
    begins = positions[:, 1:] != positions[:, :-1] + 1  # [B, T - 1]
    text = F.pad(begins.astype("int32").cumsum(axis=1), [1, 0])  # [B, T]
    return text.unsqueeze(2) == text.unsqueeze(1)


class CarriedState(nn.Layer):
    """The state after the last window of each row of a training batch; checkpoints hold it, bundles do not.

    Args:
        shape: of the state, [P, L, B, H].
    """

    training_only = True

    def __init__(self, shape: list[int]) -> None:
        super().__init__()
        self.register_buffer("state", paddle.zeros(shape))
        self.register_buffer("position", paddle.full([shape[2]], NO_POSITION, "float64"))

    def before(self, positions: Tensor) -> Tensor:
        """Return the state [P, L, B, H] before windows that begin at `positions` [B]; zeros where a text begins."""
        continues = positions.astype("float64") == self.position[: len(positions)] + 1  # [B]
        return self.state[:, :, : len(positions)].clone() * continues.astype("float32").unsqueeze(-1)

    @paddle.no_grad()
    def keep(self, state: Tensor, positions: Tensor) -> None:
        """Keep the state after windows whose last tokens are at `positions` [B]."""
        rows = len(positions)  # those of a text that is shorter than a batch are fewer
        paddle.assign(paddle.concat([state, self.state[:, :, rows:]], axis=2), self.state)
        paddle.assign(paddle.concat([positions.astype("float64"), self.position[rows:]]), self.position)


class RecurrentLm(nn.Layer):
    """Stacked LSTM or GRU layers as a language model that keeps its state between windows.

    In training, row i of a batch continues row i of the batch before; the gradient stops between the two
    (truncated backpropagation through time, Mikolov et al. 2010, section 2.2). A row that begins with a new text
    starts from zero, as every row does in evaluation.

    Args:
        vocab_size: number V of tokens.
        rows: of a training batch, at most.
    """

    def __init__(self, config: RecurrentLmConfig, vocab_size: int, rows: int) -> None:
        super().__init__()
        width, layers = config.width, config.num_layers
        self.embedding = TokenEmbedding(vocab_size, width, scale=True)
        kind = nn.LSTM if config.cell == "lstm" else nn.GRU
        self.rnn = kind(width, width, layers, dropout=config.dropout if layers > 1 else 0.0)
        self.dropout = Dropout(config.dropout)
        self.output = TiedProjection(self.embedding)
        self.carried = CarriedState([2 if config.cell == "lstm" else 1, layers, rows, width])

    def forward(self, ids: Tensor, positions: Tensor) -> Tensor:
        """Return logits [B, T, V] of every next token.

        Args:
            ids: int64 [B, T].
            positions: of the tokens in their texts, int64 [B, T].
        """
        if not self.training:
            return self.read(ids)[0]
        logits, state = self.read(ids, self.carried.before(positions[:, 0]))
        self.carried.keep(state, positions[:, -1])
        return logits

    def read(
        self, ids: Tensor, state: Tensor | None = None, lengths: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Read windows [B, T] after a state.

        Args:
            state: [P, L, B, H], where P is 2 for an LSTM (hidden and cell states) and 1 for a GRU; None is zeros.
            lengths: tokens of each row [B]; all by default.

        Returns:
            Logits [B, T, V], and the state after each row.
        """
        parts, layers, _, width = self.carried.state.shape
        if state is None:
            state = paddle.zeros([parts, layers, len(ids), width])
        before = state[0] if parts == 1 else tuple(state.unbind(0))  # [L, B, H] each
        hidden, after = self.rnn(
            self.dropout(self.embedding(ids)), before, sequence_length=lengths
        )  # [B, T, H]
        return self.output(self.dropout(hidden)), paddle.stack([after] if parts == 1 else list(after))

    def next_scores(self, source: Tensor, lengths: Tensor, target: Tensor) -> Tensor:
        """Return logits [B, V] of the token after each target [B, T], begin token first; see `PrefixModel`.

        Args:
            source: what precedes the begin token, ids [B, S].
            lengths: [B].
        """
        _, state = self.read(source, lengths=lengths)  # [P, L, B, H]
        state *= (lengths > 0).astype("float32").unsqueeze(-1)  # zeros after an empty source
        return self.read(target, state)[0][:, -1]
