"""Adversarial training: who learns from what, the losses and the words that are drawn, toys, and runs."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import paddle
import paddle.nn.functional as F
import pytest
from command import run_here
from empathetic_toys import DIALOGUES, MODELS, make_config, make_network, make_vocabulary, named, tensors

from paddle_dialog.bundle.folder import load_bundle
from paddle_dialog.bundle.weights import read_weights
from paddle_dialog.layers.pointer_generator import extended_log_probs, first_positions, log_mixture
from paddle_dialog.tasks.empathetic.data.dataset import DialogueDataset, collate
from paddle_dialog.tasks.empathetic.data.dialogue import Dialogue
from paddle_dialog.tasks.empathetic.network.adversarial import Adversary, written_words
from paddle_dialog.tasks.empathetic.network.emo_prepend import EmoPrepend
from paddle_dialog.tasks.empathetic.network.loss import contest_loss
from paddle_dialog.tasks.empathetic.task import TASK
from paddle_dialog.text.vocabulary import Vocabulary

FAMILIES = pytest.mark.parametrize("family", MODELS)
ON = {"weight": 0.5, "size": 12}

RUN = """
task: empathetic
model: {{name: causal_transformer, width: 16, num_heads: 2, inner_width: 24, num_layers: 1, dropout: 0.1}}
generator: {{context_weight: 0.5}}
adversarial: {{weight: 0.2, size: 8}}
data: {{max_length: 60, batch_size: 16, mark_turns: true}}
training: {{max_steps: 4, learning_rate: 0.01, eval_every: 2, save_every: 2}}
decoding: {{strategy: greedy, max_length: 5}}
output_dir: {folder}/run
"""


def collated(config: Any, dialogues: list[Dialogue], vocabulary: Any) -> list[paddle.Tensor]:
    dataset = DialogueDataset(dialogues, config, vocabulary, 50)
    return tensors(collate([dataset[i] for i in range(len(dataset))]))


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
        verdicts = network(*source, lengths, target).verdicts
        assert verdicts.shape == [3, 3]
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
        return network(*source, lengths, target).verdicts[:1, 0].numpy()

    np.testing.assert_allclose(of_people(DIALOGUES[1:2]), of_people([DIALOGUES[1], DIALOGUES[0]]), atol=1e-5)


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
    outputs = [network(*source, lengths, target) for network in networks]
    for one, other in zip(*outputs, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())
    criteria = [TASK.build_criterion(make_config(**s)) for s in ({}, {"adversarial": ON})]
    losses = [float(criterion(*outputs[0], **named(labels))) for criterion in criteria]
    assert losses[0] == losses[1]
    contested.train()
    assert float(criteria[1](*contested(*source, lengths, target), **named(labels))) > losses[1]
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
    """The discriminator tells all words apart; then the network's words pass for people's."""
    vocabulary = make_vocabulary(toy())
    config = make_config("lstm", adversarial=ON, generator={"pointer": False})
    network = make_network(config, len(vocabulary))
    source, lengths, target, *_ = collated(config, toy() * 4, vocabulary)
    network.train()

    def verdicts(seed: int) -> paddle.Tensor:
        paddle.seed(seed)  # the draw of the network's words
        return network(*source, lengths, target).verdicts

    def learn(parameters: Any, steps: int, rate: float) -> None:
        optimizer = paddle.optimizer.Adam(rate, parameters=parameters)
        for step in range(steps):
            contest_loss(verdicts(step)).backward()
            optimizer.step()
            network.clear_gradients()

    def deceived() -> float:
        """Return how often the network's words, never drawn before, pass for people's."""
        return float(np.mean([verdicts(seed).numpy()[:, 2] > 0 for seed in range(1000, 1005)]))

    adversary = adversary_of(network)
    learn(adversary.parameters(), 120, 0.02)
    people, written, _ = verdicts(1000).numpy().T
    assert np.mean([people > 0, written < 0]) > 0.9 and deceived() < 0.2

    weights = {name: values.clone() for name, values in adversary.state_dict().items()}
    others = [p for name, p in network.named_parameters() if not name.startswith("adversary.")]
    for _ in range(5):  # it goes up and down, and rounding decides when
        learn(others, 80, 0.02)
        if deceived() > 0.6:
            break
    assert deceived() > 0.6
    for name, values in weights.items():
        np.testing.assert_array_equal(values.numpy(), adversary.state_dict()[name].numpy())


@FAMILIES
def test_the_toy_is_still_learned_with_the_switch_on(family: str) -> None:
    vocabulary = make_vocabulary(toy())
    config = make_config(family, adversarial={"weight": 0.1, "size": 8})
    paddle.seed(1)
    network, criterion = EmoPrepend(config, len(vocabulary)), TASK.build_criterion(config)
    source, lengths, target, *labels = collated(config, toy(), vocabulary)
    optimizer = paddle.optimizer.Adam(0.02, parameters=network.parameters())
    network.train()
    for step in range(400):
        paddle.seed(step)
        criterion(*network(*source, lengths, target), **named(labels)).backward()
        optimizer.step()
        network.clear_gradients()
        if float(criterion.token_nll.sum() / labels[2].sum()) < 0.05:
            return
    pytest.fail("the reply was not learned")


def test_the_loss_is_that_computed_by_hand() -> None:
    sigmoid = lambda x: 1.0 / (1.0 + math.exp(-x))  # noqa: E731
    logits = np.array([[2.0, -1.0, 0.5], [0.0, 3.0, -2.0]], np.float32)
    rows = [-(math.log(sigmoid(p)) + math.log(sigmoid(-w))) / 2 - math.log(sigmoid(d)) for p, w, d in logits]
    assert float(contest_loss(paddle.to_tensor(logits))) == pytest.approx(np.mean(rows), rel=1e-5)


def test_the_mixture_is_that_of_the_pointer_generator() -> None:
    rng = np.random.default_rng(0)
    logits, gate = (paddle.to_tensor(rng.normal(size=shape).astype("float32")) for shape in ([2, 6], [2]))
    attention = F.softmax(paddle.to_tensor(rng.normal(size=[2, 4]).astype("float32")))
    ids = paddle.to_tensor([[1, 6, 1, 7], [5, 5, 2, 0]])
    apart = np.exp(log_mixture(logits, gate, attention).numpy())  # [2, 6 + 4]
    np.testing.assert_allclose(apart.sum(-1), 1.0, rtol=1e-5)
    joined = np.concatenate([apart[:, :6], np.zeros([2, 2])], axis=1)
    for row in range(2):
        np.add.at(joined[row], ids.numpy()[row], apart[row, 6:])
    expected = np.exp(extended_log_probs(logits, gate, attention, ids, first_positions(ids), 2).numpy())
    np.testing.assert_allclose(joined, expected, atol=1e-6)


def test_words_are_drawn_by_their_probability_and_pass_the_gradient_of_the_softmax() -> None:
    paddle.seed(3)
    words = paddle.eye(5)  # so that a vector says which word it is
    logits = paddle.log(paddle.to_tensor([0.1, 0.2, 0.3, 0.35, 0.05])).expand([1, 4000, 5]).clone()
    gate, attention = paddle.zeros([1, 4000]), paddle.to_tensor([0.25, 0.75]).expand([1, 4000, 2])
    source = paddle.to_tensor([[4, 9]])  # 9 is outside the vocabulary and so unknown
    drawn = written_words([logits, gate, attention], [source], words, 1.0).numpy()
    assert set(np.unique(drawn.round(5))) == {0.0, 1.0} and (drawn.sum(-1).round(5) == 1.0).all()
    shares = np.array([0.05, 0.1, 0.15, 0.175, 0.025 + 0.125])
    shares[Vocabulary.unk_id] += 0.375
    np.testing.assert_allclose(drawn.mean((0, 1)), shares, atol=0.03)

    logits.stop_gradient = False
    few = logits[:, :3]
    paddle.seed(8)
    vectors = written_words([few], [], words, 0.7)
    weights = paddle.to_tensor(np.random.default_rng(1).normal(size=[1, 3, 5]).astype("float32"))
    (gradient,) = paddle.grad((vectors * weights).sum(), few, retain_graph=True)
    paddle.seed(8)
    noise = -paddle.log(-paddle.log(paddle.rand([1, 3, 5])))
    soft = F.softmax((few + noise) / 0.7)
    (expected,) = paddle.grad((soft * weights).sum(), few)
    np.testing.assert_allclose(gradient.numpy(), expected.numpy(), atol=1e-5)
    np.testing.assert_array_equal(vectors.argmax(-1).numpy(), soft.argmax(-1).numpy())


def run_files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "run" / "last").glob("*.safetensors")}


def test_a_run_resumes_to_the_bit_and_ships_no_discriminator(tmp_path: Path) -> None:
    for name in ("whole", "parts"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "toy.yaml").write_text(RUN.format(folder=tmp_path / name), encoding="utf-8")
    whole, parts = (tmp_path / name / "toy.yaml" for name in ("whole", "parts"))
    outcome = run_here("train", "-c", whole)
    assert outcome.status == 0, outcome.stderr
    assert run_here("train", "-c", parts, "-o", "training.max_steps=2").status == 0
    resumed = run_here("train", "-c", parts, "--resume", "auto")
    assert resumed.status == 0, resumed.stderr
    one, other = run_files(tmp_path / "whole"), run_files(tmp_path / "parts")
    assert "training_only.safetensors" in one and one == other

    for name in ("best", "last"):
        bundle = load_bundle(tmp_path / "whole" / "run" / name)
        assert not any("adversary" in key for key in bundle.weights)
        assert ("training_only.safetensors" in bundle.extra) == (name == "last")
        weights = ["-c", whole, "--weights", tmp_path / "whole" / "run" / name]
        assert run_here("predict", *weights, "I won.", "--json").status == 0
        evaluated = run_here("evaluate", *weights, "--data", "sample", "--json")
        assert evaluated.status == 0, evaluated.stderr

    begun = run_here(
        "train", "-c", parts, "-o", f"training.start_from={tmp_path}/whole/run/best", "--overwrite"
    )
    assert begun.status == 0, begun.stderr
    off = ["-o", "adversarial.weight=0", "-o", "training.max_steps=6"]
    refused = run_here("train", "-c", whole, "--resume", "auto", *off)
    assert refused.status == 2 and "adversary." in refused.stderr and "Traceback" not in refused.stderr


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("weight: -1", "adversarial.weight"),
        ("temperature: 0", "adversarial.temperature"),
        ("size: 0", "adversarial.size"),
        ("meaning: 1", "adversarial.meaning"),
    ],
)
def test_a_wrong_setting_is_told_in_one_line(setting: str, told: str, tmp_path: Path) -> None:
    recipe = tmp_path / "toy.yaml"
    recipe.write_text(f"task: empathetic\nadversarial: {{{setting}}}\n", encoding="utf-8")
    outcome = run_here("train", "-c", recipe, "-o", f"output_dir={tmp_path}/run")
    assert outcome.status == 2 and told in outcome.stderr and len(outcome.stderr.strip().splitlines()) == 1
