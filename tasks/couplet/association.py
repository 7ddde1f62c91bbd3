"""How much more often a character stands in couplets that have a word than in others.

The tables that ship, of the words of 横批 and of themes, were counted by `tools/associations.py` over a training
corpus. They have no line of it.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from paddle_dialog.text.characters import is_hanzi
from tasks.couplet.couplets import Couplet

LEAST = 1.0  # nats; weaker associations are noise, and are left out
LEAST_COUNT = 5  # couplets with a character, for it to be in the table
_PRIOR = 20.0  # couplets without any association that are added to those of each word
_STEPS = 40  # of one byte to a nat


@dataclass(frozen=True)
class Association:
    """The table.

    Args:
        words: W words.
        characters: C characters, in one text.
        steps: max(0, log p(character | word) / p(character)) in steps of 1/40, uint8 [C, W]; 0 below `LEAST`.
    """

    words: tuple[str, ...]
    characters: str
    steps: np.ndarray

    def of(self, line: str) -> np.ndarray:
        """Return the mean association of the hanzi of a text with each word, in nats, float32 [W]."""
        places = {character: place for place, character in enumerate(self.characters)}
        rows = [places.get(character, -1) for character in line if is_hanzi(character)]
        known = self.steps[[row for row in rows if row >= 0]]  # [T, W]
        return known.sum(axis=0, dtype=np.float32) / np.float32(_STEPS * max(1, len(rows)))

    def to_bytes(self) -> bytes:
        """Return the file."""
        file = io.BytesIO()
        np.savez_compressed(
            file, words=np.array(self.words), characters=np.array(self.characters), steps=self.steps
        )
        return file.getvalue()

    @classmethod
    def of_bytes(cls, data: bytes) -> Association:
        """Read a file."""
        with np.load(io.BytesIO(data)) as arrays:
            return cls(tuple(arrays["words"].tolist()), str(arrays["characters"]), arrays["steps"])

    def grouped(self, groups: Mapping[str, Sequence[str]]) -> Association:
        """Return a table with groups for words: the mean of the words of each."""
        places = {word: place for place, word in enumerate(self.words)}
        means = [self.steps[:, [places[w] for w in words]].mean(axis=1).round() for words in groups.values()]
        return Association(tuple(groups), self.characters, np.stack(means, axis=1).astype(np.uint8))


def count_association(couplets: Iterable[Couplet], words: Sequence[str]) -> Association:
    """Count the table of words of two characters over couplets.

    A couplet counts for each of the words that stand in one of its lines, and a character once in a couplet.
    """
    wanted = set(words)
    total, couplets_with, of_word = 0, Counter[str](), Counter[str]()
    together: dict[str, Counter[str]] = {word: Counter() for word in words}
    for couplet in couplets:
        characters = {c for c in couplet.first + couplet.second if is_hanzi(c)}
        total += 1
        couplets_with.update(characters)
        lines = (couplet.first, couplet.second)
        for word in {line[i : i + 2] for line in lines for i in range(len(line) - 1)} & wanted:
            of_word[word] += 1
            together[word].update(characters)
    kept = sorted(c for c, count in couplets_with.items() if count >= LEAST_COUNT)
    share = np.array([couplets_with[c] / total for c in kept])  # [C]
    steps = np.zeros((len(kept), len(words)), dtype=np.uint8)
    for place, word in enumerate(words):
        counts = np.array([together[word][c] for c in kept])
        likely = (counts + _PRIOR * share) / (of_word[word] + _PRIOR)
        nats = np.log(likely / share)
        steps[:, place] = np.where(nats >= LEAST, np.minimum(nats * _STEPS, 255), 0).round()
    return Association(tuple(words), "".join(kept), steps)
