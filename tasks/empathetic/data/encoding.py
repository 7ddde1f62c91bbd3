"""The vocabulary, and dialogues as ids: words, roles, hints and hashed n-grams of each position of a context.

The embedding of a role, a hint or an emotion is added to a word's or replaces it, so each is a row of the one table,
and no model needs further tables.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from paddle_dialog.config.models import PretrainedConfig
from paddle_dialog.errors import UserError
from paddle_dialog.models.pretrained_base import base_folder, load_tokenizer
from paddle_dialog.tasks.empathetic.config import EmpatheticConfig, EmpatheticDataConfig
from paddle_dialog.tasks.empathetic.data.dialogue import Dialogue
from paddle_dialog.tasks.empathetic.data.emotions import EMOTIONS, EMOTIONS_OF, EmotionLexicon
from paddle_dialog.tasks.empathetic.data.language import ENGLISH, Language, make_language
from paddle_dialog.text.vocabulary import SPECIAL_TOKENS, Vocabulary

VOCABULARY = "text"  # name of the one vocabulary of context and reply
_MARKS = ("<cls>", "<speaker>", "<listener>", "<hint>")
# The first ids follow the special tokens; the roles of a history map to 0, SPEAKER_ID and LISTENER_ID.
CLS_ID, SPEAKER_ID, LISTENER_ID, HINT_ID, FIRST_EMOTION_ID = range(
    len(SPECIAL_TOKENS), len(SPECIAL_TOKENS) + 5
)
TURN_MARKS = _MARKS[1:3]  # before the speaker's turns and the listener's where turns are marked

CHARACTER_SIZES = (3, 4, 5)
MAX_CHARACTER_NGRAMS = 16
WORD_FEATURES = 3  # the word by its role, the pair with the word before, the word of a first turn
FEATURES = WORD_FEATURES + MAX_CHARACTER_NGRAMS  # buckets of a position
CONFIDENCE_FLOOR = 0.05  # of the logits of a neutral context; the likeliest emotion stays the likeliest

HINTS = "hints.txt"  # the file in a bundle that marks which words of the vocabulary are hints
NO_EMOTION = -1  # label of an example that is not annotated, and condition where the emotion is predicted
# Roles of words; 0 belongs to padding and to positions that nobody said, such as CLS.
NO_ROLE, SPEAKER, LISTENER = 0, 1, 2
_ROLE_IDS = np.array([0, SPEAKER_ID, LISTENER_ID])


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


def count_words(dialogues: Iterable[Dialogue], language: Language = ENGLISH) -> Counter[str]:
    """Count the words of dialogues; what the next example of a conversation repeats counts once."""
    counts: Counter[str] = Counter()
    before: list[str] = []
    for dialogue in dialogues:
        turns = [*dialogue.context, dialogue.target]
        known = len(before) if turns[: len(before)] == before else 0
        for turn in turns[known:]:
            counts.update(language.tokens_of(turn))
        before = turns
    return counts


def chosen_vocabulary(
    settings: EmpatheticDataConfig, counts: Counter[str], language: Language, known: Vocabulary | None
) -> Vocabulary:
    """Return `known`, that of existing weights, else that of the file that the config names, or one of the counts."""
    reserved, smallest = reserved_entries(language.emotions), smallest_vocabulary(language.emotions)
    if settings.max_vocabulary is not None and settings.max_vocabulary <= smallest:
        raise UserError(
            f"data.max_vocabulary: is {settings.max_vocabulary}, and {smallest} entries are reserved for roles and "
            "emotions; give more"
        )
    vocabulary = Vocabulary.of_data(settings, [list(counts.elements())], known, reserved)
    if known is None and vocabulary.tokens[len(SPECIAL_TOKENS) : smallest] != reserved:
        raise UserError(
            f"{settings.vocabulary}: is not a vocabulary of this task: {reserved[0]} … {reserved[-1]} must follow "
            "the special tokens; take the text.vocabulary.txt of an empathetic bundle"
        )
    return vocabulary


def pretrained_vocabulary(config: EmpatheticConfig) -> Vocabulary:
    """Return the entries that the task reserves, and the tokens of a recipe's pre-trained model that are text."""
    assert isinstance(config.model, PretrainedConfig)
    tokenizer = load_tokenizer(base_folder(config.model))
    reserved = [*SPECIAL_TOKENS, *reserved_entries(EMOTIONS_OF[config.language])]
    never = {"", *reserved, *tokenizer.all_special_tokens}
    tokens = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    kept = [token for token in tokens if token not in never and token is not None]
    return Vocabulary([*reserved, *(token for token in kept if "\n" not in token and "\r" not in token)])


class Source(NamedTuple):
    """A context as the network reads it, CLS first; in a batch [B, …] all are padded with 0."""

    # Extended ids [S]: V, V + 1, … for words outside the vocabulary, see
    # `paddle_dialog.layers.pointer_generator`.
    words: Any
    roles: Any  # ids of the roles [S], 0 where nobody speaks; None for a network that does not read them
    # `HINT_ID` at words that hint at an emotion, else 0 [S]; None for a network that does not read them.
    hints: Any
    # Buckets of the n-grams of each position, each where it first occurs, 0 for none [S, G]; None without a
    # classifier of n-grams.
    ngrams: Any
    # The emotion that the network is given, a class id, or `NO_EMOTION` where it predicts it, [].
    condition: Any

    def map(self, function: Callable[[Any], Any]) -> Source:
        """Return the source with a function applied to each array that is there."""
        return Source(*(None if array is None else function(array) for array in self))


Packed = tuple[Source, dict[int, int]]  # and the extended ids of its words by their numbers


@dataclass(frozen=True, slots=True)
class EncodedContext:
    """A context as numbers of an encoder's words."""

    words: np.ndarray  # [n], all kept turns, oldest first
    roles: np.ndarray  # role of each word [n]
    first_turn: int  # number of words that belong to the conversation's first turn


class DialogueEncoder:
    """Numbers the words it meets, inside and outside the vocabulary, and packs contexts.

    Args:
        lexicon: words that are hints if they are in the vocabulary; None marks none.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        config: EmpatheticConfig,
        lexicon: EmotionLexicon | None = None,
        language: Language = ENGLISH,
    ) -> None:
        self.vocabulary = vocabulary
        self.language = language
        self.config = config
        self._lexicon = lexicon
        self._buckets = config.emotion.ngram_buckets
        self.forget()

    def numbers(self, words: Sequence[str]) -> np.ndarray:
        """Return this encoder's number of each word, int32 [n]."""
        return np.array([self._number(word) for word in words], dtype=np.int32)

    def words(self) -> list[str]:
        """Return all words numbered so far, in the order of their numbers."""
        return list(self._numbers)

    def forget(self) -> None:
        """Drop all words numbered so far, which would otherwise accumulate; numbers start anew."""
        self._numbers: dict[str, int] = {}
        self._rows: list[tuple[int, int, int]] = []  # vocabulary id, hint, hash
        self._grams: list[np.ndarray] = []
        self._table = np.zeros((0, 3), dtype=np.int64)
        self._gram_table = np.zeros((0, FEATURES - WORD_FEATURES), dtype=np.int64)

    def context(self, turns: Sequence[str]) -> EncodedContext:
        """Encode turns, oldest first, cut to the newest that the model reads."""
        words: list[str] = []
        roles: list[int] = []
        settings = self.config.data
        for place, turn in enumerate(turns):
            words += [TURN_MARKS[place % 2]] * settings.mark_turns + [*self.language.tokens_of(turn)]
            roles += [LISTENER if place % 2 else SPEAKER] * (len(words) - len(roles))
        cut = max(0, len(words) - settings.max_length)
        first = 0 if cut else [*roles, LISTENER].index(LISTENER)
        return EncodedContext(self.numbers(words[cut:]), np.array(roles[cut:], dtype=np.int8), first)

    def pack(
        self, context: EncodedContext, emotion: int | None = None, unknown: Collection[int] = ()
    ) -> Packed:
        """Pack a context; return the extended ids of its unknown words by their numbers, too.

        Args:
            emotion: class id to give to the network, or None.
            unknown: words to be treated as outside the vocabulary.
        """
        words = context.words  # [n]
        ids = self._ids(words, unknown)  # [n]
        extended: dict[int, int] = {}
        if self.config.generator.pointer:
            for place in np.flatnonzero(ids == Vocabulary.unk_id).tolist():
                ids[place] = extended.setdefault(int(words[place]), len(self.vocabulary) + len(extended))
        is_pretrained = isinstance(self.config.model, PretrainedConfig)
        source = Source(
            np.append(CLS_ID, ids),
            None if is_pretrained else np.append(0, _ROLE_IDS[context.roles]),
            np.append(0, self._tables()[0][words, 1]) if self.config.emotion.hints else None,
            np.pad(self.ngrams(context), ((1, 0), (0, 0))) if self._buckets else None,
            np.array(NO_EMOTION if emotion is None else emotion, dtype=np.int64),
        )
        return source, extended

    def ngrams(self, context: EncodedContext) -> np.ndarray:
        """Return the buckets of the n-grams at each word of a context, each where it first occurs, [n, FEATURES]."""
        table, grams = self._tables()
        hashes = table[context.words, 2]  # [n]
        features = word_features(hashes, context.roles, context.first_turn, self._buckets)
        return once_each(np.concatenate([features, grams[context.words]], axis=1))

    def learned(self, context: EncodedContext, turns: Sequence[str], count: int) -> np.ndarray:
        """Return the targets of a language model at each position of a source, for the newest turns.

        Args:
            context: of `turns`, made by an encoder that marks them.
            count: how many of the newest are learned.

        Returns:
            int64 [S]: after a turn's mark its first word, after its last word the end token; 0 at turns that are
            not learned and before words outside the vocabulary.
        """
        words = context.words
        sizes = [len(self.language.tokens_of(turn)) + 1 for turn in turns[max(len(turns) - count, 0) :]]
        start = max(len(words) - sum(sizes), 0)
        ids = self._tables()[0][words, 0]  # [n]
        following = np.append(ids[1:], Vocabulary.eos_id)  # [n]
        following[np.isin(following, (SPEAKER_ID, LISTENER_ID))] = Vocabulary.eos_id
        following[following == Vocabulary.unk_id] = 0
        following[:start] = 0
        return np.append(0, following)

    def target(
        self, words: np.ndarray, extended: dict[int, int], unknown: Collection[int] = ()
    ) -> np.ndarray:
        """Return the ids of a reply; a word outside the vocabulary has the extended id that its context gave it."""
        ids = self._ids(words, unknown)  # [n]
        for place in np.flatnonzero(ids == Vocabulary.unk_id).tolist():
            ids[place] = extended.get(int(words[place]), Vocabulary.unk_id)
        return ids

    def _ids(self, words: np.ndarray, unknown: Collection[int]) -> np.ndarray:
        ids = self._tables()[0][words, 0].copy()
        if unknown:
            ids[np.isin(words, list(unknown))] = Vocabulary.unk_id
        return ids

    def _number(self, word: str) -> int:
        number = self._numbers.setdefault(word, len(self._numbers))
        if number == len(self._rows):
            hinted = self._lexicon is not None and word in self.vocabulary and word in self._lexicon
            self._rows.append((self.vocabulary.id(word), HINT_ID if hinted else 0, zlib.crc32(word.encode())))
            if self._buckets:
                self._grams.append(character_ngrams(word, self._buckets))
        return number

    def _tables(self) -> tuple[np.ndarray, np.ndarray]:
        if len(self._table) != len(self._rows):
            self._table = np.array(self._rows, dtype=np.int64).reshape(-1, 3)
            if self._grams:
                self._gram_table = np.stack(self._grams)
        return self._table, self._gram_table


def make_encoder(
    config: EmpatheticConfig,
    vocabulary: Vocabulary,
    marks: bytes | None = None,
    language: Language | None = None,
) -> DialogueEncoder:
    """Return the encoder that a config describes.

    Args:
        marks: which of its words are hints, from a bundle; None loads the config's lexicon.
        language: of the conversations; None where it is English, which needs no file of a bundle.
    """
    lexicon = None
    if config.emotion.hints:
        shipped = None if marks is None else EmotionLexicon.from_marks(marks, vocabulary, HINTS)
        lexicon = shipped if shipped is not None else EmotionLexicon.load(config.emotion.lexicon)
    return DialogueEncoder(vocabulary, config, lexicon, language or make_language(config.language, None))


def pad_sources(sources: Sequence[Source]) -> tuple[Source, np.ndarray]:
    """Pad sources to a batch; return it and the lengths [B]."""
    lengths = np.array([len(source.words) for source in sources], dtype=np.int64)
    parts = zip(*sources, strict=True)
    return Source(
        *(None if each[0] is None else _padded(each, int(lengths.max())) for each in parts)
    ), lengths


def _padded(parts: Sequence[np.ndarray], length: int) -> np.ndarray:
    """Stack arrays [] or [S, …], padded with 0 to [B] or [B, length, …]."""
    if not parts[0].ndim:
        return np.stack(parts)
    batch = np.zeros((len(parts), length, *parts[0].shape[1:]), dtype=np.int64)
    for row, part in zip(batch, parts, strict=True):
        row[: len(part)] = part
    return batch


def character_ngrams(word: str, buckets: int) -> np.ndarray:
    """Return the buckets of the character n-grams of `<word>`, int64 [MAX_CHARACTER_NGRAMS].

    Args:
        word: the word; of a long one the shorter n-grams come first and the rest is left out.
        buckets: number of buckets; 0 means no feature, so that 1 to `buckets` - 1 are given out.
    """
    framed = f"<{word}>"
    grams = [framed[i : i + size] for size in CHARACTER_SIZES for i in range(len(framed) - size + 1)]
    row = np.zeros(MAX_CHARACTER_NGRAMS, dtype=np.int64)
    for place, gram in enumerate(grams[:MAX_CHARACTER_NGRAMS]):
        row[place] = zlib.crc32(f"c:{gram}".encode()) % (buckets - 1) + 1
    return row


def word_features(hashes: np.ndarray, roles: np.ndarray, first_turn: int, buckets: int) -> np.ndarray:
    """Return the buckets of each word, of the pair it ends, and of a first turn's words again: [n, WORD_FEATURES].

    The same word is a different feature for speaker and listener; no pair crosses two turns.

    Args:
        hashes: CRC-32 of each word, int64 [n].
        roles: of each word [n].
        first_turn: how many words the conversation's first turn has here.
        buckets: as for `character_ngrams`.
    """
    roles = roles.astype(np.int64)
    before = np.zeros_like(hashes)  # [n]
    before[1:] = np.where(roles[1:] == roles[:-1], hashes[:-1], 0)
    first = np.arange(len(hashes)) < first_turn  # [n]
    by_role = hashes + roles * 2_654_435_761  # [n]
    columns = [by_role, by_role * 31 + before * 1_000_003 + 7, hashes * 17 + 3]
    features = np.stack([column % (buckets - 1) + 1 for column in columns], axis=1)  # [n, 3]
    features[:, 2] *= first
    return features


def once_each(buckets: np.ndarray) -> np.ndarray:
    """Return buckets of any shape with only the first occurrence of each; the others become 0."""
    kept = np.zeros_like(buckets)
    first = np.unique(buckets, return_index=True)[1]  # in the flattened array
    kept.flat[first] = buckets.flat[first]
    return kept


def column_weights(character_weight: float) -> np.ndarray:
    """Return the weight of each column, float32 [FEATURES]: 1 for words, `character_weight` for characters."""
    weights = np.ones(FEATURES, dtype=np.float32)
    weights[WORD_FEATURES:] = character_weight
    return weights
