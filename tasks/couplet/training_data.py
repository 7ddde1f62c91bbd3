"""The examples of a run as ids."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from functools import partial

import numpy as np

from paddle_dialog.config.models import PretrainedConfig
from paddle_dialog.data.training_data import EncodedData, TrainingData
from paddle_dialog.errors import UserError
from paddle_dialog.models.numpy_seq2seq import numpy_seq2seq
from paddle_dialog.models.pretrained_base import character_vocabulary
from paddle_dialog.recipes import find_model, load_model
from paddle_dialog.task import Task
from paddle_dialog.tasks.couplet.config import CoupletConfig, PreferencesConfig
from paddle_dialog.tasks.couplet.couplets import Couplet, limit_length, read_couplets
from paddle_dialog.tasks.couplet.dataset import (
    CoupletDataset,
    UsesDataset,
    regulated,
)
from paddle_dialog.tasks.couplet.direction import VOCABULARY, knows_marks, with_marks
from paddle_dialog.tasks.couplet.preferences import (
    RatedAnswer,
    RatedDataset,
    collate_rated,
    read_ratings,
    with_own,
)
from paddle_dialog.text.vocabulary import Vocabulary

MOST_UNKNOWN = 0.2  # share of characters that may be unknown to a pre-trained model

logger = logging.getLogger("paddle_dialog")


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
        train = _encoded(UsesDataset(pairs, verse, settings, vocabulary, config.seed))
        notes.append(f"{len(train.lengths):,} examples of all uses")
    else:
        train = _encoded(CoupletDataset(pairs, vocabulary))
    if config.preferences.ratings is not None:
        rated = _rated(config.preferences, pairs, notes)
        train = _with_ratings(task, config, train, rated, vocabulary)
    notes.append(f"vocabulary: {len(vocabulary):,} tokens, the four special ones included")
    dev = None
    if settings.dev is not None:
        dev = _encoded(CoupletDataset(_read(config, settings.dev, "dev data", notes), vocabulary))
    return TrainingData(train, dev, {VOCABULARY: vocabulary}, collate_rated, notes)


def _read(config: CoupletConfig, source: str, what: str, notes: list[str]) -> list[Couplet]:
    """Read couplets within the length, and note how many."""
    settings = config.data
    pairs, report = limit_length(read_couplets(source), settings.max_length)
    notes.append(f"{what} {source}: {report}")
    return pairs


def _encoded(dataset: CoupletDataset | UsesDataset) -> EncodedData:
    return EncodedData(dataset, dataset.lengths)


def _rated(settings: PreferencesConfig, pairs: list[Couplet], notes: list[str]) -> list[list[RatedAnswer]]:
    """Read the rated answers, and add the corpus's own where the settings give it a rating."""
    assert settings.ratings is not None
    rated = read_ratings(settings.ratings)
    notes.append(
        f"rated answers {settings.ratings}: {sum(map(len, rated)):,} to {len(rated):,} inputs; an epoch has each once"
    )
    if settings.own_rating is not None:
        owned = with_own(rated, pairs, settings.own_rating)
        notes.append(f"rated {settings.own_rating:g}: the corpus's own answers to {owned:,} of them")
    return rated


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
    """Return a note of the characters that a pre-trained model has no tokens of.

    Raises:
        UserError: they are so many that it would not learn to write.
    """
    counts = Counter(character for pair in pairs for line in (pair.first, pair.second) for character in line)
    unknown = {character: count for character, count in counts.items() if character not in vocabulary}
    share = sum(unknown.values()) / max(1, sum(counts.values()))
    examples = "".join(sorted(unknown, key=lambda character: -unknown[character])[:5])
    if share > MOST_UNKNOWN:
        raise UserError(
            f"model.pretrained: {share:.0%} of the characters in data.train, e.g. {examples}, are no tokens of "
            f"{model.pretrained}; take a model of Chinese"
        )
    return f"no tokens of the model: {share:.2%} of the characters{f', e.g. {examples}' if examples else ''}"
