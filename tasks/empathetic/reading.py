"""Conversations as a trained model reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from paddle_dialog.data.batching import pad_batch
from paddle_dialog.decoding.search import text_log_probs
from paddle_dialog.tasks.empathetic.data.encoding import DialogueEncoder, Packed
from paddle_dialog.tasks.empathetic.data.language import Language
from paddle_dialog.tasks.empathetic.network.numpy_emo_prepend import NumpyCausalEmoPrepend
from paddle_dialog.text.vocabulary import Vocabulary


@dataclass(frozen=True)
class ReadBatch:
    """Contexts that a model has read together."""

    model: Any  # `NumpyEmoPrepend`, or what answers as it does through Paddle
    state: Any  # before the first word, a row for each context

    def state_of(self, rows: Sequence[int]) -> Any:
        """Return the state of some of the contexts."""
        return self.model.reorder(self.state, np.array(rows, dtype=np.int64))


@dataclass(frozen=True)
class ReadContext:
    """A context as a model reads it."""

    original: Sequence[str]  # turns of the conversation, the speaker's first and last
    turns: Sequence[str]  # the same as they are read: emoji alone are in words
    packed: Packed  # as the encoder packs it
    language: Language  # of the conversation
    given: int | None = None  # the emotion that the user has given, a class id, or None
    predicted: np.ndarray | None = None  # probabilities of the emotions [C]; None before the model has run
    # The contexts that the model has read together, this one among them; None before the model has run.
    batch: ReadBatch | None = None
    row: int = 0  # of this one in the batch
    # The decoder's mean and last outputs [2 D] over replies that were scored, by their tokens.
    states: dict[tuple[str, ...], np.ndarray] = field(default_factory=dict)

    @property
    def model(self) -> Any:
        """The model that has read the context."""
        assert self.batch is not None, "the model has not read the context"
        return self.batch.model

    @cached_property
    def state(self) -> Any:
        """The model's state before the first word of a reply to this context alone."""
        assert self.batch is not None, "the model has not read the context"
        return self.batch.state_of([self.row])

    @property
    def emotions(self) -> np.ndarray:
        """Probabilities of the emotions [C]; 1 for the given one, if any."""
        if self.given is not None:
            return np.eye(len(self.language.emotions))[self.given]
        assert self.predicted is not None, "the model has not read the context"
        return self.predicted


def log_probs(
    encoder: DialogueEncoder, replies: Sequence[tuple[str, ...]], context: ReadContext
) -> np.ndarray:
    """Return log p(reply | context) per token, the end token counted, float64 [N].

    Args:
        context: that the model has read; states of the replies are kept there if they cost nothing more.
    """
    if not replies:
        return np.zeros(0)
    model, (source, extended) = context.model, context.packed
    ids = [encoder.target(encoder.numbers(reply), extended).tolist() for reply in replies]
    if isinstance(model, NumpyCausalEmoPrepend):
        totals, states = model.read_replies(context.state, ids)
        context.states.update(zip(replies, states, strict=True))
    else:
        arrays = source.words[None], np.array([len(source.words)])
        totals = text_log_probs(model, *arrays, ids, inputs=[0] * len(ids), state=context.state)
    return totals / [len(reply) + 1 for reply in replies]


def reply_states(
    encoder: DialogueEncoder, replies: Sequence[tuple[str, ...]], context: ReadContext
) -> np.ndarray:
    """Return the decoder's mean output over each reply to a context, then its last output, float32 [N, 2 D]."""
    new = [reply for reply in dict.fromkeys(replies) if reply not in context.states]
    if new:
        numbers = [encoder.target(encoder.numbers(reply), context.packed[1]) for reply in new]
        target, sizes = pad_batch([np.append(Vocabulary.bos_id, ids) for ids in numbers], Vocabulary.pad_id)
        states = context.model.reply_states(context.state, target, sizes)
        context.states.update(zip(new, states, strict=True))
    return np.stack([context.states[reply] for reply in replies])
