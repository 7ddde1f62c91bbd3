"""All metrics of the couplet task on one file of pairs, and pictures of what a model attends to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import paddle
from paddle import io

from paddle_dialog.data.records import Record, check_writable, write_records
from paddle_dialog.decoding.interface import evaluation_mode
from paddle_dialog.figures.charts import draw_heat_map
from paddle_dialog.figures.folder import FigureFolder
from paddle_dialog.metrics.likelihood import token_losses
from paddle_dialog.metrics.text import corpus_bleu, distinct_n, token_perplexity
from paddle_dialog.text.characters import is_hanzi, normalise_line
from paddle_dialog.text.vocabulary import Vocabulary
from paddle_dialog.training.losses import SequenceCrossEntropy
from tasks.couplet.couplets import Couplet, limit_length, read_couplets
from tasks.couplet.dataset import CoupletDataset, Example, collate
from tasks.couplet.direction import TO_FIRST, TO_SECOND, Direction, knows_marks
from tasks.couplet.form import form_report
from tasks.couplet.prediction import CoupletPredictor

MAPPED_EXAMPLES = 4


@dataclass(frozen=True)
class CoupletScores:
    """Scores of a set of second lines.

    Args:
        form: the mean over pairs of each field of `Form` (for `tone_opposed` the mean of the shares),
            and `distinct_1`, `distinct_2` over characters, punctuation included; all in 0–1.
        bleu: corpus BLEU over characters, 0–100 as sacrebleu reports it.
    """

    form: dict[str, float]
    bleu: float


def couplet_scores(
    firsts: Sequence[str], hypotheses: Sequence[str], references: Sequence[str]
) -> CoupletScores:
    """Score one hypothesis for each first line.

    Args:
        firsts: 上联.
        hypotheses: the 下联 to score.
        references: the human 下联.

    Raises:
        ValueError: there is no pair, or the three differ in length.
    """
    if not len(firsts) == len(hypotheses) == len(references):
        raise ValueError(
            f"{len(firsts)} first lines, {len(hypotheses)} hypotheses, {len(references)} references"
        )
    return CoupletScores(
        form=form_rates(firsts, hypotheses),
        bleu=corpus_bleu(
            [normalise_line(line) for line in hypotheses], [normalise_line(line) for line in references]
        ),
    )


def form_rates(firsts: Sequence[str], hypotheses: Sequence[str]) -> dict[str, float]:
    """Compute the scores that need no reference; see `CoupletScores.form`.

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
        predictor: the model.
        source: as for `read_couplets`.
        folder: takes the pictures.

    Raises:
        UserError: the source cannot be used, or the folder cannot be written.
    """
    pairs, _ = limit_length(read_couplets(source), predictor.longest_line)
    dataset = CoupletDataset(pairs[:MAPPED_EXAMPLES], predictor.vocabulary)
    network, decode = predictor.network, predictor.vocabulary.decode
    for index in range(len(dataset)):
        first, second = dataset[index]
        source_ids, lengths, target = (paddle.to_tensor(array) for array in collate([(first, second)])[:3])
        with paddle.no_grad(), evaluation_mode(network):
            weights = network.attention_weights(source_ids, lengths, target)[0].numpy()  # [T, S]
        image = draw_heat_map(weights, [*decode(second), "<eos>"], [*decode(first), "<eos>"])
        folder.add(f"attention_{index + 1}", image)
