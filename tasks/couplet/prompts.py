"""Source sequences for each use of the network: one line of a couplet for the other, or a 上联 from a template.

Marks behind the line separate these uses, so its characters stay at the positions of the target's
(`model.aligned_input`); without a mark the source asks for the 下联 of a modern couplet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from paddle_dialog.data.batching import PairBatch, pad_batch, target_arrays
from paddle_dialog.text.vocabulary import Vocabulary

VOCABULARY = "text"  # one for both lines
BLANK = "<blank>"  # a position of a template for any character
FIRST = "<first>"  # asks for the 上联 of a 下联
COMPOSE = "<compose>"  # asks for the 上联 of a template; the characters of a theme follow
VERSE = "<verse>"  # asks for lines as in classical verse (律诗)
MARKS = (BLANK, FIRST, COMPOSE, VERSE)
Example = tuple[np.ndarray, np.ndarray]  # ids of source and target, without begin and end
ONE_WAY = "this bundle knows only 下联 for 上联; take the shipped pretrained/couplet"


def knows_marks(vocabulary: Vocabulary) -> bool:
    """Return whether a model with this vocabulary was trained for all uses."""
    return all(mark in vocabulary for mark in MARKS)


def with_marks(vocabulary: Vocabulary) -> Vocabulary:
    """Return the vocabulary with those marks at its end that it lacks."""
    missing = [mark for mark in MARKS if mark not in vocabulary]
    return Vocabulary([*vocabulary, *missing]) if missing else vocabulary


def prompt(tokens: Sequence[str]) -> list[str]:
    """Return the beginning of what asks a pre-trained model for the answer to a source, as characters and phrases."""
    genre = ["律诗"] if VERSE in tokens else []
    line = [token for token in tokens if token != VERSE]
    if COMPOSE in line:
        shape = ["？" if token == BLANK else token for token in line[: line.index(COMPOSE)]]
        return [*genre, "主题：", *line[len(shape) + 1 :], "\n格式：", *shape, "\n上联"]
    if FIRST in line:
        return [*genre, "下联：", *line[: line.index(FIRST)], "\n上联"]
    return [*genre, "上联：", *line, "\n下联"]


def encode_sources(sources: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Append the end token to each source and pad them: ids [B, S] and lengths [B]."""
    return pad_batch([np.concatenate([ids, [Vocabulary.eos_id]]) for ids in sources], Vocabulary.pad_id)


def compose_source(vocabulary: Vocabulary, template: Sequence[str | None], theme: str = "") -> list[int]:
    """Return the source, without end token, that asks for a 上联 made from nothing.

    Args:
        template: each position's character, or None for any.
        theme: characters of the words that the couplet should speak of, one after the other.
    """
    shape = [BLANK if character is None else character for character in template]
    return vocabulary.encode([*shape, COMPOSE, *theme])


def collate(examples: Sequence[Example]) -> PairBatch:
    """Pad examples to a training batch; source and target both end with the end token, so the two correspond."""
    source, source_lengths = encode_sources([first for first, _ in examples])
    return PairBatch(source, source_lengths, *target_arrays([second for _, second in examples]))


@dataclass(frozen=True)
class Direction:
    """Which line is given and which is written: `TO_SECOND` or `TO_FIRST`."""

    given: str  # Chinese name of the line that is given
    written: str  # of the line that answers it
    writes_first: bool  # whether that is the first line

    @property
    def back(self) -> Direction:
        """The other direction."""
        return TO_SECOND if self.writes_first else TO_FIRST

    def source(self, vocabulary: Vocabulary, line: str) -> list[int]:
        """Return the source, without end token, that asks a network for the answer to a line."""
        return vocabulary.encode([*line, FIRST] if self.writes_first else line)

    def pair(self, given: str, written: str) -> tuple[str, str]:
        """Return 上联 and 下联."""
        return (written, given) if self.writes_first else (given, written)


TO_SECOND = Direction("上联", "下联", writes_first=False)
TO_FIRST = Direction("下联", "上联", writes_first=True)
