"""The vocabulary: words counted in the training text, and entries other than words in the same embedding table.

The embedding of a role, a hint or an emotion is added to a word's or replaces it, so each is a row of the one table,
and no model needs further tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from paddle_dialog.config.models import PretrainedConfig
from paddle_dialog.errors import UserError
from paddle_dialog.models.pretrained_base import base_folder, load_tokenizer
from paddle_dialog.tasks.empathetic.config import EmpatheticConfig, EmpatheticDataConfig
from paddle_dialog.tasks.empathetic.data.dialogue import Dialogue
from paddle_dialog.tasks.empathetic.data.emotions import EMOTIONS, EMOTIONS_OF
from paddle_dialog.tasks.empathetic.data.language import Language
from paddle_dialog.text.vocabulary import SPECIAL_TOKENS, Vocabulary

T = TypeVar("T")

VOCABULARY = "text"  # name of the one vocabulary of context and reply
_MARKS = ("<cls>", "<speaker>", "<listener>", "<hint>")
# The first ids follow the special tokens; the roles of a history map to 0, SPEAKER_ID and LISTENER_ID.
CLS_ID, SPEAKER_ID, LISTENER_ID, HINT_ID, FIRST_EMOTION_ID = range(
    len(SPECIAL_TOKENS), len(SPECIAL_TOKENS) + 5
)
TURN_MARKS = _MARKS[1:3]  # before the speaker's turns and the listener's where turns are marked


def reserved_entries(emotions: Sequence[str] = EMOTIONS) -> tuple[str, ...]:
    """Return the entries that follow the special tokens, for the emotions of a language."""
    return (*_MARKS, *(f"<{emotion}>" for emotion in emotions))


def smallest_vocabulary(emotions: Sequence[str] = EMOTIONS) -> int:
    """Return the size of a vocabulary without a word."""
    return FIRST_EMOTION_ID + len(emotions)


def not_words(emotions: Sequence[str] = EMOTIONS) -> list[int]:
    """Return the ids that are never part of a reply."""
    reserved = range(len(SPECIAL_TOKENS), smallest_vocabulary(emotions))
    return [Vocabulary.pad_id, Vocabulary.unk_id, Vocabulary.bos_id, *reserved]


def count_words(dialogues: Iterable[tuple[Sequence[Sequence[str]], Sequence[str]]]) -> Counter[str]:
    """Count each word; `dialogues` are as for `turns_once`, each turn as tokens."""
    counts: Counter[str] = Counter()
    for turn in turns_once(dialogues):
        counts.update(turn)
    return counts


def turns_once(dialogues: Iterable[tuple[Sequence[T], T]]) -> Iterator[T]:
    """Iterate over every turn of examples once: each example of a conversation repeats the turns before it."""
    before: list[T] = []
    for context, target in dialogues:
        turns = [*context, target]
        known = len(before) if turns[: len(before)] == before else 0
        yield from turns[known:]
        before = turns


def build_vocabulary(
    counts: Counter[str], min_count: int, max_size: int | None, emotions: Sequence[str] = EMOTIONS
) -> Vocabulary:
    """Build the vocabulary from the words counted in the training text, for the emotions of a language."""
    smallest = smallest_vocabulary(emotions)
    if max_size is not None and max_size <= smallest:
        raise UserError(
            f"data.max_vocabulary: is {max_size}, and {smallest} entries are reserved for roles and "
            "emotions; give more"
        )
    return Vocabulary.build(counts, min_count, max_size, reserved_entries(emotions))


def check_vocabulary(vocabulary: Vocabulary, where: str, emotions: Sequence[str] = EMOTIONS) -> Vocabulary:
    """Return the vocabulary itself if the reserved entries are in their places."""
    reserved = reserved_entries(emotions)
    if vocabulary.tokens[len(SPECIAL_TOKENS) : smallest_vocabulary(emotions)] != reserved:
        raise UserError(
            f"{where}: is not a vocabulary of this task: {reserved[0]} … {reserved[-1]} must follow the special "
            "tokens; take the text.vocabulary.txt of an empathetic bundle"
        )
    return vocabulary


def chosen_vocabulary(
    settings: EmpatheticDataConfig, counts: Counter[str], language: Language, known: Vocabulary | None
) -> Vocabulary:
    """Return `known`, that of existing weights, else that of the file that the config names, or one of the counts."""
    file, emotions = settings.vocabulary, language.emotions
    if known is not None:
        vocabulary = known
    elif file is not None:
        vocabulary = check_vocabulary(Vocabulary.load(file), file, emotions)
    else:
        vocabulary = build_vocabulary(counts, settings.min_count, settings.max_vocabulary, emotions)
    vocabulary.check_coverage(counts, settings, known is not None)
    return vocabulary


def count_words_of_dialogues(dialogues: Sequence[Dialogue], language: Language) -> Counter[str]:
    """Count the words of dialogues, those of a turn once."""
    tokens_of = language.tokens_of
    return count_words(([*map(tokens_of, d.context)], tokens_of(d.target)) for d in dialogues)


def pretrained_vocabulary(config: EmpatheticConfig) -> Vocabulary:
    """Return the entries that the task reserves, and the tokens of a recipe's pre-trained model that are text."""
    assert isinstance(config.model, PretrainedConfig)
    tokenizer = load_tokenizer(base_folder(config.model))
    reserved = [*SPECIAL_TOKENS, *reserved_entries(EMOTIONS_OF[config.language])]
    never = {"", *reserved, *tokenizer.all_special_tokens}
    tokens = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    kept = [token for token in tokens if token not in never and token is not None]
    return Vocabulary([*reserved, *(token for token in kept if "\n" not in token and "\r" not in token)])
