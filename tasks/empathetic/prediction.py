"""A trained empathetic model that answers conversations."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from paddle_dialog.bundle.folder import TrainedModel
from paddle_dialog.data.files import Record
from paddle_dialog.decoding.interface import Hypothesis
from paddle_dialog.decoding.processors import ForbiddenTokens, LogitsProcessor, MinimumLength, NoRepeatNGram
from paddle_dialog.decoding.search import SearchOptions, decode
from paddle_dialog.judge import Judge
from paddle_dialog.predictor import GenerationPredictor, check_request, check_texts
from paddle_dialog.tasks.empathetic.config import EmpatheticConfig, EmpatheticDecodingConfig
from paddle_dialog.tasks.empathetic.data.dialogue import (
    checked_context,
    in_words,
    parse_context,
    reply_to_emoji,
)
from paddle_dialog.tasks.empathetic.data.emotions import NO_CLEAR_EMOTION, emotion_id
from paddle_dialog.tasks.empathetic.data.encoding import (
    DialogueEncoder,
    Source,
    make_encoder,
    not_words,
    pad_sources,
)
from paddle_dialog.tasks.empathetic.network.numpy_emo_prepend import numpy_emo_prepend
from paddle_dialog.tasks.empathetic.replies import (
    MIN_SIMILARITY,
    Answer,
    Context,
    Reflector,
    ReplyPrediction,
    WrittenReplies,
    mirrors,
    order_by_judge,
    origin_note,
    repeats,
    repetitions_last,
)
from paddle_dialog.tasks.empathetic.turns import STATEMENT, Act, CareResponder, TurnReading, read_turn
from paddle_dialog.text.characters import LanguageName, language_of

if TYPE_CHECKING:
    from paddle import nn

T = TypeVar("T")
TINY = 1e-9
MIN_LENGTH = 1  # of a reply in tokens
EMOTIONAL: tuple[Act, ...] = ("statement", "advice")  # acts whose speaker shows an emotion
MIN_WORDS = 2  # of English that are worth a hint; everybody writes "OK"
_HINTS: dict[LanguageName, str] = {  # by the language of the turn
    "en": "This model reads Chinese and not English; please say it in Chinese.",
    "zh": "这个模型只懂英文，读不懂中文；请用英文说。",
}


class EmpatheticPredictor(GenerationPredictor):
    """Answers conversations with an emotion and replies.

    Args:
        encoder: an existing one, so that its lexicon is not read again.
        judge: of the bundle, which chooses among written replies and reflections; with None the generator answers
            alone.
    """

    def __init__(
        self,
        config: EmpatheticConfig,
        trained: TrainedModel,
        encoder: DialogueEncoder | None = None,
        judge: Judge | None = None,
    ) -> None:
        self.config: EmpatheticConfig = config
        (self.vocabulary,) = trained.vocabularies.values()
        self._trained = trained
        make = partial(numpy_emo_prepend, config, len(self.vocabulary))
        self.model: Any = trained.fastest(make, _through_paddle)
        self.encoder = make_encoder(config, self.vocabulary) if encoder is None else encoder
        self.language = self.encoder.language
        self.emotions = self.language.emotions  # in the order of the probabilities
        self.care = CareResponder(config.care)
        self.judge = judge

    @cached_property
    def written(self) -> WrittenReplies:
        """The replies that were written for this project."""
        return WrittenReplies(self.language.name, self.emotions)

    @cached_property
    def reflector(self) -> Reflector:
        """What mirrors the speaker."""
        return Reflector(self.language.name, self.emotions)

    def read_newest_turn(self, turns: Sequence[str]) -> TurnReading:
        """Return what the newest turn of a conversation means."""
        return read_turn(turns[-1], turns[-2] if len(turns) > 1 else "", self.language.name)

    def predict(
        self, contexts: Sequence[str | Sequence[str]], n_best: int | None = None
    ) -> list[list[ReplyPrediction]]:
        """Write replies to each context.

        Args:
            contexts: each one turn, or a conversation: its turns oldest first, the speaker's first and last.
            n_best: replies to each, best first; the config's number by default.

        Raises:
            UserError: see `answer`.
        """
        check_request(contexts, n_best, conversations=True)
        turns = [[context] if isinstance(context, str) else context for context in contexts]
        return [
            [dataclasses.replace(reply, emotion=answer.emotion) for reply in answer.predictions]
            for answer in self.answer(turns, n_best)
        ]

    def answer(
        self,
        contexts: Sequence[Sequence[str]],
        n_best: int | None = None,
        emotions: Sequence[str | None] | None = None,
        decoding: EmpatheticDecodingConfig | None = None,
        seed: int | None = None,
        accepts: Callable[[str], bool] = lambda text: True,
    ) -> list[Answer]:
        """Predict emotions and write replies, as a user gets them.

        A newest turn that speaks of danger gets a fixed sentence of `care`; no reply is searched for.

        Args:
            contexts: conversations; of a long one the newest turns are read.
            n_best: replies to each; the config's number by default.
            emotions: the emotion of each, which replaces the model's prediction where it is not None.
            decoding: how to search and rank; as the config says by default.
            seed: of the draws; the config's by default.
            accepts: predicate on the text of a candidate.

        Raises:
            UserError: a conversation has no turn, an empty one or an even number of them, or an emotion is unknown.
        """
        check_request(contexts, n_best, conversations=True)
        settings = self.config.decoding if decoding is None else decoding
        count = settings.n_best if n_best is None else n_best
        options = self.search_options(settings, count, seed)

        def answered(batch: list[Context]) -> Iterator[Answer]:
            name = self.language.name
            understood = batch if self.judge is None else self._emotion_of_last_turn(batch)
            each = [(context, self.read_newest_turn(context.turns)) for context in understood]
            cared = [self.care.answer(context.turns, reading, name) for context, reading in each]
            asked = [pair for pair, sentence in zip(each, cared, strict=True) if sentence is None]
            ranked = iter(self.rank(asked, options) if asked else [])
            for (context, reading), sentence in zip(each, cared, strict=True):
                if sentence is not None:
                    assert context.predicted is not None
                    reply = self._fixed(sentence, "care")
                    yield Answer(
                        context.original, None, context.predicted, (reply,), self.emotions, care=True
                    )
                    continue
                replies = next(ranked)
                relief = self.care.reassurance(context.turns, reading, name)
                if relief is not None:
                    replies = [self._fixed(relief, "written"), *replies]
                accepted = [reply for reply in replies if accepts(reply.text)][:count]
                act = None if self.judge is None else reading.act
                yield self._answer(context, act, accepted, settings.min_confidence)

        return self._in_batches(contexts, settings.batch_size, answered, emotions)

    def generate(
        self, contexts: Sequence[Sequence[str]], decoding: EmpatheticDecodingConfig | None = None
    ) -> list[Answer]:
        """Return the emotions and replies of the network alone, by the protocol of published systems.

        One emotion a conversation, and the generator's reply whatever the turn: no judge, no care. Arguments and
        errors as for `answer`.
        """
        settings = self.config.decoding if decoding is None else decoding
        options = self.search_options(settings, 1)

        def answered(batch: list[Context]) -> Iterator[Answer]:
            for context, replies in zip(batch, write_replies(self.encoder, batch, options), strict=True):
                yield self._answer(context, None, replies, 0.0)

        return self._in_batches(contexts, settings.batch_size, answered)

    def predict_emotions(self, contexts: Sequence[Sequence[str]]) -> list[np.ndarray]:
        """Return the network's probabilities [C] of the emotions of each context; errors as for `answer`."""
        size = self.config.decoding.batch_size
        return self._in_batches(contexts, size, lambda batch: [context.emotions for context in batch])

    def _in_batches(
        self,
        contexts: Sequence[Sequence[str]],
        size: int,
        answer_batch: Callable[[list[Context]], Iterable[T]],
        emotions: Sequence[str | None] | None = None,
    ) -> list[T]:
        """Let the model read contexts, `size` of like length at a time; return what `answer_batch` makes of each."""
        encoded = self.encode(contexts, emotions)
        order = sorted(range(len(encoded)), key=lambda row: len(encoded[row].packed[0].words))
        found: dict[int, T] = {}
        for start in range(0, len(order), size):
            rows = order[start : start + size]
            found.update(zip(rows, answer_batch(self.read([encoded[row] for row in rows])), strict=True))
        return [found[row] for row in range(len(encoded))]

    def encode(
        self, contexts: Sequence[Sequence[str]], emotions: Sequence[str | None] | None = None
    ) -> list[Context]:
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
            found.append(Context(own, turns, packed, self.language, emotion))
        return found

    def read(self, contexts: Sequence[Context]) -> list[Context]:
        """Let the model read the contexts of one batch; add predicted emotions and states."""
        state, emotions = self.model.read_contexts(*pad_sources([context.packed[0] for context in contexts]))
        return [
            dataclasses.replace(context, predicted=emotions[row], model=self.model, batch=state, row=row)
            for row, context in enumerate(contexts)
        ]

    def attention_weights(self, source: Source, target: np.ndarray) -> np.ndarray:
        """Return attention [T, S] of a target [T], begin token first, over a context."""
        weights: np.ndarray = self.model.attention_weights(*pad_sources([source]), target[None])[0]
        return weights

    def _emotion_of_last_turn(self, contexts: Sequence[Context]) -> list[Context]:
        """Mix the emotion of each conversation with that of its newest turn.

        The probabilities are those of the conversation to the power 1 - c times those of the newest turn alone to the
        power c, where c is how clear the latter are: 1 less their entropy over the greatest one.
        """
        found = list(contexts)
        rows = [row for row, one in enumerate(contexts) if one.given is None and len(one.turns) > 1]
        alone = self.read(self.encode([[contexts[row].turns[-1]] for row in rows])) if rows else []
        for row, newest in zip(rows, alone, strict=True):
            logs = np.log(np.maximum(newest.emotions, TINY))  # [C]
            clarity = 1 + float(newest.emotions @ logs) / math.log(len(logs))
            mixed = np.maximum(contexts[row].emotions, TINY) ** (1 - clarity) * np.exp(clarity * logs)  # [C]
            found[row] = dataclasses.replace(contexts[row], predicted=mixed / mixed.sum())
        return found

    def _answer(
        self, context: Context, act: Act | None, replies: Sequence[ReplyPrediction], least: float
    ) -> Answer:
        assert context.predicted is not None
        named = None
        if context.given is not None:
            named = self.emotions[context.given]
        elif act is None or act in EMOTIONAL:
            best = int(context.predicted.argmax())
            named = self.emotions[best] if context.predicted[best] >= least else None
        hint = language_hint(context.turns[-1], self.language.name)
        return Answer(
            context.original, named, context.predicted, tuple(replies), self.emotions, act=act, hint=hint
        )

    def _fixed(self, sentence: str, origin: Literal["written", "care"]) -> ReplyPrediction:
        return ReplyPrediction(sentence, 0.0, self.language.tokens_of(sentence), origin=origin)

    def predict_records(self, texts: Sequence[str], n_best: int | None = None) -> Iterable[Record]:
        """Answer as JSON records.

        Args:
            texts: each a single turn, or a conversation as `{"context": [turn, …]}`.
        """
        contexts = [parse_context(text) for text in check_texts(texts)]
        for answer in self.answer(contexts, n_best):
            yield answer.as_dict()

    def format_record(self, record: Record) -> str:
        emotion, replies = record["emotion"], record["predictions"]
        if "care" in record:
            return f"[care] {replies[0]['text']}"
        share = f" {record['emotions'][emotion]:.0%}" if emotion in record["emotions"] else ""
        head = f"[{emotion or NO_CLEAR_EMOTION}{share}]"
        if len(replies) == 1:
            return f"{head} {replies[0]['text']}{origin_note(replies[0])}"
        rows = (f"  {reply['score']:8.4f}  {reply['text']}{origin_note(reply)}" for reply in replies)
        return "\n".join([head, *rows])

    def note_of(self, record: Record) -> str | None:
        """Return the hint to somebody who wrote in another language, if any."""
        return record.get("hint")

    def search_summary(self) -> str:
        """Describe the generator's search in a few words."""
        settings = self.config.decoding
        repeats = f", no repeated {settings.no_repeat_ngram}-gram" if settings.no_repeat_ngram else ""
        return f"{super().search_summary()}{repeats}, at most {settings.max_length} tokens"

    def decoding_summary(self) -> str:
        search, replies = self.search_summary(), self.config.replies
        if self.judge is None:
            return search
        return (
            f"{replies.written} of {len(self.written.replies):,} written replies, {replies.reflections} in the "
            f"speaker's words; the best by the judge; where none fits, {search}"
        )

    def rank(
        self, contexts: Sequence[tuple[Context, TurnReading]], options: SearchOptions
    ) -> list[list[ReplyPrediction]]:
        """Return the candidates, best first, for the contexts of one batch and what their newest turns mean.

        The generator writes where fewer prepared replies than wanted are new. Without a judge it answers alone.
        """
        if self.judge is None:
            return write_replies(self.encoder, [context for context, _ in contexts], options)
        found = [
            order_by_judge(self.judge, self.encoder, context, reading.acts, self.prepared(context, reading))
            for context, reading in contexts
        ]
        short = []
        for row, (context, _) in enumerate(contexts):
            to_emoji = reply_to_emoji(context.original[-1], self.language.name)
            if to_emoji is not None and len(context.turns) > 1:
                found[row] = repetitions_last([self._fixed(to_emoji, "written"), *found[row]], context)
            new = [one for one in found[row] if not repeats(one.text, context.turns, self.language.name)]
            if len(new) < options.n_best:
                short.append(row)
        if short:
            generated = write_replies(self.encoder, [contexts[row][0] for row in short], options)
            for row, replies in zip(short, generated, strict=True):
                found[row] = repetitions_last([*found[row], *replies], contexts[row][0])
        return found

    def prepared(self, context: Context, reading: TurnReading) -> list[ReplyPrediction]:
        """Return the written replies and the reflections that fit a context, each text once, not scored.

        A statement is mirrored at most every other time; in between general replies answer it.

        Args:
            reading: of its newest turn.
        """
        turn, felt, replies = context.turns[-1], context.emotions, self.config.replies
        written = self.written.matches(turn, reading.acts, felt, replies.written, reading.tone)
        if mirrors(context.turns[-3:-1], self.language.name):
            return written
        reflected = self.reflector.replies(turn, felt, reading.tone, replies.reflections)
        if reflected:
            written = [one for one in written if one.act != STATEMENT or one.similarity >= MIN_SIMILARITY]
        return list({one.text: one for one in (*written, *reflected)}.values())

    def search_options(
        self, settings: EmpatheticDecodingConfig, n_best: int, seed: int | None = None
    ) -> SearchOptions:
        """Return the generator's search for candidates where `n_best` replies are wanted."""
        forbidden = ForbiddenTokens([not_words(self.emotions)])
        processors: list[LogitsProcessor] = [forbidden, MinimumLength(MIN_LENGTH)]
        if settings.no_repeat_ngram:
            processors.append(NoRepeatNGram(settings.no_repeat_ngram))
        return SearchOptions.of(settings, n_best, self.config.seed if seed is None else seed, processors)


def _through_paddle(network: nn.Layer) -> Any:
    """Return what answers as `NumpyEmoPrepend` does; a pre-trained network does so itself."""
    from paddle_dialog.tasks.empathetic.network.emo_prepend import EmoPrepend, PaddleEmoPrepend

    return PaddleEmoPrepend(network) if isinstance(network, EmoPrepend) else network


def write_replies(
    encoder: DialogueEncoder, contexts: Sequence[Context], options: SearchOptions
) -> list[list[ReplyPrediction]]:
    """Write replies to each context, in the order of the search."""
    model, rows = contexts[0].model, np.array([context.row for context in contexts])
    sources, lengths = pad_sources([context.packed[0] for context in contexts])
    found = decode(model, sources.words, lengths, options, model.reorder(contexts[0].batch, rows))
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


def language_hint(turn: str, language: LanguageName) -> str | None:
    """Return a hint in the language of a turn that the model does not read, else None."""
    written = language_of(turn)
    if written is None or written == language:
        return None
    if written == "en" and sum(word.isascii() and word.isalpha() for word in turn.split()) < MIN_WORDS:
        return None
    return _HINTS[written]
