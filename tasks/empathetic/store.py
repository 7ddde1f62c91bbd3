"""A store of replies that people wrote, and the exact search in it by the words of their conversations."""

from __future__ import annotations

import logging
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from safetensors.numpy import load, save

from paddle_dialog.bundle.folder import file_errors
from paddle_dialog.errors import UserError
from tasks.empathetic.config import RepliesConfig
from tasks.empathetic.data.emotions import EMOTIONS
from tasks.empathetic.data.language import Tokens
from tasks.empathetic.overlap import stem

logger = logging.getLogger("paddle_dialog")

REPLY_STORE = "replies.safetensors"  # in a bundle
BUCKETS = 1 << 16  # a stem is known by its hash; 8,000 stems of EmpatheticDialogues seldom share one
LAST_TURN = 2  # how often a word of the turn that is answered counts
_TYPES = {
    "texts": np.uint8, "emotions": np.uint32, "own": np.bool_, "contexts.terms": np.uint16,
    "contexts.counts": np.uint8, "contexts.sizes": np.uint16, "contexts.rows": np.uint32,
}  # fmt: skip


@dataclass(frozen=True)
class ContextIndex:
    """The conversations in which replies were given, compared with a new one by the cosine of TF-IDF.

    For its words a context is its first turn, which tells what happened, and its last one, twice. TF is
    1 + log count, IDF the logarithm of contexts per context that has the word (Salton & Buckley 1988,
    "Term-Weighting Approaches in Automatic Text Retrieval").

    Attributes:
        terms: hashes of the words of all contexts, one context after the other, uint16 [M].
        counts: how often each stands in its context, uint8 [M].
        sizes: words of each context, uint16 [C].
        rows: the reply that was given to each context, as a row of the store, uint32 [C].
    """

    terms: np.ndarray
    counts: np.ndarray
    sizes: np.ndarray
    rows: np.ndarray

    @classmethod
    def build(cls, contexts: Sequence[Sequence[Tokens]], rows: Sequence[int]) -> ContextIndex:
        """Index the turns of each context, given as tokens, with the row of its reply."""
        bags = [_bag(turns) for turns in contexts]
        return cls(
            np.array([term for bag in bags for term in bag], np.uint16),
            np.array([min(count, 255) for bag in bags for count in bag.values()], np.uint8),
            np.array([len(bag) for bag in bags], np.uint16),
            np.array(rows, np.uint32),
        )

    def similarities(self, turns: Sequence[Tokens], replies: int) -> np.ndarray:
        """Compare a conversation with those in which each reply was given, and take the most similar.

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


@dataclass(frozen=True)
class ReplyStore:
    """Replies that people wrote.

    Attributes:
        texts: the replies, N of them.
        emotions: in which emotions of the speaker the reply was given, bit i for the i-th of its language, uint32
            [N]; 0 where nothing is known.
        contexts: the conversations in which the replies were given.
        own: whether each was written for this project (small talk, everyday), bool [N].
    """

    texts: Sequence[str]
    emotions: np.ndarray
    contexts: ContextIndex
    own: np.ndarray

    def __len__(self) -> int:
        return len(self.texts)

    def similarities(self, turns: Sequence[Tokens]) -> np.ndarray:
        """Return how similar a conversation is to those of each reply, cosines float32 [N] in 0–1."""
        return self.contexts.similarities(turns, len(self))

    def to_bytes(self) -> bytes:
        """Write the store as a safetensors file, each array compressed by zlib: 6 MB for 52,000 replies."""
        index = {
            f"contexts.{field.name}": getattr(self.contexts, field.name) for field in fields(ContextIndex)
        }
        texts = np.frombuffer("\n".join(self.texts).encode("utf-8"), np.uint8)
        arrays = {"texts": texts, "emotions": self.emotions, "own": self.own, **index}
        packed = {
            name: zlib.compress(arrays[name].astype(kind).tobytes(), 9) for name, kind in _TYPES.items()
        }
        return save({name: np.frombuffer(content, np.uint8) for name, content in packed.items()})

    @classmethod
    def from_bytes(cls, content: bytes, where: str) -> ReplyStore:
        """Read what `to_bytes` made.

        Args:
            content: of the file.
            where: the file, for messages.

        Raises:
            UserError: the content is something else.
        """
        with file_errors(where, "store of replies", "make it anew"):
            packed = load(content)
            arrays = {name: _unpacked(packed[name], kind) for name, kind in _TYPES.items()}
            texts = arrays["texts"].tobytes().decode("utf-8").split("\n")
            emotions, own = arrays["emotions"], arrays["own"]
            index = {field.name: arrays[f"contexts.{field.name}"] for field in fields(ContextIndex)}
        if {len(emotions), len(own)} != {len(texts)}:
            raise UserError(f"{where}: its replies and their emotions differ in number; make it anew")
        return cls(texts, emotions, ContextIndex(**index), own)


def store_of_bundle(settings: RepliesConfig, content: bytes | None) -> ReplyStore | None:
    """Return the store that a config asks for.

    Args:
        settings: whether it is wanted.
        content: of the bundle's `REPLY_STORE`; None where it has none.

    Returns:
        None where the config wants none, or leaves the choice to a bundle that has none.

    Raises:
        UserError: the store is required but missing.
    """
    if settings.store is False:
        return None
    if content is not None:
        return ReplyStore.from_bytes(content, REPLY_STORE)
    missing = f"these weights have no store of replies ({REPLY_STORE})"
    if settings.store or not settings.generate:
        raise UserError(
            f"replies.store: {missing}; make a bundle with one by tools/export.py --data, or set "
            "-o replies.store=false -o replies.generate=true"
        )
    logger.info("%s; the generator answers alone", missing)
    return None


def highest(values: np.ndarray, count: int) -> list[int]:
    """Return the places of the highest values of [N], highest first, the earlier one where two are equal."""
    size = min(count, len(values))
    places = np.sort(np.argpartition(-values, size - 1)[:size])
    return [int(place) for place in places[np.argsort(-values[places], kind="stable")]]


def emotion_bits(labels: Sequence[str | None], emotions: Sequence[str] = EMOTIONS) -> int:
    """Return emotions as the bits of `ReplyStore.emotions`; None has none."""
    return sum(1 << emotions.index(label) for label in {*labels} - {None} if label is not None)


def _unpacked(packed: np.ndarray, kind: type) -> np.ndarray:
    return np.frombuffer(zlib.decompress(packed.tobytes()), kind)


def _bag(turns: Sequence[Tokens]) -> Counter[int]:
    """Hash the stems of a context and count each."""
    bag: Counter[int] = Counter()
    for turn, weight in ((turns[0], 1), (turns[-1], LAST_TURN)) if turns else ():
        for token in turn:
            bag[zlib.crc32(stem(token).encode()) % BUCKETS] += weight
    return bag
