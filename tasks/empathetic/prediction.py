"""A trained empathetic model that answers conversations."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property

import numpy as np

from paddle_dialog.bundle.trained import TrainedModel
from paddle_dialog.data.records import Record
from paddle_dialog.decoding.interface import Hypothesis
from paddle_dialog.decoding.processors import ForbiddenTokens, LogitsProcessor, MinimumLength, NoRepeatNGram
from paddle_dialog.decoding.search import SearchOptions, decode
from paddle_dialog.predictor import check_request
from paddle_dialog.tasks.empathetic.answer import Answer, ReplyPrediction, origin_note
from paddle_dialog.tasks.empathetic.care import care_responder
from paddle_dialog.tasks.empathetic.config import EmpatheticConfig, EmpatheticDecodingConfig
from paddle_dialog.tasks.empathetic.data.dialogue import parse_context
from paddle_dialog.tasks.empathetic.data.emotions import NO_CLEAR_EMOTION
from paddle_dialog.tasks.empathetic.data.encoding import DialogueEncoder, pad_sources
from paddle_dialog.tasks.empathetic.data.vocabulary import not_words
from paddle_dialog.tasks.empathetic.dialogue_acts import ACTS, STATEMENT, Act
from paddle_dialog.tasks.empathetic.judge import ReplyJudge, first_new
from paddle_dialog.tasks.empathetic.overlap import repeats
from paddle_dialog.tasks.empathetic.reading import ContextReader, ReadContext, log_probs
from paddle_dialog.tasks.empathetic.reflection import Reflector, says_back
from paddle_dialog.tasks.empathetic.written import LIKE, WrittenReplies, agreement
from paddle_dialog.text.language import LanguageName, language_of
from paddle_dialog.text.vocabulary import Vocabulary

TINY = 1e-9
FEELING: tuple[Act, ...] = ("statement", "advice")  # acts whose speaker tells a feeling
MOST = 10_000  # reflections of a turn
FEWEST_WORDS = 2  # of English that are worth a hint; everybody writes "OK"
_HINTS: dict[LanguageName, str] = {  # by the language of the turn
    "en": "This model reads Chinese and not English; please say it in Chinese.",
    "zh": "这个模型只懂英文，读不懂中文；请用英文说。",
}


class EmpatheticPredictor(ContextReader):
    """Answers conversations with an emotion and replies.

    Args:
        config: decoding settings, and what the model reads.
        trained: the model.
        encoder: see `ContextReader`.
        judge: of the bundle, which chooses among what was written and said back; None where there is none, and the
            generator answers alone.

    Attributes:
        care: answers turns that speak of self-harm, abuse or violence, in the place of the model.
        judge: see above.
    """

    config: EmpatheticConfig

    def __init__(
        self,
        config: EmpatheticConfig,
        trained: TrainedModel,
        encoder: DialogueEncoder | None = None,
        judge: ReplyJudge | None = None,
    ) -> None:
        super().__init__(config, trained, encoder)
        self.care = care_responder(config.care)
        self.judge = judge

    @cached_property
    def written(self) -> WrittenReplies:
        """The replies that were written for this project."""
        return WrittenReplies(self.language.name, self.emotions)

    @cached_property
    def _reflector(self) -> Reflector:
        return Reflector(self.language.name, self.emotions)

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
        """Predict emotions and write replies.

        A newest turn that speaks of danger gets a fixed sentence of `care` alone; no reply is looked for.

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
        answers: list[Answer | None] = [None] * len(contexts)
        for rows, batch in self._understood(self.read(contexts, emotions), settings.batch_size):
            cared = [self.care.answer(context.turns[-1], self.language.name) for context in batch]
            asked = [context for context, sentence in zip(batch, cared, strict=True) if sentence is None]
            ranked = iter(self.ranked(asked, options) if asked else [])
            for row, context, sentence in zip(rows, batch, cared, strict=True):
                if sentence is None:
                    act, replies = next(ranked)
                    accepted = [reply for reply in replies if accepts(reply.text)][:count]
                    answers[row] = self._answer(context, act, accepted, settings.clear_emotion)
                else:
                    answers[row] = self._caring(context, sentence)
        return [answer for answer in answers if answer is not None]

    def predict_emotions(
        self, contexts: Sequence[Sequence[str]], emotions: Sequence[str | None] | None = None
    ) -> list[np.ndarray]:
        """Return the probabilities [C] of the emotions of each context; arguments and errors as for `answer`."""
        found: list[np.ndarray] = [np.empty(0)] * len(contexts)
        for rows, batch in self._understood(self.read(contexts, emotions), self.config.decoding.batch_size):
            for row, context in zip(rows, batch, strict=True):
                assert context.predicted is not None
                found[row] = context.predicted
        return found

    def _understood(
        self, contexts: Sequence[ReadContext], size: int
    ) -> Iterator[tuple[list[int], list[ReadContext]]]:
        """Let the model read contexts, `size` of like length at a time; with the places of each batch."""
        order = sorted(range(len(contexts)), key=lambda row: len(contexts[row].packed[0].words))
        for start in range(0, len(order), size):
            rows = order[start : start + size]
            batch = self.understand([contexts[row] for row in rows])
            yield rows, self._felt_now(batch) if self.judge is not None and not self.needs_emotion else batch

    def _felt_now(self, contexts: Sequence[ReadContext]) -> list[ReadContext]:
        """Let the newest turn decide what is felt, and the conversation where that turn is silent.

        The probabilities are those of the conversation to the power 1 - c times those of the newest turn alone to the
        power c, where c is how clear the latter are: 1 less their entropy over the greatest one.
        """
        rows = [row for row, one in enumerate(contexts) if one.given is None and len(one.turns) > 1]
        if not rows:
            return list(contexts)
        found = list(contexts)
        alone = self.understand(self.read([[contexts[row].turns[-1]] for row in rows]))
        for row, newest in zip(rows, alone, strict=True):
            mixed = _newest_first(contexts[row].emotions, newest.emotions)
            found[row] = dataclasses.replace(contexts[row], predicted=mixed)
        return found

    def _answer(
        self, context: ReadContext, act: Act | None, replies: Sequence[ReplyPrediction], least: float
    ) -> Answer:
        assert context.predicted is not None
        feels = act is None or act in FEELING
        named = _clear(context.predicted, least, self.emotions) if feels else None
        if context.given is not None:
            named = self.emotions[context.given]
        hint = language_hint(context.turns[-1], self.language.name)
        return Answer(
            context.turns, named, context.predicted, tuple(replies), self.emotions, act=act, hint=hint
        )

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
        """Describe search and choice in a few words."""
        decoding, replies = self.config.decoding, self.config.replies
        search = search_summary(decoding, self.search_options(decoding, decoding.n_best))
        if self.judge is None:
            return search
        return (
            f"{replies.written} of {len(self.written.replies):,} written replies, {replies.reflections} in the "
            f"speaker's words; the best by the judge; where none fits, {search}"
        )

    def ranked(
        self, contexts: Sequence[ReadContext], options: SearchOptions
    ) -> list[tuple[Act | None, list[ReplyPrediction]]]:
        """Return the act of the newest turn and the candidates, best first, for the contexts of one batch.

        The generator is asked where there are fewer prepared replies than wanted that say nothing again. Without a
        judge there is no act, and it answers alone.
        """
        if self.judge is None:
            return [(None, replies) for replies in write_replies(self.encoder, contexts, options)]
        acts = [self.judge.acts(context.turns[-1]) for context in contexts]  # [A] each
        found = [
            self.judge.order(self.encoder, context, own, self.prepared(context, own))
            for context, own in zip(contexts, acts, strict=True)
        ]
        short = [row for row, context in enumerate(contexts) if _new(found[row], context) < options.n_best]
        if short:
            generated = write_replies(self.encoder, [contexts[row] for row in short], options)
            for row, replies in zip(short, generated, strict=True):
                found[row] = first_new([*found[row], *replies], contexts[row])
        return [(ACTS[int(own.argmax())], replies) for own, replies in zip(acts, found, strict=True)]

    def prepared(
        self, context: ReadContext, acts: np.ndarray, only: Collection[str] | None = None
    ) -> list[ReplyPrediction]:
        """Return the written replies that fit a context and those in the speaker's words.

        A statement is said back at most every other time; in between general replies answer it.

        Args:
            context: that the model has read.
            acts: probabilities of the acts of its newest turn [A].
            only: the texts wanted, of all that there are; None takes the first of each kind, as the config says.
        """
        turn, felt, replies = context.turns[-1], context.emotions, self.config.replies
        wanted = (replies.written, replies.reflections) if only is None else (None, MOST)
        written = self.written.fitting(turn, acts, felt, wanted[0])
        reflected = self._reflector.replies(turn, felt, wanted[1])
        if only is not None:
            written = [one for one in written if one.reply.text in only]
            reflected = [one for one in reflected if one.text in only]
        elif says_back(context.turns[-3:-1], self.language.name):
            reflected = []
        elif reflected:
            written = [one for one in written if one.reply.act != STATEMENT or one.similarity >= LIKE]
        texts = [one.reply.text for one in written] + [one.text for one in reflected]
        tokens = [self.language.tokens_of(text) for text in texts]
        scores = log_probs(self.encoder, tokens, context).tolist()
        scored = list(zip(texts, scores, tokens, strict=True))
        return [
            ReplyPrediction(*each, "written", one.reply.act, one.similarity, one.agreement)
            for each, one in zip(scored, written, strict=False)
        ] + [
            ReplyPrediction(*each, "reflected", agreement=agreement(one.emotions, felt, self.emotions))
            for each, one in zip(scored[len(written) :], reflected, strict=True)
        ]

    def search_options(
        self, settings: EmpatheticDecodingConfig, n_best: int, seed: int | None = None
    ) -> SearchOptions:
        """Return the generator's search for candidates where `n_best` replies are wanted."""
        seed = self.config.seed if seed is None else seed
        return search_options(settings, n_best, seed, self.emotions)


def _newest_first(conversation: np.ndarray, newest: np.ndarray) -> np.ndarray:
    """Return the probabilities [C] of `EmpatheticPredictor._felt_now`."""
    logs = np.log(np.maximum(newest, TINY))  # [C]
    clarity = 1 + float(newest @ logs) / math.log(len(newest))
    mixed = np.maximum(conversation, TINY) ** (1 - clarity) * np.exp(clarity * logs)  # [C]
    probabilities: np.ndarray = mixed / mixed.sum()
    return probabilities


def _clear(probabilities: np.ndarray, least: float, emotions: Sequence[str]) -> str | None:
    """Return the likeliest emotion of probabilities [C], None if its probability is below `least`."""
    best = int(probabilities.argmax())
    return emotions[best] if probabilities[best] >= least else None


def _new(replies: Sequence[ReplyPrediction], context: ReadContext) -> int:
    """Return how many replies say nothing that the listener has said before."""
    return sum(not repeats(one.text, context.turns, context.language.name) for one in replies)


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
    settings: EmpatheticDecodingConfig, n_best: int, seed: int, emotions: Sequence[str]
) -> SearchOptions:
    """Return the options of the search.

    Args:
        settings: of decoding.
        n_best: replies asked for.
        seed: of the draws.
        emotions: of the language, whose entries are no words.
    """
    processors: list[LogitsProcessor] = [ForbiddenTokens([not_words(emotions)])]
    if settings.min_length:
        processors.append(MinimumLength(settings.min_length, Vocabulary.eos_id))
    if settings.no_repeat_ngram:
        processors.append(NoRepeatNGram(settings.no_repeat_ngram))
    wide = dataclasses.replace(settings, beam_size=max(settings.beam_size, n_best))
    return SearchOptions.of(wide, n_best, seed, processors)


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
