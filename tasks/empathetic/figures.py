"""Pictures of a model on a file of dialogues: confusions of emotions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import paddle

from paddle_dialog.bundle.trained import TrainedModel
from paddle_dialog.data.batching import LengthBucketSampler
from paddle_dialog.data.training_data import TrainingData, as_tensors
from paddle_dialog.decoding.interface import evaluation_mode
from paddle_dialog.figures.charts import draw_bars, draw_confusion_matrix
from paddle_dialog.figures.folder import FigureFolder
from paddle_dialog.metrics.classification import confusion_matrix
from paddle_dialog.task import Display
from paddle_dialog.tasks.empathetic.config import EmpatheticConfig
from paddle_dialog.tasks.empathetic.data.dataset import DialogueDataset, collate, longest_target
from paddle_dialog.tasks.empathetic.data.emotions import EMOTIONS, emotion_id
from paddle_dialog.tasks.empathetic.data.sources import read_configured
from paddle_dialog.tasks.empathetic.network.emo_prepend import EmoPrepend
from paddle_dialog.tasks.empathetic.prediction import EmpatheticPredictor

# From pleasant to unpleasant, related emotions side by side, so that easily confused ones lie near the
# diagonal; the order is fixed, so that two models can be compared.
BY_KINSHIP: tuple[str, ...] = (
    *("excited", "joyful", "surprised", "impressed", "proud", "confident", "prepared", "hopeful"),
    *("anticipating", "content", "grateful", "trusting", "faithful", "caring", "sentimental", "nostalgic"),
    *("lonely", "sad", "devastated", "disappointed", "ashamed", "embarrassed", "guilty", "jealous"),
    *("annoyed", "angry", "furious", "disgusted", "terrified", "afraid", "anxious", "apprehensive"),
)
GLANCE = 1000  # examples that measure an accuracy to about 1.5 points within seconds


def display(config: EmpatheticConfig, network: EmoPrepend, data: TrainingData, count: int) -> Display:
    """Show emotions and greedy replies of the first dev, else training, contexts.

    Args:
        config: of the run.
        network: in training.
        data: of the run.
        count: contexts.

    Returns:
        The texts, and the accuracy of the emotion.
    """
    examples = data.dev if data.dev is not None else data.train
    assert isinstance(examples.dataset, DialogueDataset)
    dataset = examples.dataset
    dialogues = dataset.dialogues[:count]
    accuracy = dev_emotion_accuracy(network, dataset, config.data.batch_size)
    scalars = {} if accuracy is None else {"emotion_accuracy": accuracy}
    if not dialogues:
        return Display([], scalars=scalars)
    model = TrainedModel.of_network(network, data.vocabularies)
    predictor = EmpatheticPredictor(config, model, dataset.encoder)
    answers = predictor.greedy([d.context for d in dialogues], [d.emotion for d in dialogues])
    texts = [
        f"{dialogue.context[-1]} → [{answer.predicted_emotion}] {answer.predictions[0].text} "
        f"(reference [{dialogue.emotion}] {dialogue.target})"
        for dialogue, answer in zip(dialogues, answers, strict=True)
    ]
    return Display(texts, scalars=scalars)


def write_figures(predictor: EmpatheticPredictor, source: str, folder: FigureFolder) -> None:
    """Draw a confusion matrix and the accuracy of each emotion, where dialogues are annotated.

    `emotions.json` holds their numbers.

    Args:
        predictor: the model.
        source: as for `read_configured`.
        folder: takes the pictures.

    Raises:
        UserError: the source cannot be used, or the folder cannot be written.
    """
    config = predictor.config
    dialogues = read_configured(config, source)
    encoder = predictor.encoder.fresh()
    dataset = DialogueDataset(
        dialogues, config, predictor.vocabulary, longest_target(config), encoder=encoder
    )
    annotated = [index for index, dialogue in enumerate(dialogues) if dialogue.emotion is not None]
    if annotated:
        names = predictor.emotions
        probabilities = emotion_probabilities(predictor.network, dataset, annotated, config.data.batch_size)
        gold = [emotion_id(dialogues[index].emotion or "", names) for index in annotated]
        counts = confusion_matrix(probabilities.argmax(-1), np.asarray(gold), len(names))
        _draw_emotions(counts, names, folder)


def emotion_report(counts: np.ndarray, names: Sequence[str] = EMOTIONS) -> dict[str, Any]:
    """Summarise a confusion matrix [C, C] of named emotions in plain numbers.

    Returns:
        `n`, `accuracy`, and `emotions`: for each annotated label its `n`, `accuracy`, how often it was
        `predicted` at all, and `taken_for`: the labels it was taken for with their counts, most frequent first.
    """
    emotions: dict[str, Any] = {}
    for index, label in enumerate(names):
        n = int(counts[index].sum())
        if n:
            order = np.argsort(-counts[index], kind="stable").tolist()
            taken_for = {names[other]: int(counts[index, other]) for other in order if counts[index, other]}
            emotions[label] = {
                "n": n,
                "accuracy": int(counts[index, index]) / n,
                "predicted": int(counts[:, index].sum()),
                "taken_for": taken_for,
            }
    total = int(counts.sum())
    return {"n": total, "accuracy": int(np.trace(counts)) / total, "emotions": emotions}


def _draw_emotions(counts: np.ndarray, names: Sequence[str], folder: FigureFolder) -> None:
    report = emotion_report(counts, names)
    kin = BY_KINSHIP if names == EMOTIONS else names
    order = [names.index(label) for label in kin]
    n, accuracy = report["n"], report["accuracy"]
    title = f"Emotions of {n:,} contexts, accuracy {accuracy:.1%}"
    folder.add("emotion_confusion", draw_confusion_matrix(counts[np.ix_(order, order)], kin, title))
    rows = sorted(report["emotions"].items(), key=lambda row: -row[1]["accuracy"])
    values, labels = [row["accuracy"] for _, row in rows], [f"{label} ({row['n']})" for label, row in rows]
    folder.add("emotion_accuracy", draw_bars(values, labels, "Accuracy of each emotion (contexts)", accuracy))
    folder.add_json("emotions", report)


def emotion_probabilities(
    network: EmoPrepend, dataset: DialogueDataset, indices: Sequence[int], batch_size: int
) -> np.ndarray:
    """Return the predicted emotions of some examples, by the encoder alone.

    Args:
        network: of the task.
        dataset: the examples.
        indices: N of them.
        batch_size: examples read at once.

    Returns:
        Probabilities [N, 32], in the order of `indices`.
    """
    probabilities = np.zeros((len(indices), len(dataset.encoder.language.emotions)), dtype=np.float32)
    with paddle.no_grad(), evaluation_mode(network):
        lengths = dataset.lengths[list(indices), 0]
        for rows in LengthBucketSampler(lengths, batch_size, shuffle=False):
            batch = as_tensors(collate([dataset[indices[row]] for row in rows]))
            probabilities[rows] = network.emotion_probabilities(batch.source, batch.source_lengths).numpy()
    return probabilities


def dev_emotion_accuracy(network: EmoPrepend, dataset: DialogueDataset, batch_size: int) -> float | None:
    """Measure the accuracy of the emotion on at most `GLANCE` annotated dialogues, evenly spread.

    Returns:
        The accuracy, or None where nothing is annotated.
    """
    annotated = np.flatnonzero([dialogue.emotion is not None for dialogue in dataset.dialogues])
    if not len(annotated):
        return None
    places = np.linspace(0, len(annotated) - 1, min(GLANCE, len(annotated))).round().astype(int)
    indices = annotated[places].tolist()
    predicted = emotion_probabilities(network, dataset, indices, batch_size).argmax(-1)  # [N]
    gold = np.array([dataset[index].emotion for index in indices])  # [N]
    return float((predicted == gold).mean())
