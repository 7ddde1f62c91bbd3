"""A trained empathetic model that answers conversations."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from paddle_dialog.bundle.trained import TrainedModel
from paddle_dialog.data.records import Record
from paddle_dialog.decoding.interface import Hypothesis
from paddle_dialog.decoding.processors import ForbiddenTokens, LogitsProcessor, MinimumLength, NoRepeatNGram
from paddle_dialog.decoding.search import SearchOptions, decode
from paddle_dialog.judge import Judge
from paddle_dialog.predictor import GenerationPredictor, check_request
from paddle_dialog.text.language import LanguageName, language_of
from paddle_dialog.text.vocabulary import Vocabulary
from tasks.empathetic.answer import Answer, ReplyPrediction, origin_note
from tasks.empathetic.care import care_responder
from tasks.empathetic.config import EmpatheticConfig, EmpatheticDecodingConfig
from tasks.empathetic.data.dialogue import parse_context
from tasks.empathetic.data.emotions import NO_CLEAR_EMOTION
from tasks.empathetic.data.encoding import DialogueEncoder, pad_sources
from tasks.empathetic.data.vocabulary import not_words
from tasks.empathetic.reading import ContextReader, ReadContext, log_probs
from tasks.empathetic.reflection import Reflector
from tasks.empathetic.rerank import Reranker
from tasks.empathetic.store import ReplyStore, highest

FEWEST_WORDS = 2  # of English that are worth a hint; everybody writes "OK"
_HINTS: dict[LanguageName, str] = {  # by the language of the turn
    "en": "This model reads Chinese and not English; please say it in Chinese.",
    "zh": "这个模型只懂英文，读不懂中文；请用英文说。",
}


class EmpatheticPredictor(ContextReader, GenerationPredictor):
    """Answers conversations with an emotion and replies.

    Args:
        config: decoding settings, and what the model reads.
        trained: the model.
        encoder: see `ContextReader`.
        store: of people's replies; None where there is none.
        judge: of the bundle; None where there is none.

    Attributes:
        care: answers turns that speak of self-harm, in the place of the model.
        reranker: orders the candidates.
        store: of people's replies, or None.
        reflector: says back what the speaker said; None where the config wants none.
    """

    config: EmpatheticConfig

    def __init__(
        self,
        config: EmpatheticConfig,
        trained: TrainedModel,
        encoder: DialogueEncoder | None = None,
        store: ReplyStore | None = None,
        judge: Judge | None = None,
    ) -> None:
        super().__init__(config, trained, encoder)
        self.care = care_responder(config.care)
        self.store = store
        wanted = config.replies.reflections > 0 and config.replies.store is not False
        self.reflector = Reflector(self.language.name, self.emotions) if wanted else None
        self.reranker = Reranker(self.encoder, store, judge)

    def predict(
        self, contexts: Sequence[str | Sequence[str]], n_best: int | None = None
    ) -> list[list[ReplyPrediction]]:
        """Write replies.

        Args:
            contexts: each one turn, or a conversation: its turns oldest first, the speaker's first and last.
            n_best: replies to each, best first; the config's number by default.

        Returns:
            The replies to each context.

        Raises:
            UserError: see `answer`.
        """
        check_request(contexts, n_best)
        turns = [[context] if isinstance(context, str) else context for context in contexts]
        return [list(answer.predictions) for answer in self.answer(turns, n_best)]

    def answer(
        self,
        contexts: Sequence[Sequence[str]],
        n_best: int | None = None,
        emotions: Sequence[str | None] | None = None,
        decoding: EmpatheticDecodingConfig | None = None,
        seed: int | None = None,
        accepts: Callable[[str], bool] = lambda text: True,
    ) -> list[Answer]:
        """Predict emotions and write replies.

        A newest turn that speaks of self-harm gets the fixed sentence of `care` alone; no reply is looked for.

        Args:
            contexts: conversations; of a long one the newest turns are read.
            n_best: replies to each; the config's number by default.
            emotions: the emotion of each, which replaces the model's prediction where it is not None.
            decoding: how to search and rank; as the config says by default.
            seed: of the draws; the config's by default.
            accepts: tells of the text of a candidate whether it may be said.

        Returns:
            An answer to each context.

        Raises:
            UserError: see `read`.
        """
        check_request(contexts, n_best)
        settings = self.config.decoding if decoding is None else decoding
        count = settings.n_best if n_best is None else n_best
        options = self.search_options(settings, count, seed)
        read = self.read(contexts, emotions)
        answers: list[Answer | None] = [None] * len(read)
        order = sorted(range(len(read)), key=lambda row: len(read[row].packed[0].words))
        for start in range(0, len(order), settings.batch_size):
            rows = order[start : start + settings.batch_size]
            batch = self.understand([read[row] for row in rows])
            cared = [self.care.answer(context.turns[-1], self.language.name) for context in batch]
            asked = [context for context, sentence in zip(batch, cared, strict=True) if sentence is None]
            ranked = iter(self._ranked(asked, options, settings))
            for row, context, sentence in zip(rows, batch, cared, strict=True):
                if sentence is None:
                    replies = [reply for reply in next(ranked) if accepts(reply.text)][:count]
                    answers[row] = self._answer(context, replies, settings.clear_emotion)
                else:
                    answers[row] = self._caring(context, sentence)
        return [answer for answer in answers if answer is not None]

    def _ranked(
        self, contexts: Sequence[ReadContext], options: SearchOptions, settings: EmpatheticDecodingConfig
    ) -> Sequence[Sequence[ReplyPrediction]]:
        """Return the candidates for contexts of one batch, best first; nothing for no context."""
        if not contexts:
            return []
        return self.reranker.order(contexts, self.candidates(contexts, options), settings.rerank)

    def _answer(self, context: ReadContext, replies: Sequence[ReplyPrediction], least: float) -> Answer:
        assert context.predicted is not None
        named = _clear(context.predicted, least, self.emotions)
        if context.given is not None:
            named = self.emotions[context.given]
        hint = language_hint(context.turns[-1], self.language.name)
        return Answer(context.turns, named, context.predicted, tuple(replies), self.emotions, hint=hint)

    def _caring(self, context: ReadContext, sentence: str) -> Answer:
        assert context.predicted is not None
        reply = ReplyPrediction(sentence, 0.0, self.language.tokens_of(sentence), origin="care")
        return Answer(context.turns, None, context.predicted, (reply,), self.emotions, care=True)

    def greedy(
        self, contexts: Sequence[Sequence[str]], emotions: Sequence[str | None] | None = None
    ) -> list[Answer]:
        """Answer by greedy search, to show a model in training; only a model of gold emotions uses `emotions`."""
        settings = dataclasses.replace(self.config.decoding, strategy="greedy")
        return self.answer(contexts, 1, emotions if self.needs_emotion else None, settings)

    def predict_records(self, texts: Sequence[str], n_best: int | None = None) -> Iterable[Record]:
        """Answer as JSON records.

        Args:
            texts: each a single turn, or a conversation as `{"context": [turn, …]}`.
            n_best: replies to each; the config's number by default.
        """
        for answer in self.answer([parse_context(text) for text in texts], n_best):
            yield answer.as_dict()

    def format_record(self, record: Record) -> str:
        """Format the emotion with its probability and the reply, several replies one below the other."""
        emotion, replies = record["emotion"], record["predictions"]
        if "care" in record:
            return f"[care] {replies[0]['text']}"
        head = f"[{NO_CLEAR_EMOTION if emotion is None else emotion}" + (
            f" {record['emotions'][emotion]:.0%}]" if emotion in record["emotions"] else "]"
        )
        if len(replies) == 1:
            return f"{head} {replies[0]['text']}{origin_note(replies[0])}"
        rows = (f"  {reply['score']:8.4f}  {reply['text']}{origin_note(reply)}" for reply in replies)
        return "\n".join([head, *rows])

    def note_of(self, record: Record) -> str | None:
        """Return the hint to somebody who wrote in another language, if there is one."""
        return record.get("hint")

    def decoding_summary(self) -> str:
        """Describe search and ranking in a few words."""
        decoding, replies = self.config.decoding, self.config.replies
        search = search_summary(decoding, self.search_options(decoding, decoding.n_best))
        if self.store is not None:
            stored = f"the {replies.candidates} nearest of {len(self.store):,} stored replies"
            both = f"{search}; with {stored}" if replies.generate else stored
            return f"{both}; the best by {decoding.rerank.summary()}"
        if ranks(decoding):
            return f"{search}; the best of {decoding.rerank.candidates} by {decoding.rerank.summary()}"
        return search

    def candidates(
        self, contexts: Sequence[ReadContext], options: SearchOptions
    ) -> list[list[ReplyPrediction]]:
        """Return the generator's replies and the nearest of the store, for contexts of one batch."""
        found: list[list[ReplyPrediction]] = [[] for _ in contexts]
        if self.config.replies.generate or self.store is None:
            found = write_replies(self.encoder, contexts, options)
        if self.store is not None:
            count = self.config.replies.candidates
            found = [own + self.stored(context, count) for own, context in zip(found, contexts, strict=True)]
        if self.reflector is not None:
            count = self.config.replies.reflections
            found = [
                own + self.reflected(context, count) for own, context in zip(found, contexts, strict=True)
            ]
        return found

    def stored(
        self, context: ReadContext, count: int, rows: Sequence[int] | None = None
    ) -> list[ReplyPrediction]:
        """Return the `count` nearest replies of the store, or those of certain rows; none without a store."""
        if self.store is None:
            return []
        similarities = self.store.similarities(context.terms)  # [N]
        rows = highest(similarities, count) if rows is None else rows
        texts = [self.store.texts[row] for row in rows]
        tokens = [self.language.tokens_of(text) for text in texts]
        scores = log_probs(self.encoder, tokens, context).tolist()
        return [
            ReplyPrediction(
                text,
                score,
                words,
                "written" if self.store.own[row] else "person",
                float(similarities[row]),
                row,
            )
            for row, text, score, words in zip(rows, texts, scores, tokens, strict=True)
        ]

    def reflected(self, context: ReadContext, count: int) -> list[ReplyPrediction]:
        """Return at most `count` replies that say back what the speaker said; none without a reflector."""
        if self.reflector is None:
            return []
        replies = self.reflector.replies(context.turns[-1], context.emotions, count)
        tokens = [self.language.tokens_of(reply.text) for reply in replies]
        scores = log_probs(self.encoder, tokens, context).tolist()
        return [
            ReplyPrediction(reply.text, score, words, "reflected", emotion=reply.emotion)
            for reply, score, words in zip(replies, scores, tokens, strict=True)
        ]

    def search_options(
        self, settings: EmpatheticDecodingConfig, n_best: int, seed: int | None = None
    ) -> SearchOptions:
        """Return the generator's search for candidates where `n_best` replies are wanted."""
        seed = self.config.seed if seed is None else seed
        return search_options(settings, n_best, seed, self.store is not None, self.emotions)


def _clear(probabilities: np.ndarray, least: float, emotions: Sequence[str]) -> str | None:
    """Return the likeliest emotion of probabilities [C], None if its probability is below `least`."""
    best = int(probabilities.argmax())
    return emotions[best] if probabilities[best] >= least else None


def write_replies(
    encoder: DialogueEncoder, contexts: Sequence[ReadContext], options: SearchOptions
) -> list[list[ReplyPrediction]]:
    """Write replies.

    Args:
        encoder: of the contexts.
        contexts: of one batch that the model has read.
        options: of the search.

    Returns:
        The candidates of each context in the order of the search.
    """
    batch = contexts[0].batch
    assert batch is not None, "the model has not read the contexts"
    sources, lengths = pad_sources([context.packed[0] for context in contexts])
    state = batch.state_of([context.row for context in contexts])
    found = decode(contexts[0].model, sources.words, lengths, options, state)
    return [
        _predictions(encoder, hypotheses, context.packed[1])
        for hypotheses, context in zip(found, contexts, strict=True)
    ]


def _predictions(
    encoder: DialogueEncoder, hypotheses: Sequence[Hypothesis], extended: dict[int, int]
) -> list[ReplyPrediction]:
    """Make replies of hypotheses; `extended` maps the encoder's numbers to extended ids."""
    copied = {index: number for number, index in extended.items()}
    words = encoder.words() if copied else []
    size = len(encoder.vocabulary)
    predictions = []
    for hypothesis in hypotheses:
        tokens = tuple(
            encoder.vocabulary.token(index) if index < size else words[copied[index]]
            for index in hypothesis.tokens
            if index < size or index in copied
        )
        predictions.append(ReplyPrediction(encoder.language.detokenise(tokens), hypothesis.score, tokens))
    return predictions


def search_options(
    settings: EmpatheticDecodingConfig, n_best: int, seed: int, has_store: bool, emotions: Sequence[str]
) -> SearchOptions:
    """Return the options of the search for candidates.

    Args:
        settings: of decoding.
        n_best: replies asked for. Where they are ranked, there are more candidates.
        seed: of the draws.
        has_store: people's replies are candidates too, so the generator need not write all `n_best`.
        emotions: of the language, whose entries are no words.
    """
    count = n_best
    if has_store:
        count = 1 if settings.strategy == "greedy" else settings.rerank.candidates
    elif ranks(settings):
        count = max(count, settings.rerank.candidates)
    processors: list[LogitsProcessor] = [ForbiddenTokens([not_words(emotions)])]
    if settings.min_length:
        processors.append(MinimumLength(settings.min_length, Vocabulary.eos_id))
    if settings.no_repeat_ngram:
        processors.append(NoRepeatNGram(settings.no_repeat_ngram))
    wide = dataclasses.replace(settings, beam_size=max(settings.beam_size, n_best))
    return SearchOptions.of(wide, count, seed, processors)


def ranks(settings: EmpatheticDecodingConfig) -> bool:
    """Return whether the generator's candidates are re-ranked."""
    return settings.rerank.is_active and settings.strategy != "greedy"


def search_summary(settings: EmpatheticDecodingConfig, options: SearchOptions) -> str:
    """Describe the generator's search in a few words."""
    penalty = f"length penalty {settings.length_penalty}" + (
        f" {settings.alpha}" if settings.length_penalty != "none" else ""
    )
    search = {
        "beam": f"beam {options.beam_size}, {penalty}",
        "greedy": "greedy",
        "sample": f"sampling, temperature {settings.temperature}, top-k {settings.top_k}, "
        f"top-p {settings.top_p}, seed {options.seed}",
    }[settings.strategy]
    repeats = f", no repeated {settings.no_repeat_ngram}-gram" if settings.no_repeat_ngram else ""
    return f"{search}{repeats}, at most {settings.max_length} tokens"


def language_hint(turn: str, language: LanguageName) -> str | None:
    """Return a sentence for the writer of a turn in another language than the model's.

    Args:
        turn: the newest; a mixed one counts as the language that most of it is in.
        language: of the model.

    Returns:
        The sentence, in the language of the turn; None where the model reads it.
    """
    written = language_of(turn)
    if written is None or written == language:
        return None
    if written == "en" and sum(word.isascii() and word.isalpha() for word in turn.split()) < FEWEST_WORDS:
        return None
    return _HINTS[written]
