"""The training losses of models that write text: cross-entropy, copying, and the order of rated answers."""

from __future__ import annotations

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_dialog.config.schema import PreferencesConfig
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
    """

    token_nll: Tensor

    def __init__(self, label_smoothing: float = 0.0) -> None:
        super().__init__()
        self.label_smoothing = label_smoothing

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
        nll, generated = label_nll(logits, gate, attention, copy_ids, label)  # [B, T] each
        return self._smoothed(nll, generated, logits, label, mask)


class PreferenceLoss(nn.Layer):
    """Loss of ordinary examples, and of the order in which the answers to one input were rated.

    The second is over all pairs of answers to an input of which one is rated better: the mean over the pairs of
    -log σ(r_better - r_worse), and the mean over the inputs of that, with r = β · (log p - log p of the weights
    before): direct preference optimisation (Rafailov et al. 2023, "Direct Preference Optimization", equation 7).

    `token_nll` keeps the negative log-likelihoods of the ordinary examples of the last call.

    Args:
        own: loss of the ordinary examples.
        settings: β, the least difference of ratings, and the weight of the ordinary examples.
    """

    def __init__(self, own: SequenceCrossEntropy, settings: PreferencesConfig) -> None:
        super().__init__()
        self._own = own
        self._settings = settings

    @property
    def token_nll(self) -> Tensor:
        """Negative log-likelihoods [N, T] of the ordinary examples of the last call, masked."""
        return self._own.token_nll

    def forward(
        self,
        logits: Tensor,
        label: Tensor,
        mask: Tensor,
        text_mask: Tensor | None = None,
        answers: Tensor | None = None,
        inputs: Tensor | None = None,
        ratings: Tensor | None = None,
        before: Tensor | None = None,
    ) -> Tensor:
        """Return the loss, a scalar.

        Args:
            logits: [N + M, T, V] of N ordinary examples and then the M texts of the rated answers.
            label: int64 [N + M, T].
            mask: of the ordinary examples [N, T].
            text_mask: of the texts of the A rated answers [M, T]; None, as all below, without any (a dev batch).
            answers: the answer of each text, int64 [M].
            inputs: the input of each answer, int64 [A].
            ratings: of the answers [A].
            before: log-probabilities of the answers under the weights before [A].
        """
        count = mask.shape[0]
        loss = self._own(logits[:count], label[:count], mask)
        if text_mask is None or answers is None or inputs is None or ratings is None or before is None:
            return loss
        nll = F.cross_entropy(logits[count:], label[count:].unsqueeze(-1), reduction="none").squeeze(-1)
        texts = -(nll * text_mask).sum(-1)  # [M]
        log_probs = paddle.zeros_like(before).scatter_nd_add(answers.unsqueeze(-1), texts)  # [A]
        rewards = self._settings.strength * (log_probs - before)  # [A]
        total, inputs_with_pairs = preference_nll(rewards, ratings, inputs, self._settings.least_gap)
        return self._settings.examples_weight * loss + mean_of(total, inputs_with_pairs)


def preference_nll(
    rewards: Tensor, ratings: Tensor, inputs: Tensor, least_gap: float
) -> tuple[Tensor, Tensor]:
    """Return the summed negative log-likelihood of the order of ratings, and how many inputs have an order.

    Args:
        rewards: of answers, [A].
        ratings: of the answers, [A].
        inputs: which answers belong together, int64 [A].

    Returns:
        The sum over the inputs of the mean over their ordered pairs of -log σ(difference of rewards) (Bradley & Terry
        1952), a scalar; the number of inputs with such a pair, a scalar.
    """
    together = inputs.unsqueeze(1) == inputs.unsqueeze(0)  # [A, A]
    better = ratings.unsqueeze(1) - ratings.unsqueeze(0) >= least_gap  # [A, A]
    pairs = paddle.logical_and(together, better).astype(rewards.dtype)  # [A, A]
    per_answer = pairs.sum(1)  # [A], pairs that it wins
    per_input = (together.astype(rewards.dtype) * per_answer.unsqueeze(0)).sum(1)  # [A], pairs of its input
    weights = pairs / paddle.clip(per_input, min=1.0).unsqueeze(1)  # [A, A], sum to 1 over an input
    nll = F.softplus(rewards.unsqueeze(0) - rewards.unsqueeze(1))  # [A, A]
    return (nll * weights).sum(), weights.sum()
