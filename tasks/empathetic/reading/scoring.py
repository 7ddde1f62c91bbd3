"""A model's probabilities of replies, and its states over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from paddle_dialog.data.lengths import pad_batch
from paddle_dialog.decoding.interface import Array, StepModel, evaluation_mode, to_array, to_model
from paddle_dialog.decoding.scoring import text_log_probs
from paddle_dialog.text.vocabulary import Vocabulary
from tasks.empathetic.data.encoding import DialogueEncoder, Packed


class JudgedModel(StepModel, Protocol):
    """A model whose states a judge of replies reads; `EmoPrepend` or its array form."""

    def reply_states(self, source: Array, source_lengths: Array, target: Array, sizes: Array, /) -> Array:
        """Return the mean and last outputs [K, 2 D] over each of K replies [K, T] to one context [1, S, k]."""
        ...


def reply_states(
    model: JudgedModel, encoder: DialogueEncoder, replies: Sequence[Sequence[str]], packed: Packed
) -> np.ndarray:
    """Return the decoder's mean output over each reply to a context, then its last output, float32 [N, 2 D].

    Args:
        model: that reads them.
        encoder: of the model.
        replies: as tokens; at least one.
        packed: the context and its extended ids, as the encoder packs it.
    """
    source, extended = packed
    ids = [
        np.array([Vocabulary.bos_id, *encoder.target(encoder.numbers(reply), extended).tolist()])
        for reply in replies
    ]
    target, sizes = pad_batch(ids, Vocabulary.pad_id)
    arrays = [to_model(model, array) for array in (source[None], np.array([len(source)]), target, sizes)]
    with evaluation_mode(model):
        return to_array(model.reply_states(*arrays)).copy()


def log_probs(
    model: StepModel,
    encoder: DialogueEncoder,
    replies: Sequence[Sequence[str]],
    packed: Packed | None = None,
) -> np.ndarray:
    """Return log p(reply | context) per token, the end token counted, float64 [N].

    Args:
        model: that computes it.
        encoder: of the model.
        replies: as tokens.
        packed: the context and its extended ids, as the encoder packs it; None is no context, the CLS position alone,
            where words outside the vocabulary count as unknown.
    """
    if not replies:
        return np.zeros(0)
    source, extended = encoder.pack(encoder.context([])) if packed is None else packed
    ids = [encoder.target(encoder.numbers(reply), extended).tolist() for reply in replies]
    totals = text_log_probs(model, source[None], np.array([len(source)]), ids, inputs=[0] * len(ids))
    return totals / [len(reply) + 1 for reply in replies]
