"""All metrics of the empathetic task on one file of dialogues.

The answers come first, on all cores: a process that has imported Paddle cannot be forked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from paddle_dialog.data.records import Record, check_writable, write_records
from paddle_dialog.metrics import classification
from paddle_dialog.metrics.text import corpus_bleu, distinct_n, perplexity_per_example, token_perplexity
from paddle_dialog.processes import answer_all
from paddle_dialog.tasks.empathetic.answer import Answer
from paddle_dialog.tasks.empathetic.data.emotions import EMOTIONS, emotion_id
from paddle_dialog.tasks.empathetic.data.language import ENGLISH, Language
from paddle_dialog.tasks.empathetic.data.sources import Dialogue, read_configured
from paddle_dialog.tasks.empathetic.prediction import EmpatheticPredictor
from paddle_dialog.text.vocabulary import Vocabulary

TOGETHER = 4  # batches that a process answers, each of contexts of like length


@dataclass(frozen=True)
class ReplyLikelihood:
    """How well a model predicts the replies."""

    nll: np.ndarray  # sum of -log p over the words and the end of each reply, in nats [N]
    tokens: np.ndarray  # how many these are [N]
    unknown: np.ndarray  # how many of these are outside the vocabulary, copied or not [N]
    # How many units of the language they are, the end one of them [N]: the same, or characters.
    units: np.ndarray


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
    dialogues = read_configured(predictor.config, source)

    def answer(part: Sequence[Dialogue]) -> list[Answer]:
        return predictor.answer([dialogue.context for dialogue in part], emotions=_told(predictor, part))

    answers = answer_all(answer, dialogues, TOGETHER * predictor.config.decoding.batch_size)
    if predictions is not None:
        write_records(
            predictions,
            (
                {**answer.as_dict(), "gold_emotion": dialogue.emotion, "reference": dialogue.target}
                for dialogue, answer in zip(dialogues, answers, strict=True)
            ),
        )
    # The others have an emotion alone.
    replied = [row for row, dialogue in enumerate(dialogues) if dialogue.target]
    return {
        **_predicted_metrics(predictor, dialogues, [answer.probabilities for answer in answers]),
        **_reply_metrics(
            predictor.language, [answers[row] for row in replied], [dialogues[row].target for row in replied]
        ),
        "decoding": predictor.decoding_summary(),
    }


def likelihood_metrics(predictor: EmpatheticPredictor, source: str) -> Record:
    """Measure how well a model predicts the emotions and the replies of one source.

    Returns:
        The metrics of `evaluate` that need no reply written.

    Raises:
        UserError: the source cannot be used.
    """
    dialogues = read_configured(predictor.config, source)

    def understand(part: Sequence[Dialogue]) -> list[np.ndarray]:
        return predictor.predict_emotions([dialogue.context for dialogue in part], _told(predictor, part))

    found = answer_all(understand, dialogues, TOGETHER * predictor.config.decoding.batch_size)
    return _predicted_metrics(predictor, dialogues, found)


def _told(predictor: EmpatheticPredictor, dialogues: Sequence[Dialogue]) -> list[str | None] | None:
    """Return the annotated emotions for a model that is told them, and None for one that predicts them."""
    return [dialogue.emotion for dialogue in dialogues] if predictor.needs_emotion else None


def _predicted_metrics(
    predictor: EmpatheticPredictor, dialogues: Sequence[Dialogue], probabilities: Sequence[np.ndarray]
) -> Record:
    """Score the probabilities [C] of each dialogue's emotions, and those of the true replies."""
    gold = [dialogue.emotion for dialogue in dialogues]
    predicted = [predictor.emotions[int(one.argmax())] for one in probabilities]
    return {
        "n": len(dialogues),
        **_likelihood_metrics(predictor, [dialogue for dialogue in dialogues if dialogue.target]),
        "emotion_accuracy": emotion_accuracy(predicted, gold),
        "calibration_error": calibration_error(np.stack(probabilities), gold, predictor.emotions),
    }


def _likelihood_metrics(predictor: EmpatheticPredictor, dialogues: Sequence[Dialogue]) -> dict[str, float]:
    if not dialogues:
        return {}
    likelihood = measure_likelihood(predictor, dialogues)
    return {
        "perplexity": token_perplexity(float(likelihood.nll.sum()), int(likelihood.units.sum())),
        "perplexity_per_example": perplexity_per_example(likelihood.nll.tolist(), likelihood.units.tolist()),
        "unknown_rate": float(likelihood.unknown.sum() / likelihood.tokens.sum()),
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
    """Run the model over the true replies, batched by length, on all cores."""

    def measure(part: Sequence[Dialogue]) -> Sequence[np.ndarray]:
        return _sums_of_replies(predictor, part)

    rows = answer_all(measure, dialogues, TOGETHER * predictor.config.data.batch_size)
    return ReplyLikelihood(*np.stack(rows, axis=1))


def _sums_of_replies(predictor: EmpatheticPredictor, dialogues: Sequence[Dialogue]) -> Sequence[np.ndarray]:
    """Return the numbers of `ReplyLikelihood` for each reply."""
    from paddle_dialog.metrics.likelihood import token_losses
    from paddle_dialog.tasks.empathetic.data.dataset import DialogueDataset, collate, longest_target
    from paddle_dialog.tasks.empathetic.network.loss import EmpatheticLoss

    config, language = predictor.config, predictor.language
    longest, size = longest_target(config), len(predictor.vocabulary)
    dataset = DialogueDataset(
        dialogues, config, predictor.vocabulary, longest, encoder=predictor.encoder.fresh()
    )
    replies = [language.tokens_of(dialogue.target)[:longest] for dialogue in dialogues]
    sums = np.zeros([len(dialogues), 4])
    sums[:, -1] = [len(language.units(reply)) + 1 for reply in replies]
    for losses in token_losses(
        predictor.network, EmpatheticLoss(), dataset, dataset.lengths, collate, config.data.batch_size
    ):
        label, mask = losses.batch.label, losses.batch.mask  # [B, T] each
        unknown = (label == Vocabulary.unk_id) | (label >= size)
        parts = (losses.nll, mask, unknown)
        sums[losses.indices, :3] = np.stack([part.sum(-1) for part in parts], axis=-1)
    return list(sums)


OPENINGS = 10  # the commonest ones


def reply_metrics(
    hypotheses: Sequence[Sequence[str]], references: Sequence[Sequence[str]], language: Language = ENGLISH
) -> dict[str, float]:
    """Score generated replies.

    Args:
        hypotheses: units of the best reply to each context.
        references: units of the true reply to each context.
        language: of them.

    Returns:
        `bleu` (0-100), `distinct_1`, `distinct_2`, `unique_replies`, `stock_replies`, `repeated_4grams`
        (all 0-1) and `mean_length` (units a reply); in Chinese also `common_openings` (0-1).

    Raises:
        ValueError: there is no reply, or the numbers differ.
    """
    openings = {}
    if language.opening:
        openings["common_openings"] = common_openings(hypotheses, language.opening)
    return {
        "bleu": corpus_bleu(hypotheses, references),
        "distinct_1": distinct_n(hypotheses, 1),
        "distinct_2": distinct_n(hypotheses, 2),
        "unique_replies": unique_replies(hypotheses),
        "stock_replies": stock_replies(hypotheses, language.stock_phrase),
        **openings,
        "repeated_4grams": repeated_ngrams(hypotheses, 4),
        "mean_length": mean_length(hypotheses),
    }


def unique_replies(replies: Sequence[Sequence[str]]) -> float:
    """Return the number of different replies / the number of replies."""
    return _share(len({tuple(reply) for reply in replies}), replies)


def stock_replies(replies: Sequence[Sequence[str]], phrase: tuple[str, ...] = ENGLISH.stock_phrase) -> float:
    """Return the share of replies that have a phrase ("sorry to hear") anywhere."""
    return _share(sum(phrase in _ngrams(reply, len(phrase)) for reply in replies), replies)


def common_openings(replies: Sequence[Sequence[str]], units: int) -> float:
    """Return the share of replies whose first `units` units are one of the ten commonest such beginnings."""
    found = Counter(tuple(reply[:units]) for reply in replies)
    return _share(sum(count for _, count in found.most_common(OPENINGS)), replies)


def repeated_ngrams(replies: Sequence[Sequence[str]], n: int) -> float:
    """Return the share of replies in which some n-gram stands twice or more (overlapping counts)."""
    repeating = 0
    for reply in replies:
        ngrams = _ngrams(reply, n)
        repeating += len(set(ngrams)) < len(ngrams)
    return _share(repeating, replies)


def mean_length(replies: Sequence[Sequence[str]]) -> float:
    """Return the mean number of tokens in a reply, the end token not counted."""
    return _share(sum(map(len, replies)), replies)


def emotion_accuracy(predicted: Sequence[str], gold: Sequence[str | None]) -> float | None:
    """Return the share of contexts whose predicted emotion is the annotated one.

    Args:
        predicted: the most probable label for each context.
        gold: the annotated label, None where there is none; such contexts are left out.

    Returns:
        The accuracy in 0-1, or None if no context is annotated.

    Raises:
        ValueError: the numbers differ.
    """
    judged = [guess == label for guess, label in zip(predicted, gold, strict=True) if label is not None]
    return sum(judged) / len(judged) if judged else None


def calibration_error(
    probabilities: np.ndarray, gold: Sequence[str | None], emotions: Sequence[str] = EMOTIONS
) -> float | None:
    """Return `paddle_dialog.metrics.classification.calibration_error` of the emotions.

    Args:
        probabilities: of the emotions for each context [N, 32].
        gold: the annotated label, None where there is none; such contexts are left out.
        emotions: that the probabilities are of.

    Returns:
        The error in 0-1, or None if no context is annotated.

    Raises:
        ValueError: the numbers differ.
    """
    if len(probabilities) != len(gold):
        raise ValueError(f"{len(probabilities)} contexts have probabilities and {len(gold)} a label")
    known = [index for index, label in enumerate(gold) if label is not None]
    if not known:
        return None
    labels = np.array([emotion_id(gold[index] or "", emotions) for index in known])  # [K]
    return classification.calibration_error(probabilities[known], labels)


def _ngrams(tokens: Sequence[str], n: int) -> list[tuple[str, ...]]:
    return [tuple(tokens[start : start + n]) for start in range(len(tokens) - n + 1)]


def _share(count: int, replies: Sequence[Sequence[str]]) -> float:
    if not replies:
        raise ValueError("no reply to measure; give at least one")
    return count / len(replies)
