"""Making a store of replies from a corpus."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Protocol

import numpy as np

from paddle_dialog.decoding.interface import Array, StepModel, evaluation_mode, to_array
from paddle_dialog.errors import UserError
from tasks.empathetic.cleaning import Reply, WordUse, editor_of, fault_of
from tasks.empathetic.config import EmpatheticConfig
from tasks.empathetic.data.dialogue import Dialogue
from tasks.empathetic.data.encoding import DialogueEncoder, Source
from tasks.empathetic.data.language import ENGLISH, Language
from tasks.empathetic.data.sources import SERVING, read_configured
from tasks.empathetic.data.vocabulary import turns_once
from tasks.empathetic.reading import as_source
from tasks.empathetic.store import ContextIndex, ReplyStore, emotion_bits

logger = logging.getLogger("paddle_dialog")

BATCH = 64  # contexts read together
SHARE = 0.3  # of the likeliest emotion's probability, from which another one counts too


class EmotionModel(StepModel, Protocol):
    """A model that predicts emotions; `EmoPrepend` or its array form."""

    def emotion_probabilities(self, source: Source, source_lengths: Array, /) -> Array:
        """Return probabilities [B, C] of the emotions in sources of the given lengths [B]."""
        ...


def store_of_corpus(
    sources: Sequence[str], config: EmpatheticConfig, model: EmotionModel, encoder: DialogueEncoder
) -> ReplyStore:
    """Make a store of the listeners' turns that fit other conversations too; log how many were dropped.

    Args:
        sources: as for `read_configured`.
        config: of the model.
        model: predicts the emotions of contexts without one, where their replies were written for this project.
        encoder: of the model.

    Raises:
        UserError: a source cannot be read, or none of its replies is usable.
    """
    read = {source: read_configured(config, source) for source in sources}
    dialogues = [dialogue for source in sources for dialogue in read[source]]
    ours = {id(dialogue) for source in sources if source in SERVING for dialogue in read[source]}
    language = encoder.language
    kept, dropped = good_replies(dialogues, language, ours)
    told = ", ".join(f"{name} {dropped[name]:,}" for name in [*editor_of(language).rules, "repeated"])
    logger.info(
        "%s: %s replies, kept %s; left out: %s",
        ", ".join(sources),
        f"{len(dialogues):,}",
        f"{len(kept):,}",
        told,
    )
    if not kept:
        raise UserError(f"{', '.join(sources)}: none of the replies serves in other conversations; give more")
    contexts = ContextIndex.build(
        [[language.terms(turn) for turn in one.context] for given in kept.values() for one in given],
        [row for row, given in enumerate(kept.values()) for _ in given],
    )
    return ReplyStore(
        list(kept),
        emotions_of_replies(list(kept.values()), ours, model, encoder),
        contexts,
        np.array([any(id(one) in ours for one in given) for given in kept.values()]),
    )


def good_replies(
    dialogues: Sequence[Dialogue], language: Language = ENGLISH, kept_all: Collection[int] = ()
) -> tuple[dict[str, list[Dialogue]], Counter[str]]:
    """Find the replies that serve in other conversations too.

    Args:
        dialogues: examples, those of one conversation one after the other.
        language: of them.
        kept_all: the `id` of those that were written to serve anywhere, whose replies no rule leaves out.

    Returns:
        Each reply, tidied, with every example that has it, and how many replies each rule of
        the language has dropped, "repeated" those that differ from an earlier one in punctuation alone.
    """
    editor, use = editor_of(language), WordUse(turns_once((d.context, d.target) for d in dialogues), language)
    kept: dict[tuple[str, ...], tuple[str, list[Dialogue]]] = {}
    dropped: Counter[str] = Counter()
    for dialogue in dialogues:
        if not dialogue.target:  # it has an emotion alone
            continue
        text = editor.tidied(dialogue.target)
        asked = editor.question_mark in dialogue.context[-1]
        reply = Reply(text, language.tokens_of(text), asked)
        fault = fault_of(reply, use, editor.rules)
        if fault is not None and id(dialogue) not in kept_all:
            dropped[fault] += 1
            continue
        _, given = kept.setdefault(editor.same_words(reply.tokens), (text, []))
        dropped["repeated"] += bool(given)
        given.append(dialogue)
    return dict(kept.values()), dropped


def emotions_of_replies(
    replies: Sequence[Sequence[Dialogue]],
    ours: Collection[int],
    model: EmotionModel,
    encoder: DialogueEncoder,
) -> np.ndarray:
    """Return the emotions in which replies were given, as the bits of `ReplyStore.emotions`, uint32 [N].

    Args:
        replies: the examples that have each reply.
        ours: the `id` of those that were written for this project; where they name no emotion the model predicts it.
        model: that reads their contexts.
        encoder: of the model.
    """
    unnamed = [one for given in replies for one in given if id(one) in ours and one.emotion is None]
    predicted = likely_emotions([one.context for one in unnamed], model, encoder)
    labels_of = {id(one): labels for one, labels in zip(unnamed, predicted, strict=True)}
    names = encoder.language.emotions
    bits = [
        emotion_bits([label for one in given for label in labels_of.get(id(one), [one.emotion])], names)
        for given in replies
    ]
    return np.array(bits, np.uint32)


def likely_emotions(
    contexts: Sequence[Sequence[str]], model: EmotionModel, encoder: DialogueEncoder
) -> list[list[str]]:
    """Return the likeliest emotions of each context; where none is clear there are many."""
    names, likely = encoder.language.emotions, []
    for start in range(0, len(contexts), BATCH):
        sources = [encoder.pack(encoder.context(one))[0] for one in contexts[start : start + BATCH]]
        with evaluation_mode(model):
            probabilities = to_array(model.emotion_probabilities(*as_source(model, sources)))  # [B, C]
        near = probabilities >= SHARE * probabilities.max(axis=1, keepdims=True)  # [B, C]
        likely += [[names[place] for place in np.flatnonzero(row)] for row in near]
    return likely
