"""The causal family in training: its loss by hand, what it must not be asked for, and a toy that it learns."""

import json
import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import paddle
import pytest
from command import run_here
from empathetic_toys import DIALOGUES, make_config, make_network, make_vocabulary, named

from paddle_dialog.data.training_data import as_tensors
from paddle_dialog.errors import UserError
from paddle_dialog.tasks.empathetic.data.examples import DialogueDataset, collate
from paddle_dialog.tasks.empathetic.network.loss import EmpatheticLoss, Outputs

LEARNED = {"generator": {"context_weight": 0.5}, "data": {"mark_turns": True}}
LOG2 = math.log(2)


def peaked(shape: list[int], label: np.ndarray, odds: float) -> paddle.Tensor:
    """Return logits of two classes a row by which the label has `odds` to 1."""
    logits = np.zeros([*shape, 2], dtype="float32")
    np.put_along_axis(logits, label[..., None], math.log(odds), -1)
    return paddle.to_tensor(logits)


@pytest.mark.parametrize("learns", [False, True])
def test_context_words_count_in_the_mean(learns: bool) -> None:
    label = np.array([[1, 0], [1, 0]])
    mask = paddle.to_tensor([[1.0, 1.0], [1.0, 0.0]])
    others = {}
    if learns:  # two words of log(4/3) that count a half
        others = {
            "context_logits": peaked([2], np.array([0, 1]), 3.0),
            "context_ids": paddle.to_tensor([0, 1]),
        }
    criterion = EmpatheticLoss(0.0, 2.0, context_weight=0.5)
    logits = peaked([2, 2], label, 1.0)  # log 2 each, three of them
    outputs = Outputs.of(logits, paddle.zeros([2, 32]), **others)
    loss = criterion(*outputs, **named([paddle.to_tensor([3, -1]), paddle.to_tensor(label), mask]))
    expected = (3 * LOG2 + 0.5 * 2 * math.log(4 / 3)) / (3 + 0.5 * 2) if learns else LOG2
    assert float(loss) == pytest.approx(expected + 2.0 * math.log(32), rel=1e-5)
    np.testing.assert_allclose(criterion.token_nll.numpy(), [[LOG2, LOG2], [LOG2, 0.0]], rtol=1e-6)


def batch(config: Any) -> tuple[list[Any], dict[str, Any]]:
    """Return the collated toys as training data: what the network takes, and what the criterion does."""
    vocabulary = make_vocabulary(DIALOGUES)
    dataset = DialogueDataset(DIALOGUES, config, vocabulary, 50, Counter(i=2))
    made = as_tensors(collate([dataset[row] for row in range(3)]))
    inputs = [*made.source, made.source_lengths, made.target, made.next_words]
    return inputs, {"emotion": made.emotion, "label": made.label, "mask": made.mask}


@pytest.mark.parametrize("pointer", [True, False])
def test_the_loss_of_a_network_in_training_has_all_its_parts(pointer: bool) -> None:
    config = make_config(
        "causal", generator={"context_weight": 0.5, "pointer": pointer}, data=LEARNED["data"]
    )
    network = make_network(config, len(make_vocabulary(DIALOGUES)))
    inputs, labels = batch(config)
    criterion = EmpatheticLoss(0.0, 0.25, 0.5)
    answered = float(criterion(*network(*inputs), **labels))
    reply = float((criterion.token_nll).sum())
    network.train()
    outputs = network(*inputs)
    logits, following = outputs.context_logits, outputs.context_ids
    # the three turns that are new, a mark before each and the end token after it
    assert following.shape == [sum(len(d.context[-1].split()) + 1 for d in DIALOGUES)]
    normalised = logits.numpy().astype("float64")
    normalised -= np.log(np.exp(normalised).sum(-1, keepdims=True))
    context = -normalised[np.arange(len(normalised)), following.numpy()].sum()
    words = float(labels["mask"].sum())
    expected = (reply + 0.5 * context) / (words + 0.5 * len(normalised))
    expected += answered - reply / words
    assert float(criterion(*outputs, **labels)) == pytest.approx(expected, rel=1e-4)


def test_a_context_word_is_learned_from_what_stands_before_it() -> None:
    config = make_config("causal", **LEARNED)
    network = make_network(config, len(make_vocabulary(DIALOGUES)))
    network.train()
    inputs, _ = batch(config)
    before = network(*inputs).context_logits.numpy()
    inputs[0][:, -1] = 50  # the last word of the longest context
    after = network(*inputs).context_logits.numpy()
    differs = np.abs(before - after).max(-1) > 1e-6
    assert differs.sum() == 1  # where the end token follows it


@pytest.mark.parametrize(
    ("family", "sections", "told"),
    [
        (
            "causal",
            {"model": {"max_positions": 100}},
            r"model.max_positions: must hold data.max_length \(96\)",
        ),
        ("causal", {"model": {"num_heads": 3}}, r"model.num_heads: must divide width \(8\)"),
        ("causal", {"emotion": {"head": "cls"}}, "emotion.head: cls is the first position"),
        ("causal", {"generator": {"context_weight": 1.0}}, "data.mark_turns: must be true"),
        ("transformer", LEARNED, "generator.context_weight: needs model.name: causal_transformer"),
        ("lstm", LEARNED, "generator.context_weight: needs model.name: causal_transformer"),
    ],
)
def test_settings_that_contradict_each_other_are_told(family: str, sections: Any, told: str) -> None:
    with pytest.raises(UserError, match=told):
        make_config(family, **sections)


TOY = """
task: empathetic
model: {{name: causal_transformer, width: 32, num_heads: 2, inner_width: 64, num_layers: 2, copy_size: 8,
  max_positions: 40, dropout: 0.0}}
emotion: {{hints: false, weight: 0.2}}
generator: {{context_weight: 1.0}}
data: {{train: {folder}/train.jsonl, dev: {folder}/train.jsonl, more: {folder}/more.jsonl, more_min_count: 1,
  mark_turns: true, max_length: 20, max_target_length: 8, batch_size: 8, unknown_rate: 0.0}}
training: {{epochs: 60, learning_rate: 0.01, schedule: cosine, warmup_steps: 10, clip_norm: 1.0, eval_every: 1000,
  log_every: 20}}
decoding: {{max_length: 8, strategy: greedy}}
output_dir: {folder}/run
"""
ANSWERS = {
    "my dog died": ("he was a good dog", "sad"),
    "i won a prize": ("well done , you", "proud"),
    "they stole my bike": ("how mean of them", "angry"),
    "my exam is soon": ("you will pass it", "anxious"),
}
TALK = [
    ["hello there", "hello to you", "how is it going", "it goes well", "good to hear", "see you soon"],
    ["what is the time", "it is past nine", "so late", "yes , so late"],
]


def test_a_toy_with_further_conversations_is_learned_by_heart(tmp_path: Path) -> None:
    examples = [
        {"context": [said], "target": answer, "emotion": emotion}
        for said, (answer, emotion) in ANSWERS.items()
    ]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(example) + "\n" for example in examples))
    (tmp_path / "more.jsonl").write_text("".join(json.dumps({"turns": turns}) + "\n" for turns in TALK))
    recipe = tmp_path / "toy.yaml"
    recipe.write_text(TOY.format(folder=tmp_path))
    trained = run_here("train", "-c", recipe)
    assert trained.status == 0, trained.stderr
    assert "further conversations" in trained.stderr and "more.jsonl: 2 pieces" in trained.stderr
    losses = [float(found) for found in re.findall(r"\bloss ([\d.]+)", trained.stderr)]
    # Which of the six conversations begins cannot be known, and every turn and its end is learned once.
    turns = [turn for said, (answer, _) in ANSWERS.items() for turn in (said, answer)] + [*TALK[0], *TALK[1]]
    least = 6 * math.log(6) / sum(len(turn.split()) + 1 for turn in turns)
    assert losses[0] > 1 and least < losses[-1] < least + 0.1, (losses, least)
    assert float(re.search(r"best dev perplexity ([\d.]+)", trained.stdout)[1]) < 1.1

    contexts = [[said] for said in ANSWERS] + [turns[:-1] for turns in TALK]
    texts = [json.dumps({"context": context}) for context in contexts]
    answered = run_here("predict", "-c", recipe, "--json", *texts)
    records = [json.loads(line) for line in answered.stdout.splitlines()]
    replies = [record["predictions"][0]["text"].lower().rstrip(".") for record in records]
    expected = [answer for answer, _ in ANSWERS.values()] + [turns[-1] for turns in TALK]
    assert replies == [reply.replace(" ,", ",") for reply in expected]
    assert [record["emotion"] for record in records[:4]] == [emotion for _, emotion in ANSWERS.values()]
