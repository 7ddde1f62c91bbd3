"""What a run learns of its training text before it encodes it: pieces, counts of words, the vocabulary."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence

from paddle_dialog.text.vocabulary import Vocabulary
from tasks.empathetic.config import EmpatheticDataConfig
from tasks.empathetic.data.conversations import read_conversations, read_turns
from tasks.empathetic.data.dialogue import Dialogue
from tasks.empathetic.data.language import Language
from tasks.empathetic.data.pieces import learn_pieces, read_pieces, sample_of_turns
from tasks.empathetic.data.reserved import build_vocabulary, check_vocabulary, count_words

logger = logging.getLogger("paddle_dialog")


def further_conversations(
    settings: EmpatheticDataConfig, language: Language, counts: Counter[str]
) -> tuple[list[Dialogue], Counter[str]]:
    """Return the further conversations of `data.more`, if any, and the counts of words with theirs.

    Words that only they have, and fewer than `data.more_min_count` times, count 0.
    """
    if settings.more is None:
        return [], counts
    more = read_conversations(
        settings.more, settings.max_length, settings.more_window, language, settings.reply_characters
    )
    own = word_counts(more, language)
    together = counts + own
    for word, count in own.items():
        if word not in counts and count < settings.more_min_count:
            together[word] = 0
    return more, together


def chosen_vocabulary(settings: EmpatheticDataConfig, counts: Counter[str], language: Language) -> Vocabulary:
    """Return the vocabulary of the file that the config names, or one built from the counts."""
    if settings.vocabulary is not None:
        return check_vocabulary(Vocabulary.load(settings.vocabulary), settings.vocabulary, language.emotions)
    return build_vocabulary(counts, settings.min_count, settings.max_vocabulary, language.emotions)


def word_counts(dialogues: Sequence[Dialogue], language: Language) -> Counter[str]:
    """Count the words of dialogues, those of a turn once."""
    tokens_of = language.tokens_of
    return count_words(([*map(tokens_of, d.context)], tokens_of(d.target)) for d in dialogues)


def pieces_of(settings: EmpatheticDataConfig, train: Sequence[Dialogue]) -> bytes:
    """Read or learn the pieces that Chinese is cut into."""
    if settings.pieces is not None:
        return read_pieces(settings.pieces)
    more = [] if settings.more is None else read_turns(settings.more, settings.reply_characters)
    logger.info("learning %s pieces from a sample of the training text", f"{settings.piece_count:,}")
    conversations = [*more, *([d.context[-1], d.target] for d in train)]
    return learn_pieces(sample_of_turns(conversations), settings.piece_count)
