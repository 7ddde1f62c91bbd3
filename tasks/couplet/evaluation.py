"""All metrics of the couplet task on one file of pairs, and pictures of what a model attends to.

The answers come first, on all cores: a process that has imported Paddle cannot be forked.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from paddle_dialog.data.files import Record, check_writable, write_records
from paddle_dialog.metrics import corpus_bleu, distinct_n, token_perplexity
from paddle_dialog.processes import answer_all
from paddle_dialog.tasks.couplet.couplets import Couplet, limit_length, read_couplets
from paddle_dialog.tasks.couplet.direction import TO_FIRST, TO_SECOND, Direction, knows_marks
from paddle_dialog.tasks.couplet.form import form_report
from paddle_dialog.tasks.couplet.prediction import CoupletPredictor
from paddle_dialog.text.characters import is_hanzi, normalise_line

TOGETHER = 8  # batches whose likelihood a process measures at once, each of pairs of like length


def form_rates(firsts: Sequence[str], hypotheses: Sequence[str]) -> dict[str, float]:
    """Score one 下联 for each 上联 without a reference.

    Returns:
        The mean over pairs of each field of `Form`, and `distinct_1`, `distinct_2` over characters, punctuation
        included; all in 0–1.
    """
    if not firsts:
        raise ValueError("no pair to score")
    reports = [form_report(first, second).as_dict() for first, second in zip(firsts, hypotheses, strict=True)]
    rates = {name: sum(float(report[name]) for report in reports) / len(reports) for name in reports[0]}
    characters = [normalise_line(line) for line in hypotheses]
    return rates | {f"distinct_{n}": distinct_n(characters, n) for n in (1, 2)}


def evaluate(predictor: CoupletPredictor, source: str, predictions: Path | None) -> Record:
    """Measure a model on one source of couplets.

    Args:
        predictions: where the hypotheses are written, one JSON record a line with its `reference`.

    Returns:
        The metrics by name, those of `likelihood_metrics` among them; `decoding` describes the search.
    """
    if predictions is not None:
        check_writable(predictions)
    pairs, _ = limit_length(read_couplets(source), predictor.longest_line)
    answers = answer_all(predictor.predict, [pair.first for pair in pairs], predictor.batch_size)
    if predictions is not None:
        shown = ([candidate.as_dict() for candidate in candidates] for candidates in answers)
        write_records(
            predictions,
            (
                {"first": pair.first, "reference": pair.second, "predictions": own}
                for pair, own in zip(pairs, shown, strict=True)
            ),
        )
    hypotheses = [candidates[0].text if candidates else "" for candidates in answers]
    texts = [[normalise_line(line) for line in side] for side in (hypotheses, [p.second for p in pairs])]
    return {
        **likelihood_metrics(predictor, source),
        "bleu": corpus_bleu(*texts),
        "form": form_rates([pair.first for pair in pairs], hypotheses),
        "decoding": predictor.decoding_summary(),
    }


def likelihood_metrics(predictor: CoupletPredictor, source: str) -> Record:
    """Measure how well a model predicts the lines of one source of couplets.

    Returns:
        The metrics by name. `perplexity` is exp of the mean over all tokens of the 下联, punctuation and end token
        included, `perplexity_hanzi` that over Chinese characters alone, `perplexity_first` that of the 上联 given the
        下联, where the model was trained for it; `unknown_rate` is the share of characters outside the vocabulary;
        `skipped` counts the pairs that were too long for the model.
    """
    read = read_couplets(source)
    pairs, _ = limit_length(read, predictor.longest_line)
    nll, tokens, hanzi_nll, hanzi, unknown = _sums(predictor, pairs, TO_SECOND)
    mirrored = {}
    if knows_marks(predictor.vocabulary):
        first_nll, first_tokens, *_ = _sums(predictor, pairs, TO_FIRST)
        mirrored["perplexity_first"] = token_perplexity(first_nll, int(first_tokens))
    return {
        "n": len(pairs),
        "skipped": len(read) - len(pairs),
        "perplexity": token_perplexity(nll, int(tokens)),
        "perplexity_hanzi": token_perplexity(hanzi_nll, int(hanzi)),
        **mirrored,
        "unknown_rate": unknown / tokens,
    }


def _sums(predictor: CoupletPredictor, pairs: Sequence[Couplet], direction: Direction) -> list[float]:
    """Return the -log p of all tokens that answer the other lines, their number, both of hanzi, and unknown ones."""

    def measure(part: Sequence[Couplet]) -> Sequence[np.ndarray]:
        return _sums_of_pairs(predictor, part, direction)

    rows = answer_all(measure, pairs, TOGETHER * predictor.config.data.batch_size)
    sums: list[float] = np.sum(rows, axis=0).tolist()
    return sums


def _sums_of_pairs(
    predictor: CoupletPredictor, pairs: Sequence[Couplet], direction: Direction
) -> Sequence[np.ndarray]:
    """Return the five sums of `_sums` for each pair."""
    from paddle_dialog.metrics import token_losses
    from paddle_dialog.tasks.couplet.direction import collate
    from paddle_dialog.training.losses import SequenceCrossEntropy

    vocabulary = predictor.vocabulary
    lines = [direction.pair(pair.first, pair.second) for pair in pairs]
    examples = [
        (np.array(direction.source(vocabulary, given)), np.array(vocabulary.encode(written)))
        for given, written in lines
    ]
    lengths = np.array([[len(source), len(target)] for source, target in examples])  # [N, 2]
    is_chinese = np.array([is_hanzi(token) for token in vocabulary.tokens])  # [V]
    # An unknown character is one that was too rare in training, and those are hanzi.
    is_chinese[vocabulary.unk_id] = True
    sums = np.zeros([len(pairs), 5])
    network, size = predictor.network, predictor.config.data.batch_size
    for losses in token_losses(network, SequenceCrossEntropy(), examples, lengths, collate, size):
        label, mask = losses.batch.label, losses.batch.mask  # [B, T] each
        hanzi = mask * is_chinese[label]
        unknown = mask * (label == vocabulary.unk_id)
        parts = (losses.nll * mask, mask, losses.nll * hanzi, hanzi, unknown)
        sums[losses.indices] = np.stack([part.sum(-1) for part in parts], axis=-1)
    return list(sums)
