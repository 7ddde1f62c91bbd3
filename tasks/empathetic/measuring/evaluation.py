"""All metrics of the empathetic task on one file of dialogues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from paddle_dialog.data.records import Record, check_writable, write_records
from paddle_dialog.metrics.likelihood import token_losses
from paddle_dialog.metrics.perplexity import perplexity_per_example, token_perplexity
from paddle_dialog.text.vocabulary import Vocabulary
from tasks.empathetic.answering.answer import Answer
from tasks.empathetic.answering.prediction import EmpatheticPredictor
from tasks.empathetic.data.dataset import DialogueDataset, collate, longest_target
from tasks.empathetic.data.language import Language
from tasks.empathetic.data.sources import Dialogue, read_configured
from tasks.empathetic.measuring.metrics import calibration_error, emotion_accuracy, reply_metrics
from tasks.empathetic.network.criterion import EmpatheticLoss


@dataclass(frozen=True)
class ReplyLikelihood:
    """How well a model predicts the replies.

    Args:
        nll: sum of -log p over the words and the end of each reply, in nats [N].
        tokens: how many these are [N].
        units: how many units of the language they are, the end one of them [N]: the same, or characters.
        unknown_rate: share of them outside the vocabulary, copied or not.
    """

    nll: np.ndarray
    tokens: np.ndarray
    units: np.ndarray
    unknown_rate: float


def evaluate(predictor: EmpatheticPredictor, source: str, predictions: Path | None) -> Record:
    """Measure a model on one source of dialogues.

    Args:
        predictor: the model with its decoding settings.
        source: as for `read_configured`.
        predictions: where the replies are written, one JSON record a line with the annotated emotion as
            `gold_emotion` and the true reply as `reference`.

    Returns:
        The metrics by name, those of probability per unit of the language; `decoding`
        describes the search. `emotion_accuracy` is that of the
        likeliest emotion, clear or not, and `calibration_error` that of its probability; None where
        nothing is annotated.

    Raises:
        UserError: the source cannot be used, or the replies cannot be written, which is checked first.
    """
    if predictions is not None:
        check_writable(predictions)
    language = predictor.language
    dialogues = read_configured(predictor.config, source)
    gold = [dialogue.emotion for dialogue in dialogues]
    told = gold if predictor.needs_emotion else None
    answers = predictor.answer([dialogue.context for dialogue in dialogues], emotions=told)
    if predictions is not None:
        write_records(
            predictions,
            (
                {**answer.as_dict(), "gold_emotion": dialogue.emotion, "reference": dialogue.target}
                for dialogue, answer in zip(dialogues, answers, strict=True)
            ),
        )
    replied = [
        row for row, dialogue in enumerate(dialogues) if dialogue.target
    ]  # the others have an emotion alone
    return {
        "n": len(dialogues),
        **_likelihood_metrics(predictor, [dialogues[row] for row in replied]),
        "emotion_accuracy": emotion_accuracy([answer.predicted_emotion for answer in answers], gold),
        "calibration_error": calibration_error(
            np.stack([answer.probabilities for answer in answers]), gold, predictor.emotions
        ),
        **_reply_metrics(
            language, [answers[row] for row in replied], [dialogues[row].target for row in replied]
        ),
        "decoding": predictor.decoding_summary(),
    }


def _likelihood_metrics(predictor: EmpatheticPredictor, dialogues: Sequence[Dialogue]) -> dict[str, float]:
    if not dialogues:
        return {}
    likelihood = measure_likelihood(predictor, dialogues)
    return {
        "perplexity": token_perplexity(float(likelihood.nll.sum()), int(likelihood.units.sum())),
        "perplexity_per_example": perplexity_per_example(likelihood.nll.tolist(), likelihood.units.tolist()),
        "unknown_rate": likelihood.unknown_rate,
    }


def _reply_metrics(
    language: Language, answers: Sequence[Answer], references: Sequence[str]
) -> dict[str, float]:
    if not answers:
        return {}
    hypotheses = [answer.predictions[0].tokens if answer.predictions else () for answer in answers]
    return reply_metrics(
        [language.units(tokens) for tokens in hypotheses],
        [language.units(language.tokens_of(reference)) for reference in references],
        language,
    )


def measure_likelihood(predictor: EmpatheticPredictor, dialogues: Sequence[Dialogue]) -> ReplyLikelihood:
    """Run the model over the true replies, batched by length."""
    config = predictor.config
    longest = longest_target(config)
    dataset = DialogueDataset(
        dialogues, config, predictor.vocabulary, longest, encoder=predictor.encoder.fresh()
    )
    nll, tokens = np.zeros(len(dataset)), np.zeros(len(dataset), dtype=np.int64)  # [N] each
    unknown, size = 0, len(predictor.vocabulary)
    for losses in token_losses(
        predictor.network, EmpatheticLoss(), dataset, dataset.lengths, collate, config.data.batch_size
    ):
        label, mask = losses.batch.label, losses.batch.mask  # [B, T] each
        nll[losses.indices] = losses.nll.sum(-1)
        tokens[losses.indices] = mask.sum(-1)
        unknown += int(((label == Vocabulary.unk_id) | (label >= size)).sum())
    language = predictor.language
    replies = [language.tokens_of(dialogue.target)[:longest] for dialogue in dialogues]
    units = np.array([len(language.units(reply)) + 1 for reply in replies])  # [N]
    return ReplyLikelihood(nll, tokens, units, unknown / int(tokens.sum()))
