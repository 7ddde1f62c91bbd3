"""Vocabulary entries other than words, which share the words' embedding table.

The embedding of a role, a hint or an emotion is added to a word's or replaces it, so each is a row of the one table,
and no model needs further tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from paddle_dialog.errors import UserError
from paddle_dialog.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tasks.empathetic.emotion.labels import EMOTIONS

RESERVED: tuple[str, ...] = (
    "<cls>",
    "<speaker>",
    "<listener>",
    "<hint>",
    *(f"<{emotion}>" for emotion in EMOTIONS),
)
# The first ids follow the special tokens; the roles of a history map to 0, SPEAKER_ID and LISTENER_ID.
CLS_ID, SPEAKER_ID, LISTENER_ID, HINT_ID, FIRST_EMOTION_ID = range(
    len(SPECIAL_TOKENS), len(SPECIAL_TOKENS) + 5
)
SMALLEST_VOCABULARY = len(SPECIAL_TOKENS) + len(RESERVED)
TURN_MARKS = RESERVED[1:3]  # what stands before the speaker's turns and the listener's where turns are marked
# Never part of a reply.
NOT_WORDS = (
    Vocabulary.pad_id,
    Vocabulary.unk_id,
    Vocabulary.bos_id,
    *range(len(SPECIAL_TOKENS), SMALLEST_VOCABULARY),
)


def count_words(dialogues: Iterable[tuple[Sequence[Sequence[str]], Sequence[str]]]) -> Counter[str]:
    """Count the occurrences of each word; a turn that several examples of a conversation repeat counts once.

    Args:
        dialogues: context turns and target of each example as tokens; examples of one conversation follow each
            other.
    """
    counts: Counter[str] = Counter()
    before: list[Sequence[str]] = []
    for context, target in dialogues:
        turns = [*context, target]
        known = len(before) if turns[: len(before)] == before else 0
        for turn in turns[known:]:
            counts.update(turn)
        before = turns
    return counts


def build_vocabulary(counts: Counter[str], min_count: int, max_size: int | None) -> Vocabulary:
    """Build the vocabulary from the words counted in the training text.

    Raises:
        UserError: `max_size` leaves no room for a word.
    """
    if max_size is not None and max_size <= SMALLEST_VOCABULARY:
        raise UserError(
            f"data.max_vocabulary: is {max_size}, and {SMALLEST_VOCABULARY} entries are reserved for roles and "
            "emotions; give more"
        )
    words = ([word] * count for word, count in counts.items())
    return Vocabulary.build(words, min_count, max_size, RESERVED)


def check_vocabulary(vocabulary: Vocabulary, where: str) -> Vocabulary:
    """Return the vocabulary itself if the reserved entries are in their places.

    Raises:
        UserError: they are not.
    """
    if vocabulary.tokens[len(SPECIAL_TOKENS) : SMALLEST_VOCABULARY] != RESERVED:
        raise UserError(
            f"{where}: is not a vocabulary of this task: {RESERVED[0]} … {RESERVED[-1]} must follow the special "
            "tokens; take the text.vocabulary.txt of an empathetic bundle"
        )
    return vocabulary
