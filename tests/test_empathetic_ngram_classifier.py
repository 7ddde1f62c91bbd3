"""The n-gram classifier of emotions: its features, what it learns, and that the network says the same."""

import math

import numpy as np
import paddle
from empathetic_toys import make_config, make_vocabulary
from scipy.optimize import minimize

from tasks.empathetic.dataset import DialogueDataset, collate
from tasks.empathetic.dialogue import Dialogue
from tasks.empathetic.emotions import emotion_id
from tasks.empathetic.model import EmoPrepend
from tasks.empathetic.ngram_classifier import MARGIN_SCALE, PENALTY, fit_ngram_classifier, ngram_features

BUCKETS = 1 << 16
DIALOGUES = [
    Dialogue(["my dog died"], "oh no", "sad", "I lost my pet."),
    Dialogue(["my cat died"], "oh no", "sad", "I lost my pet."),
    Dialogue(["my dog won"], "oh yes", "proud", "There was a prize."),
    Dialogue(["what is it"], "oh", None, "Nothing is known of this."),
]


def fitted(situations: bool = False) -> tuple[DialogueDataset, np.ndarray, np.ndarray]:
    config = make_config(emotion={"ngram_buckets": BUCKETS})
    data = DialogueDataset(DIALOGUES, config, make_vocabulary(), 50)
    return data, *fit_ngram_classifier(data, BUCKETS, situations)


def test_features_weigh_by_how_rare_they_are_in_annotated_texts() -> None:
    data, idf, table = fitted()
    contexts, labels = data.annotated_contexts(situations=False)
    assert labels.tolist() == [emotion_id(name) for name in ("sad", "sad", "proud")]
    counts = np.asarray(ngram_features(data.encoder, contexts, BUCKETS).sum(axis=0)).ravel()
    assert {1.0, 2.0, 3.0} <= set(counts.tolist())
    np.testing.assert_allclose(idf[1:], np.log(4 / (1 + counts[1:])) + 1, rtol=1e-6)
    assert math.isclose(idf[counts == 3].max(), 1.0)
    assert idf[0] == 0 and not table[0].any()


def test_situations_are_texts_once_a_conversation() -> None:
    data, *_ = fitted()
    contexts, labels = data.annotated_contexts(situations=True)
    assert labels.tolist() == [emotion_id(name) for name in ("sad", "sad", "proud", "sad", "proud")]
    assert [data.encoder.words()[number] for number in contexts[3].words] == ["i", "lost", "my", "pet", "."]
    assert (fitted(situations=True)[2] != fitted()[2]).any()


def test_the_machine_minimises_the_squared_hinge_loss() -> None:
    data, idf, table = fitted()
    contexts, labels = data.annotated_contexts(situations=False)
    dense = ngram_features(data.encoder, contexts, BUCKETS).toarray() * idf
    dense /= np.linalg.norm(dense, axis=1, keepdims=True)
    signs = np.where(labels == emotion_id("sad"), 1.0, -1.0)
    gram = dense @ dense.T  # the best weights are combinations of the texts: w = Xᵀa

    def objective(a: np.ndarray) -> float:
        return 0.5 * a @ gram @ a + PENALTY * (np.maximum(0, 1 - signs * (gram @ a)) ** 2).sum()

    best = minimize(objective, np.zeros(3), tol=1e-12).x
    np.testing.assert_allclose(dense @ table[:, emotion_id("sad")] / MARGIN_SCALE, gram @ best, atol=0.01)


def test_the_network_says_what_the_machine_says_and_other_emotions_are_unlikely() -> None:
    config = make_config(emotion={"ngram_buckets": BUCKETS, "encoder_share": 0.0})
    data, idf, table = fitted()
    network = EmoPrepend(config, len(make_vocabulary()))
    network.emotion_head.ngram_idf.set_value(paddle.to_tensor(idf))
    network.emotion_head.ngram_table.set_value(paddle.to_tensor(table))
    network.eval()
    source, lengths = map(paddle.to_tensor, collate([data[index] for index in range(3)])[:2])
    probabilities = network.emotion_probabilities(source, lengths).numpy()
    contexts, labels = data.annotated_contexts(situations=False)
    dense = ngram_features(data.encoder, contexts, BUCKETS).toarray() * idf
    scores = np.exp(dense / np.linalg.norm(dense, axis=1, keepdims=True) @ table)
    np.testing.assert_allclose(probabilities, scores / scores.sum(1, keepdims=True), rtol=1e-4)
    assert probabilities.argmax(1).tolist() == labels.tolist()


def test_of_one_emotion_nothing_is_learned() -> None:
    config = make_config(emotion={"ngram_buckets": 50})
    data = DialogueDataset(DIALOGUES[:2], config, make_vocabulary(), 50)
    idf, table = fit_ngram_classifier(data, 50, situations=False)
    assert not idf.any() and not table.any()
