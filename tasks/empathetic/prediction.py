"""A trained empathetic model that answers conversations."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from paddle_dialog.decoding.arrays import evaluation_mode, to_array, to_model
from paddle_dialog.decoding.interface import Hypothesis
from paddle_dialog.decoding.options import SearchOptions
from paddle_dialog.decoding.processors import ForbiddenTokens, LogitsProcessor, MinimumLength
from paddle_dialog.decoding.repetition import NoRepeatNGram
from paddle_dialog.decoding.search import decode
from paddle_dialog.errors import UserError
from paddle_dialog.figures.folder import FigureFolder
from paddle_dialog.task import Predictor
from paddle_dialog.text.vocabulary import Vocabulary
from paddle_dialog.trained import TrainedNetwork
from tasks.empathetic.answer import Answer, Prediction
from tasks.empathetic.config import EmpatheticConfig
from tasks.empathetic.data import parse_context, read_dialogues
from tasks.empathetic.dialogue import check_alternation, clean_turn
from tasks.empathetic.emotions import EMOTIONS, emotion_id
from tasks.empathetic.encoding import DialogueEncoder, make_encoder, pad_sources
from tasks.empathetic.numpy_model import NumpyEmoPrepend, numpy_emo_prepend
from tasks.empathetic.reply_ngrams import ReplyNgrams
from tasks.empathetic.rerank import Reranker
from tasks.empathetic.reserved import NOT_WORDS
from tasks.empathetic.tokenise import detokenise

if TYPE_CHECKING:
    from paddle import nn

    from tasks.empathetic.model import EmoPrepend


class EmpatheticPredictor(Predictor):
    """Answers conversations with an emotion and replies.

    Args:
        config: decoding settings, and what the model reads.
        network: the trained network, or one that is built when it is asked for.
        vocabulary: of context and reply.
        encoder: one that exists already, so that its lexicon is not read again.
        reply_ngrams: of the training replies, where they are known; re-ranking by them needs them.

    Attributes:
        processors: rules of the search beside those of the config; none by default.
    """

    def __init__(
        self,
        config: EmpatheticConfig,
        network: nn.Layer | TrainedNetwork,
        vocabulary: Vocabulary,
        encoder: DialogueEncoder | None = None,
        reply_ngrams: ReplyNgrams | None = None,
    ) -> None:
        self.config: EmpatheticConfig = config
        self.vocabulary = vocabulary
        self._model: EmoPrepend | NumpyEmoPrepend
        if isinstance(network, TrainedNetwork):
            self._trained = network
            over_arrays = network.over_arrays(partial(numpy_emo_prepend, config, len(vocabulary)))
            self._model = self.network if over_arrays is None else over_arrays
        else:
            network.eval()
            self._model = self.network = network
        self._encoder = make_encoder(config, vocabulary) if encoder is None else encoder
        self._reranker = Reranker(self._model, self._encoder, reply_ngrams)
        self.processors: list[LogitsProcessor] = []

    @cached_property
    def network(self) -> nn.Layer:
        """The trained network in evaluation mode."""
        return self._trained.network

    def attention_weights(self, source: np.ndarray, lengths: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Attention [B, T, S] of targets [B, T], begin token first, over packed contexts [B, S, k] of lengths [B]."""
        arrays = (to_model(self._model, array) for array in (source, lengths, target))
        with evaluation_mode(self._model):
            return to_array(self._model.attention_weights(*arrays))

    @property
    def encoder(self) -> DialogueEncoder:
        """What makes numbers of conversations."""
        return self._encoder

    def predict(
        self, contexts: Sequence[str | Sequence[str]], n_best: int | None = None
    ) -> list[list[Prediction]]:
        """Writes replies.

        Args:
            contexts: each one turn, or a conversation: its turns oldest first, the speaker's first and last.
            n_best: replies to each, best first; the config's number by default.

        Returns:
            The replies to each context.

        Raises:
            UserError: see ``answer``.
        """
        turns = [[context] if isinstance(context, str) else context for context in contexts]
        return [list(answer.predictions) for answer in self.answer(turns, n_best)]

    def answer(
        self,
        contexts: Sequence[Sequence[str]],
        n_best: int | None = None,
        emotions: Sequence[str | None] | None = None,
    ) -> list[Answer]:
        """Emotions and replies.

        Args:
            contexts: conversations; of a long one the newest turns are read.
            n_best: replies to each; the config's number by default.
            emotions: the emotion of each, told to the model in the place of its prediction where not None.

        Returns:
            An answer to each context.

        Raises:
            UserError: a turn is empty, speaker and listener do not alternate, an emotion is unknown, or the model
                needs the emotion and it is not given.
        """
        count = self.config.decoding.n_best if n_best is None else n_best
        return self._answer(contexts, emotions, self._options(n_best), count)

    def greedy(
        self, contexts: Sequence[Sequence[str]], emotions: Sequence[str | None] | None = None
    ) -> list[Answer]:
        """Answers by greedy search, for a look at a model in training; ``emotions`` are used by gold ones only."""
        greedy = dataclasses.replace(self._options(1), strategy="greedy", n_best=1)
        return self._answer(contexts, emotions if self.needs_emotion else None, greedy, 1)

    def predict_records(self, texts: Sequence[str], n_best: int | None = None) -> Iterable[dict[str, Any]]:
        """Answers as JSON records.

        Args:
            texts: each a single turn, or a conversation as ``{"context": [turn, …]}``.
            n_best: replies to each; the config's number by default.
        """
        for answer in self.answer([_parsed(text) for text in texts], n_best):
            yield answer.as_dict()

    def format_record(self, record: dict[str, Any]) -> str:
        """The emotion with its probability and the reply; several replies stand below each other."""
        emotion, replies = record["emotion"], record["predictions"]
        head = f"[{emotion}" + (
            f" {record['emotions'][emotion]:.0%}]" if emotion in record["emotions"] else "]"
        )
        if len(replies) == 1:
            return f"{head} {replies[0]['text']}"
        return "\n".join([head, *(f"  {reply['score']:8.4f}  {reply['text']}" for reply in replies)])

    def example_inputs(self, source: str, count: int) -> list[str]:
        """The first contexts of a data source, for the benchmark; as JSON, which ``predict_records`` reads."""
        return [json.dumps({"context": d.context}) for d in read_dialogues(source)[:count]]

    def evaluate(self, source: str, predictions: Path | None) -> dict[str, Any]:
        """All empathetic metrics on one source."""
        from tasks.empathetic.evaluation import evaluate

        return evaluate(self, source, predictions)

    def draw_figures(self, source: str, folder: FigureFolder) -> None:
        """Emotions taken for others, and attention and copying in the first examples."""
        from tasks.empathetic.figures import write_figures

        write_figures(self, source, folder)

    @property
    def needs_emotion(self) -> bool:
        """Whether the model was made to be told the emotion."""
        return self.config.emotion.prepend == "gold"

    def decoding_summary(self) -> str:
        """How the replies are searched for and ordered, in a few words."""
        settings = self.config.decoding
        penalty = f"length penalty {settings.length_penalty}" + (
            f" {settings.alpha}" if settings.length_penalty != "none" else ""
        )
        groups = f" in {settings.groups} groups, diversity penalty {settings.diversity_penalty}"
        beam = self._options(None).beam_size
        search = {
            "beam": f"beam {beam}{groups if settings.groups > 1 else ''}, {penalty}",
            "greedy": "greedy",
            "sample": f"sampling, temperature {settings.temperature}, top-k {settings.top_k}, "
            f"top-p {settings.top_p}, seed {self.config.seed}",
        }[settings.strategy]
        repeats = f", no repeated {settings.no_repeat_ngram}-gram" if settings.no_repeat_ngram else ""
        return f"{search}{repeats}, at most {settings.max_length} tokens" + (
            settings.rerank.summary() if self._reranks else ""
        )

    def _answer(
        self,
        contexts: Sequence[Sequence[str]],
        emotions: Sequence[str | None] | None,
        options: SearchOptions,
        count: int,
    ) -> list[Answer]:
        turns = [_checked(context) for context in contexts]
        labels = [None] * len(turns) if emotions is None else list(emotions)
        given = [None if label is None else emotion_id(label) for label in labels]
        if self.needs_emotion and None in given:
            raise UserError(
                "this model is told the emotion (emotion.prepend: gold) and none is given; "
                "give one, or use a model with emotion.prepend: predicted"
            )
        packed = [
            self._encoder.pack(self._encoder.context(t), emotion)
            for t, emotion in zip(turns, given, strict=True)
        ]
        answers: list[Answer | None] = [None] * len(turns)
        order = sorted(range(len(turns)), key=lambda row: len(packed[row][0]))
        size = self.config.decoding.batch_size
        for rows in (order[start : start + size] for start in range(0, len(order), size)):
            probabilities, found = self._search([packed[row][0] for row in rows], options)
            candidates = [
                self._predictions(hypotheses, packed[row][1])
                for row, hypotheses in zip(rows, found, strict=True)
            ]
            ranked = self._reranker.order(candidates, self.config.decoding.rerank)
            for place, (row, ordered) in enumerate(zip(rows, ranked, strict=True)):
                emotion = given[row]
                best = int(probabilities[place].argmax()) if emotion is None else emotion
                answers[row] = Answer(
                    turns[row], EMOTIONS[best], probabilities[place], tuple(ordered[:count])
                )
        return [answer for answer in answers if answer is not None]

    def _search(
        self, sources: Sequence[np.ndarray], options: SearchOptions
    ) -> tuple[np.ndarray, list[list[Hypothesis]]]:
        """Emotion probabilities [B, 32] and hypotheses of packed sources."""
        source, lengths = (to_model(self._model, array) for array in pad_sources(sources))
        with evaluation_mode(self._model):
            probabilities = to_array(self._model.emotion_probabilities(source, lengths)).copy()
        return probabilities, decode(self._model, source, lengths, options)

    def _predictions(self, hypotheses: Sequence[Hypothesis], extended: dict[int, int]) -> list[Prediction]:
        """Replies; ``extended`` holds the extended id of each of the encoder's numbers that has one."""
        copied = {index: number for number, index in extended.items()}
        words = self._encoder.words() if copied else []
        size = len(self.vocabulary)
        predictions = []
        for hypothesis in hypotheses:
            tokens = tuple(
                self.vocabulary.token(index) if index < size else words[copied[index]]
                for index in hypothesis.tokens
                if index < size or index in copied
            )
            predictions.append(Prediction(detokenise(tokens), hypothesis.score, tokens))
        return predictions

    @property
    def _reranks(self) -> bool:
        settings = self.config.decoding
        return settings.rerank.is_active and settings.strategy != "greedy"

    def _options(self, n_best: int | None) -> SearchOptions:
        """The search for at least ``n_best`` candidates, more where they are to be re-ranked."""
        settings = self.config.decoding
        count = settings.n_best if n_best is None else n_best
        if self._reranks:
            count = max(count, settings.rerank.candidates)
        processors: list[LogitsProcessor] = [ForbiddenTokens([list(NOT_WORDS)]), *self.processors]
        if settings.min_length:
            processors.append(MinimumLength(settings.min_length, Vocabulary.eos_id))
        if settings.no_repeat_ngram:
            processors.append(NoRepeatNGram(settings.no_repeat_ngram))
        options = SearchOptions.of(settings, count, self.config.seed, processors)
        shared = -(-options.beam_size // settings.groups) * settings.groups
        return dataclasses.replace(
            options, beam_size=shared, groups=settings.groups, diversity_penalty=settings.diversity_penalty
        )


def _checked(context: Sequence[str]) -> list[str]:
    if not context:
        raise UserError("the conversation has no turn; give at least the speaker's first")
    try:
        what = "the turn" if len(context) == 1 else "turn {}"
        turns = [clean_turn(turn, what.format(number)) for number, turn in enumerate(context, start=1)]
        check_alternation(turns)
    except ValueError as error:
        raise UserError(f"{error}; give what the speaker says, e.g. I lost my dog yesterday.") from error
    return turns


def _parsed(text: str) -> list[str]:
    try:
        return parse_context(text)
    except ValueError as error:
        raise UserError(f"{text[:40]!r} is {error}") from error
