"""Counts of word sequences in the training replies, by which stock replies are recognised."""

from __future__ import annotations

import lzma
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from paddle_dialog.bundle.folder import file_errors

LONGEST = 4
LEAST_COUNT = 3  # rarer n-grams are not kept; 40,000 replies then need 240 kB
BEGIN, END = "<bos>", "<eos>"


class ReplyNgrams:
    """Occurrences of the n-grams of 1 to `LONGEST` tokens, the reply's begin and end being tokens too.

    Args:
        counts: by the tokens joined by spaces.
    """

    def __init__(self, counts: dict[str, int]) -> None:
        self._counts = counts

    @classmethod
    def of(cls, replies: Iterable[Sequence[str]]) -> ReplyNgrams:
        """Count the n-grams of replies, given as tokens."""
        counts: Counter[str] = Counter()
        for reply in replies:
            for size in range(1, LONGEST + 1):
                counts.update(_ngrams(reply, size))
        return cls({gram: count for gram, count in counts.items() if count >= LEAST_COUNT})

    @classmethod
    def from_bytes(cls, content: bytes, where: str) -> ReplyNgrams:
        """Read what `to_bytes` made.

        Raises:
            UserError: the content of `where` is something else.
        """
        with file_errors(where, "n-gram counts", "take another bundle"):
            lines = lzma.decompress(content).decode("utf-8").splitlines()
            counts = {}
            for line in lines:
                count, gram = line.split("\t")
                counts[gram] = int(count)
        return cls(counts)

    def to_bytes(self) -> bytes:
        """Write a line `count<TAB>n-gram` for each, in the order of the n-grams, compressed by xz."""
        lines = (f"{count}\t{gram}\n" for gram, count in sorted(self._counts.items()))
        return lzma.compress("".join(lines).encode("utf-8"))

    def count(self, *tokens: str) -> int:
        """Return the occurrences of an n-gram of at most `LONGEST` tokens; 0 for fewer than `LEAST_COUNT`."""
        return self._counts.get(" ".join(tokens), 0)

    def familiarity(self, reply: Sequence[str], size: int = LONGEST) -> float:
        """Return how common a reply's word sequences are: the mean of ln(1 + count) over its n-grams of one size.

        Args:
            reply: tokens; its begin and end are counted as tokens, so that whole short replies are n-grams.
            size: of the n-grams, 1 to `LONGEST`; a shorter reply is one n-gram.

        Returns:
            0 if all its n-grams are unknown, 6 if each occurs 400 times in the training replies.
        """
        counts = [self._counts.get(gram, 0) for gram in _ngrams(reply, size)]
        return float(np.log1p(counts).mean())


def _ngrams(reply: Sequence[str], size: int) -> Iterator[str]:
    """Iterate over the n-grams of a reply with its begin and end; at least one, if need be a shorter one."""
    tokens = [BEGIN, *reply, END]
    for start in range(max(len(tokens) - size, 0) + 1):
        yield " ".join(tokens[start : start + size])
