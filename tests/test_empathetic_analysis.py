"""What the analysis says of a model, against single examples and counts by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from empathetic_toys import DIALOGUES, make_config, make_network, make_vocabulary, predictor_of, tensors

from paddle_dialog.data.training_data import EncodedData, TrainingData
from tasks.empathetic.data.dataset import DialogueDataset, collate
from tasks.empathetic.data.dialogue import Dialogue
from tasks.empathetic.data.emotions import EMOTIONS
from tasks.empathetic.figures import dev_emotion_accuracy, emotion_probabilities, word_maps
from tasks.empathetic.task import TASK


def make(family: str = "transformer", dialogues: Sequence[Dialogue] = DIALOGUES, **sections: Any) -> Any:
    """Return a random network with its dataset."""
    config, vocabulary = make_config(family, **sections), make_vocabulary()
    dataset = DialogueDataset(dialogues, config, vocabulary, 20)
    return config, make_network(config, len(vocabulary)), dataset, vocabulary


def test_probabilities_are_those_of_the_predictor_in_the_order_asked_for() -> None:
    config, network, dataset, vocabulary = make()
    predictor = predictor_of(config, network, vocabulary)
    answers = predictor.answer([dialogue.context for dialogue in DIALOGUES], 1)
    found = emotion_probabilities(network, dataset, [2, 0, 1], batch_size=2)
    expected = np.stack([answers[index].probabilities for index in (2, 0, 1)])
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_accuracy_counts_the_annotated_dialogues_alone() -> None:
    _, network, dataset, _ = make()
    guesses = emotion_probabilities(network, dataset, [0, 1, 2], 2).argmax(-1)
    right, wrong = EMOTIONS[guesses[0]], EMOTIONS[(guesses[1] + 1) % 32]
    labels = [right, wrong, None]
    judged = [Dialogue(d.context, d.target, e) for d, e in zip(DIALOGUES, labels, strict=True)]
    _, _, dataset, _ = make(dialogues=judged)
    assert dev_emotion_accuracy(network, dataset, 2) == 0.5
    _, _, dataset, _ = make(dialogues=[Dialogue(["hello"], "hi")])
    assert dev_emotion_accuracy(network, dataset, 2) is None


@pytest.mark.parametrize("family", ["lstm", "transformer", "convolutional"])
def test_attention_sums_to_one_and_copying_to_the_gate(family: str) -> None:

    _, network, dataset, _ = make(family)
    maps = word_maps(network, dataset[0])
    words = dataset.context_words(0)
    assert maps["attention"].shape == maps["copy"].shape == (6 + 1, len(words))  # "Rex was a good dog .", end
    np.testing.assert_allclose(maps["attention"].sum(-1), 1.0, rtol=1e-5)
    gate = network.copy_probabilities(*tensors(collate([dataset[0]]))[:3])[0].numpy()
    np.testing.assert_allclose(maps["copy"].sum(-1), gate, rtol=1e-5)


def test_without_a_pointer_there_is_no_copy_map() -> None:
    _, network, dataset, _ = make(generator={"pointer": False})
    assert set(word_maps(network, dataset[0])) == {"attention"}


@pytest.mark.parametrize("count", [0, 2])
def test_a_run_shows_the_accuracy_and_the_maps(count: int) -> None:
    config, network, dataset, vocabulary = make()
    encoded = EncodedData(dataset, dataset.lengths)
    data = TrainingData(encoded, encoded, {"text": vocabulary}, collate)
    shown = TASK.display(config, network, data, count)
    assert len(shown.texts) == count
    assert shown.scalars == {"emotion_accuracy": dev_emotion_accuracy(network, dataset, 8)}
    for weights in shown.heat_maps.values():
        assert weights.shape == (len(shown.rows), len(shown.columns))
    assert set(shown.heat_maps) == ({"attention", "copy"} if count else set())
