"""The training loss of EmoPrepend, and what the network gives it."""

from __future__ import annotations

from typing import Any, NamedTuple

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_dialog.tasks.empathetic.data.encoding import NO_EMOTION
from paddle_dialog.training.losses import PointerCrossEntropy, SequenceCrossEntropy, mean_of


class Outputs(NamedTuple):
    """Scores of a batch; a part that this network or this mode does not have is an empty tensor."""

    logits: Tensor  # of the reply's words [B, T, V]
    gate: Tensor  # logits of generating over copying [B, T], of a network with a pointer
    attention: Tensor  # over the context [B, T, S], with a pointer
    copy_ids: Tensor  # the context's extended ids [B, S], with a pointer
    # Of the K context words to learn [K, V], in training, where contexts are learned.
    context_logits: Tensor
    context_ids: Tensor  # of these words [K]
    emotion: Tensor  # logits [B, C] of the encoder's classifier

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


class EmpatheticLoss(nn.Layer):
    """Mean nll per word, plus λ times the mean nll of the annotated emotions.

    If contexts are learned, their words are in that mean, each with its weight, and never smoothed.

    `token_nll` [B, T] keeps the negative log-likelihoods of the last call, masked and never smoothed.

    Args:
        label_smoothing: ε, of `SequenceCrossEntropy`; with a pointer of `PointerCrossEntropy`.
        emotion_weight: λ.
        context_weight: weight of a context's word, if contexts are learned; one of the reply has 1.
        sampled: as for `SequenceCrossEntropy`.
    """

    token_nll: Tensor

    def __init__(
        self,
        label_smoothing: float = 0.0,
        emotion_weight: float = 1.0,
        context_weight: float = 0.0,
        sampled: bool = False,
    ) -> None:
        super().__init__()
        self.context_weight = context_weight
        self.emotion_weight = emotion_weight
        self.sampled = sampled
        self._generated = SequenceCrossEntropy(label_smoothing, sampled)
        self._copied = PointerCrossEntropy(label_smoothing, sampled)

    def forward(self, *parts: Tensor, emotion: Tensor, label: Tensor, mask: Tensor) -> Tensor:
        """Return the loss, a scalar.

        Args:
            parts: of `Outputs`.
            emotion: [B], see `DialogueBatch`, as all that follow.
            label: [B, T].
            mask: [B, T].
        """
        outputs = Outputs(*parts)
        criterion: Any = self._copied if is_given(outputs.gate) else self._generated
        total, tokens = criterion.total(*outputs.reply, label, mask), mask.sum()
        self.token_nll = criterion.token_nll
        if is_given(outputs.context_logits):
            following = outputs.context_ids.unsqueeze(-1)  # [K, 1]
            if self.sampled:
                following = paddle.zeros_like(following)
            nll = F.cross_entropy(outputs.context_logits, following, reduction="none")  # [K, 1]
            total = total + self.context_weight * nll.sum()
            tokens = tokens + self.context_weight * len(following)
        return mean_of(total, tokens) + self.emotion_weight * _emotion_loss(outputs.emotion, emotion)


def _emotion_loss(logits: Tensor, emotion: Tensor) -> Tensor:
    """Return mean cross-entropy of logits [B, C] over the annotated rows of `emotion` [B]."""
    annotated = (emotion != NO_EMOTION).astype(logits.dtype)  # [B]
    # [B]
    nll = F.cross_entropy(logits, paddle.clip(emotion, min=0), reduction="none").squeeze(-1) * annotated
    return mean_of(nll.sum(), annotated.sum())
