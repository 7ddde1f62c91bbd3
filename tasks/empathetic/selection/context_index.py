"""The conversations in which a store's replies were given, and their similarity to a new one."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tasks.empathetic.selection.overlap import Tokens, stem

BUCKETS = 1 << 16  # a stem is known by its hash; 8,000 stems of EmpatheticDialogues seldom share one
LAST_TURN = 2  # how often a word of the turn that is answered counts


@dataclass(frozen=True)
class ContextIndex:
    """Contexts of replies, compared with a new one by their vectors and by the cosine of TF-IDF.

    For its words a context is its first turn, which tells what happened, and its last one, twice. TF is
    1 + log count, IDF the logarithm of contexts per context that has the word (Salton & Buckley 1988,
    "Term-Weighting Approaches in Automatic Text Retrieval").

    Attributes:
        terms: hashes of the words of all contexts, one context after the other, uint16 [M].
        counts: how often each stands in its context, uint8 [M].
        sizes: words of each context, uint16 [C].
        rows: the reply that was given to each context, as a row of the store, uint32 [C].
        vectors: of the contexts, of unit length, float32 [C, K].
    """

    terms: np.ndarray
    counts: np.ndarray
    sizes: np.ndarray
    rows: np.ndarray
    vectors: np.ndarray

    @classmethod
    def build(
        cls, contexts: Sequence[Sequence[Tokens]], rows: Sequence[int], vectors: np.ndarray
    ) -> ContextIndex:
        """Index the turns of each context, given as tokens, with the row of its reply and its vector."""
        bags = [_bag(turns) for turns in contexts]
        return cls(
            np.array([term for bag in bags for term in bag], np.uint16),
            np.array([min(count, 255) for bag in bags for count in bag.values()], np.uint8),
            np.array([len(bag) for bag in bags], np.uint16),
            np.array(rows, np.uint32),
            vectors,
        )

    def by_vectors(self, vector: np.ndarray, replies: int) -> np.ndarray:
        """Compare a unit vector [K] with the nearest context of each reply, cosines float32 [N]."""
        return self._highest(self.vectors @ vector, replies)

    def by_words(self, turns: Sequence[Tokens], replies: int) -> np.ndarray:
        """Compute, for each reply, the greatest similarity by words of a conversation to those in which it was given.

        Args:
            turns: of the conversation, as tokens.
            replies: N of the store.

        Returns:
            Cosines float32 [N], in 0–1; 0 for a reply without a context.
        """
        query = np.zeros(BUCKETS, np.float32)
        for term, count in _bag(turns).items():
            query[term] = (1.0 + np.log(count)) * self._idf[term]
        query /= max(float(np.linalg.norm(query)), 1e-9)
        products = np.append(self._weights * query[self.terms], np.float32(0.0))  # [M + 1]
        cosines = np.add.reduceat(products, self._starts) * (self.sizes > 0)  # [C]
        return self._highest(cosines, replies)

    def _highest(self, cosines: np.ndarray, replies: int) -> np.ndarray:
        """Reduce the cosines of all contexts [C] to the highest of each reply [N], at least 0."""
        best = np.zeros(replies, np.float32)
        np.maximum.at(best, self.rows, cosines)
        return best

    @cached_property
    def _starts(self) -> np.ndarray:
        """Where each context begins among the terms [C]."""
        sizes = self.sizes.astype(np.int64)
        return np.cumsum(sizes) - sizes

    @cached_property
    def _idf(self) -> np.ndarray:
        """IDF of each term, float32 [BUCKETS]; 0 for a word that no context or only one has."""
        found = np.bincount(self.terms, minlength=BUCKETS)
        idf = np.log(len(self.sizes) / np.maximum(found, 1)) * (found > 1)
        return idf.astype(np.float32)

    @cached_property
    def _weights(self) -> np.ndarray:
        """TF-IDF of each term, of unit length in each context, float32 [M]."""
        weights = (1.0 + np.log(self.counts.astype(np.float32))) * self._idf[self.terms]
        context = np.repeat(np.arange(len(self.sizes)), self.sizes)  # [M]
        norms = np.sqrt(np.bincount(context, weights**2, minlength=len(self.sizes)))  # [C]
        return (weights / np.maximum(norms, 1e-9)[context]).astype(np.float32)


def _bag(turns: Sequence[Tokens]) -> Counter[int]:
    """Hash the stems of a context and count each."""
    bag: Counter[int] = Counter()
    for turn, weight in ((turns[0], 1), (turns[-1], LAST_TURN)) if turns else ():
        for token in turn:
            bag[zlib.crc32(stem(token).encode()) % BUCKETS] += weight
    return bag
