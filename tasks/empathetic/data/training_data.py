"""The examples of a run as ids, and the files that its bundle gets of them."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence

from paddle_dialog.config.models import PretrainedConfig
from paddle_dialog.data.training_data import EncodedData, TrainingData
from paddle_dialog.tasks.empathetic.config import EmpatheticConfig, EmpatheticDataConfig
from paddle_dialog.tasks.empathetic.data.dataset import (
    DialogueDataset,
    changed_subjects,
    collate,
    longest_target,
)
from paddle_dialog.tasks.empathetic.data.dialogue import Dialogue
from paddle_dialog.tasks.empathetic.data.encoding import DialogueEncoder, make_encoder
from paddle_dialog.tasks.empathetic.data.language import (
    PIECES,
    Language,
    learn_pieces,
    read_pieces,
    sample_of_turns,
)
from paddle_dialog.tasks.empathetic.data.pretrained_language import language_of_model, pretrained_vocabulary
from paddle_dialog.tasks.empathetic.data.sources import (
    read_configured,
    read_conversations,
    read_dialogues,
    read_turns,
)
from paddle_dialog.tasks.empathetic.data.vocabulary import (
    VOCABULARY,
    chosen_vocabulary,
    count_words_of_dialogues,
)
from paddle_dialog.text.vocabulary import Vocabulary

logger = logging.getLogger("paddle_dialog")


def training_data(
    config: EmpatheticConfig, vocabularies: Mapping[str, Vocabulary] | None, pieces: bytes | None
) -> TrainingData:
    """Read and encode the dialogues of a run.

    Args:
        vocabularies: of weights that exist; None makes one from the training text.
        pieces: of weights that exist; None makes them from the training text where the language has pieces.
    """
    settings = config.data
    train = read_configured(config, settings.train)
    is_pretrained = isinstance(config.model, PretrainedConfig)
    if config.language == "zh" and pieces is None and not is_pretrained:
        pieces = _pieces_of(settings, train)
    language = language_of_model(config, pieces)
    made = _made(config, train)
    more, counts = _further_conversations(settings, language, count_words_of_dialogues(train, language))
    known = None if vocabularies is None else vocabularies[VOCABULARY]
    if is_pretrained:
        vocabulary = pretrained_vocabulary(config)
    else:
        vocabulary = chosen_vocabulary(settings, counts, language, known)
    encoder = make_encoder(config, vocabulary, language=language)
    dataset = DialogueDataset(
        [*train, *made, *more], config, vocabulary, settings.max_target_length, counts, encoder
    )
    notes = [
        f"training data {settings.train}: {len(train):,} examples, {dataset.cut_targets:,} replies cut to "
        f"{settings.max_target_length} words",
        f"vocabulary: {len(vocabulary):,} tokens, special and reserved ones included",
    ]
    if made:
        notes.append(f"small talk and changed subjects: {len(made):,} examples more")
    if more:
        notes.append(f"further conversations {settings.more}: {len(more):,} pieces")
    dev = None
    if settings.dev is not None:
        dev = _dev(config, settings.dev, vocabulary, encoder)
        notes.append(f"dev data {settings.dev}: {len(dev.lengths):,} examples")
    files = {} if pieces is None else {PIECES: pieces}
    encoded = EncodedData(dataset, dataset.lengths)
    return TrainingData(encoded, dev, {VOCABULARY: vocabulary}, collate, notes, files)


def _made(config: EmpatheticConfig, train: Sequence[Dialogue]) -> list[Dialogue]:
    """Return small talk as often as the settings say, and conversations that change their subject."""
    talk = read_dialogues("small_talk", config.language) if config.data.small_talk else []
    return talk * config.data.small_talk + changed_subjects(train, config.data.changed_subjects, config.seed)


def _dev(
    config: EmpatheticConfig, source: str, vocabulary: Vocabulary, encoder: DialogueEncoder
) -> EncodedData:
    """Encode the dialogues of the dev figure, with replies as long as the model can score."""
    dialogues = read_configured(config, source)
    dataset = DialogueDataset(dialogues, config, vocabulary, longest_target(config), encoder=encoder.fresh())
    return EncodedData(dataset, dataset.lengths)


def _further_conversations(
    settings: EmpatheticDataConfig, language: Language, counts: Counter[str]
) -> tuple[list[Dialogue], Counter[str]]:
    """Return the further conversations of `data.more`, if any, and the counts of words with theirs.

    Words that only they have, and fewer than `data.more_min_count` times, count 0.
    """
    if settings.more is None:
        return [], counts
    more = read_conversations(settings.more, settings.max_length, language, settings.reply_characters)
    further = count_words_of_dialogues(more, language)
    together = counts + further
    for word, count in further.items():
        if word not in counts and count < settings.more_min_count:
            together[word] = 0
    return more, together


def _pieces_of(settings: EmpatheticDataConfig, train: Sequence[Dialogue]) -> bytes:
    """Read or learn the pieces that Chinese is cut into."""
    if settings.pieces is not None:
        return read_pieces(settings.pieces)
    more = [] if settings.more is None else read_turns(settings.more, settings.reply_characters)
    logger.info("learning %s pieces from a sample of the training text", f"{settings.piece_count:,}")
    conversations = [*more, *([d.context[-1], d.target] for d in train)]
    return learn_pieces(sample_of_turns(conversations), settings.piece_count)
