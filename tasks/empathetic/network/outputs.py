"""What the network gives the loss, in a fixed order: `paddle.Model` passes outputs on by position."""

from __future__ import annotations

from typing import NamedTuple

import paddle
from paddle import Tensor


class Outputs(NamedTuple):
    """Scores of a batch; a part that this network or this mode does not have is an empty tensor.

    Args:
        logits: of the reply's words [B, T, V].
        gate: logits of generating over copying [B, T], of a network with a pointer.
        attention: over the context [B, T, S], with a pointer.
        copy_ids: the context's extended ids [B, S], with a pointer.
        context_logits: of the K context words to learn [K, V], in training, where contexts are learned.
        context_ids: of these words [K].
        verdicts: of the adversary [B, 3, 34], in training, where there is one.
        emotion: logits [B, 32] of the encoder's classifier.
    """

    logits: Tensor
    gate: Tensor
    attention: Tensor
    copy_ids: Tensor
    context_logits: Tensor
    context_ids: Tensor
    verdicts: Tensor
    emotion: Tensor

    @classmethod
    def of(cls, logits: Tensor, emotion: Tensor, **others: Tensor) -> Outputs:
        """Return outputs of which those that are not given are empty."""
        fields = dict.fromkeys(cls._fields, paddle.zeros([0])) | others
        return cls(**{**fields, "logits": logits, "emotion": emotion})

    @property
    def reply(self) -> tuple[Tensor, ...]:
        """The scores of the reply: logits; with a pointer also gate, attention and the context's ids."""
        return self[:4] if is_given(self.gate) else self[:1]


def is_given(output: Tensor) -> bool:
    """Return whether an output is there."""
    return output.shape != [0]
