"""What a task's models are judged by: one figure with a name and a direction, added up over batches and processes.

Progress, the best models, early stopping, logs, curves and model cards follow a task's objective.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

if TYPE_CHECKING:
    from paddle import Tensor


def has_paddlenlp() -> bool:
    """Return whether PaddleNLP is installed; it has no packages for Python 3.13."""
    return find_spec("paddlenlp") is not None


class Objective(ABC):
    """A figure of a model on examples.

    Each batch gives a few sums. They are added over batches and processes, and `figure` is computed from the
    totals; so it does not depend on how the examples were batched.

    Attributes:
        name: one word, for logs, curves and tables, e.g. `perplexity`.
        direction: whether the lower or the higher figure is the better one.
        digits: decimals that are shown.
    """

    name: ClassVar[str]
    direction: ClassVar[Literal["lower", "higher"]]
    digits: ClassVar[int] = 3

    @abstractmethod
    def sums(self, criterion: Any, outputs: Sequence[Tensor], batch: Any) -> Sequence[Tensor]:
        """Return what one batch adds, as scalars that stay on the device."""

    @abstractmethod
    def figure(self, sums: Sequence[float]) -> float:
        """Return the figure of the totals; NaN where there was no example."""

    def rank(self, figure: float) -> float:
        """Return a sort key: the best figure has the lowest."""
        return figure if self.direction == "lower" else -figure

    def show(self, figure: float) -> str:
        """Return the figure as text."""
        return f"{figure:.{self.digits}f}"


class Perplexity(Objective):
    """exp of the mean negative log-likelihood per target token.

    The criterion keeps `token_nll` [B, T], the masked and unsmoothed values of its last call, and the batch has
    the `mask` [B, T] of real tokens. So no second softmax over the vocabulary is computed.
    """

    name = "perplexity"
    direction = "lower"

    def sums(self, criterion: Any, outputs: Sequence[Tensor], batch: Any) -> Sequence[Tensor]:
        return criterion.token_nll.astype("float64").sum(), batch.mask.astype("float64").sum()

    def figure(self, sums: Sequence[float]) -> float:
        """Return the perplexity, by PaddleNLP's metric where it is installed; infinite beyond the range of floats."""
        nll, tokens = sums
        if not tokens:
            return math.nan
        with np.errstate(over="ignore"):
            if not has_paddlenlp():
                return float(np.exp(np.float64(nll) / tokens))
            from paddlenlp.metrics import Perplexity as Metric  # importing it takes seconds

            metric = Metric()
            metric.update(np.float64(nll), np.float64(tokens))
            return float(metric.accumulate())


class Accuracy(Objective):
    """Share of examples whose highest score is that of the true class.

    The network's first output is the scores [B, K], and the batch has the classes `label` [B].
    """

    name = "accuracy"
    direction = "higher"
    digits = 4

    def sums(self, criterion: Any, outputs: Sequence[Tensor], batch: Any) -> Sequence[Tensor]:
        right = (outputs[0].argmax(axis=-1) == batch.label).astype("float64")  # [B]
        # Carry a NaN score into the sum; argmax alone would hide it.
        right = right + outputs[0].max(axis=-1).astype("float64") * 0.0
        return right.sum(), right.numel().astype("float64")

    def figure(self, sums: Sequence[float]) -> float:
        """Return the share, 0 to 1."""
        right, count = sums
        return right / count if count else math.nan
