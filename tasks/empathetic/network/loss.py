"""The training loss of EmoPrepend, and what the network gives it."""

from __future__ import annotations

from typing import NamedTuple

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_dialog.layers.pointer_generator import label_nll
from paddle_dialog.tasks.empathetic.data.encoding import NO_EMOTION
from paddle_dialog.training.losses import SequenceCrossEntropy, mean_of


class Outputs(NamedTuple):
    """Scores of a batch; a part that this network or this mode does not have is an empty tensor."""

    logits: Tensor  # of the reply's words [B, T, V]
    gate: Tensor  # logits of generating over copying [B, T], of a network with a pointer
    attention: Tensor  # over the context [B, T, S], with a pointer
    copy_ids: Tensor  # the context's extended ids [B, S], with a pointer
    # Of the K context words to learn [K, V], in training, where contexts are learned.
    context_logits: Tensor
    context_ids: Tensor  # of these words [K]
    verdicts: Tensor  # logits of the adversary [B, 3], in training, where there is one
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

    If contexts are learned, their words are in that mean, each with its weight, and never smoothed. The contest with
    an adversary is added with its weight.

    `token_nll` [B, T] keeps the negative log-likelihoods of the last call, masked and never smoothed.

    Args:
        label_smoothing: ε; with a pointer the smoothed part is the vocabulary's softmax, since only the context's
            words can be copied: loss = (1 - ε) · nll + ε · mean over the vocabulary of -log p_vocab.
        emotion_weight: λ.
        context_weight: weight of a context's word beside one of the reply, if contexts are learned.
        adversarial_weight: of the contest with an adversary, if there is one.
    """

    token_nll: Tensor

    def __init__(
        self,
        label_smoothing: float = 0.0,
        emotion_weight: float = 1.0,
        context_weight: float = 0.0,
        adversarial_weight: float = 0.0,
    ) -> None:
        super().__init__()
        self.context_weight = context_weight
        self.adversarial_weight = adversarial_weight
        self.label_smoothing = label_smoothing
        self.emotion_weight = emotion_weight
        self._generation = SequenceCrossEntropy(label_smoothing)

    def forward(self, *parts: Tensor, emotion: Tensor, label: Tensor, mask: Tensor) -> Tensor:
        """Return the loss, a scalar.

        Args:
            parts: of `Outputs`.
            emotion: [B], see `DialogueBatch`, as all that follow.
            label: [B, T].
            mask: [B, T].
        """
        outputs = Outputs(*parts)
        total, tokens = self._reply_total(outputs.reply, label, mask), mask.sum()
        if is_given(outputs.context_logits):
            following = outputs.context_ids.unsqueeze(-1)  # [K, 1]
            nll = F.cross_entropy(outputs.context_logits, following, reduction="none")  # [K, 1]
            total = total + self.context_weight * nll.sum()
            tokens = tokens + self.context_weight * len(following)
        loss = mean_of(total, tokens) + self.emotion_weight * _emotion_loss(outputs.emotion, emotion)
        if not is_given(outputs.verdicts):
            return loss
        return loss + self.adversarial_weight * contest_loss(outputs.verdicts)

    def _reply_total(self, reply: tuple[Tensor, ...], label: Tensor, mask: Tensor) -> Tensor:
        """Return the sum over the reply's tokens."""
        if len(reply) == 1:
            total = self._generation.total(reply[0], label, mask)
            self.token_nll = self._generation.token_nll
            return total
        logits, gate, attention, copy_ids = reply
        nll, generated = label_nll(logits, gate, attention, copy_ids, label)  # [B, T] each
        nll = nll * mask
        self.token_nll = nll.detach()
        if self.label_smoothing == 0.0:
            return nll.sum()
        # mean over the vocabulary of -log p = logsumexp - mean logit, and logsumexp = nll + the label's logit
        inside = paddle.where(label < logits.shape[-1], label, paddle.zeros_like(label))  # [B, T]
        label_logit = paddle.take_along_axis(logits, inside.unsqueeze(-1), axis=-1).squeeze(-1)  # [B, T]
        uniform = (generated + label_logit - logits.mean(axis=-1)) * mask  # [B, T]
        smoothing = self.label_smoothing
        return ((1.0 - smoothing) * nll + smoothing * uniform).sum()


def _emotion_loss(logits: Tensor, emotion: Tensor) -> Tensor:
    """Return mean cross-entropy of logits [B, C] over the annotated rows of `emotion` [B]."""
    annotated = (emotion != NO_EMOTION).astype(logits.dtype)  # [B]
    nll = (
        F.cross_entropy(logits, paddle.clip(emotion, min=0), reduction="none").squeeze(-1) * annotated
    )  # [B]
    return mean_of(nll.sum(), annotated.sum())


def contest_loss(logits: Tensor) -> Tensor:
    """Return the loss of an adversary and of the network that deceives it.

    The network's has the form that does not saturate (Goodfellow et al. 2014, "Generative Adversarial Nets",
    section 3).

    Args:
        logits: verdicts of `Adversary` [B, 3].

    Returns:
        The mean of (-log σ(people's) - log σ(-network's)) / 2 - log σ(network's), [].
    """
    people, written, deceiving = logits.unbind(axis=1)  # [B] each
    adversary = 0.5 * (F.softplus(-people) + F.softplus(written))
    count = paddle.full([], float(len(people)))
    return mean_of((adversary + F.softplus(-deceiving)).sum(), count)
