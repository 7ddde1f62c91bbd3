"""All metrics of the empathetic task on one file of dialogues, its figure, and what a run shows of its model.

The answers come first, on all cores: a process that has imported Paddle cannot be forked.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from paddle_dialog.bundle.folder import TrainedModel
from paddle_dialog.data.batching import TrainingData
from paddle_dialog.data.files import Record, check_writable, write_records
from paddle_dialog.figures import FigureFolder, draw_confusion_matrix
from paddle_dialog.metrics import (
    calibration_error,
    common_openings,
    confusion_matrix,
    corpus_bleu,
    distinct_n,
    has_phrase,
    has_repeated_ngram,
    perplexity_per_example,
    token_perplexity,
)
from paddle_dialog.processes import answer_all
from paddle_dialog.task import Display
from paddle_dialog.tasks.empathetic.config import EmpatheticConfig
from paddle_dialog.tasks.empathetic.data.dialogue import Dialogue, read_dialogues
from paddle_dialog.tasks.empathetic.data.emotions import EMOTIONS, emotion_id
from paddle_dialog.tasks.empathetic.data.language import ENGLISH, Language
from paddle_dialog.tasks.empathetic.prediction import EmpatheticPredictor
from paddle_dialog.tasks.empathetic.replies import Answer
from paddle_dialog.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from paddle import nn

# From pleasant to unpleasant, related emotions side by side, so that easily confused ones lie near the
# diagonal; the order is fixed, so that two models can be compared.
BY_KINSHIP: tuple[str, ...] = (
    *("excited", "joyful", "surprised", "impressed", "proud", "confident", "prepared", "hopeful"),
    *("anticipating", "content", "grateful", "trusting", "faithful", "caring", "sentimental", "nostalgic"),
    *("lonely", "sad", "devastated", "disappointed", "ashamed", "embarrassed", "guilty", "jealous"),
    *("annoyed", "angry", "furious", "disgusted", "terrified", "afraid", "anxious", "apprehensive"),
)
GLANCE = 1000  # examples that measure an accuracy to about 1.5 points within seconds
STOCK_PHRASES = {
    "en": ("sorry", "to", "hear"),
    "zh": tuple("理解你"),
}  # units of what listeners say too often
OPENING = 4  # characters by which Chinese replies begin alike
TOGETHER = 4  # batches that a process answers, each of contexts of like length


@dataclass(frozen=True)
class ReplyLikelihood:
    """How well a model predicts the replies."""

    nll: np.ndarray  # sum of -log p over the words and the end of each reply, in nats [N]
    tokens: np.ndarray  # how many these are [N]
    unknown: np.ndarray  # how many of these are outside the vocabulary, copied or not [N]
    units: np.ndarray  # how many units of the language they are, the end one of them [N]


def evaluate(predictor: EmpatheticPredictor, source: str, predictions: Path | None) -> Record:
    """Measure a model on one source of dialogues.

    Args:
        predictions: where the answers are written, one JSON record a line with the generator's own reply as
            `generated`, the annotated emotion as `gold_emotion` and the true reply as `reference`.

    Returns:
        The metrics by name. Those of the published protocol come first: the network's emotion of the conversation,
        and the generator's replies; no setting of `replies` changes them. `answers` has the same of what a user gets,
        where a judge chooses the reply and the newest turn decides the emotion.
    """
    if predictions is not None:
        check_writable(predictions)
    dialogues = read_dialogues(source, predictor.config.language)

    def answer(part: Sequence[Dialogue]) -> list[tuple[Answer, Answer]]:
        contexts = [dialogue.context for dialogue in part]
        generated = predictor.generate(contexts)
        judged = predictor.judge is not None or predictions is not None
        return list(zip(generated, predictor.answer(contexts) if judged else generated, strict=True))

    found = answer_all(answer, dialogues, TOGETHER * predictor.config.decoding.batch_size)
    generated, answers = [one for one, _ in found], [one for _, one in found]
    if predictions is not None:
        records = []
        for dialogue, own, given in zip(dialogues, generated, answers, strict=True):
            truth = {"gold_emotion": dialogue.emotion, "reference": dialogue.target}
            records.append({**given.as_dict(), "generated": own.predictions[0].text, **truth})
        write_records(predictions, records)
    record = {
        **_likelihood_metrics(predictor, dialogues),
        **answer_metrics(dialogues, generated, predictor.language),
        "decoding": predictor.search_summary(),
    }
    if predictor.judge is not None:
        origins = Counter(answer.predictions[0].origin for answer in answers)
        record["answers"] = {
            **answer_metrics(dialogues, answers, predictor.language),
            "origins": {origin: count / len(answers) for origin, count in sorted(origins.items())},
            "decoding": predictor.decoding_summary(),
        }
    return record


def likelihood_metrics(predictor: EmpatheticPredictor, source: str) -> Record:
    """Return the metrics of `evaluate` that need no reply written."""
    dialogues = read_dialogues(source, predictor.config.language)

    def understand(part: Sequence[Dialogue]) -> list[np.ndarray]:
        return predictor.predict_emotions([dialogue.context for dialogue in part])

    found = answer_all(understand, dialogues, TOGETHER * predictor.config.decoding.batch_size)
    return {
        **_likelihood_metrics(predictor, dialogues),
        **emotion_metrics(np.stack(found), [dialogue.emotion for dialogue in dialogues], predictor.emotions),
    }


def _likelihood_metrics(predictor: EmpatheticPredictor, dialogues: Sequence[Dialogue]) -> Record:
    replied = [dialogue for dialogue in dialogues if dialogue.target]  # the others have an emotion alone
    if not replied:
        return {"n": len(dialogues)}
    likelihood = measure_likelihood(predictor, replied)
    return {
        "n": len(dialogues),
        "perplexity": token_perplexity(float(likelihood.nll.sum()), int(likelihood.units.sum())),
        "perplexity_per_example": perplexity_per_example(likelihood.nll.tolist(), likelihood.units.tolist()),
        "unknown_rate": float(likelihood.unknown.sum() / likelihood.tokens.sum()),
    }


def measure_likelihood(predictor: EmpatheticPredictor, dialogues: Sequence[Dialogue]) -> ReplyLikelihood:
    """Score the true replies, batched by length, on all cores."""
    sums = partial(_sums_of_replies, predictor)
    rows = answer_all(sums, dialogues, TOGETHER * predictor.config.data.batch_size)
    return ReplyLikelihood(*np.stack(rows, axis=1))


def _sums_of_replies(predictor: EmpatheticPredictor, dialogues: Sequence[Dialogue]) -> Sequence[np.ndarray]:
    """Return the numbers of `ReplyLikelihood` for each reply."""
    from paddle_dialog.metrics import token_losses
    from paddle_dialog.tasks.empathetic.data.examples import DialogueDataset, collate, longest_target
    from paddle_dialog.tasks.empathetic.network.emo_prepend import EmpatheticLoss

    config, language = predictor.config, predictor.language
    longest, size = longest_target(config), len(predictor.vocabulary)
    dataset = DialogueDataset(dialogues, predictor.encoder, longest)
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


def answer_metrics(dialogues: Sequence[Dialogue], answers: Sequence[Answer], language: Language) -> Record:
    """Score the emotions of answers and the best reply of each, against those of the dialogues."""
    gold = [dialogue.emotion for dialogue in dialogues]
    found = emotion_metrics(np.stack([one.probabilities for one in answers]), gold, language.emotions)
    replied = [(d.target, a) for d, a in zip(dialogues, answers, strict=True) if d.target]
    if not replied:
        return found
    hypotheses = [answer.predictions[0].tokens if answer.predictions else () for _, answer in replied]
    return found | reply_metrics(
        [language.units(tokens) for tokens in hypotheses],
        [language.units(language.tokens_of(target)) for target, _ in replied],
        language,
    )


def reply_metrics(
    hypotheses: Sequence[Sequence[str]], references: Sequence[Sequence[str]], language: Language = ENGLISH
) -> dict[str, float]:
    """Score generated replies.

    Returns:
        `bleu` (0-100), `distinct_1`, `distinct_2`, the shares of `unique_replies`, `stock_replies` ("sorry to hear")
        and replies with `repeated_4grams`, and `mean_length` (units a reply); in Chinese also the share with
        `common_openings`.
    """
    count = len(hypotheses)
    openings = {}
    if language.name == "zh":
        openings["common_openings"] = common_openings(hypotheses, OPENING)
    return {
        "bleu": corpus_bleu(hypotheses, references),
        "distinct_1": distinct_n(hypotheses, 1),
        "distinct_2": distinct_n(hypotheses, 2),
        "unique_replies": len({tuple(reply) for reply in hypotheses}) / count,
        "stock_replies": sum(has_phrase(reply, STOCK_PHRASES[language.name]) for reply in hypotheses) / count,
        **openings,
        "repeated_4grams": sum(has_repeated_ngram(reply, 4) for reply in hypotheses) / count,
        "mean_length": sum(map(len, hypotheses)) / count,
    }


def emotion_metrics(
    probabilities: np.ndarray, gold: Sequence[str | None], emotions: Sequence[str] = EMOTIONS
) -> dict[str, float | None]:
    """Return accuracy and calibration error of the emotions, in 0-1; None where no context is annotated.

    Args:
        probabilities: of the emotions for each context [N, C].
    """
    known = [(row, label) for row, label in enumerate(gold) if label is not None]
    if not known:
        return {"emotion_accuracy": None, "calibration_error": None}
    labels = np.array([emotion_id(label, emotions) for _, label in known])  # [K]
    judged = probabilities[[row for row, _ in known]]  # [K, C]
    return {
        "emotion_accuracy": float((judged.argmax(axis=1) == labels).mean()),
        "calibration_error": calibration_error(judged, labels),
    }


def display(config: EmpatheticConfig, network: nn.Layer, data: TrainingData, count: int) -> Display:
    """Return emotions and greedy replies of the first dev (else training) contexts, and the emotion's accuracy."""
    dataset: Any = (data.dev if data.dev is not None else data.train).dataset
    predictor = EmpatheticPredictor(
        config, TrainedModel.of_network(network, data.vocabularies), dataset.encoder
    )
    accuracy = glance_accuracy(predictor, dataset.dialogues)
    dialogues = dataset.dialogues[:count]
    greedy = dataclasses.replace(config.decoding, strategy="greedy")
    answers = predictor.generate([dialogue.context for dialogue in dialogues], greedy)
    texts = [
        f"{dialogue.context[-1]} → [{answer.predicted_emotion}] {answer.predictions[0].text} "
        f"(reference [{dialogue.emotion}] {dialogue.target})"
        for dialogue, answer in zip(dialogues, answers, strict=True)
    ]
    return Display(texts, scalars={} if accuracy is None else {"emotion_accuracy": accuracy})


def glance_accuracy(predictor: EmpatheticPredictor, dialogues: Sequence[Dialogue]) -> float | None:
    """Return the accuracy of the emotion on at most `GLANCE` annotated dialogues, evenly spread; None without any."""
    annotated = [dialogue for dialogue in dialogues if dialogue.emotion is not None]
    if not annotated:
        return None
    chosen = annotated[:: -(-len(annotated) // GLANCE)]
    found = np.stack(predictor.predict_emotions([dialogue.context for dialogue in chosen]))
    return emotion_metrics(found, [d.emotion for d in chosen], predictor.emotions)["emotion_accuracy"]


def write_figures(predictor: EmpatheticPredictor, source: str, folder: FigureFolder) -> None:
    """Draw the confusion of the emotions and write its numbers to `emotions.json`, if any dialogue is annotated."""
    dialogues = [d for d in read_dialogues(source, predictor.config.language) if d.emotion is not None]
    if not dialogues:
        return
    names = predictor.emotions
    predicted = np.stack(predictor.predict_emotions([d.context for d in dialogues])).argmax(axis=1)  # [N]
    gold = np.array([emotion_id(d.emotion or "", names) for d in dialogues])  # [N]
    counts = confusion_matrix(predicted, gold, len(names))
    report = emotion_report(counts, names)
    kin = BY_KINSHIP if names == EMOTIONS else names
    order = [names.index(label) for label in kin]
    title = f"Emotions of {report['n']:,} contexts, accuracy {report['accuracy']:.1%}"
    folder.add("emotion_confusion", draw_confusion_matrix(counts[np.ix_(order, order)], kin, title))
    folder.add_json("emotions", report)


def emotion_report(counts: np.ndarray, names: Sequence[str] = EMOTIONS) -> dict[str, Any]:
    """Summarise a confusion matrix [C, C] of named emotions in plain numbers.

    Returns:
        `n`, `accuracy`, and `emotions`: for each annotated label its `n`, `accuracy`, how often it was
        `predicted` at all, and `taken_for`: the labels it was taken for with their counts, most frequent first.
    """
    emotions: dict[str, Any] = {}
    for label, row, right, predicted in zip(names, counts, np.diag(counts), counts.sum(axis=0), strict=True):
        if n := int(row.sum()):
            order = [other for other in np.argsort(-row, kind="stable") if row[other]]
            taken_for = {names[other]: int(row[other]) for other in order}
            figures = {"n": n, "accuracy": int(right) / n, "predicted": int(predicted)}
            emotions[label] = {**figures, "taken_for": taken_for}
    total = int(counts.sum())
    return {"n": total, "accuracy": int(np.trace(counts)) / total, "emotions": emotions}
