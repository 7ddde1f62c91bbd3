"""A model's vectors of contexts and replies, and its probabilities of replies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from paddle_dialog.data.lengths import pad_batch
from paddle_dialog.decoding.interface import Array, StepModel, evaluation_mode, to_array, to_model
from paddle_dialog.decoding.scoring import text_log_probs
from paddle_dialog.text.vocabulary import Vocabulary
from tasks.empathetic.data.encoding import DialogueEncoder, Packed, pad_sources

BATCH = 64  # replies read together


class SelectionModel(StepModel, Protocol):
    """A model that compares contexts and replies; `EmoPrepend` with `selection.size`, or its array form."""

    def context_vectors(self, source: Array, source_lengths: Array, /) -> Array:
        """Return unit vectors [B, K] of packed contexts [B, S, k] of the given lengths [B]."""
        ...

    def reply_vectors(self, target: Array, lengths: Array, /) -> Array:
        """Return unit vectors [B, K] of replies: ids [B, T], begin token first, and how many are real [B]."""
        ...


class JudgedModel(StepModel, Protocol):
    """A model whose states a judge of replies reads; `EmoPrepend` or its array form."""

    def reply_states(self, source: Array, source_lengths: Array, target: Array, sizes: Array, /) -> Array:
        """Return the mean and last outputs [K, 2 D] over each of K replies [K, T] to one context [1, S, k]."""
        ...


def context_vectors(model: SelectionModel, sources: Sequence[np.ndarray]) -> np.ndarray:
    """Return unit vectors float32 [B, K] of packed contexts [S, k]."""
    source, lengths = (to_model(model, array) for array in pad_sources(sources))
    with evaluation_mode(model):
        return to_array(model.context_vectors(source, lengths)).copy()


def reply_vectors(
    model: SelectionModel, vocabulary: Vocabulary, replies: Sequence[Sequence[str]]
) -> np.ndarray:
    """Return unit vectors float32 [N, K] of replies, given as tokens; at least one."""
    ids = [np.array([Vocabulary.bos_id, *vocabulary.encode(reply)]) for reply in replies]
    order = np.argsort([len(reply) for reply in ids], kind="stable")
    parts = []
    with evaluation_mode(model):
        for start in range(0, len(ids), BATCH):
            target, lengths = pad_batch([ids[row] for row in order[start : start + BATCH]], Vocabulary.pad_id)
            vectors = model.reply_vectors(to_model(model, target), to_model(model, lengths))
            parts.append(to_array(vectors).copy())
    found = np.concatenate(parts)  # [N, K]
    vectors = np.empty_like(found)
    vectors[order] = found
    return vectors


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
