"""The network of the empathetic task, and what is decoded with it."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import paddle
import paddle.nn.functional as F
import pytest
from empathetic_toys import (
    DIALOGUES,
    MODELS,
    make_config,
    make_network,
    make_vocabulary,
    named,
    predictor_of,
    tensors,
)

from paddle_dialog.errors import UserError
from paddle_dialog.recipes import load_config
from paddle_dialog.tasks.empathetic.data.dialogue import Dialogue
from paddle_dialog.tasks.empathetic.data.emotions import EMOTIONS, emotion_id
from paddle_dialog.tasks.empathetic.data.encoding import FIRST_EMOTION_ID
from paddle_dialog.tasks.empathetic.data.examples import DialogueDataset, collate
from paddle_dialog.tasks.empathetic.network.emo_prepend import EmoPrepend
from paddle_dialog.tasks.empathetic.network.loss import EmpatheticLoss

ROOT = Path(__file__).parent.parent
LEARNED = {"generator": {"context_weight": 0.5}, "data": {"mark_turns": True}}
# Two words of the first context are outside this vocabulary, so that copying has something to do.
VOCABULARY = make_vocabulary(DIALOGUES[1:])


def batch(config: Any, emotions: bool = False) -> list[paddle.Tensor]:
    """Return the collated toy dialogues: source, lengths, target, emotion, label, mask."""
    dataset = DialogueDataset(DIALOGUES, config, VOCABULARY, 50)
    examples = [dataset[index] for index in range(len(dataset))]
    if emotions:
        examples = [
            each._replace(source=each.source._replace(condition=np.array(each.emotion))) for each in examples
        ]
    return tensors(collate(examples))


def test_the_reference_recipe_has_the_published_size() -> None:
    task, config = load_config(ROOT / "configs" / "reference" / "empathetic.yaml")
    network = task.build_network(config, dict.fromkeys(task.vocabulary_names, 10_000))
    modules: dict[str, int] = {}
    for name, parameter in network.named_parameters():
        module = name.partition(".")[0]
        modules[module] = modules.get(module, 0) + math.prod(parameter.shape)
    assert modules == {
        "embedding": 1_000_000,
        "encoder": 289_500,
        "decoder": 386_700,
        "generator": 1_010_101,
        "emotion_head": 3_200,
    }
    assert sum(modules.values()) == 2_689_501


def test_a_given_emotion_takes_the_place_of_the_prediction() -> None:
    network = make_network(make_config(), len(VOCABULARY))
    source, lengths, *_ = batch(make_config(), emotions=True)
    ids = paddle.to_tensor([FIRST_EMOTION_ID + emotion_id(d.emotion or "") for d in DIALOGUES])
    given = network._read(source, lengths).emotion
    np.testing.assert_allclose(given.numpy(), network.embedding(ids).numpy(), atol=1e-5)
    # The decoder's emotion does not change what the head predicts, whose mean it is by default.
    plain, *_ = batch(make_config())
    probabilities, same = (network.emotion_probabilities(x, lengths) for x in (source, plain))
    np.testing.assert_allclose(probabilities.numpy(), same.numpy(), atol=1e-6)
    rows = network.embedding(paddle.arange(FIRST_EMOTION_ID, FIRST_EMOTION_ID + len(EMOTIONS)))
    predicted = network._read(plain, lengths).emotion
    np.testing.assert_allclose(predicted.numpy(), (same @ rows).numpy(), atol=1e-5)


def test_the_reply_teaches_the_emotion_head_nothing() -> None:
    network = make_network(make_config(), len(VOCABULARY))
    source, lengths, target, emotion, label, mask = batch(make_config())
    EmpatheticLoss(emotion_weight=0.0)(
        *network(*source, lengths, target), emotion=emotion, label=label, mask=mask
    ).backward()
    assert float(network.emotion_head.output.weight.grad.abs().sum()) == 0.0
    assert float(network.embedding.weight.grad.abs().sum()) > 0.0


@pytest.mark.parametrize("pointer", [True, False])
def test_the_loss_has_the_emotions_of_annotated_rows_and_a_smoothed_reply(pointer: bool) -> None:
    config = make_config(generator={"pointer": pointer})
    network = make_network(config, len(VOCABULARY))
    source, lengths, target, emotion, label, mask = batch(config)
    emotion[1] = -1
    outputs = network(*source, lengths, target)
    criterion = EmpatheticLoss(emotion_weight=0.5)
    loss = float(criterion(*outputs, emotion=emotion, label=label, mask=mask))
    log_probs = paddle.log(F.softmax(outputs.emotion)).numpy()
    emotion_nll = -(log_probs[0, int(emotion[0])] + log_probs[2, int(emotion[2])]) / 2
    reply_nll = float(criterion.token_nll.sum() / mask.sum())
    assert loss == pytest.approx(reply_nll + 0.5 * emotion_nll, rel=1e-5)
    emotion[:] = -1
    assert float(criterion(*outputs, emotion=emotion, label=label, mask=mask)) == pytest.approx(
        reply_nll, rel=1e-5
    )
    smooth = EmpatheticLoss(0.1, 0.0)
    soft = float(smooth(*outputs, emotion=emotion, label=label, mask=mask))
    uniform = -paddle.log(F.softmax(outputs.logits)).mean(-1)  # [B, T], over the vocabulary
    expected = 0.9 * reply_nll + 0.1 * float((uniform * mask).sum() / mask.sum())
    assert soft == pytest.approx(expected, rel=1e-4)
    np.testing.assert_array_equal(criterion.token_nll.numpy(), smooth.token_nll.numpy())


def test_a_vocabulary_without_room_for_the_reserved_entries_is_refused() -> None:
    with pytest.raises(UserError, match="a vocabulary of 39 is too small: 40 entries are reserved"):
        EmoPrepend(make_config(), 39)


@pytest.mark.parametrize(
    ("model", "sections", "told"),
    [
        ("lstm", {"emotion": {"head": "cls"}}, "emotion.head: cls is the first position"),
        ("transformer", {"model": {"aligned_input": True}}, "model.aligned_input: context and reply"),
        ("convolutional", {"model": {"key_size": 5}}, "model.key_size: must be a multiple of num_heads"),
        (
            "convolutional",
            {"model": {"max_positions": 64}},
            "model.max_positions: must be above data.max_length",
        ),
        (
            "causal",
            {"model": {"max_positions": 100}},
            r"model.max_positions: must hold data.max_length \(96\)",
        ),
        ("causal", {"model": {"num_heads": 3}}, r"model.num_heads: must divide width \(8\)"),
        ("causal", {"emotion": {"head": "cls"}}, "emotion.head: cls is the first position"),
        ("causal", {"generator": {"context_weight": 1.0}}, "data.mark_turns: must be true"),
        ("transformer", LEARNED, "generator.context_weight: needs a causal model"),
        ("lstm", LEARNED, "generator.context_weight: needs model.name: causal_transformer"),
    ],
)
def test_settings_that_contradict_each_other_are_told(model: str, sections: Any, told: str) -> None:
    with pytest.raises(UserError, match=told):
        make_config(model, **sections)


@pytest.mark.parametrize("family", MODELS)
def test_a_model_learns_replies_emotions_and_copying(family: str) -> None:
    # "rex" is outside the vocabulary and stands in the first context and its reply.
    vocabulary = make_vocabulary([*DIALOGUES[1:], Dialogue(["was a good dog"], "was a good dog .")])
    config = make_config(
        family, model={"num_heads": 1} if family != "lstm" else {}, decoding={"max_length": 8}
    )
    paddle.seed(3)
    network = EmoPrepend(config, len(vocabulary))
    optimizer = paddle.optimizer.Adam(0.02, parameters=network.parameters())
    dataset = DialogueDataset(DIALOGUES, config, vocabulary, 50)
    source, lengths, target, *labels = tensors(collate([dataset[index] for index in range(3)]))
    criterion = EmpatheticLoss()
    for _ in range(250 if family == "lstm" else 80):
        loss = criterion(*network(*source, lengths, target), **named(labels))
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
    answers = predictor_of(config, network, vocabulary).answer([d.context for d in DIALOGUES])
    assert "rex" not in vocabulary
    assert [answer.emotion for answer in answers] == [d.emotion for d in DIALOGUES]
    for answer, dialogue in zip(answers, DIALOGUES, strict=True):
        assert " ".join(answer.predictions[0].tokens) == dialogue.target.lower()
        assert answer.predictions[0].text[0].isupper()
