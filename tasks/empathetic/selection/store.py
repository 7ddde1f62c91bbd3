"""A store of replies with their vectors, and the exact search in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from paddle_dialog.errors import UserError
from tasks.empathetic.emotion.labels import EMOTIONS

REPLY_STORE = "replies.safetensors"  # in a bundle
STEPS = 127  # of a number of a vector in a file


@dataclass(frozen=True)
class ReplyStore:
    """Replies that people wrote.

    Attributes:
        texts: the replies, N of them.
        vectors: of unit length, float32 [N, K].
        log_probs: log p(reply) per token without a context, end token included, float32 [N].
        emotions: the speaker's emotions when the reply was given, bit i for `EMOTIONS[i]`, uint32 [N]; 0 where
            unknown.
    """

    texts: Sequence[str]
    vectors: np.ndarray
    log_probs: np.ndarray
    emotions: np.ndarray

    def __len__(self) -> int:
        return len(self.texts)

    def nearest(self, contexts: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the replies with the highest cosines, by comparing all of them.

        Args:
            contexts: unit vectors [B, K].
            count: replies wanted of each.

        Returns:
            Rows of the store [B, M], highest cosine first and the earlier row where two are equal, and the cosines
            [B, M]; M is `count`, or N where there are fewer.
        """
        cosines = contexts @ self.vectors.T  # [B, N]
        size = min(count, len(self))
        rows = np.argpartition(-cosines, size - 1, axis=1)[:, :size]  # [B, M]
        rows.sort(axis=1)
        order = np.argsort(-np.take_along_axis(cosines, rows, axis=1), axis=1, kind="stable")
        rows = np.take_along_axis(rows, order, axis=1)
        return rows, np.take_along_axis(cosines, rows, axis=1)

    def to_bytes(self) -> bytes:
        """Pack the store into a safetensors file: vectors in 8 bits a number, 256 kB for a thousand of size 256."""
        largest = np.maximum(np.abs(self.vectors).max(axis=1, keepdims=True), 1e-9)  # [N, 1]
        return save(
            {
                "texts": np.frombuffer("\n".join(self.texts).encode("utf-8"), np.uint8),
                "vectors": np.rint(self.vectors / largest * STEPS).astype(np.int8),
                "log_probs": self.log_probs.astype(np.float16),
                "emotions": self.emotions.astype(np.uint32),
            }
        )

    @classmethod
    def from_bytes(cls, content: bytes, where: str) -> ReplyStore:
        """Read what `to_bytes` made.

        Args:
            content: of the file.
            where: the file, for messages.

        Raises:
            UserError: the content is something else.
        """
        try:
            tensors = load(content)
            texts = tensors["texts"].tobytes().decode("utf-8").split("\n")
            vectors = tensors["vectors"].astype(np.float32)
            log_probs, emotions = tensors["log_probs"].astype(np.float32), tensors["emotions"]
        except (SafetensorError, KeyError, UnicodeDecodeError) as error:
            raise UserError(f"{where}: holds no store of replies ({error}); make it anew") from error
        if vectors.ndim != 2 or not len(texts) == len(vectors) == len(log_probs) == len(emotions):
            raise UserError(f"{where}: its replies and vectors differ in number; make it anew")
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
        return cls(texts, vectors, log_probs, emotions)


def emotion_bits(labels: Sequence[str | None]) -> int:
    """Return emotions as the bits of `ReplyStore.emotions`; None has none."""
    return sum(1 << EMOTIONS.index(label) for label in {*labels} - {None} if label is not None)
