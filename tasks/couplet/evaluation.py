"""All metrics of the couplet task on one file of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from paddle import io

from paddle_dialog.data.records import Record, check_writable, write_records
from paddle_dialog.metrics.likelihood import token_losses
from paddle_dialog.metrics.perplexity import token_perplexity
from paddle_dialog.text.characters import is_hanzi
from paddle_dialog.text.vocabulary import Vocabulary
from paddle_dialog.training.losses import SequenceCrossEntropy
from tasks.couplet.data.couplets import Couplet, limit_length, read_couplets
from tasks.couplet.data.dataset import collate
from tasks.couplet.data.encoding import Example
from tasks.couplet.marks import knows_marks
from tasks.couplet.metrics import couplet_scores
from tasks.couplet.prediction import CoupletPredictor
from tasks.couplet.rules.direction import TO_FIRST, TO_SECOND, Direction


@dataclass(frozen=True)
class CoupletLikelihood:
    """How well a model predicts the references.

    Args:
        perplexity: exp of the mean over all tokens, punctuation and end token included.
        perplexity_hanzi: the same over Chinese characters alone.
        unknown_rate: share of target characters outside the vocabulary.
    """

    perplexity: float
    perplexity_hanzi: float
    unknown_rate: float


def evaluate(predictor: CoupletPredictor, source: str, predictions: Path | None) -> Record:
    """Measure a model on one source of couplets.

    Args:
        predictor: the model with its decoding settings.
        source: as for `read_couplets`.
        predictions: where the hypotheses are written, one JSON record a line with its `reference`.

    Returns:
        The metrics by name; `decoding` describes the search, `skipped` counts the pairs that were too long for the
        model, and `perplexity_first` is that of the 上联 given the 下联, where the model was trained for it.

    Raises:
        UserError: the source cannot be used, or the hypotheses cannot be written, which is checked first.
    """
    if predictions is not None:
        check_writable(predictions)
    pairs, report = limit_length(read_couplets(source), predictor.longest_line)
    likelihood = measure_likelihood(predictor, pairs)
    answers = predictor.predict([pair.first for pair in pairs])
    if predictions is not None:
        write_records(
            predictions,
            (
                {
                    "first": pair.first,
                    "reference": pair.second,
                    "predictions": [candidate.as_dict() for candidate in candidates],
                }
                for pair, candidates in zip(pairs, answers, strict=True)
            ),
        )
    hypotheses = [candidates[0].text if candidates else "" for candidates in answers]
    scores = couplet_scores([p.first for p in pairs], hypotheses, [p.second for p in pairs])
    mirrored = {}
    if knows_marks(predictor.vocabulary):
        mirrored["perplexity_first"] = measure_likelihood(predictor, pairs, TO_FIRST).perplexity
    return {
        "n": len(pairs),
        "skipped": report.skipped,
        "perplexity": likelihood.perplexity,
        "perplexity_hanzi": likelihood.perplexity_hanzi,
        **mirrored,
        "unknown_rate": likelihood.unknown_rate,
        "bleu": scores.bleu,
        "form": scores.form,
        "decoding": predictor.decoding_summary(),
    }


class _Questions(io.Dataset):
    """The lines of couplets that a model is asked for, as ids.

    Args:
        pairs: the couplets.
        vocabulary: of the model.
        direction: which line is asked for.
    """

    def __init__(self, pairs: Sequence[Couplet], vocabulary: Vocabulary, direction: Direction) -> None:
        super().__init__()
        lines = [direction.pair(pair.first, pair.second) for pair in pairs]
        self._examples = [
            (np.array(direction.source(vocabulary, given)), np.array(vocabulary.encode(written)))
            for given, written in lines
        ]

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of source and target of each example, [N, 2]."""
        return np.array([[len(source), len(target)] for source, target in self._examples])

    def __len__(self) -> int:
        return len(self._examples)

    def __getitem__(self, index: int) -> Example:
        return self._examples[index]


def measure_likelihood(
    predictor: CoupletPredictor, pairs: Sequence[Couplet], direction: Direction = TO_SECOND
) -> CoupletLikelihood:
    """Run the model over the true lines that answer the others, batched by length."""
    vocabulary = predictor.vocabulary
    dataset = _Questions(pairs, vocabulary, direction)
    hanzi = np.array([is_hanzi(token) for token in vocabulary.tokens])  # [V]
    # An unknown character is one that was too rare in training, and those are hanzi.
    hanzi[vocabulary.unk_id] = True
    nll = np.zeros(2)  # all tokens, hanzi
    counts = np.zeros(2)
    unknown = 0
    for losses in token_losses(
        predictor.network,
        SequenceCrossEntropy(),
        dataset,
        dataset.lengths,
        collate,
        predictor.config.data.batch_size,
    ):
        label, mask = losses.labels  # [B, T] each
        for kind, real in enumerate((mask, mask * hanzi[label])):
            nll[kind] += (losses.nll * real).sum()
            counts[kind] += real.sum()
        unknown += int((label == vocabulary.unk_id).sum())
    return CoupletLikelihood(
        token_perplexity(nll[0], int(counts[0])),
        token_perplexity(nll[1], int(counts[1])),
        unknown / counts[0],
    )
