"""All metrics of the couplet task on one file of pairs, and pictures of what a model attends to.

The answers come first, on all cores: a process that has imported Paddle cannot be forked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from paddle_dialog.data.records import Record, check_writable, write_records
from paddle_dialog.decoding.interface import evaluation_mode
from paddle_dialog.figures.charts import draw_heat_map
from paddle_dialog.figures.folder import FigureFolder
from paddle_dialog.metrics.text import corpus_bleu, distinct_n, token_perplexity
from paddle_dialog.processes import answer_all
from paddle_dialog.tasks.couplet.couplets import Couplet, limit_length, read_couplets
from paddle_dialog.tasks.couplet.direction import TO_FIRST, TO_SECOND, Direction, knows_marks
from paddle_dialog.tasks.couplet.form import form_report
from paddle_dialog.tasks.couplet.prediction import CoupletPrediction, CoupletPredictor
from paddle_dialog.text.characters import is_hanzi, normalise_line

MAPPED_EXAMPLES = 4


def form_rates(firsts: Sequence[str], hypotheses: Sequence[str]) -> dict[str, float]:
    """Score one 下联 for each 上联 without a reference.

    Returns:
        The mean over pairs of each field of `Form`, and `distinct_1`, `distinct_2` over characters, punctuation
        included; all in 0–1.

    Raises:
        ValueError: there is no pair, or the numbers of lines differ.
    """
    if not firsts:
        raise ValueError("no pair to score")
    reports = [form_report(first, second).as_dict() for first, second in zip(firsts, hypotheses, strict=True)]
    rates = {name: sum(float(report[name]) for report in reports) / len(reports) for name in reports[0]}
    characters = [normalise_line(line) for line in hypotheses]
    return rates | {f"distinct_{n}": distinct_n(characters, n) for n in (1, 2)}


@dataclass(frozen=True)
class CoupletLikelihood:
    """How well a model predicts the references."""

    perplexity: float  # exp of the mean over all tokens, punctuation and end token included
    perplexity_hanzi: float  # the same over Chinese characters alone
    unknown_rate: float  # share of target characters outside the vocabulary


def evaluate(predictor: CoupletPredictor, source: str, predictions: Path | None) -> Record:
    """Measure a model on one source of couplets.

    Args:
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
    answers = answer_all(predictor.predict, [pair.first for pair in pairs], predictor.batch_size)
    likelihood = measure_likelihood(predictor, pairs)
    if predictions is not None:
        both = zip(pairs, answers, strict=True)
        write_records(predictions, (_record(pair, candidates) for pair, candidates in both))
    hypotheses = [candidates[0].text if candidates else "" for candidates in answers]
    texts = [[normalise_line(line) for line in side] for side in (hypotheses, [p.second for p in pairs])]
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
        "bleu": corpus_bleu(*texts),
        "form": form_rates([pair.first for pair in pairs], hypotheses),
        "decoding": predictor.decoding_summary(),
    }


def _record(pair: Couplet, candidates: Sequence[CoupletPrediction]) -> Record:
    predictions = [candidate.as_dict() for candidate in candidates]
    return {"first": pair.first, "reference": pair.second, "predictions": predictions}


def measure_likelihood(
    predictor: CoupletPredictor, pairs: Sequence[Couplet], direction: Direction = TO_SECOND
) -> CoupletLikelihood:
    """Run the model over the true lines that answer the others, batched by length."""
    from paddle_dialog.metrics.likelihood import token_losses
    from paddle_dialog.tasks.couplet.dataset import collate
    from paddle_dialog.training.losses import SequenceCrossEntropy

    vocabulary = predictor.vocabulary
    lines = [direction.pair(pair.first, pair.second) for pair in pairs]
    examples = [
        (np.array(direction.source(vocabulary, given)), np.array(vocabulary.encode(written)))
        for given, written in lines
    ]
    lengths = np.array([[len(source), len(target)] for source, target in examples])  # [N, 2]
    hanzi = np.array([is_hanzi(token) for token in vocabulary.tokens])  # [V]
    # An unknown character is one that was too rare in training, and those are hanzi.
    hanzi[vocabulary.unk_id] = True
    nll = np.zeros(2)  # all tokens, hanzi
    counts = np.zeros(2)
    unknown = 0
    network, size = predictor.network, predictor.config.data.batch_size
    for losses in token_losses(network, SequenceCrossEntropy(), examples, lengths, collate, size):
        label, mask = losses.batch.label, losses.batch.mask  # [B, T] each
        for kind, real in enumerate((mask, mask * hanzi[label])):
            nll[kind] += (losses.nll * real).sum()
            counts[kind] += real.sum()
        unknown += int((label == vocabulary.unk_id).sum())
    return CoupletLikelihood(
        token_perplexity(nll[0], int(counts[0])),
        token_perplexity(nll[1], int(counts[1])),
        unknown / counts[0],
    )


def write_figures(predictor: CoupletPredictor, source: str, folder: FigureFolder) -> None:
    """Draw the attention of each character of the first true 下联 over the 上联.

    Args:
        source: as for `read_couplets`.

    Raises:
        UserError: the source cannot be used, or the folder cannot be written.
    """
    import paddle

    from paddle_dialog.tasks.couplet.dataset import CoupletDataset, collate

    pairs, _ = limit_length(read_couplets(source), predictor.longest_line)
    dataset = CoupletDataset(pairs[:MAPPED_EXAMPLES], predictor.vocabulary)
    network, decode = predictor.network, predictor.vocabulary.decode
    for index in range(len(dataset) if hasattr(network, "attention_weights") else 0):
        first, second = dataset[index]
        source_ids, lengths, target = (paddle.to_tensor(array) for array in collate([(first, second)])[:3])
        with paddle.no_grad(), evaluation_mode(network):
            weights = network.attention_weights(source_ids, lengths, target)[0].numpy()  # [T, S]
        image = draw_heat_map(weights, [*decode(second), "<eos>"], [*decode(first), "<eos>"])
        folder.add(f"attention_{index + 1}", image)
