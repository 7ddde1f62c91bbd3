"""The n-gram classifier of emotions: its features, what it learns, and that the network says the same."""

import math
from typing import Any

import numpy as np
import paddle
from empathetic_toys import make_config, make_vocabulary
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from tasks.empathetic.data.dataset import DialogueDataset, collate
from tasks.empathetic.data.dialogue import Dialogue
from tasks.empathetic.emotion.labels import emotion_id
from tasks.empathetic.fitting.ngram_classifier import (
    PENALTY,
    PLAIN_FROM,
    PLAIN_WIDTH,
    RATIO_POWER,
    SCALES,
    _margins,
    _scale,
    fit_ngram_classifier,
    ngram_features,
)
from tasks.empathetic.network.emo_prepend import EmoPrepend

BUCKETS = 1 << 16
DIALOGUES = [
    Dialogue(["my dog died"], "oh no", "sad", "I lost my pet."),
    Dialogue(["my cat died"], "oh no", "sad", "I lost my pet."),
    Dialogue(["my dog won"], "oh yes", "proud", "There was a prize."),
    Dialogue(["what is it"], "oh", None, "Nothing is known of this."),
]


def fitted(
    situations: bool = False, **settings: Any
) -> tuple[DialogueDataset, np.ndarray, np.ndarray, np.ndarray]:
    config = make_config(emotion={"ngram_buckets": BUCKETS})
    data = DialogueDataset(DIALOGUES, config, make_vocabulary(), 50)
    return data, *fit_ngram_classifier(data, BUCKETS, situations, **settings)


def unit_vectors(data: DialogueDataset, idf: np.ndarray, character_weight: float = 1.0) -> np.ndarray:
    """Return the dense features of the annotated contexts."""
    contexts, _ = data.annotated_contexts(situations=False)
    dense = ngram_features(data.encoder, contexts, BUCKETS, character_weight).toarray() * idf
    return dense / np.linalg.norm(dense, axis=1, keepdims=True)


def test_features_weigh_by_how_rare_they_are_in_annotated_texts() -> None:
    data, idf, table, _ = fitted()
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


def best_margins(dense: np.ndarray, signs: np.ndarray, penalty: float) -> np.ndarray:
    """Fit the machine with the least squared hinge loss, by a general optimiser."""
    gram = dense @ dense.T  # the best weights are combinations of the texts: w = Xᵀa

    def objective(a: np.ndarray) -> float:
        return 0.5 * a @ gram @ a + penalty * (np.maximum(0, 1 - signs * (gram @ a)) ** 2).sum()

    margins: np.ndarray = gram @ minimize(objective, np.zeros(len(signs)), tol=1e-12).x
    return margins


def test_the_machine_minimises_the_squared_hinge_loss_over_features_scaled_by_log_count_ratios() -> None:
    data, idf, table, _ = fitted()  # with too little to hold out, so that logits are margins
    dense = unit_vectors(data, idf)
    signs = np.array([1.0, 1.0, -1.0])
    counts = (dense > 0).astype(float)
    inside, outside = counts[:2].sum(0) + 1, counts[2:].sum(0) + 1
    all_ratios = [
        np.log(inside / inside.sum()) - np.log(outside / outside.sum())
    ]  # sad; proud has them negated
    nobody = np.log(np.ones(BUCKETS) / BUCKETS)  # the other 30 emotions have no text
    every = counts.sum(0) + 1
    all_ratios += [all_ratios[0]] + 30 * [nobody - np.log(every / every.sum())]
    factors = np.abs(all_ratios) ** RATIO_POWER
    expected = best_margins(dense * factors[0] / np.sqrt(np.mean(factors**2)), signs, PENALTY)
    np.testing.assert_allclose(dense @ table[:, emotion_id("sad")], expected, atol=0.01)


def test_the_scale_makes_held_out_texts_likeliest() -> None:
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 3, 200)
    chance = 0.3 + 0.3 * np.eye(3)[labels] @ rng.integers(0, 2, (3, 12))  # [200, 12]
    features = csr_matrix((rng.random((200, 12)) < chance) / np.sqrt(6))
    held_out = np.arange(200) % 4 == 0
    margins = features[held_out] @ _margins(features[~held_out], labels[~held_out], 32)

    def nll(scale: float) -> float:
        logits = scale * margins
        return float((np.log(np.exp(logits).sum(1)) - logits[np.arange(50), labels[held_out]]).mean())

    scale = _scale(features, labels, held_out, 32)
    assert SCALES[0] < scale < SCALES[1] and abs(scale - 1) > 0.1
    assert nll(scale) < min(nll(0.95 * scale), nll(1.05 * scale))
    assert _scale(features, labels, labels > 0, 32) == 1.0  # nothing is left to tell apart


def test_where_a_context_is_like_small_talk_its_emotions_are_alike() -> None:
    emotion = {"ngram_buckets": BUCKETS, "encoder_share": 0.0, "small_talk": True}
    config = make_config(emotion=emotion)
    data = DialogueDataset(DIALOGUES * 20, config, make_vocabulary(), 50)
    plain = [["hello my friend"], ["hello there"]] * 10
    fitted = fit_ngram_classifier(data, BUCKETS, situations=False, plain=plain)
    assert fitted.plainness[0] == PLAIN_FROM / PLAIN_WIDTH
    network = EmoPrepend(config, len(make_vocabulary()))
    for name, values in fitted._asdict().items():
        getattr(network.emotion_head, f"ngram_{name}").set_value(paddle.to_tensor(values))
    network.eval()
    dialogues = [Dialogue(["my dog died"], "oh"), Dialogue(["hello my friend"], "oh")]
    asked = DialogueDataset(dialogues, config, make_vocabulary(), 50)
    source, lengths = map(paddle.to_tensor, collate([asked[0], asked[1]])[:2])
    clear, unclear = network.emotion_probabilities(source, lengths).numpy()
    network.emotion_head.tells_plain = False
    as_clear, as_unclear = network.emotion_probabilities(source, lengths).numpy()
    np.testing.assert_allclose(clear, as_clear, rtol=0.1)
    assert unclear.max() < 1.3 / 32 < 4 / 32 < as_unclear.max()
    assert unclear.argmax() == as_unclear.argmax()


def test_texts_that_share_a_conversation_are_held_out_together() -> None:
    config = make_config(emotion={"ngram_buckets": 50})
    dialogues = [
        Dialogue(["one"], "so", "sad", "First."),
        Dialogue(["one", "so", "more"], "ah", "sad", "First."),
        Dialogue(["two"], "oh", "proud", "Second."),
        Dialogue(["three"], "oh", "sad", "First."),  # told twice
        Dialogue(["four"], "oh", None, "Second."),  # unlabelled, and left out
        Dialogue(["five"], "oh", "sad"),
        Dialogue(["six", "oh", "five"], "oh", "proud"),  # begun anew with the opening of another
    ]
    data = DialogueDataset(dialogues, config, make_vocabulary(), 50)
    groups = data.conversations(situations=True)
    assert len(groups) == len(data.annotated_contexts(situations=True)[1]) == 8
    one, more, two, three, five, six, first, second = groups
    assert one == more == three == first and two == second and five == six
    assert len({one, two, five}) == 3


def test_the_network_says_what_the_machine_says_and_other_emotions_are_unlikely() -> None:
    emotion = {"ngram_buckets": BUCKETS, "encoder_share": 0.0, "character_weight": 0.5}
    config = make_config(emotion=emotion)
    data, idf, table, _ = fitted(character_weight=0.5)
    network = EmoPrepend(config, len(make_vocabulary()))
    network.emotion_head.ngram_idf.set_value(paddle.to_tensor(idf))
    network.emotion_head.ngram_table.set_value(paddle.to_tensor(table))
    network.eval()
    source, lengths = map(paddle.to_tensor, collate([data[index] for index in range(3)])[:2])
    probabilities = network.emotion_probabilities(source, lengths).numpy()
    labels = data.annotated_contexts(situations=False)[1]
    scores = np.exp(unit_vectors(data, idf, 0.5) @ table)
    np.testing.assert_allclose(probabilities, scores / scores.sum(1, keepdims=True), rtol=1e-4)
    assert probabilities.argmax(1).tolist() == labels.tolist()


def test_of_one_emotion_nothing_is_learned() -> None:
    config = make_config(emotion={"ngram_buckets": 50})
    data = DialogueDataset(DIALOGUES[:2], config, make_vocabulary(), 50)
    fitted = fit_ngram_classifier(data, 50, situations=False)
    assert not fitted.idf.any() and not fitted.table.any() and not fitted.plainness[1:].any()
