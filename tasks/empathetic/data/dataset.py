"""Dialogues as ids, and batches of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from paddle import io

from paddle_dialog.config.models import CausalTransformerConfig
from paddle_dialog.data.batching import pad_batch, target_arrays
from paddle_dialog.errors import UserError
from paddle_dialog.tasks.empathetic.config import EmpatheticConfig
from paddle_dialog.tasks.empathetic.data.dialogue import Dialogue
from paddle_dialog.tasks.empathetic.data.emotions import emotion_id
from paddle_dialog.tasks.empathetic.data.encoding import (
    NO_EMOTION,
    DialogueEncoder,
    EncodedContext,
    Source,
    make_encoder,
    pad_sources,
)
from paddle_dialog.text.vocabulary import Vocabulary

UNLIMITED = 1 << 20  # positions of a recurrent model


class Example(NamedTuple):
    """One encoded example."""

    source: Source
    target: np.ndarray  # extended ids [T], without begin and end
    emotion: int  # class id or NO_EMOTION
    has_reply: bool = True  # False where it teaches the emotion alone
    next_words: np.ndarray | None = None  # what a language model predicts at each position, 0 for nothing [S]


def longest_target(config: EmpatheticConfig) -> int:
    """Return the length of the longest reply that the model can score, far longer than those in training."""
    positions = getattr(config.model, "max_positions", UNLIMITED)
    if isinstance(config.model, CausalTransformerConfig):  # those after the longest context and its mark
        positions -= config.data.max_length + 1
    return positions - 1  # the end token needs a position


class DialogueDataset(io.Dataset):
    """Encoded dialogues.

    Args:
        max_target_length: longest reply; the rest is cut.
        counts: occurrences in the training text, for training data only: some of the words seen once are shown as
            unknown, different ones in each epoch.
        encoder: a fresh one of a model whose bundle brings its hints; made by default.

    Attributes:
        cut_targets: replies that were too long.
    """

    def __init__(
        self,
        dialogues: Sequence[Dialogue],
        config: EmpatheticConfig,
        vocabulary: Vocabulary,
        max_target_length: int,
        counts: Counter[str] | None = None,
        encoder: DialogueEncoder | None = None,
    ) -> None:
        super().__init__()
        self.dialogues = dialogues
        self.encoder = make_encoder(config, vocabulary) if encoder is None else encoder
        self._gold = config.emotion.prepend == "gold"
        self._seed, self._epoch = config.seed, 0
        self._unknown_rate = 0.0 if counts is None else config.data.unknown_rate
        self._learns_contexts = counts is not None and config.generator.context_weight > 0
        self._contexts: list[EncodedContext] = []
        self._targets: list[np.ndarray] = []
        self._emotions: list[int] = []
        self.cut_targets = 0
        for number, dialogue in enumerate(dialogues, start=1):
            tokens = self.encoder.language.tokens_of(dialogue.target)
            self.cut_targets += len(tokens) > max_target_length
            self._append(dialogue.context, tokens[:max_target_length], dialogue.emotion, f"dialogue {number}")
        words = self.encoder.words() if counts is not None else []
        self._once = np.array([counts is not None and counts[word] == 1 for word in words], dtype=bool)

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch, from 0, which decides what is shown as unknown."""
        self._epoch = epoch

    @property
    def lengths(self) -> np.ndarray:
        """Positions of source and target of each example, [N, 2]."""
        pairs = zip(self._contexts, self._targets, strict=True)
        return np.array([[len(context.words) + 1, len(target)] for context, target in pairs])

    def context_words(self, index: int) -> list[str]:
        """Return the word at each position of an example's source."""
        words = self.encoder.words()
        return ["<cls>", *(words[number] for number in self._contexts[index].words)]

    def __len__(self) -> int:
        return len(self._contexts)

    def __getitem__(self, index: int) -> Example:
        context, target, emotion = self._contexts[index], self._targets[index], self._emotions[index]
        unknown = self._shown_as_unknown(index, context.words, target)
        source, extended = self.encoder.pack(context, emotion if self._gold else None, unknown)
        dialogue, next_words = self.dialogues[index], None
        if self._learns_contexts:
            next_words = self.encoder.learned(context, dialogue.context, dialogue.new_turns)
        reply = self.encoder.target(target, extended, unknown)
        return Example(source, reply, emotion, dialogue.target != "", next_words)

    def _append(self, turns: Sequence[str], target: Sequence[str], label: str | None, what: str) -> None:
        if label is None and self._gold:
            raise UserError(f"{what} has no emotion, and emotion.prepend: gold needs one; take predicted")
        self._contexts.append(self.encoder.context(turns))
        self._targets.append(self.encoder.numbers(target))
        self._emotions.append(NO_EMOTION if label is None else self._emotion_id(label))

    def _emotion_id(self, label: str) -> int:
        return emotion_id(label, self.encoder.language.emotions)

    def _shown_as_unknown(self, index: int, *texts: np.ndarray) -> set[int]:
        """Draw the words of an example that this epoch hides, a function of seed, epoch and example."""
        if not self._unknown_rate:
            return set()
        words = np.unique(np.concatenate(texts))
        rare = words[self._once[words]]
        draws = np.random.default_rng([self._seed, self._epoch, index]).random(len(rare))
        return set(rare[draws < self._unknown_rate].tolist())


class DialogueBatch(NamedTuple):
    """A training batch."""

    words: np.ndarray  # [B, S]; see `Source`, as the next four
    roles: np.ndarray | None  # [B, S] or None
    hints: np.ndarray | None  # [B, S] or None
    ngrams: np.ndarray | None  # [B, S, G] or None
    condition: np.ndarray  # [B]
    source_lengths: np.ndarray  # [B]
    # Ids that are learned at the positions of contexts, 0 for none [B, S]; None where none is learned.
    next_words: np.ndarray | None
    target: np.ndarray  # input ids [B, T], begin token first
    emotion: np.ndarray  # class ids or `NO_EMOTION` [B]
    label: np.ndarray  # output ids [B, T], end token last
    mask: np.ndarray  # float32 [B, T], 1 on real target tokens

    @property
    def source(self) -> Source:
        """What the network reads of the contexts."""
        return Source(*self[:5])


def collate(examples: list[Example]) -> DialogueBatch:
    """Pad examples to a training batch."""
    source, source_lengths = pad_sources([example.source for example in examples])
    learned = [example.next_words for example in examples if example.next_words is not None]
    next_words = pad_batch(learned, 0)[0] if learned else None  # [B, S]
    target, label, mask = target_arrays([example.target for example in examples])  # [B, T] each
    mask[[not example.has_reply for example in examples]] = 0.0
    emotions = np.array([example.emotion for example in examples], dtype=np.int64)
    return DialogueBatch(*source, source_lengths, next_words, target, emotions, label, mask)


def changed_subjects(dialogues: Sequence[Dialogue], rate: float, seed: int) -> list[Dialogue]:
    """Make examples that follow the end of another conversation, so that the model learns to heed the newest turns.

    Args:
        rate: how many are made, as a share of `dialogues` in 0–1; fewer where a conversation would follow itself.

    Returns:
        Examples with the emotion and the target of the later conversation. Their contexts are not learned again. None
        follows an example that has no reply.
    """
    rng = np.random.default_rng(seed)
    count = round(rate * len(dialogues))
    before = rng.choice(len(dialogues), count, replace=False)
    after = rng.choice(len(dialogues), count, replace=False)
    made = []
    for first, then in zip(before, after, strict=True):
        earlier, later = dialogues[first], dialogues[then]
        if not earlier.target or earlier.context[0] == later.context[0]:  # of one conversation
            continue
        context = [*earlier.context, earlier.target, *later.context]
        made.append(Dialogue(context, later.target, later.emotion, new_turns=0))
    return made
