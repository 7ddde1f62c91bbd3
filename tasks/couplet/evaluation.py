"""All metrics of the couplet task on one file of pairs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import paddle

from paddle_dialog.data.batching import LengthBucketSampler
from paddle_dialog.errors import UserError
from paddle_dialog.metrics.perplexity import token_perplexity
from paddle_dialog.text.characters import is_hanzi
from paddle_dialog.training.losses import SequenceCrossEntropy
from tasks.couplet.data.couplets import Couplet, limit_length, read_couplets
from tasks.couplet.data.dataset import CoupletDataset, collate
from tasks.couplet.metrics import couplet_scores

if TYPE_CHECKING:
    from tasks.couplet.prediction import CoupletPredictor, Prediction


@dataclass(frozen=True)
class Likelihood:
    """How well a model predicts the references.

    Args:
        perplexity: exp of the mean over all tokens, punctuation and end token included.
        perplexity_hanzi: the same over Chinese characters alone.
        unknown_rate: share of target characters outside the vocabulary.
    """

    perplexity: float
    perplexity_hanzi: float
    unknown_rate: float


def evaluate(predictor: CoupletPredictor, source: str, predictions: Path | None) -> dict[str, Any]:
    """Measure a model on one source of couplets.

    Args:
        predictor: the model with its decoding settings.
        source: as for `read_couplets`.
        predictions: where the hypotheses are written, one JSON record a line with its `reference`.

    Returns:
        The metrics by name; `decoding` describes the search, `skipped` counts the pairs that were too long for the
        model.

    Raises:
        UserError: the source cannot be used, or the hypotheses cannot be written, which is checked first.
    """
    if predictions is not None:
        _check_writable(predictions)
    pairs, report = limit_length(read_couplets(source), predictor.longest_line)
    likelihood = measure_likelihood(predictor, pairs)
    answers = predictor.predict([pair.first for pair in pairs])
    if predictions is not None:
        _write(predictions, pairs, answers)
    hypotheses = [candidates[0].text if candidates else "" for candidates in answers]
    scores = couplet_scores([p.first for p in pairs], hypotheses, [p.second for p in pairs])
    return {
        "n": len(pairs),
        "skipped": report.skipped,
        "perplexity": likelihood.perplexity,
        "perplexity_hanzi": likelihood.perplexity_hanzi,
        "unknown_rate": likelihood.unknown_rate,
        "bleu": scores.bleu,
        "form": scores.form,
        "decoding": predictor.decoding_summary(),
    }


def measure_likelihood(predictor: CoupletPredictor, pairs: Sequence[Couplet]) -> Likelihood:
    """Run the model over the true 下联, batched by length."""
    vocabulary, network = predictor.vocabulary, predictor.network
    dataset = CoupletDataset(list(pairs), vocabulary)
    hanzi = np.array([is_hanzi(token) for token in vocabulary.tokens])  # [V]
    # An unknown character is one that was too rare in training, and those are hanzi.
    hanzi[vocabulary.unk_id] = True
    criterion = SequenceCrossEntropy()
    network.eval()
    nll = np.zeros(2)  # all tokens, hanzi
    counts = np.zeros(2)
    unknown = 0
    for batch in LengthBucketSampler(dataset.lengths, predictor.config.data.batch_size, shuffle=False):
        arrays = collate([dataset[index] for index in batch])
        source, lengths, target, label, mask = (paddle.to_tensor(array) for array in arrays)
        with paddle.no_grad():
            criterion(network(source, lengths, target), label, mask)
        token_nll = criterion.token_nll.numpy().astype(np.float64)  # [B, T]
        for kind, real in enumerate((arrays[4], arrays[4] * hanzi[arrays[3]])):
            nll[kind] += (token_nll * real).sum()
            counts[kind] += real.sum()
        unknown += int((arrays[3] == vocabulary.unk_id).sum())
    return Likelihood(
        token_perplexity(nll[0], int(counts[0])),
        token_perplexity(nll[1], int(counts[1])),
        unknown / counts[0],
    )


def _check_writable(path: Path) -> None:
    """Open the file without changing what it holds."""
    try:
        path.open("a", encoding="utf-8").close()
    except OSError as error:
        raise UserError(f"{path}: cannot write the predictions ({error.strerror})") from error


def _write(path: Path, pairs: Sequence[Couplet], answers: Sequence[Sequence[Prediction]]) -> None:
    try:
        with path.open("w", encoding="utf-8") as file:
            for pair, candidates in zip(pairs, answers, strict=True):
                record = {
                    "first": pair.first,
                    "reference": pair.second,
                    "predictions": [candidate.as_dict() for candidate in candidates],
                }
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
    except OSError as error:
        raise UserError(f"{path}: cannot write the predictions ({error.strerror})") from error
