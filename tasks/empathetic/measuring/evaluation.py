"""All metrics of the empathetic task on one file of dialogues."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import paddle

from paddle_dialog.data.batching import LengthBucketSampler
from paddle_dialog.decoding.search import evaluation_mode
from paddle_dialog.errors import UserError
from paddle_dialog.metrics.perplexity import perplexity_per_example, token_perplexity
from paddle_dialog.text.vocabulary import Vocabulary
from tasks.empathetic.data.dataset import DialogueDataset, collate, longest_target
from tasks.empathetic.data.encoding import tokens_of
from tasks.empathetic.data.sources import Dialogue, read_dialogues
from tasks.empathetic.measuring.metrics import calibration_error, emotion_accuracy, reply_metrics
from tasks.empathetic.network.criterion import EmpatheticLoss
from tasks.empathetic.selection.recall import recall_at_1
from tasks.empathetic.selection.vectors import SelectionModel, context_vectors, reply_vectors

if TYPE_CHECKING:
    from tasks.empathetic.answering.answer import Answer
    from tasks.empathetic.answering.prediction import EmpatheticPredictor


@dataclass(frozen=True)
class Likelihood:
    """How well a model predicts the replies.

    Args:
        nll: sum of -log p over the words and the end of each reply, in nats [N].
        tokens: how many these are [N].
        unknown_rate: share of them outside the vocabulary, copied or not.
    """

    nll: np.ndarray
    tokens: np.ndarray
    unknown_rate: float


def evaluate(predictor: EmpatheticPredictor, source: str, predictions: Path | None) -> dict[str, Any]:
    """Measure a model on one source of dialogues.

    Args:
        predictor: the model with its decoding settings.
        source: as for `read_dialogues`.
        predictions: where the replies are written, one JSON record a line with the annotated emotion as
            `gold_emotion` and the true reply as `reference`.

    Returns:
        The metrics by name; `decoding` describes the search. `emotion_accuracy` is that of the
        likeliest emotion, clear or not, and `calibration_error` that of its probability; None where
        nothing is annotated. `recall_at_1`, of a model that chooses replies, is None where the
        source has fewer than a hundred replies to choose among.

    Raises:
        UserError: the source cannot be used, or the replies cannot be written, which is checked first.
    """
    if predictions is not None:
        _check_writable(predictions)
    dialogues = read_dialogues(source)
    likelihood = measure_likelihood(predictor, dialogues)
    gold = [dialogue.emotion for dialogue in dialogues]
    told = gold if predictor.needs_emotion else None
    answers = predictor.answer([dialogue.context for dialogue in dialogues], emotions=told)
    if predictions is not None:
        _write(predictions, dialogues, answers)
    hypotheses = [answer.predictions[0].tokens if answer.predictions else () for answer in answers]
    return {
        "n": len(dialogues),
        "perplexity": token_perplexity(float(likelihood.nll.sum()), int(likelihood.tokens.sum())),
        "perplexity_per_example": perplexity_per_example(likelihood.nll.tolist(), likelihood.tokens.tolist()),
        "unknown_rate": likelihood.unknown_rate,
        "emotion_accuracy": emotion_accuracy([answer.predicted_emotion for answer in answers], gold),
        "calibration_error": calibration_error(np.stack([answer.probabilities for answer in answers]), gold),
        **_selection_metrics(predictor, dialogues, told),
        **reply_metrics(hypotheses, [tokens_of(dialogue.target) for dialogue in dialogues]),
        "decoding": predictor.decoding_summary(),
    }


def _selection_metrics(
    predictor: EmpatheticPredictor, dialogues: Sequence[Dialogue], told: Sequence[str | None] | None
) -> dict[str, float | None]:
    """Measure `recall_at_1` of the true reply among 100 by the cosine; nothing for a model without selection."""
    if not predictor.config.selection.size:
        return {}
    model, size = cast(SelectionModel, predictor.model), predictor.config.decoding.batch_size
    sources = [context.packed[0] for context in predictor.read([d.context for d in dialogues], told)]
    order = np.argsort([len(source) for source in sources], kind="stable")
    contexts = np.empty((len(sources), predictor.config.selection.size), dtype=np.float32)  # [N, K]
    for start in range(0, len(order), size):
        rows = order[start : start + size]
        contexts[rows] = context_vectors(model, [sources[row] for row in rows])
    texts = [tokens_of(dialogue.target) for dialogue in dialogues]
    replies = reply_vectors(model, predictor.vocabulary, texts)  # [N, K]
    return {"recall_at_1": recall_at_1(contexts, replies, texts, predictor.config.seed)}


def measure_likelihood(predictor: EmpatheticPredictor, dialogues: Sequence[Dialogue]) -> Likelihood:
    """Run the model over the true replies, batched by length."""
    config, network = predictor.config, predictor.network
    encoder = predictor.encoder.fresh()
    dataset = DialogueDataset(
        dialogues, config, predictor.vocabulary, longest_target(config), encoder=encoder
    )
    criterion = EmpatheticLoss()
    nll, tokens = np.zeros(len(dataset)), np.zeros(len(dataset), dtype=np.int64)  # [N] each
    unknown, size = 0, len(predictor.vocabulary)
    with paddle.no_grad(), evaluation_mode(network):
        for batch in LengthBucketSampler(dataset.lengths, config.data.batch_size, shuffle=False):
            arrays = collate([dataset[index] for index in batch])
            source, lengths, target, *labels = (paddle.to_tensor(array) for array in arrays)
            criterion(*network(source, lengths, target), *labels)
            nll[batch] = criterion.token_nll.numpy().astype(np.float64).sum(-1)
            tokens[batch] = arrays[-1].sum(-1)
            unknown += int(((arrays[-2] == Vocabulary.unk_id) | (arrays[-2] >= size)).sum())
    return Likelihood(nll, tokens, unknown / int(tokens.sum()))


def _check_writable(path: Path) -> None:
    """Open the file without changing what it holds."""
    try:
        path.open("a", encoding="utf-8").close()
    except OSError as error:
        raise UserError(f"{path}: cannot write the predictions ({error.strerror})") from error


def _write(path: Path, dialogues: Sequence[Dialogue], answers: Sequence[Answer]) -> None:
    try:
        with path.open("w", encoding="utf-8") as file:
            for dialogue, answer in zip(dialogues, answers, strict=True):
                record = {
                    **answer.as_dict(),
                    "gold_emotion": dialogue.emotion,
                    "reference": dialogue.target,
                }
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
    except OSError as error:
        raise UserError(f"{path}: cannot write the predictions ({error.strerror})") from error
