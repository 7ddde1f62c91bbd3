"""Metrics: of generated text (BLEU and chrF by sacrebleu, n-grams), perplexity, of classifiers; and objectives.

An objective is what a task's models are judged by: one figure with a name and a direction, added up over batches and
processes. Progress, the best models, early stopping, logs, curves and model cards follow it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np

from paddle_dialog.data.batching import LengthBucketSampler

if TYPE_CHECKING:
    from paddle import Tensor, io, nn

CALIBRATION_BINS = 15


def corpus_bleu(hypotheses: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> float:
    """Return corpus BLEU-4 in 0–100, with one reference each (Papineni et al. 2002).

    sacrebleu with its own defaults on our tokens: nrefs:1|case:mixed|eff:no|tok:none|smooth:exp.

    Args:
        hypotheses: token lists without blanks in a token; a string is a list of characters.
        references: as many token lists.
    """
    from sacrebleu.metrics import BLEU

    # The tokens are final: `force` keeps sacrebleu from warning that the text looks tokenised.
    bleu = BLEU(tokenize="none", force=True)
    joined_references = [" ".join(tokens) for tokens in references]
    score = bleu.corpus_score([" ".join(tokens) for tokens in hypotheses], [joined_references])
    return float(score.score)


def corpus_chrf(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Return corpus chrF2 in 0–100, one reference each (Popović 2015): character n-grams up to 6, blanks left out."""
    from sacrebleu.metrics import CHRF

    return float(CHRF().corpus_score(list(hypotheses), [list(references)]).score)


def distinct_n(sequences: Iterable[Sequence[str]], n: int) -> float:
    """Return distinct n-grams / all n-grams of the whole set (Li et al. 2016, section 5.2); 0 without any n-gram.

    Args:
        sequences: token lists; a string is a list of characters. No n-gram crosses from one to the next.
        n: length of the n-grams, at least 1.
    """
    seen: set[tuple[str, ...]] = set()
    total = 0
    for sequence in sequences:
        found = ngrams(sequence, n)
        seen.update(found)
        total += len(found)
    return len(seen) / total if total else 0.0


def has_phrase(tokens: Sequence[str], phrase: Sequence[str]) -> bool:
    """Return whether a phrase occurs in a text, both as tokens."""
    return tuple(phrase) in ngrams(tokens, len(phrase))


def has_repeated_ngram(tokens: Sequence[str], n: int) -> bool:
    """Return whether some n-gram occurs twice in a text; occurrences may overlap."""
    found = ngrams(tokens, n)
    return len(set(found)) < len(found)


def common_openings(texts: Sequence[Sequence[str]], size: int, common: int = 10) -> float:
    """Return the share of texts whose first `size` tokens are one of the `common` commonest such beginnings."""
    found = Counter(tuple(text[:size]) for text in texts)
    return sum(count for _, count in found.most_common(common)) / len(texts)


def ngrams(tokens: Sequence[str], n: int) -> list[tuple[str, ...]]:
    """Return the n-grams of a text in order."""
    return [tuple(tokens[start : start + n]) for start in range(len(tokens) - n + 1)]


def token_perplexity(total_nll: float, tokens: float) -> float:
    """Return exp(total / tokens), the perplexity of a corpus.

    Args:
        total_nll: sum of -log p over all real tokens, in nats.
        tokens: how many real tokens, end tokens included if their nll is.
    """
    return _exp(total_nll / tokens)


def perplexity_per_example(nll: Sequence[float], tokens: Sequence[int]) -> float:
    """Return exp of the mean over examples of each one's mean nll a token.

    Short and long examples weigh the same, unlike in `token_perplexity`. The papers on
    EmpatheticDialogues report this figure.

    Args:
        nll: sum of -log p over the tokens of each example, in nats.
        tokens: number of real tokens of each example.
    """
    means = [total / count for total, count in zip(nll, tokens, strict=True)]
    return _exp(math.fsum(means) / len(means))


def _exp(mean: float) -> float:
    try:
        return math.exp(mean)
    except OverflowError:
        return math.inf


class TokenLosses(NamedTuple):
    """The losses of one batch."""

    indices: list[int]  # of its examples [B]
    nll: np.ndarray  # -log p of each target token, 0 where there is none, in nats, float64 [B, T]
    batch: Any  # its arrays


def token_losses(
    network: nn.Layer,
    criterion: nn.Layer,
    dataset: io.Dataset,
    lengths: np.ndarray,
    collate: Callable[[list[Any]], Any],
    batch_size: int,
) -> Iterator[TokenLosses]:
    """Compute the loss of every target token, batched by length.

    Args:
        network: scores the batches that `collate` makes of examples.
        criterion: the network's loss, which keeps `token_nll` [B, T].
        lengths: sort keys of the dataset's examples [N] or [N, 2].
    """
    from paddle_dialog.data.batching import as_tensors, run_criterion, run_network  # imports Paddle
    from paddle_dialog.decoding.paddle_steps import evaluation_mode

    with evaluation_mode(network):
        for indices in LengthBucketSampler(lengths, batch_size, shuffle=False).batches(0):
            batch = collate([dataset[index] for index in indices])
            tensors = as_tensors(batch)
            run_criterion(criterion, run_network(network, tensors), tensors)
            yield TokenLosses(indices, criterion.token_nll.numpy().astype(np.float64), batch)


def confusion_matrix(predicted: np.ndarray, gold: np.ndarray, classes: int) -> np.ndarray:
    """Count how often each class was taken for each other: int64 [K, K], true classes down.

    Args:
        predicted: classes [N].
        gold: true classes [N].
        classes: number K of them.
    """
    return np.bincount(gold * classes + predicted, minlength=classes**2).reshape(classes, classes)


def f1_score(confusion: np.ndarray) -> float:
    """Return the harmonic mean of precision and recall of class 1, 0 where neither has anything right."""
    right = int(confusion[1, 1])
    total = int(confusion[1].sum() + confusion[:, 1].sum())
    return 2 * right / total if total else 0.0


def calibration_error(probabilities: np.ndarray, gold: np.ndarray) -> float:
    """Return how far the probability of the likeliest class is from the share of examples where it is right.

    The expected calibration error of Guo et al. (2017), "On Calibration of Modern Neural Networks", equation 3: over
    `CALIBRATION_BINS` bins of equal width, ((m - 1) / M, m / M], the mean of |accuracy - mean confidence| weighted by
    the examples in each.

    Args:
        probabilities: of the classes of each example [N, K].
        gold: true classes [N].
    """
    confidence = probabilities.max(axis=1)  # [N]
    right = probabilities.argmax(axis=1) == gold  # [N]
    bins = np.maximum(np.ceil(confidence * CALIBRATION_BINS).astype(int) - 1, 0)  # [N]
    # [M], times the bin's size
    gaps = np.bincount(bins, weights=right - confidence, minlength=CALIBRATION_BINS)
    return float(np.abs(gaps).sum() / len(gold))


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
        """Return what one batch adds, as scalars that stay on the device.

        Args:
            criterion: the loss, just called on this batch.
            outputs: of the network.
            batch: its tensors.
        """

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
        if not has_paddlenlp():
            return token_perplexity(nll, tokens)
        from paddlenlp.metrics import Perplexity as Metric  # importing it takes seconds

        metric = Metric()
        with np.errstate(over="ignore"):
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
