"""Adversarial training: who learns from what, what is judged, and toys."""

from typing import Any

import numpy as np
import paddle
import pytest
from empathetic_toys import DIALOGUES, MODELS, make_config, make_network, make_vocabulary, named

from paddle_dialog.bundle.weights import read_weights
from tasks.empathetic.data.dataset import DialogueDataset, collate
from tasks.empathetic.data.dialogue import Dialogue
from tasks.empathetic.data.emotions import EMOTIONS, EmotionLexicon, emotion_id
from tasks.empathetic.network.adversarial import (
    WRITTEN,
    AdversarialLoss,
    Adversary,
    emotional_loss,
    semantic_loss,
)
from tasks.empathetic.network.adversarial_config import AdversarialConfig
from tasks.empathetic.network.emo_prepend import EmoPrepend
from tasks.empathetic.task import TASK

FAMILIES = pytest.mark.parametrize("family", MODELS)
ON = {"semantic": 0.5, "emotional": 0.5, "size": 12}


def collated(config: Any, dialogues: list[Dialogue], vocabulary: Any) -> list[paddle.Tensor]:
    dataset = DialogueDataset(dialogues, config, vocabulary, 50)
    return [paddle.to_tensor(array) for array in collate([dataset[i] for i in range(len(dataset))])]


def adversary_of(network: EmoPrepend) -> Adversary:
    assert network.adversary is not None
    return network.adversary


@FAMILIES
@pytest.mark.parametrize("pointer", [True, False])
def test_each_side_learns_from_its_own_part_of_the_contest(family: str, pointer: bool) -> None:
    vocabulary = make_vocabulary(DIALOGUES[1:])  # words of the first context are outside
    config = make_config(family, adversarial=ON, generator={"pointer": pointer})
    network = make_network(config, len(vocabulary))
    source, lengths, target, *_ = collated(config, DIALOGUES, vocabulary)
    network.train()
    adversary = adversary_of(network)
    own = {name for name, _ in network.named_parameters() if name.startswith("adversary.")}

    def touched(column: int) -> set[str]:
        """Return parameters that one of the three verdicts reaches."""
        network.clear_gradients()
        paddle.seed(5)
        verdicts = network(source, lengths, target).verdicts
        assert verdicts.shape == [3, 3, 34]
        (verdicts[:, column] ** 2).sum().backward()
        return {
            name
            for name, parameter in network.named_parameters()
            if parameter.grad is not None and float(parameter.grad.abs().sum())
        }

    assert touched(0) == touched(1) == own
    reached = touched(2)
    assert not reached & own and "encoder." in " ".join(reached)
    assert "generator.gate.weight" in reached or not pointer
    assert not any(parameter.stop_gradient for parameter in adversary.parameters())


def test_padding_changes_no_verdict() -> None:
    vocabulary, config = make_vocabulary(), make_config(adversarial=ON, model={"dropout": 0.0})
    network = make_network(config, len(vocabulary))
    network.train()

    def of_people(dialogues: list[Dialogue]) -> np.ndarray:
        source, lengths, target, *_ = collated(config, dialogues, vocabulary)
        return network(source, lengths, target).verdicts[0, 0].numpy()

    np.testing.assert_allclose(of_people(DIALOGUES[1:2]), of_people([DIALOGUES[1], DIALOGUES[0]]), atol=1e-5)


def test_the_emotion_is_judged_by_the_words_of_the_lexicon_alone() -> None:
    vocabulary, config = make_vocabulary(), make_config(adversarial=ON)
    network = make_network(config, len(vocabulary))
    network.train()
    adversary = adversary_of(network)
    adversary.set_lexicon(EmotionLexicon(["awful"]), vocabulary)
    assert adversary.lexicon.numpy().nonzero()[0].tolist() == [vocabulary.id("awful")]

    def carried(reply: str) -> np.ndarray:
        changed = [Dialogue(["someone stole my bike"], reply, "angry", None)]
        source, lengths, target, *_ = collated(config, changed, vocabulary)
        return network(source, lengths, target).verdicts[0, 0].numpy()

    same, other, none = carried("that is awful ."), carried("oh awful !"), carried("that is oh .")
    np.testing.assert_allclose(same[1:], other[1:], atol=1e-5)
    assert not np.allclose(same[1:], none[1:], atol=1e-3) and not np.allclose(same[0], other[0], atol=1e-3)


def test_the_switch_changes_no_other_weight_and_no_answer() -> None:
    vocabulary = make_vocabulary()
    networks = []
    for sections in ({}, {"adversarial": ON}):
        config = make_config(**sections)
        paddle.seed(4)
        networks.append(EmoPrepend(config, len(vocabulary)))
    plain, contested = networks
    before, after = read_weights(plain), read_weights(contested)
    assert before.keys() == after.keys()
    for name, values in before.items():
        np.testing.assert_array_equal(values, after[name])
    source, lengths, target, *labels = collated(config, DIALOGUES, vocabulary)
    for network in networks:
        network.eval()
    outputs = [network(source, lengths, target) for network in networks]
    for one, other in zip(*outputs, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())
    criteria = [TASK.build_criterion(make_config(**s)) for s in ({}, {"adversarial": ON})]
    losses = [float(criterion(*outputs[0], **named(labels))) for criterion in criteria]
    assert losses[0] == losses[1] and isinstance(criteria[1], AdversarialLoss)
    contested.train()
    assert float(criteria[1](*contested(source, lengths, target), **named(labels))) > losses[1]
    np.testing.assert_array_equal(*(criterion.token_nll.numpy() for criterion in criteria))


def toy() -> list[Dialogue]:
    """Write dialogues in which each emotion has a context and a word of its own."""
    pairs = {
        "sad": ("my dog died", "sorry"),
        "proud": ("i won", "congratulations"),
        "angry": ("a theft", "awful"),
    }
    return [Dialogue([turn], f"{word} , my friend .", name, None) for name, (turn, word) in pairs.items()]


def test_either_side_learns_while_the_other_stands_still() -> None:
    """The discriminators tell all words apart; then the network's words pass for people's and carry the emotion."""
    vocabulary = make_vocabulary(toy())
    config = make_config("lstm", adversarial=ON, generator={"pointer": False})
    network = make_network(config, len(vocabulary))
    source, lengths, target, emotion, *_ = collated(config, toy() * 4, vocabulary)
    network.train()

    def verdicts(seed: int) -> paddle.Tensor:
        paddle.seed(seed)  # the draw of the network's words
        return network(source, lengths, target).verdicts

    def learn(parameters: Any, steps: int, rate: float) -> None:
        optimizer = paddle.optimizer.Adam(rate, parameters=parameters)
        for step in range(steps):
            given = verdicts(step)
            (semantic_loss(given[:, :, 0]) + emotional_loss(given[:, :, 1:], emotion)).backward()
            optimizer.step()
            network.clear_gradients()

    def deceived() -> tuple[float, float]:
        """Return how often the network's words, never drawn before, pass for people's, and for the emotion's."""
        drawn = np.concatenate([verdicts(seed).numpy()[:, 2] for seed in range(1000, 1005)])  # [5B, 34]
        carried = drawn[:, 1:].argmax(-1) == np.tile(emotion.numpy(), 5)
        return float(np.mean(drawn[:, 0] > 0)), float(np.mean(carried))

    adversary = adversary_of(network)
    learn(adversary.parameters(), 120, 0.02)
    told = verdicts(1000).numpy()
    guesses = told[:, :2, 1:].argmax(-1)  # [B, 2]
    assert np.mean([told[:, 0, 0] > 0, told[:, 1, 0] < 0]) > 0.9
    assert np.mean([guesses[:, 0] == emotion.numpy(), guesses[:, 1] == WRITTEN]) > 0.9
    assert {EMOTIONS[e] for e in guesses[:, 0]} == {"sad", "proud", "angry"}
    assert max(deceived()) < 0.2

    judged_by = {name: values.clone() for name, values in adversary.state_dict().items()}
    others = [p for name, p in network.named_parameters() if not name.startswith("adversary.")]
    for _ in range(5):  # it goes up and down, and rounding decides when
        learn(others, 80, 0.02)
        if min(deceived()) > 0.6:
            break
    assert min(deceived()) > 0.6
    for name, values in judged_by.items():
        np.testing.assert_array_equal(values.numpy(), adversary.state_dict()[name].numpy())


@FAMILIES
def test_the_toy_is_still_learned_with_the_switch_on(family: str) -> None:
    vocabulary = make_vocabulary(toy())
    config = make_config(family, adversarial={"semantic": 0.1, "emotional": 0.1, "size": 8})
    paddle.seed(1)
    network, criterion = EmoPrepend(config, len(vocabulary)), TASK.build_criterion(config)
    source, lengths, target, *labels = collated(config, toy(), vocabulary)
    optimizer = paddle.optimizer.Adam(0.02, parameters=network.parameters())
    network.train()
    for step in range(400):
        paddle.seed(step)
        criterion(*network(source, lengths, target), **named(labels)).backward()
        optimizer.step()
        network.clear_gradients()
        if float(criterion.token_nll.sum() / labels[2].sum()) < 0.05:
            return
    pytest.fail("the reply was not learned")


def test_the_defaults_are_off() -> None:
    assert not AdversarialConfig().is_active
    assert make_network(make_config(), 60).adversary is None
    assert emotion_id("sad") < WRITTEN
