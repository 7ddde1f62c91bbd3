"""Pictures of a model on a file of dialogues: confusions of emotions, attention, copying."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from paddle_dialog.figures.charts import draw_bars, draw_confusion_matrix, draw_heat_map
from paddle_dialog.figures.folder import FigureFolder
from paddle_dialog.metrics.classification import confusion_matrix
from tasks.empathetic.answering.prediction import EmpatheticPredictor
from tasks.empathetic.data.dataset import DialogueDataset, longest_target
from tasks.empathetic.data.emotions import EMOTIONS, emotion_id
from tasks.empathetic.data.sources import read_configured
from tasks.empathetic.measuring.analysis import emotion_probabilities, word_maps

MAPPED_EXAMPLES = 4
# From pleasant to unpleasant, related emotions side by side, so that easily confused ones lie near the
# diagonal; the order is fixed, so that two models can be compared.
BY_KINSHIP: tuple[str, ...] = (
    *("excited", "joyful", "surprised", "impressed", "proud", "confident", "prepared", "hopeful"),
    *("anticipating", "content", "grateful", "trusting", "faithful", "caring", "sentimental", "nostalgic"),
    *("lonely", "sad", "devastated", "disappointed", "ashamed", "embarrassed", "guilty", "jealous"),
    *("annoyed", "angry", "furious", "disgusted", "terrified", "afraid", "anxious", "apprehensive"),
)


def write_figures(predictor: EmpatheticPredictor, source: str, folder: FigureFolder) -> None:
    """Draw a confusion matrix, the accuracy of each emotion, and maps of the first dialogues' true replies.

    Where no dialogue is annotated, only the maps are drawn; `emotions.json` holds the numbers of the former.

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
    for index in range(min(MAPPED_EXAMPLES, len(dialogues))):
        _draw_maps(predictor, dataset, index, folder)


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


def _draw_maps(
    predictor: EmpatheticPredictor, dataset: DialogueDataset, index: int, folder: FigureFolder
) -> None:
    maps = word_maps(predictor.network, dataset[index])
    columns = dataset.context_words(index)
    rows = [*predictor.language.tokens_of(dataset.dialogues[index].target), "<eos>"][: len(maps["attention"])]
    number = index + 1
    folder.add(f"attention_{number}", draw_heat_map(maps["attention"], rows, columns))
    if "copy" in maps:
        copied = maps["copy"].sum(-1)  # [T]
        marked = [f"{word} {share:.0%}" for word, share in zip(rows, copied, strict=True)]
        folder.add(f"copy_{number}", draw_heat_map(maps["copy"], marked, columns, "copy probability"))
