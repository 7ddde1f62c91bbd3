"""What a model feels in conversations that nobody has annotated."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

import numpy as np

from paddle_dialog.decoding.interface import Array, StepModel, evaluation_mode, to_array, to_model
from tasks.empathetic.data.dialogue import Dialogue
from tasks.empathetic.data.encoding import DialogueEncoder, pad_sources
from tasks.empathetic.reading.vectors import BATCH
from tasks.empathetic.selection.store import emotion_bits

SHARE = 0.3  # of the likeliest emotion's probability, from which another one counts as felt too


class FeelingModel(StepModel, Protocol):
    """A model that tells emotions; `EmoPrepend` or its array form."""

    def emotion_probabilities(self, source: Array, source_lengths: Array, /) -> Array:
        """Return probabilities [B, C] of the emotions in packed contexts [B, S, k] of the given lengths [B]."""
        ...


def emotions_of_replies(
    replies: Sequence[Sequence[Dialogue]],
    ours: Collection[int],
    model: FeelingModel,
    encoder: DialogueEncoder,
) -> np.ndarray:
    """Return the emotions in which replies were given, as the bits of `ReplyStore.emotions`, uint32 [N].

    Args:
        replies: the examples that have each reply.
        ours: the `id` of those that were written for this project; where they name no emotion the model tells it.
        model: that reads their contexts.
        encoder: of the model.
    """
    unnamed = [one for given in replies for one in given if id(one) in ours and one.emotion is None]
    felt = felt_emotions([one.context for one in unnamed], model, encoder)
    told = {id(one): labels for one, labels in zip(unnamed, felt, strict=True)}
    names = encoder.language.emotions
    bits = [
        emotion_bits([label for one in given for label in told.get(id(one), [one.emotion])], names)
        for given in replies
    ]
    return np.array(bits, np.uint32)


def felt_emotions(
    contexts: Sequence[Sequence[str]], model: FeelingModel, encoder: DialogueEncoder
) -> list[list[str]]:
    """Return the likeliest emotions of each context; where none is clear there are many."""
    names, felt = encoder.language.emotions, []
    for start in range(0, len(contexts), BATCH):
        sources = [encoder.pack(encoder.context(one))[0] for one in contexts[start : start + BATCH]]
        source, lengths = (to_model(model, array) for array in pad_sources(sources))
        with evaluation_mode(model):
            probabilities = to_array(model.emotion_probabilities(source, lengths))  # [B, C]
        near = probabilities >= SHARE * probabilities.max(axis=1, keepdims=True)  # [B, C]
        felt += [[names[place] for place in np.flatnonzero(row)] for row in near]
    return felt
