"""A softmax over the label and a few drawn words (Jean et al. 2015, section 3.2; Bengio & Senécal 2008)."""

from __future__ import annotations

import math

import paddle
from paddle import Tensor, nn

from paddle_dialog.layers.embeddings import TiedProjection


def sampled_logits(output: nn.Linear | TiedProjection, hidden: Tensor, label: Tensor, count: int) -> Tensor:
    """Return logits of which the first is the label's; their softmax estimates that over the vocabulary.

    Words k are drawn with log-uniform probabilities q_k, since vocabularies are sorted by frequency. Their logits are
    corrected by -log(count · q_k), so that the expectation of the sum of exponentials is the sum over the vocabulary.

    Args:
        output: the output layer of V words.
        hidden: [..., H].
        label: ids [...]; the logit of one beyond the vocabulary is very low.
        count: words drawn, with replacement; all labels share them.

    Returns:
        Logits [..., 1 + count].
    """
    tied = isinstance(output, TiedProjection)
    table = output.table if tied else output.weight  # [V, H] or [H, V]
    size = table.shape[0 if tied else 1]
    drawn = (paddle.exp(paddle.rand([count]) * math.log(size + 1)) - 1).astype("int64").clip(max=size - 1)
    probability = (paddle.log(drawn + 2.0) - paddle.log(drawn + 1.0)) / math.log(size + 1)  # [count]

    def rows(ids: Tensor) -> Tensor:
        return paddle.gather(table, ids) if tied else paddle.gather(table, ids, axis=1).t()

    flat, labels = hidden.flatten(0, -2), label.flatten()  # [N, H], [N]
    known = labels < size
    labels = paddle.where(known, labels, paddle.zeros_like(labels))
    own = (flat * rows(labels)).sum(-1)  # [N]
    others = paddle.matmul(flat, rows(drawn), transpose_y=True) - paddle.log(
        count * probability
    )  # [N, count]
    if output.bias is not None:
        own = own + paddle.gather(output.bias, labels)
        others = others + paddle.gather(output.bias, drawn)
    own = paddle.where(known, own, paddle.full_like(own, -1e4))
    is_label = (drawn.unsqueeze(0) == labels.unsqueeze(1)).astype(others.dtype)  # [N, count]
    logits = paddle.concat([own.unsqueeze(1), others - 1e9 * is_label], axis=1)  # [N, 1 + count]
    return logits.reshape([*label.shape, 1 + count])
