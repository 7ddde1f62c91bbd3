"""The examples of a run: couplets as ids, in all the uses of one network."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from paddle_dialog.config.models import PretrainedConfig
from paddle_dialog.data.batching import EncodedData, TrainingData
from paddle_dialog.errors import UserError
from paddle_dialog.models.numpy_seq2seq import numpy_seq2seq
from paddle_dialog.models.pretrained_base import character_vocabulary
from paddle_dialog.recipes import find_model, load_model
from paddle_dialog.task import Task
from paddle_dialog.tasks.couplet.config import (
    MAX_THEME_CHARACTERS,
    CoupletConfig,
    CoupletDataConfig,
)
from paddle_dialog.tasks.couplet.couplets import Couplet, limit_length, read_couplets
from paddle_dialog.tasks.couplet.preferences import (
    RatedAnswer,
    RatedDataset,
    collate_rated,
    read_ratings,
    with_own,
)
from paddle_dialog.tasks.couplet.prompts import (
    BLANK,
    COMPOSE,
    FIRST,
    VERSE,
    VOCABULARY,
    Example,
    knows_marks,
    with_marks,
)
from paddle_dialog.tasks.couplet.rules import final_character
from paddle_dialog.text.characters import can_be_level, can_be_oblique, is_hanzi
from paddle_dialog.text.vocabulary import Vocabulary

MAX_UNKNOWN = 0.2  # share of characters that may be unknown to a pre-trained model

logger = logging.getLogger("paddle_dialog")

SECOND, REVERSE, TEMPLATE = range(3)  # uses: 上联 to 下联, the other way round, 上联 from a template


class CoupletDataset:
    """Encoded couplets in two flat arrays, so that a large corpus costs four bytes a character."""

    def __init__(self, couplets: list[Couplet], vocabulary: Vocabulary) -> None:
        self._first, self._first_ends = _flatten([c.first for c in couplets], vocabulary)
        self._second, self._second_ends = _flatten([c.second for c in couplets], vocabulary)

    @property
    def lengths(self) -> np.ndarray:
        """Characters of both lines of each pair, [N, 2]."""
        return np.stack([np.diff(self._first_ends), np.diff(self._second_ends)], axis=1)

    def __len__(self) -> int:
        return len(self._first_ends) - 1

    def __getitem__(self, index: int) -> Example:
        first = self._first[self._first_ends[index] : self._first_ends[index + 1]]
        second = self._second[self._second_ends[index] : self._second_ends[index + 1]]
        return first, second


class UsesDataset:
    """Couplets in several uses of one network; templates and themes are drawn anew in each epoch."""

    def __init__(
        self,
        couplets: list[Couplet],
        verse: list[Couplet],
        settings: CoupletDataConfig,
        vocabulary: Vocabulary,
        seed: int,
    ) -> None:
        self._pairs = CoupletDataset([*couplets, *verse], vocabulary)
        self._modern, self._seed, self._epoch = len(couplets), seed, 0
        self._blank, self._first, self._compose, self._verse = vocabulary.encode(
            [BLANK, FIRST, COMPOSE, VERSE]
        )
        hanzi = [is_hanzi(token) for token in vocabulary.tokens]
        self._hanzi = np.array(hanzi)  # [V]
        total, random = len(self._pairs), np.random.default_rng(seed)
        shares = {SECOND: 1.0, REVERSE: settings.reverse, TEMPLATE: settings.compose}
        chosen = {use: random.permutation(total)[: round(share * total)] for use, share in shares.items()}
        self._pair = np.concatenate([np.sort(pairs) for pairs in chosen.values()])  # [N]
        self._use = np.repeat([*chosen], [len(pairs) for pairs in chosen.values()])  # [N]

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of source and target of each example, [N, 2]."""
        lengths = self._pairs.lengths[self._pair]
        lengths[self._use == REVERSE] = lengths[self._use == REVERSE][:, ::-1]
        lengths[self._use == TEMPLATE, 1] = lengths[self._use == TEMPLATE, 0]
        marks = np.array([0, 1, 1 + MAX_THEME_CHARACTERS // 2])[self._use] + (self._pair >= self._modern)
        return lengths + np.stack([marks, np.zeros_like(marks)], axis=1)

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch, from 0, whose templates and themes are drawn."""
        self._epoch = epoch

    def __len__(self) -> int:
        return len(self._pair)

    def __getitem__(self, index: int) -> Example:
        pair = int(self._pair[index])
        first, second = self._pairs[pair]
        style = [self._verse] if pair >= self._modern else []
        use = self._use[index]
        if use == SECOND:
            return np.append(first, style).astype(np.int32), second
        if use == REVERSE:
            return np.append(second, [self._first, *style]).astype(np.int32), first
        random = np.random.default_rng((self._seed, self._epoch, index))
        template, theme = self._template(first, random), self._theme(first, second, random)
        return np.concatenate([template, [self._compose], theme, style]).astype(np.int32), first

    def _template(self, line: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """Blank all hanzi of a line but none to two."""
        shape = np.where(self._hanzi[line], self._blank, line)
        places = np.flatnonzero(self._hanzi[line])
        shown = random.choice(places, min(len(places), int(random.integers(3))), replace=False)
        # A name is at the beginning more often than anywhere else.
        if len(shown) and random.random() < 0.5:
            shown[0] = places[0]
        shape[shown] = line[shown]
        return shape

    def _theme(self, first: np.ndarray, second: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """Return none to two stretches of two hanzi of the couplet."""
        words = []
        for _ in range(random.integers(MAX_THEME_CHARACTERS // 2 + 1)):
            line = first if random.random() < 0.5 else second
            start = random.integers(max(1, len(line) - 1))
            word = line[start : start + 2]
            if len(word) == 2 and self._hanzi[word].all():
                words.append(word)
        return np.concatenate(words) if words else np.zeros(0, np.int32)


def regulated(pairs: Sequence[Couplet]) -> list[Couplet]:
    """Return the pairs whose first line can end oblique and whose second can end level."""
    return [
        pair
        for pair in pairs
        if can_be_oblique(final_character(pair.first)) and can_be_level(final_character(pair.second))
    ]


def _flatten(lines: list[str], vocabulary: Vocabulary) -> tuple[np.ndarray, np.ndarray]:
    """Return all ids in one array, and the offsets [N + 1] where each line begins and ends."""
    ends = np.zeros(len(lines) + 1, dtype=np.int64)
    np.cumsum([len(line) for line in lines], out=ends[1:])
    ids = np.fromiter((vocabulary.id(c) for line in lines for c in line), dtype=np.int32, count=int(ends[-1]))
    return ids, ends


def training_data(
    task: Task, config: CoupletConfig, vocabularies: Mapping[str, Vocabulary] | None
) -> TrainingData:
    """Read, limit and encode the couplets; the vocabulary is built from the training pairs alone.

    Args:
        task: the couplet task, which loads the weights that rated answers are of.
        vocabularies: of weights that exist; None makes one from the training pairs.
    """
    settings, notes = config.data, list[str]()
    pairs = _read(config, settings.train, "training data", notes)
    verse = list[Couplet]()
    if settings.verse is not None:
        read = _read(config, settings.verse, "verse", notes)
        verse = regulated(read)
        notes.append(f"verse: {len(verse):,} of {len(read):,} end oblique and level")
    vocabulary = _vocabulary(config, vocabularies, pairs + verse)
    if isinstance(config.model, PretrainedConfig):
        notes.append(_unknown_characters(config.model, vocabulary, pairs))
    if settings.has_uses:
        uses = UsesDataset(pairs, verse, settings, vocabulary, config.seed)
        train = EncodedData(uses, uses.lengths)
        notes.append(f"{len(train.lengths):,} examples of all uses")
    else:
        train = _encoded(pairs, vocabulary)
    ratings, own_rating = config.preferences.ratings, config.preferences.own_rating
    if ratings is not None:
        rated = read_ratings(ratings)
        notes.append(
            f"rated answers {ratings}: {sum(map(len, rated)):,} to {len(rated):,} inputs; an epoch has each once"
        )
        if own_rating is not None:
            owned = with_own(rated, pairs, own_rating)
            notes.append(f"rated {own_rating:g}: the corpus's own answers to {owned:,} of them")
        train = _with_ratings(task, config, train, rated, vocabulary)
    notes.append(f"vocabulary: {len(vocabulary):,} tokens, the four special ones included")
    dev = None
    if settings.dev is not None:
        dev = _encoded(_read(config, settings.dev, "dev data", notes), vocabulary)
    return TrainingData(train, dev, {VOCABULARY: vocabulary}, collate_rated, notes)


def _read(config: CoupletConfig, source: str, what: str, notes: list[str]) -> list[Couplet]:
    """Read couplets within the length, and note how many."""
    settings = config.data
    pairs, report = limit_length(read_couplets(source), settings.max_length)
    notes.append(f"{what} {source}: {report}")
    return pairs


def _encoded(pairs: list[Couplet], vocabulary: Vocabulary) -> EncodedData:
    dataset = CoupletDataset(pairs, vocabulary)
    return EncodedData(dataset, dataset.lengths)


def _with_ratings(
    task: Task,
    config: CoupletConfig,
    examples: EncodedData,
    rated: list[list[RatedAnswer]],
    vocabulary: Vocabulary,
) -> EncodedData:
    """Add the rated answers, scored by the weights that training starts from."""
    start, limit = config.training.start_from, config.data.max_length
    assert start is not None
    longest = max(len(line) for answers in rated for a in answers for line in (a.first, a.second))
    if longest > limit:
        raise UserError(
            f"preferences.ratings: a line has {longest} characters, and data.max_length is {limit}"
        )
    loaded = load_model(find_model(start), task)
    marked = any(answer.template is not None for answers in rated for answer in answers)
    known = loaded.trained.vocabularies[VOCABULARY]
    if vocabulary not in (known, with_marks(known)):
        raise UserError(
            f"training.start_from: {start} has another vocabulary than data.vocabulary; leave that out, and its "
            "own is taken"
        )
    if known != vocabulary or (marked and not knows_marks(vocabulary)):
        raise UserError(
            f"training.start_from: {start} knows 下联 alone, and the ratings, data.reverse or data.compose are "
            "of more; start from weights trained for all uses"
        )
    logger.info("reading %s rated answers with %s, which takes minutes", f"{sum(map(len, rated)):,}", start)
    before = loaded.trained.fastest(partial(numpy_seq2seq, loaded.config.model, len(vocabulary)))
    dataset = RatedDataset(examples, rated, vocabulary, before)
    return EncodedData(dataset, np.zeros(len(dataset), dtype=np.int64))


def _vocabulary(
    config: CoupletConfig, vocabularies: Mapping[str, Vocabulary] | None, train: list[Couplet]
) -> Vocabulary:
    """Return a pre-trained model's, the start's, that of the file the config names, or one of the training pairs."""
    if isinstance(config.model, PretrainedConfig):
        return pretrained_vocabulary(config)
    settings, known = config.data, (vocabularies or {}).get(VOCABULARY)
    lines = (line for pair in train for line in (pair.first, pair.second))
    vocabulary = Vocabulary.of_data(settings, lines, known)
    return with_marks(vocabulary) if settings.has_uses else vocabulary


def pretrained_vocabulary(config: CoupletConfig) -> Vocabulary:
    """Return the characters that a pre-trained model has tokens of, with the marks where all uses are learned."""
    assert isinstance(config.model, PretrainedConfig)
    vocabulary = character_vocabulary(config.model)
    return with_marks(vocabulary) if config.data.has_uses else vocabulary


def _unknown_characters(model: PretrainedConfig, vocabulary: Vocabulary, pairs: list[Couplet]) -> str:
    """Return a note of the characters that a pre-trained model has no tokens of, which must be few."""
    counts = Counter(character for pair in pairs for line in (pair.first, pair.second) for character in line)
    unknown = {character: count for character, count in counts.items() if character not in vocabulary}
    share = sum(unknown.values()) / max(1, sum(counts.values()))
    examples = "".join(sorted(unknown, key=lambda character: -unknown[character])[:5])
    if share > MAX_UNKNOWN:
        raise UserError(
            f"model.pretrained: {share:.0%} of the characters in data.train, e.g. {examples}, are no tokens of "
            f"{model.pretrained}; take a model of Chinese"
        )
    return f"no tokens of the model: {share:.2%} of the characters{f', e.g. {examples}' if examples else ''}"
