"""The examples of a run as ids, and the files that its bundle gets of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paddle_dialog.data.training_data import EncodedData, TrainingData
from paddle_dialog.text.vocabulary import Vocabulary
from tasks.empathetic.config import EmpatheticConfig
from tasks.empathetic.data.augmentation import changed_subjects
from tasks.empathetic.data.dataset import DialogueDataset, collate, longest_target
from tasks.empathetic.data.dialogue import Dialogue
from tasks.empathetic.data.encoding import DialogueEncoder, make_encoder
from tasks.empathetic.data.language import make_language
from tasks.empathetic.data.pieces import PIECES
from tasks.empathetic.data.preparation import (
    chosen_vocabulary,
    further_conversations,
    pieces_of,
    word_counts,
)
from tasks.empathetic.data.reserved import VOCABULARY
from tasks.empathetic.data.sources import read_configured, read_dialogues
from tasks.empathetic.selection.reply_ngrams import ReplyNgrams
from tasks.empathetic.selection.rerank import REPLY_NGRAMS


def training_data(
    config: EmpatheticConfig, vocabularies: Mapping[str, Vocabulary] | None, pieces: bytes | None
) -> TrainingData:
    """Read and encode the dialogues of a run.

    Args:
        config: the settings.
        vocabularies: of weights that exist; None makes one from the training text.
        pieces: of weights that exist; None makes them from the training text where the language has pieces.
    """
    settings = config.data
    train = read_configured(config, settings.train)
    if config.language == "zh" and pieces is None:
        pieces = pieces_of(settings, train)
    language = make_language(config.language, pieces)
    made = _made(config, train)
    more, counts = further_conversations(settings, language, word_counts(train, language))
    vocabulary = (
        chosen_vocabulary(settings, counts, language) if vocabularies is None else vocabularies[VOCABULARY]
    )
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
    ngrams = ReplyNgrams.of(language.tokens_of(dialogue.target) for dialogue in train if dialogue.target)
    files = {REPLY_NGRAMS: ngrams.to_bytes()} | ({} if pieces is None else {PIECES: pieces})
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
