"""A trained translator that answers sentences."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from paddle_dialog.bundle.folder import TrainedModel
from paddle_dialog.data.batching import pad_batch
from paddle_dialog.data.files import Record
from paddle_dialog.decoding.processors import NO_SPECIAL_TOKENS, LogitsProcessor, NoRepeatNGram
from paddle_dialog.decoding.search import SearchOptions, decode
from paddle_dialog.errors import UserError
from paddle_dialog.models.numpy_seq2seq import NumpyPointerSeq2Seq
from paddle_dialog.predictor import GenerationPredictor, Prediction, check_request
from paddle_dialog.tasks.translation.data import Tokens, TranslationConfig, encode_source, join, split
from paddle_dialog.text.characters import is_hanzi, normalise_line, read_as_simplified
from paddle_dialog.text.vocabulary import Vocabulary

SENTENCE = re.compile("[^。！？；]*[。！？；]+[”’」』）]*|[^。！？；]+$")
END = "。"  # that a text without an end mark is given, as nearly all of the training text has one
_MARKED, _QUOTES, _OPEN = "。！？；…", "”’」』）", "，、：—"
# Words of modern Chinese: two of them, or one in a short text, stand in 0.2 % of a dev set's classical sentences.
_MODERN = re.compile(
    "[的了吗吧呢们这她它很你]|什么|怎么|没有|正在|已经|因为|但是|如果|觉得|今天|现在|一个|自己|时候|东西|问题|电[影脑话视]"
    "|知道|可能|应该|不是|就是|还是|喜欢|工作|公司|手机|世界|人工智能"
)
_SHORT = 12
_NOTES = {
    "modern": "this looks like modern Chinese, and the model reads Classical Chinese",
    "repeats": "the translation repeats itself, so it is not to be trusted",
}
MAX_RATIO, MAX_MORE = 4, 10  # a translation has at most 4 tokens for each of the source, and 10 more


@dataclass(frozen=True)
class TranslationPrediction(Prediction):
    """A translation."""

    sentences: list[list[str]]  # the tokens of the translation of each sentence


class TranslationPredictor(GenerationPredictor):
    """Translates texts, sentence by sentence."""

    def __init__(self, config: TranslationConfig, model: TrainedModel) -> None:
        self.config: TranslationConfig = config
        (self.vocabulary,) = model.vocabularies.values()
        self._trained = model
        make = partial(NumpyPointerSeq2Seq.of_arrays, config.model, len(self.vocabulary))
        self.step_model: Any = model.fastest(make)

    @cached_property
    def _reads_hanzi(self) -> bool:
        """Whether most of the vocabulary is hanzi."""
        return sum(map(is_hanzi, self.vocabulary.tokens)) * 2 > len(self.vocabulary)

    def predict(self, texts: Sequence[str], n_best: int | None = None) -> list[list[TranslationPrediction]]:
        """Translate.

        Args:
            texts: of one sentence or more; characters are translated sentence by sentence.
            n_best: candidates for each, best first; the config's number by default.

        Raises:
            UserError: a text is empty, or a sentence is longer than the model allows.
        """
        check_request(texts, n_best)
        settings = self.config.decoding
        wanted = settings.n_best if n_best is None else n_best
        processors: list[LogitsProcessor] = [NO_SPECIAL_TOKENS]
        if settings.no_repeat_ngram:
            processors.append(NoRepeatNGram(settings.no_repeat_ngram))
        options = SearchOptions.of(settings, wanted, self.config.seed, processors)
        sentences = [self.sentences(text) for text in texts]
        answers = iter(self._search([sentence for each in sentences for sentence in each], options))
        return [self._joined([next(answers) for _ in each]) for each in sentences]

    def greedy(self, sources: Sequence[Tokens]) -> list[str]:
        """Translate sentences by greedy search, to show a model in training."""
        limit = self.config.decoding.max_length
        options = SearchOptions(strategy="greedy", max_length=limit, processors=[NO_SPECIAL_TOKENS])
        return [self.text(candidates[0][0]) for candidates in self._search(sources, options)]

    def sentences(self, text: str) -> list[Tokens]:
        """Split a text into sentences of tokens, each short enough for the model."""
        unit, limit = self.config.data.tokens, self.config.data.max_length
        found: list[Tokens] = [split(text, unit)]
        if unit == "characters":
            lines = [normalise_line(read_as_simplified(line)) for line in text.splitlines()]
            found = [self._ended(one) for line in lines for one in SENTENCE.findall(line)]
        if not any(found):
            code = "text_not_chinese" if self._reads_hanzi else None
            raise UserError("the text is empty; give a sentence, e.g. 学而时习之，不亦说乎？", code, text="")
        if self._reads_hanzi and not any(map(is_hanzi, text)):
            raise UserError(
                f"'{text[:20]}' has no hanzi, and this model reads Chinese; give a Chinese sentence",
                "text_not_chinese",
                text=text[:20],
            )
        for sentence in found:
            if len(sentence) > limit:
                raise UserError(
                    f"the sentence '{self.text(sentence)[:20]}…' has {len(sentence)} {self.config.data.tokens}, and "
                    f"this model reads up to {limit}; cut it (data.max_length of the config sets the limit)",
                    "sentence_long",
                    length=len(sentence),
                    limit=limit,
                )
        return found

    def _ended(self, sentence: str) -> str:
        """Return a sentence of Chinese with an end mark, where it has none and there is room."""
        bare = sentence.rstrip(_QUOTES)
        if not self._reads_hanzi or END not in self.vocabulary or bare[-1:] in _MARKED:
            return sentence
        ended = bare.rstrip(_OPEN) + END + sentence[len(bare) :]
        return ended if 1 < len(ended) <= self.config.data.max_length else sentence

    def unsure(self, text: str, best: TranslationPrediction) -> str | None:
        """Return why a translation is not to be trusted: `modern` or `repeats`; None where nothing says so."""
        if not self._reads_hanzi or self.config.data.reverse or self.config.data.tokens != "characters":
            return None
        words = len(_MODERN.findall(text))
        if words > 1 or (words and len(text) <= _SHORT):
            return "modern"
        return "repeats" if any(map(_repeats, self.sentences(text), best.sentences)) else None

    def text(self, tokens: Sequence[str]) -> str:
        """Join tokens to a text."""
        return join(tokens, self.config.data.tokens)

    def predict_records(self, texts: Sequence[str], n_best: int | None = None) -> Iterable[Record]:
        """Answer as JSON records: `{"source": …, "predictions": [{"text", "score"}, …]}`, with `unsure` if it is."""
        for source, found in zip(texts, self.predict(texts, n_best), strict=True):
            yield self.record(source, found)

    def record(self, source: str, found: Sequence[TranslationPrediction]) -> Record:
        """Return the record of a text and its translations."""
        record = {"source": source, "predictions": [prediction.as_dict() for prediction in found]}
        unsure = self.unsure(source, found[0])
        return record if unsure is None else {**record, "unsure": unsure}

    def note_of(self, record: Record) -> str | None:
        """Return why a translation is not to be trusted, if anything says so."""
        return _NOTES[record["unsure"]] if "unsure" in record else None

    def format_record(self, record: Record) -> str:
        """Format the translation, or several candidates below the source with their scores."""
        predictions = record["predictions"]
        if len(predictions) == 1:
            return str(predictions[0]["text"])
        return "\n".join([record["source"], *(f"  {p['score']:8.4f}  {p['text']}" for p in predictions)])

    def attention(self, source: Tokens, target: Tokens) -> np.ndarray:
        """Return the weights [T, S] of a translation's tokens and end over those of its sentence."""
        ids, _ = encode_source(source, self.vocabulary)
        given = np.array([[Vocabulary.bos_id, *self.vocabulary.encode(target)]])  # [1, T]
        weights: np.ndarray = self.step_model.attention_weights(ids[None], np.array([len(ids)]), given)[0]
        return weights

    def decoding_summary(self) -> str:
        """Describe the search in a few words."""
        return self.search_summary()

    def text_attention(
        self, text: str, prediction: TranslationPrediction
    ) -> tuple[list[str], list[str], np.ndarray]:
        """Return tokens of a text [S] and of its translation [T], and the weights [T, S], sentence by sentence."""
        pairs = list(zip(self.sentences(text), prediction.sentences, strict=True))
        blocks = [self.attention(*pair)[:-1, :-1] for pair in pairs]
        weights = np.zeros(np.sum([block.shape for block in blocks], axis=0))
        row = column = 0
        for block in blocks:
            weights[row : row + block.shape[0], column : column + block.shape[1]] = block
            row, column = row + block.shape[0], column + block.shape[1]
        source, target = ([token for tokens in side for token in tokens] for side in zip(*pairs, strict=True))
        return source, target, weights

    def _search(
        self, sources: Sequence[Tokens], options: SearchOptions
    ) -> list[list[tuple[list[str], float]]]:
        """Search; return tokens and log-probability of each sentence's candidates."""
        answers = []
        size, limit = self.config.decoding.batch_size, self.config.decoding.max_length
        for start in range(0, len(sources), size):
            encoded = [encode_source(tokens, self.vocabulary) for tokens in sources[start : start + size]]
            ids, lengths = pad_batch([ids for ids, _ in encoded], Vocabulary.pad_id)  # [B, S], [B]
            limits = np.minimum(limit, MAX_RATIO * lengths + MAX_MORE).tolist()
            if self.config.decoding.engine == "reference" and options.strategy == "beam":
                from paddle_dialog.decoding.reference import reference_beam_search  # imports Paddle

                beam, count = options.beam_sizes(1)[0], options.n_best
                found = reference_beam_search(self.network, ids, lengths, beam, count, max(limits))
            else:
                found = decode(self.step_model, ids, lengths, dataclasses.replace(options, max_length=limits))
            for hypotheses, (_, unknown) in zip(found, encoded, strict=True):
                words = (*self.vocabulary.tokens, *unknown)
                answers.append([([words[i] for i in h.tokens], h.log_prob) for h in hypotheses])
        return answers

    def _joined(self, sentences: Sequence[list[tuple[list[str], float]]]) -> list[TranslationPrediction]:
        """Join the candidates of a whole text: the first ones of all its sentences, the second ones, …"""
        predictions = []
        for place in range(max(map(len, sentences))):
            chosen = [candidates[min(place, len(candidates) - 1)] for candidates in sentences]
            tokens = sum(len(words) + 1 for words, _ in chosen)
            text = self.text([word for words, _ in chosen for word in words])
            score = sum(log_prob for _, log_prob in chosen) / tokens
            predictions.append(TranslationPrediction(text, score, [words for words, _ in chosen]))
        return predictions


def _repeats(source: Sequence[str], target: Sequence[str]) -> bool:
    """Return whether a translation grew, and has three tokens three times or is thrice as long as its source."""
    grams = Counter(zip(target, target[1:], target[2:], strict=False))
    grown = len(target) / len(source)
    return (grown > 1.5 and max(grams.values(), default=0) > 2) or (grown > 3 and len(target) > 20)
