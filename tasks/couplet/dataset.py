"""Couplets as ids, in all the uses of one network, and batches of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from paddle import io

from paddle_dialog.data.batching import PairBatch, target_arrays
from paddle_dialog.tasks.couplet.config import LONGEST_THEME, CoupletDataConfig
from paddle_dialog.tasks.couplet.couplets import Couplet
from paddle_dialog.tasks.couplet.direction import BLANK, COMPOSE, FIRST, VERSE, encode_sources
from paddle_dialog.tasks.couplet.form import final_character
from paddle_dialog.text.characters import is_hanzi
from paddle_dialog.text.tones import can_be_level, can_be_oblique
from paddle_dialog.text.vocabulary import Vocabulary

SECOND, REVERSE, TEMPLATE = range(3)  # uses: 下联 to 上联, the other way round, 上联 from a template
Example = tuple[np.ndarray, np.ndarray]  # ids of source and target, without begin and end


class CoupletDataset(io.Dataset):
    """Encoded couplets in two flat arrays, so that a large corpus costs four bytes a character."""

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


def collate(examples: list[Example]) -> PairBatch:
    """Pad examples to a training batch; source and target both end with the end token, so the two correspond."""
    source, source_lengths = encode_sources([first for first, _ in examples])
    return PairBatch(source, source_lengths, *target_arrays([second for _, second in examples]))


class UsesDataset(io.Dataset):
    """Couplets in several uses of one network; templates and themes are drawn anew in each epoch.

    Args:
        couplets: modern ones.
        verse: pairs of lines of classical verse.
        vocabulary: of both lines, with the marks.
    """

    def __init__(
        self,
        couplets: list[Couplet],
        verse: list[Couplet],
        settings: CoupletDataConfig,
        vocabulary: Vocabulary,
        seed: int,
    ) -> None:
        super().__init__()
        self._pairs = CoupletDataset([*couplets, *verse], vocabulary)
        self._modern, self._seed, self._epoch = len(couplets), seed, 0
        self._blank, self._first, self._compose, self._verse = vocabulary.encode(
            [BLANK, FIRST, COMPOSE, VERSE]
        )
        hanzi = [is_hanzi(token) for token in vocabulary.tokens]
        self._hanzi = np.array(hanzi)  # [V]
        total, random = len(self._pairs), np.random.default_rng(seed)
        shares = {SECOND: 1.0, REVERSE: settings.reverse, TEMPLATE: settings.compose}
        chosen = {use: random.permutation(total)[: round(share * total)] for use, share in shares.items()}
        self._pair = np.concatenate([np.sort(pairs) for pairs in chosen.values()])  # [N]
        self._use = np.repeat([*chosen], [len(pairs) for pairs in chosen.values()])  # [N]

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of source and target of each example, [N, 2]."""
        lengths = self._pairs.lengths[self._pair]
        lengths[self._use == REVERSE] = lengths[self._use == REVERSE][:, ::-1]
        lengths[self._use == TEMPLATE, 1] = lengths[self._use == TEMPLATE, 0]
        marks = np.array([0, 1, 1 + LONGEST_THEME // 2])[self._use] + (self._pair >= self._modern)
        return lengths + np.stack([marks, np.zeros_like(marks)], axis=1)

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch, from 0, whose templates and themes are drawn."""
        self._epoch = epoch

    def __len__(self) -> int:
        return len(self._pair)

    def __getitem__(self, index: int) -> Example:
        pair = int(self._pair[index])
        first, second = self._pairs[pair]
        style = [self._verse] if pair >= self._modern else []
        use = self._use[index]
        if use == SECOND:
            return np.append(first, style).astype(np.int32), second
        if use == REVERSE:
            return np.append(second, [self._first, *style]).astype(np.int32), first
        random = np.random.default_rng((self._seed, self._epoch, index))
        template, theme = self._template(first, random), self._theme(first, second, random)
        return np.concatenate([template, [self._compose], theme, style]).astype(np.int32), first

    def _template(self, line: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """Blank all hanzi of a line but none to two."""
        shape = np.where(self._hanzi[line], self._blank, line)
        places = np.flatnonzero(self._hanzi[line])
        shown = random.choice(places, min(len(places), int(random.integers(3))), replace=False)
        # A name stands at the beginning more often than anywhere else.
        if len(shown) and random.random() < 0.5:
            shown[0] = places[0]
        shape[shown] = line[shown]
        return shape

    def _theme(self, first: np.ndarray, second: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """Return none to two stretches of two hanzi of the couplet."""
        words = []
        for _ in range(random.integers(LONGEST_THEME // 2 + 1)):
            line = first if random.random() < 0.5 else second
            start = random.integers(max(1, len(line) - 1))
            word = line[start : start + 2]
            if len(word) == 2 and self._hanzi[word].all():
                words.append(word)
        return np.concatenate(words) if words else np.zeros(0, np.int32)


def regulated(pairs: Sequence[Couplet]) -> list[Couplet]:
    """Return the pairs whose first line can end oblique and whose second can end level."""
    return [
        pair
        for pair in pairs
        if can_be_oblique(final_character(pair.first)) and can_be_level(final_character(pair.second))
    ]


def _flatten(lines: list[str], vocabulary: Vocabulary) -> tuple[np.ndarray, np.ndarray]:
    """Return all ids in one array, and the offsets [N + 1] where each line begins and ends."""
    ends = np.zeros(len(lines) + 1, dtype=np.int64)
    np.cumsum([len(line) for line in lines], out=ends[1:])
    ids = np.fromiter((vocabulary.id(c) for line in lines for c in line), dtype=np.int32, count=int(ends[-1]))
    return ids, ends
