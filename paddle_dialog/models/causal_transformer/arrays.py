"""The causal pair over arrays: the encoder is the stack, and the decoder goes on with it after each source."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from paddle_dialog.config.models import CausalTransformerConfig
from paddle_dialog.errors import UserError
from paddle_dialog.layers.sinusoids import sinusoids
from paddle_dialog.models.arrays.attention_cache import AttentionCache
from paddle_dialog.models.arrays.operators import NumpyLinear, Weights, softmax
from paddle_dialog.models.arrays.row_inputs import RowInputs
from paddle_dialog.models.arrays.text_tree import TextTree
from paddle_dialog.models.causal_transformer.array_layers import NumpyCausalTransformer
from paddle_dialog.models.transformer.array_layers import require_relu


class NumpyCausalEncoder:
    """The numbers of `CausalEncoder` with ReLU."""

    def __init__(self, config: CausalTransformerConfig, weights: Weights) -> None:
        self.output_size = config.width
        self.positions = sinusoids(max_length=config.max_positions, width=config.width)  # [positions, D]
        self.stack = NumpyCausalTransformer(config, weights, "encoder.stack")

    def read(self, embedded: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Encode; see `NumpyEncoder`; what the decoder begins with are keys and values [B, S, 2L, D]."""
        return self.stack.read(embedded + self.positions[: embedded.shape[1]])

    def follow(self, x: np.ndarray, tree: TextTree, memory: np.ndarray) -> np.ndarray:
        """Decode all positions of many texts after one source.

        Args:
            x: embedded nodes of the texts' tree [N, D].
            tree: of the texts.
            memory: of the source, without padding [S, 2L, D].

        Returns:
            Outputs [N, D].

        Raises:
            UserError: a text is longer than the model has positions for.
        """
        size = len(memory)
        if size + tree.paths.shape[1] > len(self.positions):
            raise UserError(
                f"a reply of {tree.paths.shape[1] - 1} tokens cannot be scored: after this context the model has "
                f"{len(self.positions) - size - 1} positions left; give a shorter one"
            )
        return self.stack.follow(x + self.positions[size + tree.places], tree, memory)


class CausalState(NamedTuple):
    """The state of a decoding step."""

    cache: AttentionCache
    keys: np.ndarray  # of the copying head [B, S, depth]
    lengths: np.ndarray  # of the sources [B]

    @property
    def rows(self) -> RowInputs:
        """N rows of B sources."""
        return self.cache.rows

    def reorder(self, index: np.ndarray) -> tuple[CausalState, np.ndarray | None]:
        """See `DecoderState`."""
        cache, left = self.cache.reorder(index)
        if left is None:
            return self._replace(cache=cache), None
        return CausalState(cache, self.keys[left], self.lengths[left]), left

    def reorder_within(self, index: np.ndarray) -> CausalState:
        """See `DecoderState`."""
        return self._replace(cache=self.cache.reorder_within(index))


class NumpyCausalDecoder:
    """The numbers of `CausalDecoder`."""

    def __init__(
        self, config: CausalTransformerConfig, weights: Weights, encoder: NumpyCausalEncoder
    ) -> None:
        self._encoder = encoder
        self._query = NumpyLinear.named(
            weights, "decoder.copy.query", config.width, config.copy_depth, bias=False
        )
        self._key = NumpyLinear.named(
            weights, "decoder.copy.key", config.width, config.copy_depth, bias=False
        )
        self._scale = np.float32(config.copy_depth**-0.5)

    def inputs(self, embedded: np.ndarray) -> np.ndarray:
        """Return the embedded tokens themselves."""
        return embedded

    def prepare(self, outputs: np.ndarray, final: np.ndarray, lengths: np.ndarray) -> CausalState:
        """Return the source's keys and values, and the keys of the copying head."""
        return CausalState(AttentionCache.of(final, lengths), self._key(outputs), lengths)

    def step(self, inputs: np.ndarray, state: CausalState) -> tuple[np.ndarray, np.ndarray, CausalState]:
        """Decode one more position of every row; see `NumpyDecoder`."""
        rows = state.rows
        places = state.lengths[rows.inputs] + state.cache.length  # [N]
        x = inputs + self._encoder.positions[places]  # [N, D]
        hidden, cache = self._encoder.stack.step(x, state.cache)  # [N, D]
        attention = self._copy(rows.spread(hidden), state.keys, cache.mask[:, 0])  # [B, R, S]
        return hidden, attention, state._replace(cache=cache)

    def follow(self, x: np.ndarray, tree: TextTree, state: CausalState) -> tuple[np.ndarray, np.ndarray]:
        """Decode all positions of many texts after one source.

        Args:
            x: embedded nodes of the texts' tree [N, D].
            tree: of the texts.
            state: before the first position, of a single source.

        Returns:
            Hidden [N, D] and attention over the source [N, S].

        Raises:
            UserError: a text is longer than the model has positions for.
        """
        size = int(state.lengths[0])
        hidden = self._encoder.follow(x, tree, state.cache.memory[0, :size])  # [N, D]
        return hidden, self._copy(hidden[None], state.keys[:, :size])[0]

    def _copy(self, x: np.ndarray, keys: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
        """Return the copying head's weights [B, R, S] from `x` [B, R, D]; `mask` is additive [B, 1, S]."""
        scores = np.matmul(self._query(x) * self._scale, keys.swapaxes(1, 2))  # [B, R, S]
        if mask is not None:
            scores += mask
        return softmax(scores)


def numpy_causal_pair(
    config: CausalTransformerConfig, weights: Weights
) -> tuple[NumpyCausalEncoder, NumpyCausalDecoder]:
    """Build encoder and decoder.

    Raises:
        UnsupportedModelError: its activation is not ReLU, or a weight is missing or has another shape.
    """
    require_relu(config)
    encoder = NumpyCausalEncoder(config, weights)
    return encoder, NumpyCausalDecoder(config, weights, encoder)
