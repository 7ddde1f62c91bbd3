"""Pairs as a dataset of ids."""

from __future__ import annotations

import numpy as np
from paddle import io

from paddle_dialog.text.vocabulary import Vocabulary
from tasks.translation.data import EncodedPair, Pair, encode_pair


class PairDataset(io.Dataset):
    """Pairs, encoded on demand.

    Args:
        pairs: tokens of both sides.
        vocabulary: of both sides.
    """

    def __init__(self, pairs: list[Pair], vocabulary: Vocabulary) -> None:
        super().__init__()
        self.pairs = pairs
        self._vocabulary = vocabulary

    @property
    def lengths(self) -> np.ndarray:
        """Numbers of tokens of source and target of each pair, [N, 2]."""
        return np.array([[len(pair.source), len(pair.target)] for pair in self.pairs])

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, index: int) -> EncodedPair:
        return encode_pair(self.pairs[index], self._vocabulary)
