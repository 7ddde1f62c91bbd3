"""Many texts as one tree, so that common prefixes are computed once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class TextTree(NamedTuple):
    """M texts, the longest of T - 1 tokens, and the N nodes of all their prefixes."""

    tokens: np.ndarray  # [N] the last token of each beginning; node 0 is the begin token alone
    places: np.ndarray  # [N] its position
    owners: np.ndarray  # [N] a text that begins so
    paths: np.ndarray  # [M, T] the node at each position of each text; after its last token, that again
    following: np.ndarray  # [M, T] the token that comes next; after the last, the end token
    sizes: np.ndarray  # [M] positions of each text, the begin token counted

    @classmethod
    def of(cls, texts: Sequence[Sequence[int]], bos_id: int, eos_id: int) -> TextTree:
        """Make the tree of texts, given as ids without begin and end token."""
        sizes = np.array([len(text) + 1 for text in texts], dtype=np.int64)  # [M]
        shape = len(texts), int(sizes.max(initial=1))
        paths, following = np.zeros(shape, dtype=np.int64), np.full(shape, eos_id, dtype=np.int64)
        tokens, places, owners = [bos_id], [0], [0]
        children: dict[tuple[int, int], int] = {}
        for number, text in enumerate(texts):
            node = 0
            for place, token in enumerate(map(int, text), start=1):
                known = len(tokens)
                node = children.setdefault((node, token), known)
                if node == known:
                    tokens.append(token)
                    places.append(place)
                    owners.append(number)
                paths[number, place] = node
            paths[number, len(text) :] = node
            following[number, : len(text)] = text
        return cls(np.array(tokens), np.array(places), np.array(owners), paths, following, sizes)

    def scored(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return every predicted token, end tokens included: its text, the node before it and its id, [P] each."""
        texts, places = np.nonzero(np.arange(self.paths.shape[1]) < self.sizes[:, None])
        return texts, self.paths[texts, places], self.following[texts, places]
