"""Couplets as ids, and batches of them."""

from __future__ import annotations

import numpy as np
from paddle import io

from paddle_dialog.data.lengths import target_arrays
from paddle_dialog.text.vocabulary import Vocabulary
from tasks.couplet.data.couplets import Couplet
from tasks.couplet.data.encoding import Example, encode_sources


class CoupletDataset(io.Dataset):
    """Encoded couplets in two flat arrays, so that a large corpus costs four bytes a character.

    Args:
        couplets: the pairs.
        vocabulary: of both sides.
    """

    def __init__(self, couplets: list[Couplet], vocabulary: Vocabulary) -> None:
        super().__init__()
        self._first, self._first_ends = _flatten([c.first for c in couplets], vocabulary)
        self._second, self._second_ends = _flatten([c.second for c in couplets], vocabulary)

    @property
    def lengths(self) -> np.ndarray:
        """Characters of both lines of each pair, [N, 2]."""
        return np.stack([np.diff(self._first_ends), np.diff(self._second_ends)], axis=1)

    def __len__(self) -> int:
        return len(self._first_ends) - 1

    def __getitem__(self, index: int) -> Example:
        first = self._first[self._first_ends[index] : self._first_ends[index + 1]]
        second = self._second[self._second_ends[index] : self._second_ends[index + 1]]
        return first, second


def collate(examples: list[Example]) -> list[np.ndarray]:
    """Pad examples to a training batch.

    The source ends with the end token, as the target does, so that the two correspond position by position.

    Returns:
        source ids [B, S], source lengths [B], target input ids [B, T] (begin token first), target output ids
        [B, T] (end token last), mask float32 [B, T].
    """
    source, source_lengths = encode_sources([first for first, _ in examples])
    return [source, source_lengths, *target_arrays([second for _, second in examples])]


def _flatten(lines: list[str], vocabulary: Vocabulary) -> tuple[np.ndarray, np.ndarray]:
    """Return all ids in one array, and the offsets [N + 1] where each line begins and ends."""
    ends = np.zeros(len(lines) + 1, dtype=np.int64)
    np.cumsum([len(line) for line in lines], out=ends[1:])
    ids = np.fromiter((vocabulary.id(c) for line in lines for c in line), dtype=np.int32, count=int(ends[-1]))
    return ids, ends
