"""The settings of the translation task, and its data: pairs of sentences, their tokens and ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from paddle_dialog.config.schema import DataConfig, DecodingConfig, GenerationConfig
from paddle_dialog.config.typed import Problem, at_least, setting
from paddle_dialog.data.batching import EncodedData, PairBatch, pad_batch, target_arrays
from paddle_dialog.data.files import read_lines
from paddle_dialog.errors import UserError
from paddle_dialog.text.characters import normalise_line, read_as_simplified
from paddle_dialog.text.vocabulary import Vocabulary

Unit = Literal["characters", "words"]


@dataclass(frozen=True)
class TranslationDataConfig(DataConfig):
    """Where the pairs come from and what their tokens are."""

    tokens: Literal["characters", "words"] = setting(
        "characters",
        "what a text is cut into; `words` are what blanks separate, subwords of such files included",
    )
    reverse: bool = setting(False, "translate the second column into the first")


@dataclass(frozen=True)
class TranslationDecodingConfig(DecodingConfig):
    """How translations are searched for."""

    no_repeat_ngram: int = at_least(
        0, 0, "no n-gram of this size is written twice in a sentence's translation; 0 allows repetition"
    )


@dataclass(frozen=True)
class TranslationConfig(GenerationConfig):
    """A translation recipe."""

    data: TranslationDataConfig = field(default_factory=TranslationDataConfig)
    decoding: TranslationDecodingConfig = field(default_factory=TranslationDecodingConfig)

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        if self.training.label_smoothing:
            yield "training.label_smoothing", "has no effect on this task's loss; leave it at 0"
        if self.decoding.engine == "reference" and self.decoding.no_repeat_ngram:
            yield (
                "decoding.engine",
                "reference forbids no n-gram; set decoding.no_repeat_ngram to 0, or take fast",
            )


Tokens = Sequence[str]  # characters as a string, words as a list


class Pair(NamedTuple):
    """A sentence and its translation, as tokens."""

    source: Tokens
    target: Tokens


class EncodedPair(NamedTuple):
    """A pair as extended ids: tokens outside the vocabulary of V are numbered V, V + 1, … within their source."""

    source: np.ndarray  # [S], end token included
    target: np.ndarray  # [T], without begin and end; a token that only the target has is unknown


def split(text: str, unit: Unit) -> Tokens:
    """Split a text, as simplified, into characters without blanks and invisible ones, or into words at blanks."""
    text = read_as_simplified(text)
    return normalise_line(text) if unit == "characters" else text.split()


def join(tokens: Sequence[str], unit: Unit) -> str:
    """Join tokens to a text."""
    return ("" if unit == "characters" else " ").join(tokens)


def read_pairs(source: str, unit: Unit, reverse: bool = False) -> list[Pair]:
    """Read pairs.

    Args:
        source: `sample` (a few sentences that come with the package), or a UTF-8 file of source<TAB>target lines
            (`.xz` and `.gz` are read as they are; blank lines are skipped).
        unit: what the tokens are.
        reverse: swap the columns.
    """
    path = Path(__file__).with_name("sample.tsv") if source == "sample" else Path(source)
    pairs = []
    for number, line in read_lines(path):
        if not line.strip():
            continue
        columns = line.split("\t")
        if len(columns) != 2:
            found = "1 column" if len(columns) == 1 else f"{len(columns)} columns"
            raise UserError(f"{path}:{number}: {found} found; a line must be source<TAB>target")
        first, second = (split(column, unit) for column in columns)
        if not first or not second:
            side = "second" if first else "first"
            raise UserError(f"{path}:{number}: the {side} column is empty; a line must be source<TAB>target")
        pairs.append(Pair(second, first) if reverse else Pair(first, second))
    if not pairs:
        raise UserError(f"{path}: no pair in this file; give at least one line of source<TAB>target")
    return pairs


def limit_length(pairs: Sequence[Pair], longest: int) -> tuple[list[Pair], str]:
    """Skip pairs with more than `longest` tokens on a side; return the others, and a note for the log."""
    fitting = [pair for pair in pairs if max(map(len, pair)) <= longest]
    count = len(pairs) - len(fitting)
    if not fitting:
        raise UserError(
            f"data.max_length: every pair has more than {longest} tokens on a side; set it higher"
        )
    return fitting, f"{len(fitting):,} pairs, {count:,} skipped as too long"


def encode_source(tokens: Tokens, vocabulary: Vocabulary) -> tuple[np.ndarray, list[str]]:
    """Encode a source; return extended ids [S], end token included, and the tokens of the ids from V on."""
    ids, unknown = vocabulary.encode(tokens), []
    for place, token in enumerate(tokens):
        if ids[place] == Vocabulary.unk_id:
            if token not in unknown:
                unknown.append(token)
            ids[place] = len(vocabulary) + unknown.index(token)
    return np.array([*ids, Vocabulary.eos_id], dtype=np.int64), unknown


def encode_pair(pair: Pair, vocabulary: Vocabulary) -> EncodedPair:
    """Encode both sides as ids."""
    source, unknown = encode_source(pair.source, vocabulary)
    target = vocabulary.encode(pair.target)
    for place, token in enumerate(pair.target):
        if target[place] == Vocabulary.unk_id and token in unknown:
            target[place] = len(vocabulary) + unknown.index(token)
    return EncodedPair(source, np.array(target, dtype=np.int64))


class PairDataset:
    """Pairs, encoded on demand."""

    def __init__(self, pairs: Sequence[Pair], vocabulary: Vocabulary) -> None:
        self.pairs = pairs
        self._vocabulary = vocabulary

    @property
    def lengths(self) -> np.ndarray:
        """Numbers of tokens of source and target of each pair, [N, 2]."""
        return np.array([[len(pair.source), len(pair.target)] for pair in self.pairs])

    def encoded(self) -> EncodedData:
        """Return the pairs with the lengths that batches are made by."""
        return EncodedData(self, self.lengths)

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, index: int) -> EncodedPair:
        return encode_pair(self.pairs[index], self._vocabulary)


def collate(examples: Sequence[EncodedPair]) -> PairBatch:
    """Pad examples to a training batch."""
    source, source_lengths = pad_batch([e.source for e in examples], Vocabulary.pad_id)
    return PairBatch(source, source_lengths, *target_arrays([example.target for example in examples]))
