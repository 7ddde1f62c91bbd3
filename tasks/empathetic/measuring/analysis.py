"""A model at work: the emotions it predicts, where it attends, and what it copies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import paddle

from paddle_dialog.data.batching import LengthBucketSampler
from paddle_dialog.decoding.interface import evaluation_mode
from tasks.empathetic.data.dataset import DialogueDataset, Example, collate
from tasks.empathetic.network.emo_prepend import EmoPrepend

GLANCE = 1000  # examples that measure an accuracy to about 1.5 points within seconds


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
            arrays = collate([dataset[indices[row]] for row in rows])
            source, source_lengths = (paddle.to_tensor(array) for array in arrays[:2])
            probabilities[rows] = network.emotion_probabilities(source, source_lengths).numpy()
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


def word_maps(network: EmoPrepend, example: Example) -> Mapping[str, np.ndarray]:
    """Return where the model attends at each word of the true reply, given those before it.

    Returns:
        `attention` [T, S] over the context, and with a pointer `copy` [T, S]: the probability that the next
        word is copied from that position.
    """
    source, lengths, target = (paddle.to_tensor(array) for array in collate([example])[:3])
    with paddle.no_grad(), evaluation_mode(network):
        attention = network.attention_weights(source, lengths, target)[0].numpy()  # [T, S]
        copying = network.copy_probabilities(source, lengths, target)
    if copying is None:
        return {"attention": attention}
    return {"attention": attention, "copy": attention * copying[0].numpy()[:, None]}
