"""Tokens of reviews, and the n-grams of tokens for the linear machine."""

from __future__ import annotations

import html
import re
import zlib
from collections.abc import Sequence
from typing import Literal

import numpy as np

from paddle_dialog.text.characters import normalise_line

Unit = Literal["characters", "words"]

# Contractions as the Penn Treebank cuts them (did n't, it 's), numbers, words with their hyphens, single signs.
_WORDS = re.compile(r"n't\b|'(?:s|re|ve|ll|d|m)\b|\w+?(?=n't\b)|\d+(?:[.,]\d+)+|\w+(?:-\w+)*|[^\w\s]")
ALWAYS = 1  # the bucket of every text; its weight is the bias
FIRST = 2  # first bucket of n-grams
_FACTOR, _MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(29)


def tokens_of(text: str, unit: Unit) -> list[str]:
    """Return the tokens of a text in lower case, HTML entities resolved, without blanks."""
    text = html.unescape(text).lower()
    return list(normalise_line(text)) if unit == "characters" else _WORDS.findall(text.replace("’", "'"))


def ngram_buckets(tokens: Sequence[str], longest: int, buckets: int) -> np.ndarray:
    """Return the bucket of each n-gram.

    Args:
        tokens: S of them.
        longest: greatest number of tokens in an n-gram.
        buckets: number of buckets; 0 stands for no n-gram, and `ALWAYS` is not given out.

    Returns:
        int64 [longest, S]: row n - 1 holds the n-grams of n tokens at the position where each begins.
    """
    hashes = np.array([zlib.crc32(token.encode("utf-8")) for token in tokens], dtype=np.uint64)  # [S]
    found = np.zeros((longest, len(tokens)), dtype=np.int64)
    rolling = np.zeros_like(hashes)
    for size in range(1, min(longest, len(tokens)) + 1):
        count = len(tokens) - size + 1
        rolling = (rolling[:count] + hashes[size - 1 :] + np.uint64(size)) * _FACTOR  # wraps at 2^64
        mixed = (rolling ^ (rolling >> _MIX)) % np.uint64(buckets - FIRST)
        found[size - 1, :count] = mixed.astype(np.int64) + FIRST
    return found


def present(found: np.ndarray) -> np.ndarray:
    """Return the buckets of a text's n-grams [longest, S], each once, `ALWAYS` first."""
    return np.concatenate([[ALWAYS], np.unique(found[found > 0])])


def contributions(found: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Return the share of each token in the linear machine's logit, which is the sum of these and the bias.

    A bucket's weight is shared evenly among the n-grams that fall into it, and that of an n-gram among its tokens.

    Args:
        found: buckets of the n-grams [longest, S].
        table: weight of each bucket [buckets].

    Returns:
        float64 [S].
    """
    shares = np.zeros(found.shape[1])
    names, place, counts = np.unique(found, return_inverse=True, return_counts=True)
    weights = np.where(names > 0, table[names], 0.0) / counts  # of one n-gram of each bucket
    for size, row in enumerate(weights[place.reshape(found.shape)], start=1):
        for offset in range(size):
            shares[offset:] += row[: len(row) - offset] / size
    return shares
