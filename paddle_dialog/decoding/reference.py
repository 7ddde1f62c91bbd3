"""The same beam search by Paddle's own `nn.BeamSearchDecoder` and `nn.dynamic_decode`, for comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paddle_dialog.decoding.interface import Array, Hypothesis, evaluation_mode, to_array
from paddle_dialog.errors import UserError

if TYPE_CHECKING:
    from paddle import Tensor

    from paddle_dialog.models.seq2seq import Seq2Seq

UNUSED = -1e8  # Paddle starts the slots beyond the first at -1e9; one that stays there holds no text


def reference_beam_search(
    model: Seq2Seq,
    source: Array,
    lengths: Array,
    beam_size: int = 10,
    n_best: int = 1,
    max_length: int = 64,
    bos_id: int = 2,
    eos_id: int = 3,
) -> list[list[Hypothesis]]:
    """Run beam search without length penalty, processors or early stopping.

    Unlike `decode`, Paddle does not end a text at the limit: one open after `max_length` + 1 steps comes
    back as it is, unfinished, with the log-probability and the mean over its tokens alone.

    Args:
        model: the network; its cached step is the cell that Paddle's decoder drives.
        source: ids, [B, S] int64, an array or a tensor.
        lengths: [B] int64.
        beam_size: K, >= 1.
        n_best: candidates of an input, at most `beam_size`.
        max_length: tokens of a text at most, the end token not counted.
        bos_id: start token.
        eos_id: end token.

    Returns:
        For each input at most `n_best` hypotheses, best first.

    Raises:
        UserError: `n_best` exceeds `beam_size`.
    """
    import paddle  # takes seconds, and no other search needs it
    from paddle import nn

    if not 1 <= n_best <= beam_size:
        raise UserError(
            f"decoding: n_best is {n_best}, it must be at least 1 and at most beam_size ({beam_size})"
        )
    with evaluation_mode(model):
        state = model.encode(*(paddle.to_tensor(to_array(values)) for values in (source, lengths)))
        begin = state.past
        if begin is None:  # Paddle's decoder wants tensors
            begin = [(key[:, :, :0], value[:, :, :0]) for key, value in state.memory.layers]
        rows = paddle.arange(len(lengths)).repeat_interleave(beam_size)  # [B * K]
        fixed = model.reorder(state._replace(past=None), rows)

        def cell(token: Tensor, past: Any) -> tuple[Tensor, Any]:
            logits, new = model.step(token, fixed._replace(past=past))
            return logits, new.past

        decoder = nn.BeamSearchDecoder(cell, bos_id, eos_id, beam_size)
        ids, final, steps = nn.dynamic_decode(
            decoder, inits=begin, max_step_num=max_length, return_length=True
        )
    tokens = ids.numpy().transpose(0, 2, 1)  # [B, K, T]
    columns = (tokens, steps.numpy(), final.log_probs.numpy(), final.finished.numpy())
    return [
        [
            _hypothesis(text[:length].tolist(), float(log_prob), bool(finished))
            for text, length, log_prob, finished in [*zip(*row, strict=True)][:n_best]
            if log_prob > UNUSED
        ]
        for row in zip(*columns, strict=True)
    ]


def _hypothesis(tokens: list[int], log_prob: float, finished: bool) -> Hypothesis:
    """Make a hypothesis of tokens that may include the end token."""
    text = tokens[:-1] if finished else tokens
    return Hypothesis(text, log_prob, log_prob / len(tokens), finished, log_prob)
