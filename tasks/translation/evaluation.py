"""All metrics of a translator on one file of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from paddle_dialog.data.files import Record, check_writable, write_records
from paddle_dialog.metrics import corpus_bleu, corpus_chrf, token_perplexity
from paddle_dialog.processes import answer_all
from paddle_dialog.tasks.translation.data import Pair, PairDataset, collate, limit_length, read_pairs
from paddle_dialog.tasks.translation.prediction import TranslationPredictor

TOGETHER = 4  # batches that a process answers


def evaluate(predictor: TranslationPredictor, source: str, predictions: Path | None) -> Record:
    """Measure a model on one source of pairs.

    Args:
        source: as for `read_pairs`.
        predictions: where the hypotheses are written, one JSON record a line with its `reference`.

    Returns:
        The metrics by name; `copying` holds those of the source itself as a translation.
    """
    if predictions is not None:
        check_writable(predictions)
    pairs, _ = _fitting_pairs(predictor, source)

    def answer(part: Sequence[Pair]) -> list[Record]:
        return list(predictor.predict_records([predictor.text(pair.source) for pair in part]))

    records = answer_all(answer, pairs, TOGETHER * predictor.batch_size)
    if predictions is not None:
        references = (predictor.text(pair.target) for pair in pairs)
        write_records(predictions, [r | {"reference": t} for r, t in zip(records, references, strict=True)])
    unit = predictor.config.data.tokens

    def scores(hypotheses: Sequence[Sequence[str]]) -> dict[str, float]:
        references = [pair.target for pair in pairs]
        texts = ([predictor.text(tokens) for tokens in side] for side in (hypotheses, references))
        return {"bleu": corpus_bleu(hypotheses, references), "chrf": corpus_chrf(*texts)}

    texts = [record["predictions"][0]["text"] for record in records]
    return {
        **likelihood_metrics(predictor, source),
        **scores(texts if unit == "characters" else [text.split() for text in texts]),
        "copying": scores([pair.source for pair in pairs]),
        "decoding": predictor.decoding_summary(),
    }


def likelihood_metrics(predictor: TranslationPredictor, source: str) -> Record:
    """Measure the perplexity per token of the true translations of one source, end tokens included."""
    pairs, report = _fitting_pairs(predictor, source)

    def measure(part: Sequence[Pair]) -> Sequence[np.ndarray]:
        return _sums_of_pairs(predictor, part)

    rows = answer_all(measure, pairs, TOGETHER * predictor.config.data.batch_size)
    nll, tokens = np.sum(rows, axis=0)
    return {"n": len(pairs), "pairs": report, "perplexity": token_perplexity(float(nll), int(tokens))}


def _sums_of_pairs(predictor: TranslationPredictor, pairs: Sequence[Pair]) -> Sequence[np.ndarray]:
    """Return for each pair the -log p of its translation, and the number of tokens."""
    from paddle_dialog.metrics import token_losses
    from paddle_dialog.training.losses import PointerCrossEntropy

    dataset, criterion = PairDataset(list(pairs), predictor.vocabulary), PointerCrossEntropy()
    sums, size = np.zeros([len(pairs), 2]), predictor.config.data.batch_size
    for losses in token_losses(predictor.network, criterion, dataset, dataset.lengths, collate, size):
        sums[losses.indices] = np.stack([losses.nll.sum(-1), losses.batch.mask.sum(-1)], axis=-1)
    return list(sums)


def _fitting_pairs(predictor: TranslationPredictor, source: str) -> tuple[list[Pair], str]:
    settings = predictor.config.data
    return limit_length(read_pairs(source, settings.tokens, settings.reverse), settings.max_length)
