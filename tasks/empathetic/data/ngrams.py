"""Hashed word and character n-grams of a context, the features of the linear classifier of emotions."""

from __future__ import annotations

import zlib

import numpy as np

CHARACTER_SIZES = (3, 4, 5)
MOST_CHARACTER_NGRAMS = 16
WORD_FEATURES = 3  # the word by its role, the pair with the word before, the word of a first turn
FEATURES = WORD_FEATURES + MOST_CHARACTER_NGRAMS  # buckets of a position
LEAST_CLARITY = 0.05  # factor of the logits of a plain context; the likeliest emotion stays the likeliest


def stable_hash(text: str) -> int:
    """Return CRC-32 of the UTF-8 text: unlike `hash`, the same in every process."""
    return zlib.crc32(text.encode("utf-8"))


def character_ngrams(word: str, buckets: int) -> np.ndarray:
    """Return the buckets of the character n-grams of `<word>`, int64 [MOST_CHARACTER_NGRAMS].

    Args:
        word: the word; of a long one the shorter n-grams come first and the rest is left out.
        buckets: number of buckets; 0 means no feature, so that 1 to `buckets` - 1 are given out.
    """
    framed = f"<{word}>"
    grams = [framed[i : i + size] for size in CHARACTER_SIZES for i in range(len(framed) - size + 1)]
    row = np.zeros(MOST_CHARACTER_NGRAMS, dtype=np.int64)
    for place, gram in enumerate(grams[:MOST_CHARACTER_NGRAMS]):
        row[place] = stable_hash(f"c:{gram}") % (buckets - 1) + 1
    return row


def word_features(hashes: np.ndarray, roles: np.ndarray, first_turn: int, buckets: int) -> np.ndarray:
    """Return the buckets of each word, of the pair it ends, and again of the words of the first turn.

    The same word is a different feature for speaker and listener; no pair crosses two turns.

    Args:
        hashes: `stable_hash` of each word, int64 [n].
        roles: of each word [n].
        first_turn: how many words the conversation's first turn has here.
        buckets: as for `character_ngrams`.

    Returns:
        int64 [n, WORD_FEATURES].
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
