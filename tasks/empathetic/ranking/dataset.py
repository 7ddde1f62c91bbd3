"""Contexts with their own reply and wrong ones beside it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from paddle import io

from paddle_dialog.data.files import read_lines
from paddle_dialog.data.lengths import pad_batch
from paddle_dialog.errors import UserError
from paddle_dialog.text.vocabulary import Vocabulary
from tasks.empathetic.dialogue import Dialogue
from tasks.empathetic.encoding import make_encoder, pad_sources, tokens_of
from tasks.empathetic.ranking.config import RankerConfig

_SHAPE = '{"context": [turn, …], "predictions": [{"text": …}, …]}'


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
        generated: what a generator replied to a context, by the context's turns.
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
        self._generated = [
            [self._ids(text) for text in generated.get(tuple(dialogue.context), ())] for dialogue in dialogues
        ]
        self._conversations = _conversations(dialogues)
        self._near = nearest_contexts(dialogues, self._settings.neighbours) if self._settings.near else None
        self._emotions = np.array([dialogue.emotion or "" for dialogue in dialogues])
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
        own, wrong = self._replies[index], []
        others = self._drawn_others(index, rng)
        for other in others[: self._settings.near + self._settings.same_emotion]:
            wrong.append(self._replies[other])
        for other in others[len(wrong) :]:
            wrong.append(_splice(own, self._replies[other], rng))
        written = self._generated[index]
        for _ in range(self._settings.generated):
            fallback = self._replies[rng.integers(len(self._replies))]
            wrong.append(written[rng.integers(len(written))] if written else fallback)
        source, _ = self._encoder.pack(self._contexts[index])
        return Choice(source, [own, *wrong])

    def _drawn_others(self, index: int, rng: np.random.Generator) -> list[int]:
        """Examples whose replies are wrong here: near ones, then of the same emotion, then those to splice."""
        settings = self._settings
        chosen: list[int] = []
        if self._near is not None:
            chosen += rng.choice(self._near[index], settings.near, replace=False).tolist()
        alike = self._alike[self._emotions[index]]
        chosen += rng.choice(alike, settings.same_emotion + settings.spliced).tolist()
        return chosen

    def _ids(self, text: str) -> np.ndarray:
        words = self._encoder.numbers(tokens_of(text)[: self._longest])
        return np.concatenate([[Vocabulary.bos_id], self._encoder.target(words, {}), [Vocabulary.eos_id]])


def collate(choices: list[Choice]) -> list[np.ndarray]:
    """Pads choices to a batch.

    Returns:
        packed sources [B, S, k], their lengths [B], candidates [B, K, T]; then labels [B, 1], all 0, and a mask
        float32 [B, 1], all 1.
    """
    source, lengths = pad_sources([choice.source for choice in choices])
    rows, _ = pad_batch([reply for choice in choices for reply in choice.candidates], 0)
    candidates = rows.reshape(len(choices), -1, rows.shape[1])
    zeros = np.zeros((len(choices), 1))
    return [source, lengths, candidates, zeros.astype(np.int64), (zeros + 1).astype(np.float32)]


def read_generated(path: Path) -> dict[tuple[str, ...], list[str]]:
    """What a generator replied, by the turns of the context.

    Raises:
        UserError: the file cannot be read, or a line is not a record of ``tools/predict.py --json``.
    """
    found: dict[tuple[str, ...], list[str]] = {}
    for number, line in read_lines(path):
        try:
            record = json.loads(line)
            texts = [prediction["text"] for prediction in record["predictions"]]
            found.setdefault(tuple(record["context"]), []).extend(text for text in texts if text)
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(f"{path}:{number}: not a reply; a line must be {_SHAPE}") from error
    return found


def nearest_contexts(dialogues: Sequence[Dialogue], count: int) -> np.ndarray:
    """For each context the ``count`` most alike of other conversations by TF-IDF, [N, count]."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    # The last turn counts twice: it is what a reply answers.
    texts = [" ".join([*dialogue.context, dialogue.context[-1]]) for dialogue in dialogues]
    vectors = TfidfVectorizer(min_df=2, max_df=0.1, sublinear_tf=True, dtype=np.float32).fit_transform(texts)
    conversations = _conversations(dialogues)
    nearest = np.empty((len(texts), count), dtype=np.int64)
    for start in range(0, len(texts), 500):
        rows = np.arange(start, min(start + 500, len(texts)))
        alike = (vectors[rows] @ vectors.T).toarray()  # [500, N]
        alike[conversations[rows][:, None] == conversations] = -1.0
        nearest[rows] = np.argpartition(-alike, count, axis=1)[:, :count]
    return nearest


def _conversations(dialogues: Sequence[Dialogue]) -> np.ndarray:
    """The conversation of each example, by its first turn."""
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(dialogue.context[0], len(numbers)) for dialogue in dialogues])


def _splice(own: np.ndarray, other: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The first words of one reply and the last of another, at least one of each where they have two."""
    first = rng.integers(1, max(len(own) - 1, 2))
    second = rng.integers(1, max(len(other) - 1, 2))
    return np.concatenate([own[: first + 1], other[second:]])
