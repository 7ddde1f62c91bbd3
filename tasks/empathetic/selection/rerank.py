"""Re-ranking: orders the replies to a context by the model's score and other features.

A model's likeliest replies fit every context ("i am sorry to hear that"). Re-ranking asks how much a reply owes to
its context, how near it is to it, or how common its word sequences are. Replies of people and of the generator are
ordered by the same sum.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property
from typing import cast

import numpy as np

from paddle_dialog.decoding.interface import StepModel
from paddle_dialog.errors import UserError
from paddle_dialog.judge import Judge
from tasks.empathetic.data.encoding import DialogueEncoder
from tasks.empathetic.ranking.numpy_ranker import CandidateRanker
from tasks.empathetic.ranking.stored import RANKER
from tasks.empathetic.reading.context import ReadContext
from tasks.empathetic.reading.vectors import (
    JudgedModel,
    SelectionModel,
    log_probs,
    reply_vectors,
)
from tasks.empathetic.reflection.reflector import MEANT
from tasks.empathetic.selection.candidate import ReplyPrediction
from tasks.empathetic.selection.config import ReplyRerankConfig
from tasks.empathetic.selection.denial import rejoices_at_denied
from tasks.empathetic.selection.judged import judged_states
from tasks.empathetic.selection.overlap import echo, likeness, overlaps, repetition
from tasks.empathetic.selection.reply_ngrams import ReplyNgrams
from tasks.empathetic.selection.store import ReplyStore

REPLY_NGRAMS = "reply_ngrams.txt.xz"  # in a bundle
AGAINST = frozenset({"mutual_information", "familiarity", "echo", "repetition"})  # subtracted

Lists = Sequence[Sequence[ReplyPrediction]]  # candidates of each context
Feature = Callable[[Sequence[ReadContext], Lists], np.ndarray]  # of all candidates, context by context [N]


class Reranker:
    """Orders candidates by a weighted sum.

    Args:
        model: scores replies without a context, and compares them with it.
        encoder: of the model's sources.
        ngrams: of the training replies; None where they are not known.
        store: of the candidates that people wrote; None where there are none.
        load_ranker: reads the bundle's ranker on first use; None where there is none.
        compares: whether the model has vectors of contexts and replies.
        judge: of the bundle; None where there is none.

    Attributes:
        features: the terms of the sum, by the names of `ReplyRerankConfig`.
    """

    def __init__(
        self,
        model: StepModel,
        encoder: DialogueEncoder,
        ngrams: ReplyNgrams | None = None,
        store: ReplyStore | None = None,
        load_ranker: Callable[[], CandidateRanker] | None = None,
        compares: bool = False,
        judge: Judge | None = None,
    ) -> None:
        self._model = model
        self._encoder = encoder
        self._ngrams = ngrams
        self._store = store
        self._load_ranker = load_ranker
        self._compares = compares
        self._judge = judge
        self.features: dict[str, Feature] = {
            "model": _each(lambda _, one: one.score),
            "mutual_information": self._without_context,
            "familiarity": _each(lambda _, one: self._familiarity(one)),
            "length": _each(lambda _, one: float(np.log(len(one.tokens) + 1))),
            "consensus": lambda _, lists: _joined(consensus([one.tokens for one in own]) for own in lists),
            "selection": self._cosines,
            "context_words": _each(lambda _, one: 0.0 if one.near is None else one.near.context_words),
            "context_vectors": _each(lambda _, one: 0.0 if one.near is None else one.near.context_vectors),
            "ranker": self._rank,
            "judge": self._judged,
            "person": _each(lambda _, one: float(one.row is not None)),
            "own": _each(lambda _, one: float(one.origin == "written")),
            "own_words": _each(lambda _, one: _nearness_of_own(one)),
            "reflected": _each(lambda _, one: float(one.origin == "reflected")),
            "felt": _each(self._felt),
            "general": _each(lambda _, one: float(one.emotion is None and bool(_presumes(one)))),
            "neutral": _each(lambda _, one: float(one.origin == "reflected" and not _presumes(one))),
            "emotion": _each(self._agreement),
            "overlap_last": _each(lambda context, one: overlaps(one.tokens, context.words)[0]),
            "overlap_earlier": _each(lambda context, one: overlaps(one.tokens, context.words)[1]),
            "echo": _each(lambda context, one: echo(one.tokens, context.words)),
            "repetition": _each(lambda context, one: repetition(one.tokens, context.words)),
        }

    @property
    def known(self) -> Collection[str]:
        """The features that the bundle has the data for."""
        has = {
            "familiarity": self._ngrams,
            "ranker": self._load_ranker,
            "selection": self._compares or None,
            "judge": self._judge,
        }
        return [name for name in self.features if has.get(name, True) is not None]

    def order(
        self, contexts: Sequence[ReadContext], lists: Lists, weights: ReplyRerankConfig
    ) -> list[list[ReplyPrediction]]:
        """Order the candidates of each context, every text once, best first; equal sums keep their order.

        What was replied before in the same words, and what rejoices at what was denied, comes last.

        Args:
            contexts: what is answered.
            lists: candidates of each context; those of a search in its order.
            weights: of the sum; with none beside `model` the order of a search's candidates stays.

        Raises:
            UserError: a weight needs the n-grams of the training replies, and they are not known.
        """
        found = [distinct(own) for own in lists]
        is_mixed = any(one.origin != "model" for own in found for one in own)
        if all(len(own) < 2 for own in found) or not (weights.is_active or is_mixed):
            return found
        sums = np.zeros(sum(map(len, found)))  # [N]
        for name, weight in weights.weights.items():
            if name == "judge" and self._judge is None:
                continue  # as was told in the log
            sums += (-weight if name in AGAINST else weight) * self.features[name](contexts, found)
        parts = np.split(sums, np.cumsum([len(own) for own in found])[:-1])
        return [
            _fitting_first([own[place] for place in np.argsort(-part, kind="stable")], context)
            for context, own, part in zip(contexts, found, parts, strict=True)
        ]

    def unconditional(self, texts: Sequence[Sequence[str]]) -> np.ndarray:
        """Return log p(reply) per token without any context, the end token counted, float64 [N]."""
        return log_probs(self._model, self._encoder, texts)

    def _without_context(self, contexts: Sequence[ReadContext], lists: Lists) -> np.ndarray:
        """Return `unconditional` [N]; a store has it for its own replies."""
        found = [one for own in lists for one in own]
        values = np.array(
            [0.0 if one.row is None else self._known(one.row).log_probs[one.row] for one in found]
        )
        new = [place for place, one in enumerate(found) if one.row is None]
        values[new] = self.unconditional([found[place].tokens for place in new])
        return values

    def _familiarity(self, candidate: ReplyPrediction) -> float:
        if self._ngrams is None:
            raise UserError(
                f"decoding.rerank.familiarity: needs {REPLY_NGRAMS}, which these weights were saved without; take "
                "a bundle that has it, or set it to 0"
            )
        return self._ngrams.familiarity(candidate.tokens)

    def _cosines(self, contexts: Sequence[ReadContext], lists: Lists) -> np.ndarray:
        """Return cosines of the vectors of each candidate and its context [N]."""
        pairs = [(context, one) for context, own in zip(contexts, lists, strict=True) for one in own]
        values = np.array([0.0 if one.near is None else one.near.selection for _, one in pairs])
        new = [place for place, (_, one) in enumerate(pairs) if one.near is None]
        if new:
            model = cast(SelectionModel, self._model)  # the config requires it
            replies = reply_vectors(
                model, self._encoder.vocabulary, [pairs[place][1].tokens for place in new]
            )
            values[new] = (replies * np.stack([_vector(pairs[place][0]) for place in new])).sum(axis=1)
        return values

    @cached_property
    def ranker(self) -> CandidateRanker:
        """The bundle's ranker.

        Raises:
            UserError: there is none, or it belongs to other weights.
        """
        if self._load_ranker is None:
            raise UserError(
                f"decoding.rerank.ranker: needs {RANKER}, which these weights were saved without; export them with a "
                "ranker (tools/export.py --ranker), or set it to 0"
            )
        return self._load_ranker()

    def _rank(self, contexts: Sequence[ReadContext], lists: Lists) -> np.ndarray:
        """Return the ranker's scores [N]."""
        return _joined(
            self.ranker.scores(context.turns, [one.tokens for one in own])
            for context, own in zip(contexts, lists, strict=True)
            if own
        )

    def _judged(self, contexts: Sequence[ReadContext], lists: Lists) -> np.ndarray:
        """Return the judge's values [N]."""
        judge, model = cast(Judge, self._judge), cast(JudgedModel, self._model)
        return _joined(
            judge(judged_states(model, self._encoder, own, context))
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
        bits = int(self._known(candidate.row).emotions[candidate.row])
        return max((float(one) for place, one in enumerate(share) if bits >> place & 1), default=1.0)

    def _felt(self, context: ReadContext, candidate: ReplyPrediction) -> float:
        """Return the probability of the emotions that a reply in the speaker's own words presumes, 0 for others."""
        names = self._encoder.language.emotions
        return float(
            sum(context.emotions[names.index(name)] for name in _presumes(candidate) if name in names)
        )

    def _known(self, row: int) -> ReplyStore:
        assert self._store is not None, f"row {row} of no store"
        return self._store


def _presumes(candidate: ReplyPrediction) -> tuple[str, ...]:
    """Return the emotions of which a reply in the speaker's own words presumes one; none where it fits any."""
    if candidate.origin != "reflected":
        return ()
    return MEANT.get(candidate.kind, ()) if candidate.emotion is None else (candidate.emotion,)


def _fitting_first(candidates: Sequence[ReplyPrediction], context: ReadContext) -> list[ReplyPrediction]:
    """Put last what rejoices at what was denied or was replied before; the speaker has every other turn."""
    replied = {tuple(turn) for turn in context.words[-2::-2]}
    return sorted(
        candidates,
        key=lambda one: tuple(one.tokens) in replied or rejoices_at_denied(one.text, context.turns[-1]),
    )


def _nearness_of_own(candidate: ReplyPrediction) -> float:
    """Return how near the words of its conversation are, of a reply that was written for this project."""
    return 0.0 if candidate.near is None or candidate.origin != "written" else candidate.near.context_words


def _vector(context: ReadContext) -> np.ndarray:
    assert context.vector is not None, "a context is compared without its vector"
    return context.vector


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


def consensus(texts: Sequence[Sequence[str]]) -> np.ndarray:
    """Return for each text how much it shares with the others: the mean F1 of its uni- and bigrams, in 0–1 [K].

    Choosing the highest is minimum Bayes risk decoding (Kumar & Byrne 2004) with that F1 as its gain.
    """
    if len(texts) < 2:
        return np.zeros(len(texts))
    alike = likeness(texts)  # [K, K]
    np.fill_diagonal(alike, 0)
    mean: np.ndarray = alike.sum(axis=1) / (len(texts) - 1)
    return mean
