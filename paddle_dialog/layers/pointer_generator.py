"""Generate a word of the vocabulary or copy one of the source (See et al. 2017, section 2.2).

P(w) = p_gen · softmax(logits / temperature)(w) + (1 - p_gen) · Σ over source positions i with word w of attention_i.

Words outside the vocabulary have the ids V, V + 1, … in the order in which they occur in their source; they can
only be copied. Everything is computed in float32 and in log space, whatever precision the model runs in.
"""

from __future__ import annotations

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_dialog.layers.embeddings import TiedProjection, TokenEmbedding
from paddle_dialog.layers.sampled_softmax import sampled_logits

LEAST = 1e-30  # replaces a probability of 0 under a logarithm


class PointerGenerator(nn.Layer):
    """The output layer: scores of the vocabulary, and whether to generate or to copy.

    Args:
        width: of the decoder's output H.
        vocab_size: V.
        tied_to: the embedding whose table is the output weight; by default the layer has a weight of its own.
        pointer: without it there is no gate, and words are generated only.
        temperature: divides the vocabulary's scores.
        sampled: words that training draws in place of the vocabulary; 0 scores all of it.
    """

    def __init__(
        self,
        width: int,
        vocab_size: int,
        tied_to: TokenEmbedding | None = None,
        pointer: bool = True,
        temperature: float = 1.0,
        bias: bool = True,
        sampled: int = 0,
    ) -> None:
        super().__init__()
        self.sampled = sampled
        self.temperature = temperature
        self.output = (
            nn.Linear(width, vocab_size, bias_attr=bias) if tied_to is None else TiedProjection(tied_to, bias)
        )
        self.gate = nn.Linear(width, 1) if pointer else None

    def forward(self, hidden: Tensor, label: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """Return logits [..., V] and gate logits [...] (p_gen is their sigmoid) of decoder outputs [..., H].

        In training with `sampled` words the logits are `sampled_logits` of the labels [...].
        """
        if self.training and self.sampled:
            assert label is not None
            logits = sampled_logits(self.output, hidden, label, self.sampled)  # [..., 1 + sampled]
        else:
            logits = self.output(hidden)  # [..., V]
        if self.temperature != 1.0:
            logits = logits / self.temperature
        return logits, None if self.gate is None else self.gate(hidden).squeeze(-1)


def first_positions(copy_ids: Tensor) -> Tensor:
    """Return for every source position the first one that holds the same word, int64 [B, S] of ids [B, S]."""
    same = copy_ids.unsqueeze(2) == copy_ids.unsqueeze(1)  # [B, S, S]
    return paddle.argmax(same.astype("int32"), axis=-1)


def extended_log_probs(
    logits: Tensor, gate: Tensor, attention: Tensor, copy_ids: Tensor, first: Tensor, extra: int
) -> Tensor:
    """Return log P over the extended vocabulary.

    Args:
        logits: [N, V].
        gate: gate logits [N].
        attention: weights over the source [N, S], which sum to 1.
        copy_ids: extended ids of the source [N, S].
        first: `first_positions(copy_ids)`.
        extra: number X of ids beyond the vocabulary.

    Returns:
        float32 [N, V + X]. The probabilities sum to 1; an id that neither the vocabulary nor the source has, to
        `LEAST` at most.
    """
    logits, gate, attention = (x.astype("float32") for x in (logits, gate, attention))
    generate, copy = F.log_sigmoid(gate).unsqueeze(1), F.log_sigmoid(-gate).unsqueeze(1)  # [N, 1] each
    scores = logits - paddle.logsumexp(logits, axis=-1, keepdim=True) + generate  # [N, V]
    if extra:
        unknown = paddle.full([logits.shape[0], extra], -1e4)
        scores = paddle.concat([scores, unknown], axis=-1)  # [N, V + X]
    # Each position takes the weight of its whole word, so that repeated words write the same number.
    of_word = paddle.put_along_axis(paddle.zeros_like(attention), first, attention, 1, reduce="add")
    weight = paddle.take_along_axis(of_word, first, 1)  # [N, S]
    copied = copy + _log(weight)
    mixed = paddle.logaddexp(paddle.take_along_axis(scores, copy_ids, 1), copied)  # [N, S]
    scores = paddle.put_along_axis(scores, copy_ids, mixed, 1)
    return paddle.clip(scores, min=-1e3)


def label_nll(
    logits: Tensor,
    gate: Tensor,
    attention: Tensor,
    copy_ids: Tensor,
    label: Tensor,
    sampled: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return -log P of given words, without computing the distribution over all others, which training does not need.

    Args:
        logits: [B, T, V].
        gate: gate logits [B, T].
        attention: weights over the source [B, T, S].
        copy_ids: extended ids of the source [B, S].
        label: extended ids [B, T].
        sampled: whether the logits are `sampled_logits`.

    Returns:
        -log P [B, T] and -log of the vocabulary's softmax alone [B, T]; where the label is outside the vocabulary
        the latter is that of id 0.
    """
    inside, known = paddle.zeros_like(label), paddle.ones_like(label, dtype="bool")  # [B, T] each
    if not sampled:
        known = label < logits.shape[-1]
        inside = paddle.where(known, label, inside)
    logits, gate, attention = (x.astype("float32") for x in (logits, gate, attention))
    generated = F.cross_entropy(logits, inside.unsqueeze(-1), reduction="none").squeeze(-1)  # [B, T]
    matches = (label.unsqueeze(2) == copy_ids.unsqueeze(1)).astype("float32")  # [B, T, S]
    copied = F.log_sigmoid(-gate) + _log((attention * matches).sum(-1))  # [B, T]
    produced = paddle.where(known, F.log_sigmoid(gate) - generated, paddle.full_like(generated, -1e4))
    return -paddle.logaddexp(produced, copied), generated


def _log(probability: Tensor) -> Tensor:
    return paddle.log(paddle.clip(probability, min=LEAST))
