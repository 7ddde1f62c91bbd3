"""Contexts with their own reply and wrong ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from paddle import io

from paddle_dialog.data.lengths import pad_batch
from paddle_dialog.data.records import Record, read_records
from paddle_dialog.errors import UserError
from paddle_dialog.text.vocabulary import Vocabulary
from tasks.empathetic.data.dialogue import Dialogue
from tasks.empathetic.data.encoding import make_encoder, pad_sources
from tasks.empathetic.ranking.config import RankerConfig
from tasks.empathetic.ranking.encoding import reply_ids

_SHAPE = '{"context": [turn, …], "predictions": [{"text": …}, …]}'
_SPLICES = 10  # attempts at a splice that differs from the own reply


class Choice(NamedTuple):
    """A context and its candidates."""

    source: np.ndarray  # packed [S, k]
    candidates: list[np.ndarray]  # ids [T] each, begin and end token included; the true one first


class ChoiceDataset(io.Dataset):
    """Choices among replies; the wrong ones are drawn anew in each epoch.

    Args:
        dialogues: contexts and true replies.
        config: of the run.
        vocabulary: of the model.
        generated: a generator's replies to a context, by the context's turns.

    Attributes:
        answered: number of contexts for which `generated` has a wrong reply.

    Raises:
        UserError: the nearest contexts are wanted, but no two contexts share a word.
    """

    def __init__(
        self,
        dialogues: Sequence[Dialogue],
        config: RankerConfig,
        vocabulary: Vocabulary,
        generated: dict[tuple[str, ...], list[str]],
    ) -> None:
        super().__init__()
        self._settings, self._seed, self._epoch = config.candidates, config.seed, 0
        self._longest = config.data.max_target_length
        self._encoder = make_encoder(config, vocabulary)
        self._contexts = [self._encoder.context(dialogue.context) for dialogue in dialogues]
        self._replies = [self._ids(dialogue.target) for dialogue in dialogues]
        written = [
            [self._ids(text) for text in generated.get(tuple(dialogue.context), ())] for dialogue in dialogues
        ]
        self._generated = [
            [reply for reply in found if not np.array_equal(reply, own)]
            for found, own in zip(written, self._replies, strict=True)
        ]
        self.answered = sum(map(bool, self._generated))
        self._conversations = _conversations(dialogues)  # [N]
        self._near = nearest_contexts(dialogues, self._settings.neighbours) if self._settings.near else None
        self._emotions = np.array([dialogue.emotion or "" for dialogue in dialogues])  # [N]
        self._alike = {emotion: np.flatnonzero(self._emotions == emotion) for emotion in set(self._emotions)}

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch, from 0, which decides the wrong replies."""
        self._epoch = epoch

    @property
    def lengths(self) -> np.ndarray:
        """Positions of source and reply of each example, [N, 2]."""
        pairs = zip(self._contexts, self._replies, strict=True)
        return np.array([[len(context.words) + 1, len(reply)] for context, reply in pairs])

    def __len__(self) -> int:
        return len(self._contexts)

    def __getitem__(self, index: int) -> Choice:
        rng = np.random.default_rng([self._seed, self._epoch, index])
        settings, own, wrong = self._settings, self._replies[index], []
        if self._near is not None:
            wrong += self._others(index, self._near[index], settings.near, rng)
        alike = self._alike[self._emotions[index]]
        wrong += self._others(index, alike, settings.same_emotion, rng)
        wrong += [_spliced(own, other, rng) for other in self._others(index, alike, settings.spliced, rng)]
        written = self._generated[index]
        chosen = [written[place] for place in rng.permutation(len(written))[: settings.generated]]
        wrong += chosen + self._others(index, alike, settings.generated - len(chosen), rng)
        source, _ = self._encoder.pack(self._contexts[index])
        return Choice(source, [own, *wrong])

    def _others(self, index: int, pool: np.ndarray, count: int, rng: np.random.Generator) -> list[np.ndarray]:
        """Draw wrong replies for a context: from other conversations, and in other words than its own.

        Args:
            index: of the context.
            pool: examples to draw from; all examples if it has too few.
            count: replies wanted.
            rng: of the draws.

        Raises:
            UserError: there are not so many.
        """

        def shuffled() -> Iterator[int]:
            yield from rng.permutation(pool).tolist()
            yield from rng.permutation(len(self)).tolist()

        fitting = (self._replies[other] for other in shuffled() if self._is_wrong(index, other))
        found = list(islice(fitting, count))
        if len(found) < count:
            raise UserError(
                f"candidates: these data have {len(found)} wrong replies to a context where {count} are wanted; "
                "give more dialogues or ask for fewer replies"
            )
        return found

    def _is_wrong(self, index: int, other: int) -> bool:
        """Return whether an example is of another conversation and has another reply."""
        is_foreign = self._conversations[index] != self._conversations[other]
        return bool(is_foreign) and not np.array_equal(self._replies[index], self._replies[other])

    def _ids(self, text: str) -> np.ndarray:
        return reply_ids(self._encoder, self._encoder.language.tokens_of(text), self._longest)


class ChoiceBatch(NamedTuple):
    """A training batch, see `collate`."""

    source: np.ndarray
    source_lengths: np.ndarray
    candidates: np.ndarray
    label: np.ndarray
    mask: np.ndarray


def collate(choices: list[Choice]) -> ChoiceBatch:
    """Pad choices to a batch.

    Returns:
        packed sources [B, S, k], their lengths [B], candidates [B, K, T]; then labels [B, 1], all 0, and a mask
        float32 [B, 1], all 1.
    """
    source, lengths = pad_sources([choice.source for choice in choices])
    rows, _ = pad_batch([reply for choice in choices for reply in choice.candidates], 0)
    candidates = rows.reshape(len(choices), -1, rows.shape[1])
    zeros = np.zeros((len(choices), 1))
    ones = (zeros + 1).astype(np.float32)
    return ChoiceBatch(source, lengths, candidates, zeros.astype(np.int64), ones)


def read_generated(path: Path) -> dict[tuple[str, ...], list[str]]:
    """Read a generator's replies, by the turns of the context; skip blank lines.

    Raises:
        UserError: the file cannot be read, has no line, or a line is not a record of `tools/predict.py --json`.
    """

    def context_and_replies(record: Record) -> tuple[list[str], list[str]]:
        context, texts = record["context"], [prediction["text"] for prediction in record["predictions"]]
        if not isinstance(context, list) or not all(isinstance(text, str) for text in [*context, *texts]):
            raise ValueError("a turn or a reply is no text")
        return context, texts

    found: dict[tuple[str, ...], list[str]] = {}
    for context, texts in read_records(path, context_and_replies, _SHAPE):
        found.setdefault(tuple(context), []).extend(text for text in texts if text.strip())
    if not found:
        raise UserError(f"{path}: no reply in this file; a line must be {_SHAPE}")
    return found


def nearest_contexts(dialogues: Sequence[Dialogue], count: int) -> np.ndarray:
    """Find the contexts of other conversations most similar to each by TF-IDF, [N, `count`], fewer for small data.

    Raises:
        UserError: no two contexts share a word.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    # The last turn counts twice: the reply answers it.
    texts = [" ".join([*dialogue.context, dialogue.context[-1]]) for dialogue in dialogues]
    common = max(len(texts) // 10, 2)  # a word in more contexts than this is not informative
    vectorizer = TfidfVectorizer(min_df=2, max_df=common, sublinear_tf=True, dtype=np.float32)
    try:
        vectors = vectorizer.fit_transform(texts)
    except ValueError as error:
        raise UserError(
            "candidates.near: no two contexts of these data share a rare word; give more dialogues or set it to 0"
        ) from error
    conversations = _conversations(dialogues)
    size = min(count, len(texts) - 1)
    nearest = np.empty((len(texts), size), dtype=np.int64)
    for start in range(0, len(texts), 500):
        rows = np.arange(start, min(start + 500, len(texts)))
        alike = (vectors[rows] @ vectors.T).toarray()  # [500, N]
        alike[conversations[rows][:, None] == conversations] = -1.0
        nearest[rows] = np.argpartition(-alike, size, axis=1)[:, :size]
    return nearest


def _conversations(dialogues: Sequence[Dialogue]) -> np.ndarray:
    """Return the conversation of each example, by its first turn, [N]."""
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(dialogue.context[0], len(numbers)) for dialogue in dialogues])


def _spliced(own: np.ndarray, other: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Splice the first words of one reply and the last of another, at least one of each, into a new reply."""
    for _ in range(_SPLICES):
        first, second = rng.integers(1, len(own) - 1), rng.integers(1, len(other) - 1)
        made = np.concatenate([own[: first + 1], other[second:]])
        if not np.array_equal(made, own):
            return made
    return other
