"""The same beam search by Paddle's own `nn.BeamSearchDecoder` and `nn.dynamic_decode`, for comparison."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import paddle
from paddle import Tensor, nn

from paddle_dialog.decoding.interface import Hypothesis
from paddle_dialog.errors import UserError
from paddle_dialog.layers.masks import length_mask
from paddle_dialog.layers.recurrent import AttentionMemory
from paddle_dialog.models.networks import LstmDecoder
from paddle_dialog.models.seq2seq import Seq2Seq
from paddle_dialog.text.vocabulary import Vocabulary

UNUSED = -1e8  # Paddle starts the slots beyond the first at -1e9; one that is still there holds no text

Cell = Callable[[Tensor, Any], tuple[Tensor, Any]]


class ReferenceDecoder(nn.Layer):
    """A trained network under `nn.BeamSearchDecoder`.

    Args:
        network: scores the token after each target by `next_scores(source, lengths, target)`.
        beam_size: K.
        max_length: tokens of a text at most, the end token not counted.
    """

    def __init__(self, network: nn.Layer, beam_size: int, max_length: int) -> None:
        super().__init__()
        self.network = network
        self._beam_size, self._max_length = beam_size, max_length

    @paddle.no_grad()
    def forward(self, source: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
        """Search for the targets of sources [B, S] of lengths [B].

        Returns:
            Tokens [B, T, K], their number [B, K], log-probabilities [B, K], and whether texts have ended [B, K].
        """
        cell, states = self._cell(source, lengths)
        decoder = nn.BeamSearchDecoder(cell, Vocabulary.bos_id, Vocabulary.eos_id, self._beam_size)
        ids, final, steps = nn.dynamic_decode(
            decoder, inits=states, max_step_num=self._max_length, return_length=True
        )
        return ids, steps, final.log_probs, final.finished

    def _cell(self, source: Tensor, lengths: Tensor) -> tuple[Cell, Any]:
        """Return the cell that the decoder drives with B * K rows, and its first states, of B rows."""
        network: Any = self.network

        def tiled(x: Tensor) -> Tensor:
            return nn.BeamSearchDecoder.tile_beam_merge_with_batch(x, self._beam_size)

        if isinstance(network, Seq2Seq) and isinstance(network.decoder, LstmDecoder):
            real = length_mask(lengths, source.shape[1])  # [B, S]
            outputs, final = network.encoder(network.source_embedding(source), lengths, real)
            memory, states = network.decoder.start(outputs, real, final)
            memory = AttentionMemory(*map(tiled, memory))
            step = network.decoder.cell

            def lstm(token: Tensor, states: Any) -> tuple[Tensor, Any]:
                hidden, _, states = step(network.target_embedding(token), states, memory)
                return network.output(hidden), states

            return lstm, states
        source, lengths = tiled(source), tiled(lengths)

        def prefix(token: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
            tokens = paddle.concat([tokens, token.unsqueeze(1)], axis=1)  # [B * K, t]
            return network.next_scores(source, lengths, tokens), tokens

        return prefix, paddle.zeros([len(source) // self._beam_size, 0], dtype="int64")


def reference_beam_search(
    network: nn.Layer,
    source: np.ndarray,
    lengths: np.ndarray,
    beam_size: int = 10,
    n_best: int = 1,
    max_length: int = 64,
) -> list[list[Hypothesis]]:
    """Run beam search without length penalty, processors or early stopping, by `paddle.Model.predict_batch`.

    Unlike `decode`, Paddle does not end a text at the limit: one open after `max_length` + 1 steps comes
    back as it is, unfinished, with the log-probability and the mean over its tokens alone.

    Args:
        network: as for `ReferenceDecoder`, as are the numbers.
        source: ids, [B, S] int64.
        lengths: [B] int64.
        n_best: candidates of an input, at most `beam_size`.

    Returns:
        For each input at most `n_best` hypotheses, best first.
    """
    if not 1 <= n_best <= beam_size:
        raise UserError(
            f"decoding: n_best is {n_best}, it must be at least 1 and at most beam_size ({beam_size})"
        )
    model = paddle.Model(ReferenceDecoder(network, beam_size, max_length))
    model.prepare()
    ids, *columns = model.predict_batch([source, lengths])
    return [
        [
            _hypothesis(text[:length].tolist(), float(log_prob), bool(finished))
            for text, length, log_prob, finished in [*zip(*row, strict=True)][:n_best]
            if log_prob > UNUSED
        ]
        for row in zip(ids.transpose(0, 2, 1), *columns, strict=True)
    ]


def _hypothesis(tokens: list[int], log_prob: float, finished: bool) -> Hypothesis:
    """Make a hypothesis of tokens that may include the end token."""
    text = tokens[:-1] if finished else tokens
    return Hypothesis(text, log_prob, log_prob / len(tokens), finished, log_prob)
