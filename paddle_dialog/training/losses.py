"""The training losses of models that write text: cross-entropy, and copying."""

from __future__ import annotations

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_dialog.layers.pointer_generator import label_nll


def mean_of(total: Tensor, count: Tensor) -> Tensor:
    """Return total / count, scalars, for a count of at least 1."""
    return total / paddle.clip(count, min=1.0)


class SequenceCrossEntropy(nn.Layer):
    """Cross-entropy over the real tokens of a batch, as their mean.

    `token_nll` [B, T] keeps the negative log-likelihoods of the last call, masked and never smoothed, so that
    the perplexity need not run a second softmax over the vocabulary.

    Args:
        label_smoothing: share ε of the target mass spread evenly over the vocabulary (Szegedy et al. 2016,
            section 7): loss = (1 - ε) · nll + ε · mean over the vocabulary of -log p.
        sampled: take `sampled_logits` in training, where the perplexity is then an estimate.
    """

    token_nll: Tensor

    def __init__(self, label_smoothing: float = 0.0, sampled: bool = False) -> None:
        super().__init__()
        self.label_smoothing = label_smoothing
        self.sampled = sampled

    def forward(self, logits: Tensor, label: Tensor, mask: Tensor) -> Tensor:
        """Return the loss, a scalar.

        Args:
            logits: [B, T, V].
            label: int64 [B, T].
            mask: float [B, T], 1 on real tokens (the end token is one) and 0 on padding.
        """
        return mean_of(self.total(logits, label, mask), mask.sum())

    def total(self, logits: Tensor, label: Tensor, mask: Tensor) -> Tensor:
        """Return the sum over the real tokens, whose mean is `forward`; arguments as there."""
        if self.training and self.sampled:
            label = paddle.zeros_like(label)
        nll = F.cross_entropy(logits, label.unsqueeze(-1), reduction="none").squeeze(-1)  # [B, T]
        return self._smoothed(nll, nll, logits, label, mask)

    def _smoothed(
        self, nll: Tensor, generated: Tensor, logits: Tensor, label: Tensor, mask: Tensor
    ) -> Tensor:
        """Return the smoothed sum of `nll` [B, T]; `generated` [B, T] is that of the vocabulary's softmax alone."""
        nll = nll * mask
        self.token_nll = nll.detach()
        smoothing = self.label_smoothing
        if smoothing == 0.0:
            return nll.sum()
        # mean over the vocabulary of -log p = logsumexp - mean logit, and logsumexp = nll + the label's logit
        inside = paddle.where(label < logits.shape[-1], label, paddle.zeros_like(label))  # [B, T]
        label_logit = paddle.take_along_axis(logits, inside.unsqueeze(-1), axis=-1).squeeze(-1)  # [B, T]
        uniform = (generated + label_logit - logits.mean(axis=-1)) * mask  # [B, T]
        return ((1.0 - smoothing) * nll + smoothing * uniform).sum()


class PointerCrossEntropy(SequenceCrossEntropy):
    """The same of a network that generates and copies.

    The smoothed part is the vocabulary's softmax, since only the words of the source can be copied.
    """

    def forward(  # type: ignore[override]
        self, logits: Tensor, gate: Tensor, attention: Tensor, copy_ids: Tensor, label: Tensor, mask: Tensor
    ) -> Tensor:
        """Return the loss, a scalar.

        Args:
            logits, gate, attention, copy_ids: what `PointerSeq2Seq` returns.
            label: extended ids [B, T].
            mask: float [B, T], 1 on real tokens and 0 on padding.
        """
        return mean_of(self.total(logits, gate, attention, copy_ids, label, mask), mask.sum())

    def total(  # type: ignore[override]
        self, logits: Tensor, gate: Tensor, attention: Tensor, copy_ids: Tensor, label: Tensor, mask: Tensor
    ) -> Tensor:
        """Return the sum over the real tokens, whose mean is `forward`; arguments as there."""
        sampled = self.training and self.sampled
        nll, generated = label_nll(logits, gate, attention, copy_ids, label, sampled)  # [B, T] each
        return self._smoothed(nll, generated, logits, label, mask)
