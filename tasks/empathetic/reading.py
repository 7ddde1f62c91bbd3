"""Conversations as a trained model reads them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from paddle_dialog.bundle.trained import TrainedModel
from paddle_dialog.data.batching import pad_batch
from paddle_dialog.decoding.scoring import text_log_probs
from paddle_dialog.predictor import GenerationPredictor
from paddle_dialog.tasks.empathetic.config import EmpatheticConfig
from paddle_dialog.tasks.empathetic.data.dialogue import checked_context, in_words
from paddle_dialog.tasks.empathetic.data.emotions import emotion_id
from paddle_dialog.tasks.empathetic.data.encoding import (
    DialogueEncoder,
    Packed,
    Source,
    make_encoder,
    pad_sources,
)
from paddle_dialog.tasks.empathetic.data.language import Language
from paddle_dialog.tasks.empathetic.network.numpy_emo_prepend import NumpyCausalEmoPrepend, numpy_emo_prepend
from paddle_dialog.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from paddle import nn


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


class ContextReader(GenerationPredictor):
    """Reads conversations with a trained model.

    Args:
        encoder: an existing one, so that its lexicon is not read again.
    """

    def __init__(
        self, config: EmpatheticConfig, trained: TrainedModel, encoder: DialogueEncoder | None = None
    ) -> None:
        self.config: EmpatheticConfig = config
        (self.vocabulary,) = trained.vocabularies.values()
        self._trained = trained
        make = partial(numpy_emo_prepend, config, len(self.vocabulary))
        self.model: Any = trained.fastest(make, _through_paddle)
        self.encoder = make_encoder(config, self.vocabulary) if encoder is None else encoder

    def attention_weights(self, source: Source, target: np.ndarray) -> np.ndarray:
        """Return attention [T, S] of a target [T], begin token first, over a context."""
        weights: np.ndarray = self.model.attention_weights(*pad_sources([source]), target[None])[0]
        return weights

    @property
    def language(self) -> Language:
        """The language that the model reads and writes."""
        return self.encoder.language

    @property
    def emotions(self) -> tuple[str, ...]:
        """The emotions that the model knows, in the order of its probabilities."""
        return self.language.emotions

    def read(
        self, contexts: Sequence[Sequence[str]], emotions: Sequence[str | None] | None = None
    ) -> list[ReadContext]:
        """Encode contexts for the model.

        Args:
            emotions: the emotion of each, which replaces the model's prediction where it is not None.
        """
        original = [checked_context(context, number) for number, context in enumerate(contexts, start=1)]
        labels = [None] * len(original) if emotions is None else list(emotions)
        given = [None if label is None else emotion_id(label, self.emotions) for label in labels]
        found = []
        for own, emotion in zip(original, given, strict=True):
            turns = [in_words(turn, self.language.name) for turn in own]
            packed = self.encoder.pack(self.encoder.context(turns), emotion)
            found.append(ReadContext(own, turns, packed, self.language, emotion))
        return found

    def understand(self, contexts: Sequence[ReadContext]) -> list[ReadContext]:
        """Let the model read the contexts of one batch; add predicted emotions and states."""
        state, emotions = self.model.read_contexts(*pad_sources([context.packed[0] for context in contexts]))
        batch = ReadBatch(self.model, state)
        return [
            dataclasses.replace(context, predicted=emotions[row], batch=batch, row=row)
            for row, context in enumerate(contexts)
        ]


def _through_paddle(network: nn.Layer) -> Any:
    """Return what answers as `NumpyEmoPrepend` does; a pre-trained network does so itself."""
    from paddle_dialog.tasks.empathetic.network.emo_prepend import EmoPrepend, PaddleEmoPrepend

    return PaddleEmoPrepend(network) if isinstance(network, EmoPrepend) else network


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
