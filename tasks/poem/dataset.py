"""Poems and running text as a stream that is cut into windows, and as single rows.

Positions count from the begin token of a text; those of the form and title before it are negative. A text begins
where a position is not one above that before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from paddle import io

from paddle_dialog.data.batching import pad_batch
from paddle_dialog.errors import UserError
from paddle_dialog.tasks.poem.config import MAX_TITLE
from paddle_dialog.tasks.poem.data import FORM_TOKENS, Poem, characters
from paddle_dialog.tasks.poem.forms import form_of
from paddle_dialog.text.vocabulary import Vocabulary

FORM_RATE, TITLE_RATE = (
    0.5,
    0.7,
)  # of the poems of an epoch, shown with the name of their form, and with their title
Stream = np.ndarray  # int32 [N, 4]: inputs, positions, labels, and whether a label is learned


class EncodedPoem:
    """A poem's ids."""

    __slots__ = ("body", "form", "title")

    def __init__(self, poem: Poem, vocabulary: Vocabulary) -> None:
        form = form_of(poem.body)
        self.form = np.array([] if form is None else [vocabulary.id(FORM_TOKENS[form.name])], np.int32)
        self.title = np.array(vocabulary.encode(poem.title[:MAX_TITLE]), np.int32)
        self.body = np.array(vocabulary.encode(poem.body), np.int32)

    def stream(self, with_form: bool = False, with_title: bool = False) -> Stream:
        """Make a stream of the poem alone [T, 4]; the body and its end are learned."""
        prefix = np.concatenate([self.form[: int(with_form)], self.title if with_title else self.title[:0]])
        text = np.concatenate([prefix, [Vocabulary.bos_id], self.body, [Vocabulary.eos_id]])
        positions = np.arange(len(text) - 1) - len(prefix)
        return np.stack([text[:-1], positions, text[1:], positions >= 0], axis=1).astype(np.int32)


def stream_poems(poems: Sequence[EncodedPoem], seed: int, epoch: int) -> Stream:
    """Make a stream of all poems, in another order and with other titles each epoch."""
    rng = np.random.Generator(np.random.PCG64([seed, epoch]))
    order = rng.permutation(len(poems))
    forms, titles = rng.random(len(poems)) < FORM_RATE, rng.random(len(poems)) < TITLE_RATE
    return np.concatenate([poems[i].stream(forms[i], titles[i]) for i in order])


def encode_text(text: str, vocabulary: Vocabulary) -> np.ndarray:
    """Encode a running text as ids [N]."""
    return np.array(vocabulary.encode(characters(text)), np.int32)


def stream_text(ids: np.ndarray) -> Stream:
    """Make a stream of a running text [N]."""
    inputs = np.concatenate([[Vocabulary.bos_id], ids[:-1]])
    return np.stack([inputs, np.arange(len(ids)), ids, np.ones(len(ids))], axis=1).astype(np.int32)


def cut_text(ids: np.ndarray, window: int, seed: int, epoch: int) -> Stream:
    """Cut a running text into pieces of one length, each a text of its own, at other places each epoch."""
    window = min(window, len(ids))
    offset = np.random.Generator(np.random.PCG64([seed, epoch])).integers(len(ids) % window + 1)
    starts = range(int(offset), len(ids) - window + 1, window)
    return np.concatenate([stream_text(ids[start : start + window]) for start in starts])


class Windows(io.Dataset):
    """A stream cut into windows.

    Args:
        lay_out: makes the stream of an epoch. All epochs are as long as the first; a longer one is cut, of a
            shorter one the beginning is repeated.
        window: length T; a shorter text is one window.
    """

    def __init__(self, lay_out: Callable[[int], Stream], window: int) -> None:
        super().__init__()
        self._lay_out = lay_out
        size = len(lay_out(0))
        self._window = min(window, size)
        if self._window < 2:
            raise UserError("data.train: the training text has a single character; give more text")
        self._count = size // self._window
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """Lay out an epoch."""
        stream = np.resize(self._lay_out(epoch), (self._count * self._window, 4))
        self._windows = stream.reshape(-1, self._window, 4)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> Stream:
        return self._windows[index]


class Rows(io.Dataset):
    """Single texts, as an evaluation reads them."""

    def __init__(self, rows: Sequence[Stream]) -> None:
        super().__init__()
        self._rows = rows

    @property
    def lengths(self) -> np.ndarray:
        """Characters of each row [N]."""
        return np.array([len(row) for row in self._rows])

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> Stream:
        return self._rows[index]


def single_rows(
    texts: Sequence[Poem] | str, vocabulary: Vocabulary, window: int, titled: bool = False
) -> Rows:
    """Encode texts for an evaluation: each poem from its beginning, after form and title if `titled`.

    A running text is read in windows; the last may be shorter.
    """
    if isinstance(texts, str):
        ids = encode_text(texts, vocabulary)
        return Rows([stream_text(ids[start : start + window]) for start in range(0, len(ids), window)])
    return Rows([EncodedPoem(poem, vocabulary).stream(titled, titled) for poem in texts])


class PoemBatch(NamedTuple):
    """A training batch: ids, positions and labels, int64 [B, T]; and the mask of the labels that count, float32."""

    ids: np.ndarray
    positions: np.ndarray
    label: np.ndarray
    mask: np.ndarray


def collate(rows: Sequence[Stream]) -> PoemBatch:
    """Make a batch."""
    inputs, positions, labels, counts = (pad_batch([row[:, part] for row in rows], 0)[0] for part in range(4))
    return PoemBatch(inputs, positions, labels, counts.astype(np.float32))
