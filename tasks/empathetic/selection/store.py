"""A store of replies with their vectors, and the exact search in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from safetensors.numpy import load, save

from paddle_dialog.bundle.folder import file_errors
from paddle_dialog.errors import UserError
from tasks.empathetic.data.emotions import EMOTIONS
from tasks.empathetic.selection.context_index import ContextIndex

REPLY_STORE = "replies.safetensors"  # in a bundle
STEPS = 127  # of a number of a vector in a file
_CONTEXTS = "contexts."  # before the names of their arrays in a file


@dataclass(frozen=True)
class ReplyStore:
    """Replies that people wrote.

    Attributes:
        texts: the replies, N of them.
        vectors: of unit length, float32 [N, K].
        log_probs: log p(reply) per token, end token included, which the model says without a context, float32 [N].
        emotions: in which emotions of the speaker the reply was given, bit i for the i-th of its language, uint32
            [N]; 0 where nothing is known.
        contexts: the conversations in which the replies were given; None where they are not known.
        own: whether each was written for this project (small talk, everyday), bool [N]; None where none was.
    """

    texts: Sequence[str]
    vectors: np.ndarray
    log_probs: np.ndarray
    emotions: np.ndarray
    contexts: ContextIndex | None = None
    own: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.texts)

    def to_bytes(self) -> bytes:
        """Write the store as a safetensors file: vectors in 8 bits a number, 256 kB for a thousand of 256."""
        tensors = {
            "texts": np.frombuffer("\n".join(self.texts).encode("utf-8"), np.uint8),
            "vectors": _in_steps(self.vectors),
            "log_probs": self.log_probs.astype(np.float16),
            "emotions": self.emotions.astype(np.uint32),
        }
        if self.own is not None:
            tensors["own"] = self.own
        if self.contexts is not None:
            for field in fields(ContextIndex):
                array = getattr(self.contexts, field.name)
                tensors[_CONTEXTS + field.name] = _in_steps(array) if field.name == "vectors" else array
        return save(tensors)

    @classmethod
    def from_bytes(cls, content: bytes, where: str) -> ReplyStore:
        """Read what `to_bytes` made.

        Args:
            content: of the file.
            where: the file, for messages.

        Raises:
            UserError: the content is something else.
        """
        with file_errors(where, "store of replies", "make it anew"):
            tensors = load(content)
            texts = tensors["texts"].tobytes().decode("utf-8").split("\n")
            vectors = tensors["vectors"]
            log_probs, emotions = tensors["log_probs"].astype(np.float32), tensors["emotions"]
            own = tensors.get("own")
            contexts = None
            if _CONTEXTS + "rows" in tensors:
                index = {field.name: tensors[_CONTEXTS + field.name] for field in fields(ContextIndex)}
                contexts = ContextIndex(**{**index, "vectors": _of_unit_length(index["vectors"])})
        sizes = {len(array) for array in (vectors, log_probs, emotions, own) if array is not None}
        if vectors.ndim != 2 or sizes != {len(texts)}:
            raise UserError(f"{where}: its replies and vectors differ in number; make it anew")
        return cls(texts, _of_unit_length(vectors), log_probs, emotions, contexts, own)


def _in_steps(vectors: np.ndarray) -> np.ndarray:
    """Quantise vectors [N, K] to int8, each in steps of its own largest number."""
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=1e-9)  # [N, 1]
    return np.rint(vectors / largest * STEPS).astype(np.int8)


def _of_unit_length(steps: np.ndarray) -> np.ndarray:
    """Restore float32 vectors [N, K] from such steps."""
    vectors = steps.astype(np.float32)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.maximum(norms, np.float32(1e-9))


def highest(values: np.ndarray, count: int) -> list[int]:
    """Return the places of the highest values of [N], highest first, the earlier one where two are equal."""
    size = min(count, len(values))
    places = np.sort(np.argpartition(-values, size - 1)[:size])
    return [int(place) for place in places[np.argsort(-values[places], kind="stable")]]


def emotion_bits(labels: Sequence[str | None], emotions: Sequence[str] = EMOTIONS) -> int:
    """Return emotions as the bits of `ReplyStore.emotions`; None has none."""
    return sum(1 << emotions.index(label) for label in {*labels} - {None} if label is not None)
