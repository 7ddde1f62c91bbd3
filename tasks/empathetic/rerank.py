"""Re-ranking: orders the replies to a context by the model's score and other features.

A model's likeliest replies fit every context ("i am sorry to hear that"). Re-ranking asks how near a reply is to its
context, and what a judge makes of it. Replies of people and of the generator are ordered by the same sum.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import cast

import numpy as np

from paddle_dialog.judge import Judge
from tasks.empathetic.answer import ReplyPrediction
from tasks.empathetic.config import ReplyRerankConfig
from tasks.empathetic.data.encoding import DialogueEncoder
from tasks.empathetic.overlap import echo, overlaps, rejoices_at_denied, repetition
from tasks.empathetic.reading import ReadContext, reply_states
from tasks.empathetic.store import ReplyStore

AGAINST = frozenset({"echo", "repetition"})  # subtracted

Lists = Sequence[Sequence[ReplyPrediction]]  # candidates of each context
Feature = Callable[[Sequence[ReadContext], Lists], np.ndarray]  # of all candidates, context by context [N]


class Reranker:
    """Orders candidates by a weighted sum.

    Args:
        encoder: of the model that reads the contexts.
        store: of the candidates that people wrote; None where there are none.
        judge: of the bundle; None where there is none.

    Attributes:
        features: the terms of the sum, by the names of `ReplyRerankConfig`.
    """

    def __init__(
        self,
        encoder: DialogueEncoder,
        store: ReplyStore | None = None,
        judge: Judge | None = None,
    ) -> None:
        self._encoder = encoder
        self._store = store
        self._judge = judge
        self.features: dict[str, Feature] = {
            "model": _each(lambda _, one: one.score),
            "context_words": _each(lambda _, one: one.similarity or 0.0),
            "judge": self._judged,
            "person": _each(lambda _, one: float(one.row is not None)),
            "own": _each(lambda _, one: float(one.origin == "written")),
            "own_words": _each(lambda _, one: (one.similarity or 0.0) * (one.origin == "written")),
            "reflected": _each(lambda _, one: float(one.origin == "reflected")),
            "emotion": _each(self._agreement),
            "overlap_last": _each(lambda context, one: overlaps(one.tokens, context.words)[0]),
            "overlap_earlier": _each(lambda context, one: overlaps(one.tokens, context.words)[1]),
            "echo": _each(lambda context, one: echo(one.tokens, context.words)),
            "repetition": _each(lambda context, one: repetition(one.tokens, context.words)),
        }

    @property
    def known(self) -> Collection[str]:
        """The features that the bundle has the data for."""
        return [name for name in self.features if name != "judge" or self._judge is not None]

    def order(
        self, contexts: Sequence[ReadContext], lists: Lists, weights: ReplyRerankConfig
    ) -> list[list[ReplyPrediction]]:
        """Order the candidates of each context, every text once, best first; equal sums keep their order.

        What was replied before in the same words, and what rejoices at what was denied, comes last.

        Args:
            contexts: what is answered.
            lists: candidates of each context; those of a search in its order.
            weights: of the sum; with none beside `model` the order of a search's candidates stays. That of a judge
                counts nothing where there is none.
        """
        found = [distinct(own) for own in lists]
        is_mixed = any(one.origin != "model" for own in found for one in own)
        if all(len(own) < 2 for own in found) or not (weights.is_active or is_mixed):
            return found
        sums = np.zeros(sum(map(len, found)))  # [N]
        for name in (name for name in weights.weights if name in self.known):
            weight = weights.weights[name]
            sums += (-weight if name in AGAINST else weight) * self.features[name](contexts, found)
        parts = np.split(sums, np.cumsum([len(own) for own in found])[:-1])
        return [
            _fitting_first([own[place] for place in np.argsort(-part, kind="stable")], context)
            for context, own, part in zip(contexts, found, parts, strict=True)
        ]

    def _judged(self, contexts: Sequence[ReadContext], lists: Lists) -> np.ndarray:
        """Return the judge's values [N]."""
        judge = cast(Judge, self._judge)
        return _joined(
            judge(judged_states(self._encoder, own, context))
            for context, own in zip(contexts, lists, strict=True)
            if own
        )

    def _agreement(self, context: ReadContext, candidate: ReplyPrediction) -> float:
        """Return p of the likeliest emotion in or for which the reply was given over that of the likeliest of all."""
        share = context.emotions / context.emotions.max()  # [32]
        if candidate.emotion is not None:
            return float(share[self._encoder.language.emotions.index(candidate.emotion)])
        if candidate.row is None:
            return 1.0
        assert self._store is not None, f"row {candidate.row} of no store"
        bits = int(self._store.emotions[candidate.row])
        return max((float(one) for place, one in enumerate(share) if bits >> place & 1), default=1.0)


def _fitting_first(candidates: Sequence[ReplyPrediction], context: ReadContext) -> list[ReplyPrediction]:
    """Put last what rejoices at what was denied or was replied before; the speaker has every other turn."""
    replied = {tuple(turn) for turn in context.words[-2::-2]}
    return sorted(
        candidates,
        key=lambda one: tuple(one.tokens) in replied or rejoices_at_denied(one.text, context.turns[-1]),
    )


def _each(value: Callable[[ReadContext, ReplyPrediction], float]) -> Feature:
    """Make a feature that is computed for one candidate at a time."""
    return lambda contexts, lists: np.array(
        [value(context, one) for context, own in zip(contexts, lists, strict=True) for one in own],
        dtype=float,
    )


def _joined(parts: Iterable[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.zeros(0), *parts])


def distinct(candidates: Sequence[ReplyPrediction]) -> list[ReplyPrediction]:
    """Return every text once, in the place of its first occurrence; a stored one wins over the generator's."""
    texts: dict[tuple[str, ...], ReplyPrediction] = {}
    for candidate in candidates:
        known = texts.setdefault(candidate.tokens, candidate)
        if candidate.row is not None and known.row is None:
            texts[candidate.tokens] = candidate
    return list(texts.values())


def judged_width(width: int) -> int:
    """Return how many numbers of a reply a judge reads, of a model of a width."""
    return 4 * width


def judged_states(
    encoder: DialogueEncoder, replies: Sequence[ReplyPrediction], context: ReadContext
) -> np.ndarray:
    """Return the decoder's mean and last outputs, and again those of reflected replies, else 0, float32 [N, 4 D].

    So reflections, which begin with words that are right in any case, are judged by weights of their own.

    Args:
        encoder: of the model.
        replies: to the context; at least one.
        context: of them.
    """
    states = reply_states(encoder, [one.tokens for one in replies], context)  # [N, 2 D]
    is_reflected = np.array([[one.origin == "reflected"] for one in replies])  # [N, 1]
    return np.concatenate([states, states * is_reflected], axis=1)
