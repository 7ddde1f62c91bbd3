"""Perplexity: of a corpus, by example, and inside `paddle.Model.fit` without a second softmax."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    from paddle import Tensor


class KeepsTokenNll(Protocol):
    """A criterion that keeps the masked, unsmoothed negative log-likelihoods [B, T] of its last call."""

    token_nll: Tensor


def token_perplexity(total_nll: float, tokens: int) -> float:
    """Return exp(total / tokens), the perplexity of a corpus.

    Args:
        total_nll: sum of -log p over all real tokens, in nats.
        tokens: how many real tokens, end tokens included if their nll is.

    Raises:
        ValueError: there is no token.
    """
    if tokens <= 0:
        raise ValueError(f"perplexity needs at least one token, not {tokens}")
    return _exp(total_nll / tokens)


def perplexity_per_example(nll: Sequence[float], tokens: Sequence[int]) -> float:
    """Return exp of the mean over examples of each one's mean nll a token.

    Short and long examples weigh the same, unlike in `token_perplexity`. The papers on
    EmpatheticDialogues report this figure.

    Args:
        nll: sum of -log p over the tokens of each example, in nats.
        tokens: number of real tokens of each example.

    Raises:
        ValueError: there is no example, one has no token, or the lengths differ.
    """
    if not nll or any(count <= 0 for count in tokens):
        raise ValueError("perplexity needs at least one example and at least one token in each")
    means = [total / count for total, count in zip(nll, tokens, strict=True)]
    return _exp(math.fsum(means) / len(means))


def token_perplexity_metric(criterion: KeepsTokenNll) -> Any:
    """Return a `paddlenlp.metrics.Perplexity` that reuses what the criterion computed.

    The softmax over the vocabulary is most of the cost of a perplexity; the loss has already paid for it.

    Args:
        criterion: the loss that the same `paddle.Model` is prepared with; it runs before each `compute`.

    Returns:
        An instance of `TokenPerplexity`, whose `compute(*outputs, *labels)` takes whatever the network gives and
        the batch holds; of these it reads the last two, label [B, T] and mask [B, T], 1 on real tokens.
    """
    from paddlenlp.metrics import Perplexity

    class TokenPerplexity(Perplexity):
        """Perplexity from the nll that the criterion kept; RuntimeError if it kept none for these labels."""

        def compute(self, *outputs_and_labels: Tensor) -> tuple[Tensor, Tensor]:
            label, mask = outputs_and_labels[-2:]
            nll = getattr(criterion, "token_nll", None)  # [B, T]
            if nll is None or nll.shape != label.shape:
                shape = None if nll is None else list(nll.shape)
                raise RuntimeError(
                    f"the criterion kept nll of shape {shape} for labels {list(label.shape)}; "
                    "give the metric the criterion that the model is prepared with"
                )
            return nll.astype("float32"), mask.sum()  # [B, T], []

        def update(self, ce: np.ndarray, word_num: np.ndarray | None = None) -> None:
            # PaddleNLP adds up in the dtype it is given; float32 loses small batches in a long epoch.
            super().update(ce.astype("float64"), word_num)

        def reset(self) -> None:
            # ``evaluate`` resets before it returns, and several processes add up their sums afterwards.
            self.sums_before_reset = (
                float(getattr(self, "total_ce", 0.0)),
                float(getattr(self, "total_word_num", 0.0)),
            )
            super().reset()

        def accumulate(self) -> float:
            # ``fit`` asks after each training batch, of which this metric is not told.
            return float(super().accumulate()) if self.total_word_num else math.nan

    return TokenPerplexity()


def _exp(mean: float) -> float:
    try:
        return math.exp(mean)
    except OverflowError:
        return math.inf
